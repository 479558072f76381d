/* The slots of the table of live blocks, inline for the hot loops. */
#ifndef COFFER_FORMATS_MLYZE_LIVE_SLOTS_H
#define COFFER_FORMATS_MLYZE_LIVE_SLOTS_H

#include "base/cpu.h"
#include "formats/mlyze/analyze/mlyze_live.h"

/* sized  : thread, 16 bits; size, 48
 * timed  : time, 55 bits; dead, 1; the upper 8 of order
 * placed : the lower 32 bits of order; stack, 32 */
#define COFFER__MLYZE_SIZE_BITS 48
#define COFFER__MLYZE_TIME_BITS 55
#define COFFER__MLYZE_ORDER_BITS 40
#define COFFER__MLYZE_DEAD (UINT64_C(1) << 8)
#define COFFER__MLYZE_TIME_SHIFT 9
/* As a size: the slot's time is the index in `wide`. */
#define COFFER__MLYZE_SIZE_WIDE ((UINT64_C(1) << COFFER__MLYZE_SIZE_BITS) - 1)

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

/* The slot of the address, or the empty slot where it belongs; a slot at the part's end means that the part
 * is full. Branch-free within a bucket, since the position is unpredictable; a hit in the first bucket is
 * common, because allocators reuse addresses. A search ends at an empty slot. */
static inline coffer__mlyze_slot *coffer__mlyze_find_slot(const coffer__mlyze_part *part, uint64_t hash,
                                                          uint64_t address)
{
    coffer__mlyze_slot *slot = coffer__mlyze_home(part, hash);
    for (;; slot += COFFER__MLYZE_BUCKET) {
        unsigned hits = 0, empty = 0;
        COFFER__UNROLL(COFFER__MLYZE_BUCKET)
        for (unsigned i = 0; i < COFFER__MLYZE_BUCKET; i++)
            hits |= (unsigned)(slot[i].address == address) << i;
        if (hits != 0)
            return slot + __builtin_ctz(hits);
        COFFER__UNROLL(COFFER__MLYZE_BUCKET)
        for (unsigned i = 0; i < COFFER__MLYZE_BUCKET; i++)
            empty |= (unsigned)(slot[i].address == 0) << i;
        if (empty != 0)
            return slot + __builtin_ctz(empty);
    }
}

#endif
