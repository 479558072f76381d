#include "formats/mlyze/mlyze_rows.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/mlyze_private.h"

#include <string.h>

bool coffer__mlyze_row_is_empty(const coffer__mlyze_row *row)
{
    return (row->allocs | row->live_allocs | row->peak_allocs | row->freed_allocs) == 0;
}

void coffer__mlyze_row_add(coffer__mlyze_row *to, const coffer__mlyze_row *from, uint64_t epoch)
{
    bool kept = from->epoch == epoch;
    to->allocs += from->allocs;
    to->allocated_bytes += from->allocated_bytes;
    to->live_allocs += from->live_allocs;
    to->live_bytes += from->live_bytes;
    to->peak_allocs += kept ? from->peak_allocs : from->live_allocs;
    to->peak_bytes += kept ? from->peak_bytes : from->live_bytes;
    to->freed_allocs += from->freed_allocs;
    to->lifetime += from->lifetime;
    to->temporary_allocs += from->temporary_allocs;
    to->temporary_bytes += from->temporary_bytes;
    to->epoch = epoch;
}

void coffer__mlyze_stacks_init(coffer__mlyze_stacks *stacks, const coffer_mlyze *trace, coffer__mlyze_key key,
                               uint64_t max_unlisted)
{
    memset(stacks, 0, sizeof *stacks);
    stacks->listed = &trace->metadata.stacks.ids;
    stacks->key = key;
    stacks->max_unlisted = COFFER__MLYZE_NO_ROW - 1 - stacks->listed->count;
    if (max_unlisted < stacks->max_unlisted)
        stacks->max_unlisted = (size_t)max_unlisted;
}

void coffer__mlyze_stacks_free(coffer__mlyze_stacks *stacks)
{
    coffer__free(stacks->unlisted);
    coffer__free(stacks->slots);
    memset(stacks, 0, sizeof *stacks);
}

size_t coffer__mlyze_stacks_count(const coffer__mlyze_stacks *stacks)
{
    return stacks->listed->count + stacks->unlisted_count;
}

uint64_t coffer__mlyze_stacks_id(const coffer__mlyze_stacks *stacks, size_t row)
{
    size_t listed = stacks->listed->count;
    return row < listed ? stacks->listed->items[row] : stacks->unlisted[row - listed];
}

/* The slot of the id, or the free one where it belongs. */
static size_t slot_of(const coffer__mlyze_stacks *stacks, uint64_t id)
{
    size_t mask = stacks->slot_count - 1;
    size_t slot = (size_t)coffer__mlyze_hash(&stacks->key, id) & mask;
    while (stacks->slots[slot] != 0 && stacks->unlisted[stacks->slots[slot] - 1] != id)
        slot = (slot + 1) & mask;
    return slot;
}

uint32_t coffer__mlyze_stacks_find_unlisted(const coffer__mlyze_stacks *stacks, uint64_t id)
{
    uint32_t number = stacks->slot_count > 0 ? stacks->slots[slot_of(stacks, id)] : 0;
    return number > 0 ? (uint32_t)stacks->listed->count + number - 1 : COFFER__MLYZE_NO_ROW;
}

/* Keeps half of the slots free. */
static coffer_status make_slots(coffer__mlyze_stacks *stacks, coffer_error *err)
{
    if (2 * stacks->unlisted_count < stacks->slot_count)
        return COFFER_OK;
    size_t wanted = stacks->slot_count > 0 ? 2 * stacks->slot_count : 64;
    uint32_t *slots = coffer__calloc(wanted, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, wanted * sizeof *slots);
    coffer__free(stacks->slots);
    stacks->slots = slots;
    stacks->slot_count = wanted;
    for (size_t i = 0; i < stacks->unlisted_count; i++)
        slots[slot_of(stacks, stacks->unlisted[i])] = (uint32_t)i + 1;
    return COFFER_OK;
}

coffer_status coffer__mlyze_stacks_add(uint32_t *row, coffer__mlyze_stacks *stacks, uint64_t id,
                                       coffer_error *err)
{
    if (stacks->unlisted_count >= stacks->max_unlisted)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "events name more than %zu stacks that the metadata does not list",
                            stacks->max_unlisted);
    coffer_status status = make_slots(stacks, err);
    if (!status)
        status = coffer__array_reserve_one(&stacks->unlisted, &stacks->unlisted_capacity,
                                           stacks->unlisted_count, sizeof *stacks->unlisted, err);
    if (status)
        return status;
    size_t slot = slot_of(stacks, id);
    stacks->unlisted[stacks->unlisted_count++] = id;
    stacks->slots[slot] = (uint32_t)stacks->unlisted_count;
    *row = (uint32_t)(coffer__mlyze_stacks_count(stacks) - 1);
    return COFFER_OK;
}
