/* The table of live blocks, by address. A slot has 32 bytes, four slots fill two cache lines, and a table is
 * rebuilt to half full when three quarters are used: at most 64 bytes for each live block. Hashes are keyed
 * with a random number, so that a file cannot make addresses collide. */
#ifndef COFFER_FORMATS_MLYZE_LIVE_H
#define COFFER_FORMATS_MLYZE_LIVE_H

#include "base/checked.h"
#include "coffer/mlyze.h"

#include <stdatomic.h>

#define COFFER__MLYZE_PARTS 64 /* rebuilt one at a time, so that little memory is needed twice */
#define COFFER__MLYZE_BUCKET 4 /* slots, two cache lines: processors fetch such pairs together */

/* A live block. */
typedef struct coffer__mlyze_held {
    uint64_t size, time;
    uint64_t order; /* the caller's count of allocations or events */
    uint32_t stack;
    uint16_t thread;
} coffer__mlyze_held;

/* address 0 : empty. The rest is packed: thread and size; the top of order, dead and time; stack and order.
 * Blocks that do not fit are in `wide`. */
typedef struct coffer__mlyze_slot {
    uint64_t address, sized, timed, placed;
} coffer__mlyze_slot;

typedef struct coffer__mlyze_part {
    coffer__mlyze_slot *slots, *end; /* never NULL; the slots at the end are always empty */
    void *memory;
    uint32_t bucket_count;
    uint32_t capacity, used, max_used; /* slots; used : live and dead */
    uint32_t live;
} coffer__mlyze_part;

/* The bytes that several tables may use together. */
typedef struct coffer__mlyze_budget {
    atomic_size_t used;
    size_t max;
    atomic_bool exceeded; /* a table wanted more: its call failed with COFFER_E_LIMIT */
} coffer__mlyze_budget;

/* Shared by all tables of one pass, so that their hashes agree. */
typedef struct coffer__mlyze_key {
    uint64_t add, multiply;
} coffer__mlyze_key;

typedef struct coffer__mlyze_live {
    coffer__mlyze_part parts[COFFER__MLYZE_PARTS];
    coffer__mlyze_key key;
    coffer__mlyze_budget *budget;                /* NULL = no bound */
    bool remember;                               /* keep addresses that were freed, to detect reuse */
    coffer__mlyze_held *wide;                    /* blocks whose numbers do not fit a slot */
    size_t wide_count, wide_capacity, wide_free; /* wide_free : list through `size`, from 1; 0 = none */
} coffer__mlyze_live;

coffer__mlyze_key coffer__mlyze_new_key(void);
void coffer__mlyze_live_init(coffer__mlyze_live *live, coffer__mlyze_key key, coffer__mlyze_budget *budget);
void coffer__mlyze_live_free(coffer__mlyze_live *live);
uint64_t coffer__mlyze_live_count(const coffer__mlyze_live *live);
size_t coffer__mlyze_live_bytes(const coffer__mlyze_live *live); /* memory of the table */

typedef enum coffer__mlyze_put {
    COFFER__MLYZE_PUT_NEW,
    COFFER__MLYZE_PUT_AGAIN,   /* at an address that was freed before; reliable with `remember` only */
    COFFER__MLYZE_PUT_REPLACED /* a live one, which *old gets */
} coffer__mlyze_put;

/* hash : coffer__mlyze_hash() of the address, which is not 0. */
coffer_status coffer__mlyze_live_put(coffer__mlyze_put *what, coffer__mlyze_live *live, uint64_t hash,
                                     uint64_t address, const coffer__mlyze_held *block,
                                     coffer__mlyze_held *old, coffer_error *err);
/* Removes a block. False when none is live there. */
bool coffer__mlyze_live_take(coffer__mlyze_held *out, coffer__mlyze_live *live, uint64_t hash,
                             uint64_t address);
/* Calls `visit` for every live block, in no order. */
void coffer__mlyze_live_each(const coffer__mlyze_live *live,
                             void (*visit)(void *context, const coffer__mlyze_held *block), void *context);

static inline uint64_t coffer__mlyze_hash(const coffer__mlyze_key *key, uint64_t address)
{
    uint64_t folded = coffer__mul_fold(address ^ key->add, key->multiply);
    /* The product alone is linear: with some keys, addresses at equal distances would be neighbors. */
    return (folded ^ folded >> 32) * UINT64_C(0xD6E8FEB86659FD93);
}

/* Where the search for an address begins. */
static inline coffer__mlyze_slot *coffer__mlyze_home(const coffer__mlyze_part *part, uint64_t hash)
{
    return part->slots + ((uint64_t)(uint32_t)(hash >> 8) * part->bucket_count >> 32) * COFFER__MLYZE_BUCKET;
}

/* Always inline: the compiler drops calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void coffer__mlyze_prefetch(const coffer__mlyze_part *part,
                                                                         uint64_t hash)
{
    const coffer__mlyze_slot *home = coffer__mlyze_home(part, hash);
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + COFFER__MLYZE_BUCKET / 2, 1);
}

/* ---- How much is live ---- */

/* The bytes that are live are a coffer__wide, because the sizes in a file may add up to more than 64 bits.
 * For reports: saturates at 64 bits. */
static inline uint64_t coffer__mlyze_narrow(coffer__wide bytes)
{
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

/* Adds; saturates at 64 bits. */
static inline uint64_t coffer__mlyze_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Elapsed time; 0 where the blocks of a damaged trace go back in time. */
static inline uint64_t coffer__mlyze_since(uint64_t then, uint64_t now)
{
    return now > then ? now - then : 0;
}

/* The level of live bytes through a trace, for the index and for warnings. */
typedef struct coffer__mlyze_level {
    coffer__wide bytes;
    coffer__wide high_bytes;                    /* the maximum of bytes; the caller resets it */
    uint64_t allocs, high_allocs;               /* likewise */
    uint64_t unknown_frees, first_unknown_free; /* of addresses that are not live; number of the first */
    uint64_t double_allocs, first_double_alloc; /* of addresses that are: the old block is gone */
} coffer__mlyze_level;

/* Follows the events of one block, in the order of the trace; the columns are only read. COFFER_E_LIMIT when
 * the table has outgrown its budget. */
coffer_status coffer__mlyze_follow(coffer__mlyze_level *level, coffer__mlyze_live *live,
                                   const coffer_mlyze_events *events, coffer_error *err);

#endif
