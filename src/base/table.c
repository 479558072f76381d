#include "base/table.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <string.h>
#include <time.h>

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
