/* Maps the ids of a file to numbers from 0 on: an array for dense ids, else a hash table. */
#ifndef COFFER_FORMATS_MLYZE_IDS_H
#define COFFER_FORMATS_MLYZE_IDS_H

#include "base/table.h"

typedef struct coffer__mlyze_ids {
    uint64_t *items; /* in the order in which they were added */
    size_t count, capacity;
    uint32_t *dense; /* number + 1 of each id, 0 = none; NULL = see table */
    uint64_t dense_count;
    coffer__table table; /* of the ids, where they are not dense */
    uint64_t seed;       /* of their hashes: a file cannot contain ids chosen to collide */
} coffer__mlyze_ids;

coffer_status coffer__mlyze_ids_add(coffer__mlyze_ids *ids, uint64_t id, coffer_error *err);
/* Makes what was added findable. *second : number of the first id that occurs twice (the earlier one is
 * found), or SIZE_MAX. */
coffer_status coffer__mlyze_ids_index(coffer__mlyze_ids *ids, size_t *second, coffer_error *err);
void coffer__mlyze_ids_free(coffer__mlyze_ids *ids);

static inline uint64_t coffer__mlyze_ids_hash(const coffer__mlyze_ids *ids, uint64_t id)
{
    uint64_t hash = (id ^ ids->seed) * UINT64_C(0x9E3779B97F4A7C15);
    return (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
}

/* The number of an id, or SIZE_MAX. */
static inline size_t coffer__mlyze_ids_find(const coffer__mlyze_ids *ids, uint64_t id)
{
    if (ids->dense)
        return id < ids->dense_count ? (size_t)ids->dense[id] - 1 : SIZE_MAX;
    coffer__table_probe probe = coffer__table_begin(&ids->table, coffer__mlyze_ids_hash(ids, id));
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        if (ids->items[found] == id)
            return found;
    }
    return SIZE_MAX;
}

#endif
