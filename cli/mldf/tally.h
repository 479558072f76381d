/* How often each number occurs. */
#ifndef COFFER_CLI_TALLY_H
#define COFFER_CLI_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Beyond this many different numbers a tally says nothing and is given up. */
#define TALLY_MAX 65536

typedef struct tally_count {
    uint64_t value, count;
    uint64_t first; /* where it was seen first */
} tally_count;

typedef struct tally {
    tally_count *slots; /* a count of 0 marks a free one */
    size_t capacity, used;
    bool overflowed; /* more than TALLY_MAX, or out of memory */
} tally;

void tally_add(tally *counts, uint64_t value, uint64_t where);
/* Packs the counts to the front of slots, the most frequent first, equal ones by value as signed numbers. */
void tally_sort(tally *counts);
void tally_free(tally *counts);

#endif
