/* Pairs every free with its allocation. Address 0 stands for addresses that the writer did not know: it is
 * never paired. */
#ifndef COFFER_FORMATS_MLYZE_PAIR_H
#define COFFER_FORMATS_MLYZE_PAIR_H

#include "coffer/mlyze.h"
#include "formats/mlyze/analyze/mlyze_live.h"

/* Bytes that are live. The sizes in a file may add up to more than 64 bits. */
__extension__ typedef __int128 coffer__mlyze_wide;

/* As it is told: what is past 64 bits stops at their end. */
static inline uint64_t coffer__mlyze_narrow(coffer__mlyze_wide bytes)
{
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

/* The sum of two that only grow; it stops at the end of 64 bits too. */
static inline uint64_t coffer__mlyze_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Time that passed; none where the blocks of a damaged trace go back in time. */
static inline uint64_t coffer__mlyze_since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

/* How much is live, followed through a trace: enough for an index and for warnings. */
typedef struct coffer__mlyze_level {
    coffer__mlyze_wide bytes;
    coffer__mlyze_wide
        high_bytes; /* goes up with bytes; the caller sets it down to them where a new stretch begins */
    uint64_t allocs;
    uint64_t unknown_frees, first_unknown_free; /* of addresses that are not live; number of the first */
    uint64_t double_allocs, first_double_alloc; /* of addresses that are: the old block is gone */
} coffer__mlyze_level;

/* Follows the events of one block, in the order of the trace; the columns are only read. COFFER_E_LIMIT when
 * the table has outgrown its budget. */
coffer_status coffer__mlyze_follow(coffer__mlyze_level *level, coffer__mlyze_live *live,
                                   const coffer_mlyze_events *events, coffer_error *err);

#endif
