/* From the ids that a file chose to numbers from 0 on: an array where the ids are dense, else a hash table.
 */
#ifndef COFFER_FORMATS_MLYZE_IDS_H
#define COFFER_FORMATS_MLYZE_IDS_H

#include "coffer/error.h"

typedef struct coffer__mlyze_ids {
    uint64_t *items; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *slots; /* number + 1, 0 = free */
    uint64_t slot_count;
    uint64_t seed; /* nobody can choose ids that collide without knowing it */
    bool dense;    /* the slot of an id is the id itself */
} coffer__mlyze_ids;

coffer_status coffer__mlyze_ids_add(coffer__mlyze_ids *ids, uint64_t id, coffer_error *err);
/* Makes what was added findable. *second : number of the first id that stands there twice (the earlier one is
 * found), or SIZE_MAX. */
coffer_status coffer__mlyze_ids_index(coffer__mlyze_ids *ids, size_t *second, coffer_error *err);
void coffer__mlyze_ids_free(coffer__mlyze_ids *ids);

static inline uint64_t coffer__mlyze_ids_hash(const coffer__mlyze_ids *ids, uint64_t id)
{
    uint64_t hash = (id ^ ids->seed) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (hash ^ hash >> 32) & (ids->slot_count - 1);
}

/* The number of an id, or SIZE_MAX. */
static inline size_t coffer__mlyze_ids_find(const coffer__mlyze_ids *ids, uint64_t id)
{
    if (ids->dense)
        return id < ids->slot_count ? (size_t)ids->slots[id] - 1 : SIZE_MAX;
    if (ids->slot_count == 0)
        return SIZE_MAX;
    for (uint64_t slot = coffer__mlyze_ids_hash(ids, id);; slot = (slot + 1) & (ids->slot_count - 1)) {
        if (ids->slots[slot] == 0)
            return SIZE_MAX;
        if (ids->items[ids->slots[slot] - 1] == id)
            return ids->slots[slot] - 1;
    }
}

#endif
