/* The options that all questions about a trace have in common, and asking. */
#ifndef COFFER_CLI_TRACE_QUERY_H
#define COFFER_CLI_TRACE_QUERY_H

#include "cli.h"

#define TRACE_WINDOW_OPTION                                                                         \
    {                                                                                               \
        "window", 'w', "A..B", NULL,                                                                \
            "only what happens between two moments: a time (1.5s, 20ms), an event number, a marker" \
    }
#define TRACE_WORK_OPTIONS                                                                          \
    { "memory-limit", 0, "SIZE", NULL, "spill the table of live blocks to disk past SIZE (1GiB)" }, \
    {                                                                                               \
        "threads", 0, "N", NULL, "use N threads (one per core)"                                     \
    }

typedef struct trace_query {
    coffer_mlyze_stats_opts query;
    coffer_limits limits;
    coffer_mlyze_stats *stats; /* after trace_query_run */
} trace_query;

/* Reads --window, --memory-limit and --threads. 0, or the exit status after a message. */
int trace_query_init(trace_query *out, const cli_args *args, const coffer_mlyze *trace);
/* A moment of the option's value into *event; untouched when the option is not there. */
int trace_query_moment(uint64_t *event, const cli_args *args, const char *option, const coffer_mlyze *trace);
int trace_query_run(trace_query *request, const cli_args *args, const coffer_mlyze *trace);
void trace_query_free(trace_query *request);

#endif
