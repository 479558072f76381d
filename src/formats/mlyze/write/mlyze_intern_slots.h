/* A hash table of positions in an array that its owner keeps: it knows hashes and positions, the owner tells
 * which items are equal. */
#ifndef COFFER_FORMATS_MLYZE_INTERN_SLOTS_H
#define COFFER_FORMATS_MLYZE_INTERN_SLOTS_H

#include "base/hash.h"
#include "coffer/error.h"

typedef struct coffer__mlyze_slot {
    uint32_t hash;
    uint32_t position; /* + 1; 0 = free */
} coffer__mlyze_slot;

typedef struct coffer__mlyze_slots {
    coffer__mlyze_slot *slots;
    size_t size; /* a power of two, or 0 */
    size_t used;
} coffer__mlyze_slots;

/* Positions are below this. */
#define COFFER__MLYZE_POSITIONS UINT32_MAX

static inline uint32_t coffer__mlyze_hash(const void *bytes, size_t len)
{
    return (uint32_t)coffer__hash(bytes, len);
}

/* Makes room for one more, so that the next insert cannot fail. */
coffer_status coffer__mlyze_slots_reserve(coffer__mlyze_slots *slots, coffer_error *err);
void coffer__mlyze_slots_insert(coffer__mlyze_slots *slots, uint32_t hash, size_t position);
void coffer__mlyze_slots_free(coffer__mlyze_slots *slots);

/* The next position whose hash is this one, SIZE_MAX after the last. *at : the hash to begin with. */
static inline size_t coffer__mlyze_slots_next(const coffer__mlyze_slots *slots, uint32_t hash, size_t *at)
{
    if (slots->size == 0)
        return SIZE_MAX;
    for (;; (*at)++) {
        const coffer__mlyze_slot *slot = &slots->slots[*at & (slots->size - 1)];
        if (slot->position == 0)
            return SIZE_MAX;
        if (slot->hash == hash) {
            (*at)++;
            return (size_t)slot->position - 1;
        }
    }
}

#endif
