/* A set of triples of numbers that gives each its place: frames by function, file and line, calls by caller
 * and frame. */
#ifndef COFFER_OUTSIDE_TRIPLES_H
#define COFFER_OUTSIDE_TRIPLES_H

#include "coffer/error.h"

typedef struct coffer__triple {
    uint64_t a, b, c;
} coffer__triple;

typedef struct coffer__triples {
    coffer__triple *items; /* in the order in which they came */
    size_t count, capacity;
    uint32_t *slots; /* place + 1; 0 = free */
    size_t slot_count;
} coffer__triples;

/* *place : of the equal one that is there, or a new one at the end. */
coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err);
void coffer__triples_free(coffer__triples *triples);

#endif
