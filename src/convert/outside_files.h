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

/* Profiles of other programs for the table in outside_files.c. */
coffer_status coffer__massif_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                      coffer_error *err);
coffer_status coffer__massif_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                   coffer_error *err);
coffer_status coffer__massif_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                  coffer_error *err);

coffer_status coffer__dhat_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                    coffer_error *err);
coffer_status coffer__dhat_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                 coffer_error *err);
coffer_status coffer__dhat_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                coffer_error *err);

coffer_status coffer__heaptrack_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                         coffer_error *err);
coffer_status coffer__heaptrack_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err);

coffer_status coffer__pprof_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                     coffer_error *err);
coffer_status coffer__pprof_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                  coffer_error *err);
coffer_status coffer__pprof_list(coffer_node *out, coffer_source *src, const coffer_list_opts *opts,
                                 coffer_error *err);

coffer_status coffer__memray_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                      coffer_error *err);
coffer_status coffer__memray_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                   coffer_error *err);

coffer_status coffer__tracemalloc_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                           coffer_error *err);
coffer_status coffer__tracemalloc_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                        coffer_error *err);

coffer_status coffer__collapsed_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                         coffer_error *err);
coffer_status coffer__collapsed_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err);

#endif
