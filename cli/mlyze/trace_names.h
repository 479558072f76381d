/* Frames, stacks and amounts of a trace as text and JSON. */
#ifndef COFFER_CLI_TRACE_NAMES_H
#define COFFER_CLI_TRACE_NAMES_H

#include "base/buffer.h"
#include "cli.h"
#include "term.h"

/* "file.c:12"; "" when the file is not known. */
void trace_put_place(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* "function (file.c:12)". */
void trace_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* A list "frames" of maps function, file and line, innermost first. stack : may be COFFER_INDEX_NONE. */
void trace_add_frames(coffer_node *parent, const coffer_mlyze *trace, size_t stack);

/* A time of the trace: "1.5 s", or "3,000 instructions" where its source counts those. */
const char *trace_time(term_text out, const coffer_mlyze *trace, uint64_t time_us);
/* "instructions"; NULL when times are times. */
const char *trace_unit(const coffer_mlyze *trace);
/* Whether the events are real: false for profiles, whose lifetimes and temporaries are made up. */
bool trace_has_order(const coffer_mlyze *trace);
/* Whether blocks that are live at the end were never freed: massif only knows its last snapshot. */
bool trace_knows_leaks(const coffer_mlyze *trace);
/* The questions that a profile of another program may be unable to answer. */
typedef enum trace_question {
    TRACE_ASKS_TOTAL,
    TRACE_ASKS_PEAK,
    TRACE_ASKS_LEAKS,
    TRACE_ASKS_ORDER, /* lifetimes, temporaries, growth */
    TRACE_ASKS_COURSE /* memory over time */
} trace_question;
trace_question trace_question_of(coffer_mlyze_measure measure);
/* 0; after a note on stderr when the source of the trace knows only something similar; or CLI_USAGE after a
 * message when it knows nothing of the kind. */
int trace_check_source(const cli_args *args, const char *path, const coffer_mlyze *trace,
                       trace_question question);
void trace_tell_note(const char *path, const char *format, ...) COFFER_PRINTF(2, 3);

/* "complete", and what is missing otherwise: "lost_blocks", "lost_events" and "damage". After the answer was
 * computed. */
void trace_add_lost(coffer_node *root, const coffer_mlyze *trace);

/* " ± 1.2 MiB" for the bytes of a number of blocks of a sampled trace, else "". */
const char *trace_error(term_text out, const coffer_mlyze *trace, uint64_t allocs);
/* "PREFIX_error_bytes", or "error_bytes" for NULL, of a sampled trace. */
void trace_add_error(coffer_node *map, const char *prefix, const coffer_mlyze *trace, uint64_t allocs);
/* "sampling_bytes" of a sampled trace. */
void trace_add_sampling(coffer_node *root, const coffer_mlyze *trace);
/* The line that explains the estimates of a sampled trace, after this text. */
void trace_print_sampling(const char *indent, const coffer_mlyze *trace, uint64_t allocs, FILE *out);

/* The numbers of a stack under a measure. */
typedef struct trace_amount {
    uint64_t bytes, count;
} trace_amount;
trace_amount trace_amount_of(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure);

#endif
