#include "base/table.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

uint64_t coffer__hash(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}

uint64_t coffer__hash_keyed(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

void coffer__hash_seeded(uint64_t out[2], const void *bytes, size_t len, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, len, seed);
    out[0] = hash.low64;
    out[1] = hash.high64;
}

struct coffer__digest {
    XXH3_state_t *state;
};

coffer__digest *coffer__digest_new(void)
{
    coffer__digest *digest = coffer__malloc(sizeof *digest);
    if (!digest)
        return NULL;
    digest->state = XXH3_createState();
    if (!digest->state || XXH3_128bits_reset(digest->state) != XXH_OK) {
        coffer__digest_free(digest);
        return NULL;
    }
    return digest;
}

void coffer__digest_free(coffer__digest *digest)
{
    if (!digest)
        return;
    XXH3_freeState(digest->state);
    coffer__free(digest);
}

void coffer__digest_add(coffer__digest *digest, const void *bytes, size_t len)
{
    XXH3_128bits_update(digest->state, bytes, len);
}

void coffer__digest_hex(char out[COFFER__DIGEST_HEX + 1], const coffer__digest *digest)
{
    XXH128_hash_t hash = XXH3_128bits_digest(digest->state);
    snprintf(out, COFFER__DIGEST_HEX + 1, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

#define FIRST_CAPACITY 64

void coffer__table_init_keyed(coffer__table *table)
{
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* The address of the table (randomized by the system) and the clock cannot be known to the author of a
     * file. */
    uint64_t seed = (uint64_t)(uintptr_t)table * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)now.tv_nsec << 20;
    *table = (coffer__table){ .seed = seed | 1 };
}

void coffer__table_free(coffer__table *table)
{
    coffer__free(table->slots);
    *table = (coffer__table){ .seed = table->seed };
}

void coffer__table_clear(coffer__table *table)
{
    if (table->slots)
        memset(table->slots, 0, table->capacity * sizeof *table->slots);
    table->count = 0;
}

static void put(coffer__table_slot *slots, size_t capacity, coffer__table_slot slot)
{
    size_t position = slot.tag & (capacity - 1);
    while (slots[position].item != 0)
        position = (position + 1) & (capacity - 1);
    slots[position] = slot;
}

/* Equal tags must stay in the order in which they were added. A run of taken slots may wrap around the end of
 * the array, so moving starts after a free slot. */
static void move_slots(coffer__table_slot *to, size_t capacity, const coffer__table *table)
{
    size_t start = 0;
    while (start < table->capacity && table->slots[start].item != 0)
        start++;
    for (size_t i = 0; i < table->capacity; i++) {
        const coffer__table_slot *slot = &table->slots[(start + i) & (table->capacity - 1)];
        if (slot->item != 0)
            put(to, capacity, *slot);
    }
}

coffer_status coffer__table_reserve(coffer__table *table, size_t count, coffer_error *err)
{
    size_t capacity = table->capacity ? table->capacity : FIRST_CAPACITY;
    while (capacity / 2 < count) { /* at most half of the slots are taken */
        if (!coffer__mul_size(&capacity, capacity, 2))
            return coffer__fail_no_memory(err, UINT64_MAX);
    }
    if (capacity == table->capacity)
        return COFFER_OK;
    coffer__table_slot *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, (uint64_t)capacity * sizeof *slots);
    move_slots(slots, capacity, table);
    coffer__free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return COFFER_OK;
}

coffer_status coffer__table_add(coffer__table *table, uint64_t hash, size_t index, coffer_error *err)
{
    if (index >= COFFER__TABLE_NONE)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %zu different items", index);
    coffer_status status = coffer__table_reserve(table, table->count + 1, err);
    if (status)
        return status;
    put(table->slots, table->capacity, (coffer__table_slot){ coffer__table_tag(hash), (uint32_t)index + 1 });
    table->count++;
    return COFFER_OK;
}

static void insert(coffer__id_names *names, uint16_t id, coffer__id_name name)
{
    names->by_id[id] = name;
    /* It cannot fail: room for all ids was reserved. */
    (void)coffer__table_add(&names->table, coffer__hash(name.text, name.len), id, NULL);
}

coffer_status coffer__id_names_init(coffer__id_names *names, coffer_error *err)
{
    memset(names, 0, sizeof *names);
    names->by_id = coffer__calloc(COFFER__ID_NAMES_MAX, sizeof *names->by_id);
    if (!names->by_id)
        return coffer__fail_no_memory(err, COFFER__ID_NAMES_MAX * sizeof *names->by_id);
    coffer_status status = coffer__table_reserve(&names->table, COFFER__ID_NAMES_MAX, err);
    if (status) {
        coffer__id_names_free(names);
        return status;
    }
    return COFFER_OK;
}

void coffer__id_names_borrow(coffer__id_names *names, uint16_t id, const char *text, size_t len)
{
    insert(names, id, (coffer__id_name){ text, len, false });
}

void coffer__id_names_free(coffer__id_names *names)
{
    for (size_t id = 0; names->by_id && names->added > 0 && id < COFFER__ID_NAMES_MAX; id++) {
        if (names->by_id[id].owned)
            coffer__free(names->by_id[id].text);
    }
    coffer__free(names->by_id);
    coffer__table_free(&names->table);
    memset(names, 0, sizeof *names);
}

uint32_t coffer__id_names_find(const coffer__id_names *names, const char *text, size_t len)
{
    coffer__table_probe probe = coffer__table_begin(&names->table, coffer__hash(text, len));
    uint32_t id;
    while ((id = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        const coffer__id_name *name = &names->by_id[id];
        if (name->len == len && memcmp(name->text, text, len) == 0)
            return id; /* a name with two ids is found under the first */
    }
    return COFFER__ID_NAMES_MAX;
}

uint32_t coffer__id_names_free_id(coffer__id_names *names)
{
    while (names->next_free < COFFER__ID_NAMES_MAX && names->by_id[names->next_free].text)
        names->next_free++;
    return names->next_free;
}

coffer_status coffer__id_names_add(coffer__id_names *names, uint16_t id, const char *text, size_t len,
                                   coffer_error *err)
{
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return coffer__fail_no_memory(err, len + 1);
    insert(names, id, (coffer__id_name){ copy, len, true });
    names->added++;
    return COFFER_OK;
}
