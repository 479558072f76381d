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

#include "coffer/error.h"

#include <stddef.h>
#include <stdint.h>

COFFER_BEGIN_DECLS

/* Fast hashes, not cryptographic ones.
 * For tables inside the process. Never written to a file. */
uint64_t coffer__hash(const void *bytes, size_t len);
/* The same with a seed: who does not know it cannot choose keys that collide in a table. */
uint64_t coffer__hash_keyed(const void *bytes, size_t len, uint64_t seed);
/* 128 bits. With a seed that nobody knows, contents that hash to the same value cannot be made on purpose. */
void coffer__hash_seeded(uint64_t out[2], const void *bytes, size_t len, uint64_t seed);

/* 128 bits of a stream, to tell one content from another; XXH3, whose values never change, so that they can
 * be stored in files. */
typedef struct coffer__digest coffer__digest;

#define COFFER__DIGEST_HEX 32

coffer__digest *coffer__digest_new(void); /* NULL: no memory */
void coffer__digest_free(coffer__digest *digest);
void coffer__digest_add(coffer__digest *digest, const void *bytes, size_t len);
/* The digest of the bytes added so far, in lower-case hexadecimal digits with a NUL. */
void coffer__digest_hex(char out[COFFER__DIGEST_HEX + 1], const coffer__digest *digest);

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

/* Names with 16-bit ids, found by id and by name. */
typedef struct coffer__id_name {
    const char *text; /* NULL: the id is free */
    size_t len;
    bool owned; /* false = borrowed */
} coffer__id_name;

typedef struct coffer__id_names {
    coffer__id_name *by_id; /* COFFER__ID_NAMES_MAX */
    coffer__table table;    /* ids by name */
    uint32_t next_free;     /* all ids below it are used */
    uint64_t added;         /* names that were copied */
} coffer__id_names;

#define COFFER__ID_NAMES_MAX 65536 /* ids */

coffer_status coffer__id_names_init(coffer__id_names *names, coffer_error *err);
void coffer__id_names_free(coffer__id_names *names);
/* The id of a name, or COFFER__ID_NAMES_MAX. */
uint32_t coffer__id_names_find(const coffer__id_names *names, const char *text, size_t len);
/* The smallest free id, or COFFER__ID_NAMES_MAX. */
uint32_t coffer__id_names_free_id(coffer__id_names *names);
/* Adds a name that outlives the table. The id must be free. */
void coffer__id_names_borrow(coffer__id_names *names, uint16_t id, const char *text, size_t len);
/* Copies the name. The id must be free. */
coffer_status coffer__id_names_add(coffer__id_names *names, uint16_t id, const char *text, size_t len,
                                   coffer_error *err);

COFFER_END_DECLS

#endif
