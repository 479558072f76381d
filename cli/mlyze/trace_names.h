/* Frames, stacks and amounts of a trace as text and JSON. */
#ifndef COFFER_CLI_TRACE_NAMES_H
#define COFFER_CLI_TRACE_NAMES_H

#include "base/buffer.h"
#include "cli.h"

/* "file.c:12"; "" when the file is not known. */
void trace_put_place(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* "function (file.c:12)". */
void trace_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* A list "frames" of maps function, file and line, innermost first. stack : may be COFFER_INDEX_NONE. */
void trace_add_frames(coffer_node *parent, const coffer_mlyze *trace, size_t stack);

/* "complete", and what is missing otherwise: "lost_blocks", "lost_events" and "damage". After the answer was
 * computed. */
void trace_add_lost(coffer_node *root, const coffer_mlyze *trace);

/* The numbers of a stack under a measure. */
typedef struct trace_amount {
    uint64_t bytes, count;
} trace_amount;
trace_amount trace_amount_of(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure);

#endif
