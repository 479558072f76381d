/* The whole of a trace in numbers: for people and as JSON. */
#ifndef COFFER_CLI_STATS_TRACE_H
#define COFFER_CLI_STATS_TRACE_H

#include "stack_report.h"

enum { STATS_TRACE_TOP = 10 };

/* top : selected; says which places are shown, and has the analysis that everything is taken from. */
coffer_status stats_trace_print(const stack_report *top, const char *path, FILE *out, coffer_error *err);
coffer_status stats_trace_add(coffer_node *root, const stack_report *top, const char *path,
                              coffer_error *err);

#endif
