#include "formats/mcf/mcf_table.h"

#include "base/fail.h"
#include "base/memory.h"

void coffer__mcf_table_free(coffer__mcf_table *table)
{
    coffer__free(table->slots);
    *table = (coffer__mcf_table){ 0 };
}

static void put(coffer__mcf_slot *slots, size_t capacity, coffer__mcf_slot slot)
{
    size_t at = (size_t)slot.hash & (capacity - 1);
    while (slots[at].item != 0)
        at = (at + 1) & (capacity - 1);
    slots[at] = slot;
}

/* At most half of the slots are taken. */
static coffer_status grow(coffer__mcf_table *table, coffer_error *err)
{
    size_t capacity = table->capacity ? 2 * table->capacity : 64;
    coffer__mcf_slot *slots = coffer__calloc(capacity, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, capacity * sizeof *slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].item != 0)
            put(slots, capacity, table->slots[i]);
    }
    coffer__free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return COFFER_OK;
}

coffer_status coffer__mcf_table_add(coffer__mcf_table *table, uint64_t hash, uint32_t item, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (2 * (table->count + 1) > table->capacity)
        status = grow(table, err);
    if (status)
        return status;
    put(table->slots, table->capacity, (coffer__mcf_slot){ hash, item + 1 });
    table->count++;
    return COFFER_OK;
}

uint32_t coffer__mcf_table_next(const coffer__mcf_table *table, uint64_t hash, size_t *at)
{
    while (*at < table->capacity) {
        const coffer__mcf_slot *slot = &table->slots[((size_t)hash + *at) & (table->capacity - 1)];
        if (slot->item == 0)
            return UINT32_MAX;
        ++*at;
        if (slot->hash == hash)
            return slot->item - 1;
    }
    return UINT32_MAX;
}
