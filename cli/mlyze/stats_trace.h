/* The statistics of a whole trace: as text and as JSON. */
#ifndef COFFER_CLI_STATS_TRACE_H
#define COFFER_CLI_STATS_TRACE_H

#include "stack_report.h"

enum { STATS_TRACE_TOP = 10 };

/* top : selected; the places to show, and the statistics. */
coffer_status stats_trace_print(const stack_report *top, const char *path, FILE *out, coffer_error *err);
coffer_status stats_trace_add(coffer_node *root, const stack_report *top, const char *path,
                              coffer_error *err);

#endif
