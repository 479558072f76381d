/* What the verbs that work with any file mean for a set of tensors: a model in the files of another program.
 */
#ifndef COFFER_CLI_TENSOR_SETS_H
#define COFFER_CLI_TENSOR_SETS_H

#include "cli.h"

/* By path where there is one, since a model may lie in several files; src : what was read of standard input.
 */
coffer_status tensors_open(coffer_tensors **out, const char *path, coffer_source *src, coffer_error *err);

/* "f32" for whatever the file calls it; "Q4_K" for types of the file's own. */
const char *tensors_type(const coffer_tensor *tensor);
const char *tensors_title(const coffer_tensors *set);
bool tensors_in_several_files(const coffer_tensors *set);
uint64_t tensors_size(const coffer_tensors *set); /* bytes of all payloads */

coffer_status tensors_describe(coffer_node *out, const coffer_tensors *set, coffer_error *err);
coffer_status tensors_check(coffer_report *out, const coffer_tensors *set, const coffer_check_opts *opts,
                            coffer_error *err);
coffer_status tensors_list(coffer_node *out, const coffer_tensors *set, const coffer_list_opts *opts,
                           coffer_error *err);
coffer_status tensors_diff(coffer_node *out, const coffer_tensors *a, const coffer_tensors *b,
                           const coffer_diff_opts *opts, coffer_error *err);

#endif
