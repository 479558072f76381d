/* A set of triples of numbers, each with an index: frames by function, file and line, calls by caller and
 * frame. */
#ifndef COFFER_OUTSIDE_TRIPLES_H
#define COFFER_OUTSIDE_TRIPLES_H

#include "base/table.h"

typedef struct coffer__triple {
    uint64_t a, b, c;
} coffer__triple;

typedef struct coffer__triples {
    coffer__triple *items; /* in the order in which they were added */
    size_t count, capacity;
    coffer__table table;
} coffer__triples;

/* *place : index of the equal item, or of the new one at the end. */
coffer_status coffer__triples_add(size_t *place, bool *is_new, coffer__triples *triples, coffer__triple item,
                                  coffer_error *err);
void coffer__triples_free(coffer__triples *triples);

#endif
