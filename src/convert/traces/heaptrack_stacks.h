/* Strings, instructions and traces of a heaptrack file, as names and stacks of the trace that is made of it.
 */
#ifndef COFFER_CONVERT_HEAPTRACK_STACKS_H
#define COFFER_CONVERT_HEAPTRACK_STACKS_H

#include "convert/traces/mlyze_import.h"
#include "outside/profiles/heaptrack.h"

typedef struct coffer__heaptrack_string {
    size_t at, len;
    uint64_t function, file; /* ids in the trace, UINT64_MAX until it is used as such */
} coffer__heaptrack_string;

typedef struct coffer__heaptrack_trace {
    uint64_t parent; /* from 1, smaller than its own; 0 = none */
    uint64_t frame_at;
    uint32_t frame_count;
    uint64_t depth; /* frames up to the outermost */
    uint64_t stack; /* id in the trace, UINT64_MAX until it is used */
} coffer__heaptrack_trace;

/* The frames of an instruction, innermost first. */
typedef struct coffer__heaptrack_ip {
    uint64_t frame_at;
    uint32_t frame_count;
} coffer__heaptrack_ip;

typedef struct coffer__heaptrack_stacks {
    coffer__mlyze_import *import;
    const coffer__packed_lines *lines;
    coffer__heaptrack_modules modules;
    coffer__buffer texts;
    coffer__heaptrack_string *strings;
    size_t string_count, string_capacity;
    coffer_mlyze_frame *frames;
    size_t frame_count, frame_capacity;
    coffer__heaptrack_ip *ips;
    size_t ip_count, ip_capacity;
    coffer__heaptrack_trace *traces;
    size_t trace_count, trace_capacity;
    coffer_mlyze_frame *stack; /* the current one */
    size_t stack_capacity;
} coffer__heaptrack_stacks;

void coffer__heaptrack_stacks_free(coffer__heaptrack_stacks *stacks);
coffer_status coffer__heaptrack_take_string(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                            bool sized, coffer_error *err);
coffer_status coffer__heaptrack_take_ip(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                        coffer_error *err);
coffer_status coffer__heaptrack_take_trace(coffer__heaptrack_stacks *stacks, coffer__heaptrack_line line,
                                           bool raw, coffer_error *err);
/* The stack of a trace, by its number; 0 = none. */
coffer_status coffer__heaptrack_stack(uint64_t *id, coffer__heaptrack_stacks *stacks, uint64_t trace,
                                      coffer_error *err);

#endif
