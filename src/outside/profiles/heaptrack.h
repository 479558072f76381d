/* Heaptrack's text: a letter, then hexadecimal numbers, a record a line. Raw files hold addresses, those that
 * heaptrack_interpret made of them hold names; the latter is what heaptrack_print reads.
 *
 *   v VERSION FORMAT     the program's version and that of the format, 1 to 3 (0: without FORMAT)
 *   X text               command line                 x [LEN] text   path of the program (raw)
 *   I SIZE PAGES         page size, pages of memory   A              attached to a running program
 *   m [LEN] path ADDR {VADDR SIZE}   a module and its segments (raw); "-" forgets all, "x" is the program
 *   s [LEN] text         the next string, from 1      i IP MODULE [FUNCTION FILE LINE {FUNCTION FILE LINE}]
 *   t IP PARENT          the next trace, from 1: an i record (raw: an address) called from another trace
 *   a SIZE TRACE         the next kind of allocation, from 0
 *   + KIND               allocation (raw and format 0: + SIZE TRACE POINTER)
 *   - KIND               release (raw and format 0: - POINTER)
 *   c MS                 time since the start         R PAGES        resident memory
 *
 * Lengths stand before texts from format 3 on. */
#ifndef COFFER_CONVERT_HEAPTRACK_H
#define COFFER_CONVERT_HEAPTRACK_H

#include "convert/traces/mlyze_import.h"
#include "outside/profiles/import_lines.h"

#define COFFER__HEAPTRACK_NEWEST 3

bool coffer__heaptrack_probe(const uint8_t *head, size_t len);

/* ---- Fields of a line ---- */

typedef struct coffer__heaptrack_line {
    const char *at, *end;
} coffer__heaptrack_line;

/* The line in hand, behind its letter. */
coffer__heaptrack_line coffer__heaptrack_fields(const coffer__import_lines *lines);
/* False when there are no more, or what is there is no number. */
bool coffer__heaptrack_hex(uint64_t *out, coffer__heaptrack_line *line);
bool coffer__heaptrack_text(const char **text, size_t *len, coffer__heaptrack_line *line, bool sized);

/* ---- Where instructions are: modules of raw files (heaptrack_modules.c) ---- */

typedef struct coffer__heaptrack_module {
    uint64_t begin, end, base;
    size_t name_at, name_len; /* in names */
} coffer__heaptrack_module;

typedef struct coffer__heaptrack_modules {
    coffer__heaptrack_module *items; /* ascending begin */
    size_t count, capacity;
    coffer__buffer names;
} coffer__heaptrack_modules;

void coffer__heaptrack_modules_clear(coffer__heaptrack_modules *modules);
void coffer__heaptrack_modules_free(coffer__heaptrack_modules *modules);
/* [begin, end) of a file that is loaded at base. */
coffer_status coffer__heaptrack_modules_add(coffer__heaptrack_modules *modules, const char *name, size_t len,
                                            uint64_t base, uint64_t begin, uint64_t end, coffer_error *err);
/* The module that holds an address, or NULL. */
const coffer__heaptrack_module *coffer__heaptrack_modules_find(const coffer__heaptrack_modules *modules,
                                                               uint64_t address);

/* ---- Strings, instructions and traces (heaptrack_stacks.c) ---- */

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
    const coffer__import_lines *lines;
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
    coffer_mlyze_frame *stack; /* the one in hand */
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
