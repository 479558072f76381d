/* Profiles of other programs for the table in outside_files.c. */
#ifndef COFFER_CONVERT_OUTSIDE_PROFILES_H
#define COFFER_CONVERT_OUTSIDE_PROFILES_H

#include "convert/outside_files.h"

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

coffer_status coffer__collapsed_describe(coffer_node *out, coffer_source *src, const coffer_limits *limits,
                                         coffer_error *err);
coffer_status coffer__collapsed_check(coffer_report *out, coffer_source *src, const coffer_check_opts *opts,
                                      coffer_error *err);

#endif
