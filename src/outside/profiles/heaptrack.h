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
 * From format 3 on, lengths precede texts. */
#ifndef COFFER_OUTSIDE_HEAPTRACK_H
#define COFFER_OUTSIDE_HEAPTRACK_H

#include "base/buffer.h"
#include "outside/profiles/profile_text.h"

#define COFFER__HEAPTRACK_NEWEST 3

bool coffer__heaptrack_probe(const uint8_t *head, size_t len);

/* ---- Fields of a line ---- */

typedef struct coffer__heaptrack_line {
    const char *at, *end;
} coffer__heaptrack_line;

/* The fields of the current line, after its letter. */
coffer__heaptrack_line coffer__heaptrack_fields(const coffer__packed_lines *lines);
/* False at the end of the line and for anything but a number. */
bool coffer__heaptrack_hex(uint64_t *out, coffer__heaptrack_line *line);
bool coffer__heaptrack_text(const char **text, size_t *len, coffer__heaptrack_line *line, bool sized);

/* ---- Modules of raw files: which file an instruction is in ---- */

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
/* The module that contains an address, or NULL. */
const coffer__heaptrack_module *coffer__heaptrack_modules_find(const coffer__heaptrack_modules *modules,
                                                               uint64_t address);

#endif
