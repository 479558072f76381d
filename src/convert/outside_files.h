/* Files of other programs that are not sets of tensors: what describe, check and list do for each kind. */
#ifndef COFFER_CONVERT_OUTSIDE_FILES_H
#define COFFER_CONVERT_OUTSIDE_FILES_H

#include "coffer/format.h"

typedef struct coffer__outside_file {
    const char *kind, *title;
    coffer_status (*describe)(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                              coffer_error *err);
    /* The first thing wrong with the file is the error; notes about parts that were not read go to out. */
    coffer_status (*check)(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                           coffer_error *err);
    /* NULL: such a file has no entries. */
    coffer_status (*list)(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                          coffer_error *err);
} coffer__outside_file;

/* NULL for a kind that cannot be described. */
const coffer__outside_file *coffer__outside_file_find(const char *kind);

#endif
