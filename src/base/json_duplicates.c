#include "base/json_duplicates.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

/* Up to here comparing each with each is faster than hashing. */
#define FEW_KEYS 8
/* Ordinary keys need about two steps each. Keys that were made to collide are sorted instead. */
#define STEPS_PER_KEY 16

typedef const coffer__json_value value;

static bool same_key(value *a, value *b)
{
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

static value *find_among_few(value *object)
{
    for (value *later = coffer__json_first(object); later; later = coffer__json_next(object, later)) {
        for (value *earlier = object + 1; earlier < later; earlier += earlier->span) {
            if (same_key(earlier, later))
                return later;
        }
    }
    return NULL;
}

static bool reserve(coffer__json_key_table *table, size_t capacity)
{
    if (capacity <= table->capacity)
        return true;
    coffer__json_key_table_free(table);
    table->slots = coffer__alloc_array(capacity, sizeof *table->slots);
    if (!table->slots)
        return false;
    table->capacity = capacity;
    return true;
}

/* Open addressing. A slot holds half of the hash above the value's distance from its object, never 0. Gives
 * false when the steps are used up before an answer is found. */
static bool find_by_hash(value **second, uint64_t *slots, size_t capacity, value *object)
{
    uint64_t steps_left = object->as.count * STEPS_PER_KEY;
    memset(slots, 0, capacity * sizeof *slots);
    for (value *at = coffer__json_first(object); at; at = coffer__json_next(object, at)) {
        uint64_t hash = coffer__hash(at->key, at->key_len);
        uint64_t entry = (hash & UINT64_C(0xFFFFFFFF00000000)) | (uint64_t)(at - object);
        size_t slot = (size_t)hash & (capacity - 1);
        for (; slots[slot]; slot = (slot + 1) & (capacity - 1)) {
            value *other = object + (uint32_t)slots[slot];
            if (slots[slot] >> 32 == entry >> 32 && same_key(other, at)) {
                *second = at;
                return true;
            }
            if (steps_left-- == 0)
                return false;
        }
        slots[slot] = entry;
    }
    return true;
}

/* Keys in any order that puts equal ones together, earlier before later. */
static bool before(value *a, value *b)
{
    int order = a->key_len == b->key_len ? memcmp(a->key, b->key, a->key_len) : 0;
    if (a->key_len != b->key_len)
        return a->key_len < b->key_len;
    return order != 0 ? order < 0 : a < b;
}

static void sift_down(value *object, uint64_t *heap, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && before(object + heap[child], object + heap[child + 1]))
            child++;
        if (!before(object + heap[root], object + heap[child]))
            return;
        uint64_t swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* A heap sort: n log n on any keys, and no memory beyond the slots. */
static value *find_by_sorting(uint64_t *slots, value *object)
{
    size_t count = 0;
    for (value *at = coffer__json_first(object); at; at = coffer__json_next(object, at))
        slots[count++] = (uint64_t)(at - object);
    for (size_t i = count / 2; i-- > 0;)
        sift_down(object, slots, i, count);
    for (size_t left = count; left-- > 1;) {
        uint64_t swap = slots[0];
        slots[0] = slots[left];
        slots[left] = swap;
        sift_down(object, slots, 0, left);
    }
    value *second = NULL;
    for (size_t i = 1; i < count; i++) {
        value *at = object + slots[i];
        if (same_key(object + slots[i - 1], at) && (!second || at < second))
            second = at;
    }
    return second;
}

coffer_status coffer__json_check_keys(const coffer__json_value **second, coffer__json_key_table *table,
                                      const coffer__json_value *object)
{
    value *found = NULL;
    if (object->as.count <= FEW_KEYS) {
        found = find_among_few(object);
    } else {
        size_t capacity = 4 * FEW_KEYS;
        while (capacity < 2 * object->as.count) /* at most 2^32 values: no overflow in 64 bits */
            capacity *= 2;
        if (!reserve(table, capacity))
            return COFFER_E_NO_MEMORY;
        if (!find_by_hash(&found, table->slots, capacity, object))
            found = find_by_sorting(table->slots, object);
    }
    if (!found)
        return COFFER_OK;
    *second = found;
    return COFFER_E_DUPLICATE;
}

void coffer__json_key_table_free(coffer__json_key_table *table)
{
    coffer__free(table->slots);
    *table = (coffer__json_key_table){ NULL, 0 };
}
