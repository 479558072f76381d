/* A hash table from hashes to indices. It stores no keys: the caller keeps its items in an array, adds the
 * index of each under a hash of the item, and compares the candidates that a lookup returns. Items with equal
 * hashes, and equal items, may be added more than once.
 *
 *     coffer__table_probe probe = coffer__table_begin(&table, hash);
 *     uint32_t found;
 *     while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE && !equal(&items[found], &item))
 *         ;
 */
#ifndef COFFER_BASE_TABLE_H
#define COFFER_BASE_TABLE_H

#include "base/hash.h"
#include "coffer/error.h"

COFFER_BEGIN_DECLS

#define COFFER__TABLE_NONE UINT32_MAX

typedef struct coffer__table_slot {
    uint32_t tag;  /* 32 bits of the hash */
    uint32_t item; /* 1 + index, 0 = free */
} coffer__table_slot;

typedef struct coffer__table {
    coffer__table_slot *slots;
    size_t capacity, count; /* capacity : 0 or a power of two */
    uint64_t seed;          /* 0 = coffer__table_hash is not keyed */
} coffer__table;

#define COFFER__TABLE_INIT \
    {                      \
        NULL, 0, 0, 0      \
    }

/* Chooses a random seed for coffer__table_hash. Use it where keys come from files: without the seed nobody
 * can choose keys that all collide. Call it before anything is added. */
void coffer__table_init_keyed(coffer__table *table);
void coffer__table_free(coffer__table *table);  /* leaves it empty and usable */
void coffer__table_clear(coffer__table *table); /* keeps the memory and the seed */

/* Makes room for `count` items in all: adding them cannot fail afterwards. */
coffer_status coffer__table_reserve(coffer__table *table, size_t count, coffer_error *err);
/* index < COFFER__TABLE_NONE, or COFFER_E_LIMIT. */
coffer_status coffer__table_add(coffer__table *table, uint64_t hash, size_t index, coffer_error *err);

static inline uint64_t coffer__table_hash(const coffer__table *table, const void *bytes, size_t len)
{
    return coffer__hash_keyed(bytes, len, table->seed);
}

typedef struct coffer__table_probe {
    const coffer__table_slot *slots;
    size_t mask, position;
    uint32_t tag;
} coffer__table_probe;

/* Folds the hash, so that hashes whose quality is in their upper or lower half only both work. */
static inline uint32_t coffer__table_tag(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static inline coffer__table_probe coffer__table_begin(const coffer__table *table, uint64_t hash)
{
    uint32_t tag = coffer__table_tag(hash);
    size_t mask = table->capacity - 1;
    coffer__table_probe probe = { table->capacity ? table->slots : NULL, mask, tag & mask, tag };
    return probe;
}

/* The next index whose item may be equal, in the order in which they were added; COFFER__TABLE_NONE at the
 * end. The probe is valid until something is added. */
static inline uint32_t coffer__table_next(coffer__table_probe *probe)
{
    if (!probe->slots)
        return COFFER__TABLE_NONE;
    for (;;) {
        const coffer__table_slot *slot = &probe->slots[probe->position];
        if (slot->item == 0)
            return COFFER__TABLE_NONE; /* the position stays: asking again gives the same answer */
        probe->position = (probe->position + 1) & probe->mask;
        if (slot->tag == probe->tag)
            return slot->item - 1;
    }
}

COFFER_END_DECLS

#endif
