#include "formats/mlyze/read/mlyze_ids.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"

#include <time.h>

/* An array that is at most this many times as long as there are ids counts as dense. */
#define DENSE_FACTOR 4
#define DENSE_EXTRA 1024

coffer_status coffer__mlyze_ids_add(coffer__mlyze_ids *ids, uint64_t id, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&ids->items, &ids->capacity, ids->count, sizeof *ids->items, err);
    if (status == COFFER_OK)
        ids->items[ids->count++] = id;
    return status;
}

static uint64_t new_seed(const void *address)
{
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)(uintptr_t)address * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)now.tv_nsec << 20;
}

static void choose_table(coffer__mlyze_ids *ids)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < ids->count; i++)
        highest = ids->items[i] > highest ? ids->items[i] : highest;
    ids->dense = highest / DENSE_FACTOR < ids->count + DENSE_EXTRA / DENSE_FACTOR;
    if (ids->dense) {
        ids->slot_count = highest + 1;
        return;
    }
    ids->slot_count = 16;
    while (ids->slot_count < 2 * (uint64_t)ids->count)
        ids->slot_count *= 2;
}

coffer_status coffer__mlyze_ids_index(coffer__mlyze_ids *ids, size_t *second, coffer_error *err)
{
    *second = SIZE_MAX;
    if (ids->count == 0)
        return COFFER_OK;
    if (ids->count >= UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%zu ids in one table", ids->count);
    choose_table(ids);
    ids->slots = coffer__calloc((size_t)ids->slot_count, sizeof *ids->slots);
    if (!ids->slots) {
        uint64_t wanted = ids->slot_count * sizeof *ids->slots;
        ids->slot_count = 0;
        ids->dense = false;
        return coffer__fail_no_memory(err, wanted);
    }
    ids->seed = new_seed(ids->slots);
    for (size_t i = 0; i < ids->count; i++) {
        uint64_t slot = ids->dense ? ids->items[i] : coffer__mlyze_ids_hash(ids, ids->items[i]);
        while (ids->slots[slot] && ids->items[ids->slots[slot] - 1] != ids->items[i])
            slot = (slot + 1) & (ids->slot_count - 1);
        if (ids->slots[slot] == 0)
            ids->slots[slot] = (uint32_t)i + 1;
        else if (*second == SIZE_MAX)
            *second = i;
    }
    return COFFER_OK;
}

void coffer__mlyze_ids_free(coffer__mlyze_ids *ids)
{
    coffer__free(ids->items);
    coffer__free(ids->slots);
    *ids = (coffer__mlyze_ids){ NULL, 0, 0, NULL, 0, 0, false };
}
