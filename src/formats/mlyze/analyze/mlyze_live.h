/* The table of live blocks, by address: open addressing, in slots of 32 bytes. A large table is filled to
 * between 80 and 90 %, so that a live block takes at most 40 bytes, and grows in place. A freed block leaves
 * a dead slot, since allocators give its address out again soon. Hashes are keyed with a random number, so
 * that a file cannot make addresses collide. */
#ifndef COFFER_FORMATS_MLYZE_LIVE_H
#define COFFER_FORMATS_MLYZE_LIVE_H

#include "base/checked.h"
#include "coffer/mlyze.h"

#include <stdatomic.h>

/* A live block. */
typedef struct coffer__mlyze_held {
    uint64_t size, time;
    uint64_t order; /* the caller's count of allocations or events */
    uint32_t stack;
    uint16_t thread;
} coffer__mlyze_held;

/* address : 0 = empty
 * sized   : thread, 16 bits; size, 48
 * timed   : time, 55 bits; dead, 1; the upper 8 of order
 * placed  : the lower 32 bits of order; stack, 32
 * Blocks that do not fit are in `wide`. */
typedef struct coffer__mlyze_slot {
    uint64_t address, sized, timed, placed;
} coffer__mlyze_slot;

#define COFFER__MLYZE_SIZE_BITS 48
#define COFFER__MLYZE_TIME_BITS 55
#define COFFER__MLYZE_ORDER_BITS 40
#define COFFER__MLYZE_DEAD (UINT64_C(1) << 8)
#define COFFER__MLYZE_TIME_SHIFT 9
/* As a size: the slot's time is the index in `wide`. */
#define COFFER__MLYZE_SIZE_WIDE ((UINT64_C(1) << COFFER__MLYZE_SIZE_BITS) - 1)

/* The bytes that several tables may use together. */
typedef struct coffer__mlyze_budget {
    atomic_size_t used;
    size_t max;
    atomic_bool exceeded; /* a table wanted more: its call failed with COFFER_E_LIMIT */
} coffer__mlyze_budget;

typedef struct coffer__mlyze_key {
    uint64_t add, multiply;
} coffer__mlyze_key;

typedef struct coffer__mlyze_live {
    coffer__mlyze_slot *slots, *end; /* never NULL; the slot at `end`, the last one, is always empty */
    void *memory;                    /* that they are in */
    size_t homes;                    /* slots where a search can begin */
    size_t capacity;                 /* slots, with those after the last home */
    size_t used, max_used, live;     /* used : live and dead */
    coffer__mlyze_key key;
    coffer__mlyze_budget *budget; /* NULL = no bound */
    size_t roomy;  /* up to this many blocks the table is kept half empty: it is small, and faster */
    bool remember; /* keep addresses that were freed, to detect reuse */
    coffer__mlyze_held *wide;                    /* blocks whose numbers do not fit a slot */
    size_t wide_count, wide_capacity, wide_free; /* wide_free : list through `size`, from 1; 0 = none */
} coffer__mlyze_live;

coffer__mlyze_key coffer__mlyze_new_key(void);
void coffer__mlyze_live_init(coffer__mlyze_live *live, coffer__mlyze_key key, coffer__mlyze_budget *budget);
void coffer__mlyze_live_free(coffer__mlyze_live *live);
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

/* ---- Inline, for hot loops ---- */

static inline uint64_t coffer__mlyze_hash(const coffer__mlyze_key *key, uint64_t address)
{
    uint64_t folded = coffer__mul_fold(address ^ key->add, key->multiply);
    /* The product alone is linear: with some keys, addresses at equal distances would be neighbors. */
    return (folded ^ folded >> 32) * UINT64_C(0xD6E8FEB86659FD93);
}

/* Where the search for an address begins. A larger table has no home before that of a smaller one. */
static inline coffer__mlyze_slot *coffer__mlyze_home(const coffer__mlyze_live *live, uint64_t hash)
{
    return live->slots + ((uint64_t)(uint32_t)(hash >> 8) * live->homes >> 32);
}

/* Always inline: the compiler drops calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void coffer__mlyze_prefetch(const coffer__mlyze_live *live,
                                                                         uint64_t hash)
{
    const coffer__mlyze_slot *home = coffer__mlyze_home(live, hash);
    __builtin_prefetch(home, 1);
    __builtin_prefetch(home + 2, 1);
}

static inline bool coffer__mlyze_is_dead(const coffer__mlyze_slot *slot)
{
    return slot->timed & COFFER__MLYZE_DEAD;
}

static inline bool coffer__mlyze_is_wide(const coffer__mlyze_slot *slot)
{
    return (slot->sized & COFFER__MLYZE_SIZE_WIDE) == COFFER__MLYZE_SIZE_WIDE;
}

static inline bool coffer__mlyze_fits_slot(const coffer__mlyze_held *block)
{
    return !((block->size >= COFFER__MLYZE_SIZE_WIDE) | (block->time >> COFFER__MLYZE_TIME_BITS != 0) |
             (block->order >> COFFER__MLYZE_ORDER_BITS != 0));
}

static inline void coffer__mlyze_pack(coffer__mlyze_slot *slot, const coffer__mlyze_held *block)
{
    slot->sized = (uint64_t)block->thread << COFFER__MLYZE_SIZE_BITS | block->size;
    slot->timed = block->time << COFFER__MLYZE_TIME_SHIFT | block->order >> 32;
    slot->placed = block->order << 32 | block->stack;
}

static inline void coffer__mlyze_unpack(coffer__mlyze_held *out, const coffer__mlyze_slot *slot)
{
    out->size = slot->sized & COFFER__MLYZE_SIZE_WIDE;
    out->time = slot->timed >> COFFER__MLYZE_TIME_SHIFT;
    out->order = (slot->timed & (COFFER__MLYZE_DEAD - 1)) << 32 | slot->placed >> 32;
    out->stack = (uint32_t)slot->placed;
    out->thread = (uint16_t)(slot->sized >> COFFER__MLYZE_SIZE_BITS);
}

/* The slot of the address, or the slot to put it in: a dead one, or the empty one where the search ends. */
static inline coffer__mlyze_slot *coffer__mlyze_find(const coffer__mlyze_live *live, uint64_t hash,
                                                     uint64_t address)
{
    coffer__mlyze_slot *slot = coffer__mlyze_home(live, hash), *dead = NULL;
    for (;; slot++) {
        if (slot->address == address)
            return slot;
        if (slot->address == 0)
            return dead ? dead : slot;
        if (!dead && !live->remember && coffer__mlyze_is_dead(slot))
            dead = slot;
    }
}

/* Puts a block where none is live, if nothing else has to be done. Otherwise returns false and changes
 * nothing: call coffer__mlyze_live_put. */
static inline bool coffer__mlyze_put_fast(coffer__mlyze_live *live, uint64_t hash, uint64_t address,
                                          const coffer__mlyze_held *block)
{
    coffer__mlyze_slot *slot = coffer__mlyze_find(live, hash, address);
    const bool is_empty = slot->address == 0;
    if ((slot->address == address && (live->remember || !coffer__mlyze_is_dead(slot))) ||
        (is_empty && live->used >= live->max_used) || slot >= live->end || !coffer__mlyze_fits_slot(block))
        return false;
    live->used += is_empty;
    live->live++;
    slot->address = address;
    coffer__mlyze_pack(slot, block);
    return true;
}

static inline void coffer__mlyze_kill(coffer__mlyze_live *live, coffer__mlyze_slot *slot)
{
    slot->sized = 0; /* not wide */
    slot->timed = COFFER__MLYZE_DEAD;
    live->live--;
}

/* Takes a block out. False when none is live there, or when it is wide: call coffer__mlyze_live_take. */
static inline bool coffer__mlyze_take_fast(coffer__mlyze_held *out, coffer__mlyze_live *live, uint64_t hash,
                                           uint64_t address)
{
    coffer__mlyze_slot *slot = coffer__mlyze_find(live, hash, address);
    if (slot->address != address || coffer__mlyze_is_dead(slot) || coffer__mlyze_is_wide(slot))
        return false;
    coffer__mlyze_unpack(out, slot);
    coffer__mlyze_kill(live, slot);
    return true;
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
