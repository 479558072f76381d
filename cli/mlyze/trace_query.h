/* The options that all verbs for traces share, and the call of the library. */
#ifndef COFFER_CLI_TRACE_QUERY_H
#define COFFER_CLI_TRACE_QUERY_H

#include "cli.h"

/* In the order of coffer_mlyze_measure. */
#define TRACE_WHAT_CHOICES "peak|leaks|total|temporaries"
extern const cli_old_spelling trace_what_old[];

#define TRACE_WINDOW_OPTION                                                                 \
    {                                                                                       \
        "window", 'w', "A..B", NULL,                                                        \
            "only events between two moments: times (1.5s, 20ms), event numbers or markers" \
    }
#define TRACE_ORDER_OPTION                                                                        \
    {                                                                                             \
        "stack-order", 0, "ORDER", "outermost-first|innermost-first",                             \
            "order of frames in a trace that does not say it, such as a plain one of Coffer 0.1", \
            "outermost-first"                                                                     \
    }
/* For files of other profilers. */
#define TRACE_EVENTS_OPTION                                                                         \
    {                                                                                               \
        "max-events", 0, "N", NULL, "highest number of events to make for the blocks of a profile", \
            "4194304"                                                                               \
    }
#define TRACE_UNPACKED_OPTION                                                                       \
    {                                                                                               \
        "max-unpacked", 0, "SIZE", NULL, "highest number of bytes that a compressed file may give", \
            "64 MiB or 1000 times its size"                                                         \
    }
#define TRACE_SOURCE_OPTIONS TRACE_ORDER_OPTION, TRACE_EVENTS_OPTION, TRACE_UNPACKED_OPTION
#define TRACE_MEMORY_OPTION                                                                                  \
    {                                                                                                        \
        "memory-limit", 0, "SIZE", NULL, "memory for the table of live blocks; the rest is spilled to disk", \
            "1GiB"                                                                                           \
    }
#define TRACE_THREADS_OPTION                                         \
    {                                                                \
        "threads", 0, "N", NULL, "number of threads", "one per core" \
    }
/* Unlike other files, a trace is often incomplete: its program was killed, or the disk was full. */
#define TRACE_DAMAGED_OPTION                                                                           \
    {                                                                                                  \
        "damaged", 0, "MODE", "stop|keep",                                                             \
            "damaged parts: leave them out, report them and exit with 1 (keep), or print nothing but " \
            "the error (stop)",                                                                        \
            "keep"                                                                                     \
    }
#define TRACE_WORK_OPTIONS \
    TRACE_SOURCE_OPTIONS, TRACE_MEMORY_OPTION, TRACE_THREADS_OPTION, TRACE_DAMAGED_OPTION

typedef struct trace_query {
    coffer_mlyze_stats_opts query;
    coffer_limits limits;
    coffer_mlyze_stats *stats; /* after trace_query_run */
} trace_query;

/* Reads --window, --memory-limit and --threads. 0, or the exit status after a message. */
int trace_query_init(trace_query *out, const cli_args *args, const coffer_mlyze *trace);
/* Parses the option's value as a moment into *event; unchanged without the option. */
int trace_query_moment(uint64_t *event, const cli_args *args, const char *option, const coffer_mlyze *trace);
/* For --damaged stop, after the trace was read and before anything is printed: CLI_FINDINGS after a message
 * when parts of the trace are damaged or were lost in a repair, else 0. */
int trace_stop_at_damage(const cli_args *args, const char *path, const coffer_mlyze *trace);
bool trace_stopped(void); /* whether it did */
int trace_query_run(trace_query *request, const cli_args *args, const coffer_mlyze *trace);
void trace_query_free(trace_query *request);

/* The patterns of a repeatable option, and of the files that another option names (NULL = none). 0, or the
 * exit status after a message; free the list in either case. */
int trace_read_patterns(coffer_mlyze_suppressions **out, const cli_args *args, const char *option,
                        const char *file_option);
/* CLI_FINDINGS after a message with the numbers when there are more bytes than --fail-over allows, else 0. */
int trace_fail_over(const cli_args *args, const char *what, uint64_t bytes, uint64_t limit);

#endif
