/* Frames, stacks and measures of a trace in words. */
#ifndef COFFER_CLI_TRACE_NAMES_H
#define COFFER_CLI_TRACE_NAMES_H

#include "base/buffer.h"
#include "cli.h"

/* The name of a function: what the table says; the place where it has none; "?" where both are missing. */
void trace_put_function(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* "file.c:12"; "" when the file is not known. */
void trace_put_place(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* "function (file.c:12)". */
void trace_put_frame(coffer__buffer *out, const coffer_mlyze *trace, const coffer_mlyze_frame *frame);
/* A list "frames" of maps function, file and line, innermost first. stack : may be SIZE_MAX. */
void trace_add_frames(coffer_node *parent, const coffer_mlyze *trace, size_t stack);

/* Which of a stack's numbers is asked for. */
typedef struct trace_amount {
    uint64_t bytes, count;
} trace_amount;
trace_amount trace_amount_of(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure);
trace_amount trace_amount_of_all(const coffer_mlyze_totals *totals, coffer_mlyze_measure measure);

#endif
