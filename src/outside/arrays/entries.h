/* The entries of a sparse matrix, brought into the order of rows whatever their order was: sorted in memory
 * as far as that goes, in runs in a temporary file beyond. Entries of the same place become their sum. */
#ifndef COFFER_CONVERT_ENTRIES_H
#define COFFER_CONVERT_ENTRIES_H

#include "coffer/dtype.h"
#include "coffer/error.h"

typedef struct coffer__entry {
    uint64_t place; /* row × columns + column */
    union {
        double real[2]; /* F64, C128 */
        int64_t i64;
        uint64_t u64; /* U64, BOOL */
    } value;
} coffer__entry;

typedef struct coffer__entries coffer__entries;

/* dtype : BOOL (whose sum is "or"), I64, U64, F64 or C128. expected : how many will come at most.
 * memory_bytes : what may be spent on sorting. */
coffer_status coffer__entries_new(coffer__entries **out, coffer_dtype dtype, uint64_t expected,
                                  uint64_t memory_bytes, coffer_error *err);
void coffer__entries_free(coffer__entries *entries);
coffer_status coffer__entries_add(coffer__entries *entries, const coffer__entry *entry, coffer_error *err);
/* The next in order; nothing can be added after the first call. *more is false after the last. */
coffer_status coffer__entries_next(bool *more, coffer__entry *out, coffer__entries *entries,
                                   coffer_error *err);

#endif
