#include "formats/mlyze/analyze/mlyze_rows.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_live.h"

#include <string.h>

bool coffer__mlyze_row_is_empty(const coffer__mlyze_row *row)
{
    return (row->allocs | row->live_allocs | row->peak_allocs | row->freed_allocs) == 0;
}

void coffer__mlyze_row_add(coffer__mlyze_row *to, const coffer__mlyze_row *from, uint64_t epoch)
{
    bool kept = from->epoch == epoch;
    to->allocs += from->allocs;
    to->allocated_bytes = coffer__mlyze_sum(to->allocated_bytes, from->allocated_bytes);
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

void coffer__mlyze_numbers_init(coffer__mlyze_numbers *numbers, const coffer__mlyze_ids *listed,
                                coffer__mlyze_key key, uint64_t max_unlisted)
{
    memset(numbers, 0, sizeof *numbers);
    numbers->listed = listed;
    numbers->key = key;
    numbers->max_unlisted = COFFER__MLYZE_NO_ROW - 1 - numbers->listed->count;
    if (max_unlisted < numbers->max_unlisted)
        numbers->max_unlisted = (size_t)max_unlisted;
}

void coffer__mlyze_numbers_free(coffer__mlyze_numbers *numbers)
{
    coffer__free(numbers->unlisted);
    coffer__free(numbers->slots);
    memset(numbers, 0, sizeof *numbers);
}

size_t coffer__mlyze_numbers_count(const coffer__mlyze_numbers *numbers)
{
    return numbers->listed->count + numbers->unlisted_count;
}

uint64_t coffer__mlyze_numbers_id(const coffer__mlyze_numbers *numbers, size_t row)
{
    size_t listed = numbers->listed->count;
    return row < listed ? numbers->listed->items[row] : numbers->unlisted[row - listed];
}

/* The slot of the id, or the free one where it belongs. */
static size_t slot_of(const coffer__mlyze_numbers *numbers, uint64_t id)
{
    size_t mask = numbers->slot_count - 1;
    size_t slot = (size_t)coffer__mlyze_hash(&numbers->key, id) & mask;
    while (numbers->slots[slot] != 0 && numbers->unlisted[numbers->slots[slot] - 1] != id)
        slot = (slot + 1) & mask;
    return slot;
}

uint32_t coffer__mlyze_numbers_find_unlisted(const coffer__mlyze_numbers *numbers, uint64_t id)
{
    uint32_t number = numbers->slot_count > 0 ? numbers->slots[slot_of(numbers, id)] : 0;
    return number > 0 ? (uint32_t)numbers->listed->count + number - 1 : COFFER__MLYZE_NO_ROW;
}

/* Keeps half of the slots free. */
static coffer_status make_slots(coffer__mlyze_numbers *numbers, coffer_error *err)
{
    if (2 * numbers->unlisted_count < numbers->slot_count)
        return COFFER_OK;
    size_t wanted = numbers->slot_count > 0 ? 2 * numbers->slot_count : 64;
    uint32_t *slots = coffer__calloc(wanted, sizeof *slots);
    if (!slots)
        return coffer__fail_no_memory(err, wanted * sizeof *slots);
    coffer__free(numbers->slots);
    numbers->slots = slots;
    numbers->slot_count = wanted;
    for (size_t i = 0; i < numbers->unlisted_count; i++)
        slots[slot_of(numbers, numbers->unlisted[i])] = (uint32_t)i + 1;
    return COFFER_OK;
}

coffer_status coffer__mlyze_numbers_add(uint32_t *row, coffer__mlyze_numbers *numbers, uint64_t id,
                                        coffer_error *err)
{
    if (numbers->unlisted_count >= numbers->max_unlisted)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "more than %zu ids that the metadata does not list", numbers->max_unlisted);
    coffer_status status = make_slots(numbers, err);
    if (!status)
        status = coffer__array_reserve_one(&numbers->unlisted, &numbers->unlisted_capacity,
                                           numbers->unlisted_count, sizeof *numbers->unlisted, err);
    if (status)
        return status;
    size_t slot = slot_of(numbers, id);
    numbers->unlisted[numbers->unlisted_count++] = id;
    numbers->slots[slot] = (uint32_t)numbers->unlisted_count;
    *row = (uint32_t)(coffer__mlyze_numbers_count(numbers) - 1);
    return COFFER_OK;
}
