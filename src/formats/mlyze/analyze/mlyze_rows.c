#include "formats/mlyze/analyze/mlyze_rows.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_live.h"

#include <string.h>

bool coffer__mlyze_row_is_empty(const coffer__mlyze_row *row)
{
    return (row->allocs | row->live_allocs | row->peak_allocs | row->freed_allocs) == 0;
}

coffer_status coffer__mlyze_make_rows(coffer__mlyze_row **rows, size_t *capacity, size_t count,
                                      coffer_error *err)
{
    if (count <= *capacity)
        return COFFER_OK;
    size_t wanted = count + count / 2;
    coffer__mlyze_row *larger = coffer__calloc(wanted, sizeof *larger);
    if (!larger)
        return coffer__fail_no_memory(err, wanted * sizeof *larger);
    if (*capacity)
        memcpy(larger, *rows, *capacity * sizeof *larger);
    coffer__free(*rows);
    *rows = larger;
    *capacity = wanted;
    return COFFER_OK;
}

void coffer__mlyze_row_begin_window(coffer__mlyze_row *row)
{
    *row = (coffer__mlyze_row){ .epoch = row->epoch,
                                .peak_allocs = row->peak_allocs,
                                .peak_bytes = row->peak_bytes,
                                .live_allocs = row->live_allocs,
                                .live_bytes = row->live_bytes };
}

void coffer__mlyze_numbers_init(coffer__mlyze_numbers *numbers, const coffer__mlyze_ids *listed,
                                uint64_t max_unlisted)
{
    memset(numbers, 0, sizeof *numbers);
    numbers->listed = listed;
    coffer__table_init_keyed(&numbers->table);
    numbers->max_unlisted = COFFER__MLYZE_NO_ROW - 1 - numbers->listed->count;
    if (max_unlisted < numbers->max_unlisted)
        numbers->max_unlisted = (size_t)max_unlisted;
}

void coffer__mlyze_numbers_free(coffer__mlyze_numbers *numbers)
{
    coffer__free(numbers->unlisted);
    coffer__table_free(&numbers->table);
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

uint32_t coffer__mlyze_numbers_find_unlisted(const coffer__mlyze_numbers *numbers, uint64_t id)
{
    coffer__table_probe probe =
        coffer__table_begin(&numbers->table, coffer__table_hash(&numbers->table, &id, sizeof id));
    for (uint32_t found; (found = coffer__table_next(&probe)) != COFFER__TABLE_NONE;) {
        if (numbers->unlisted[found] == id)
            return (uint32_t)numbers->listed->count + found;
    }
    return COFFER__MLYZE_NO_ROW;
}

coffer_status coffer__mlyze_numbers_add(uint32_t *row, coffer__mlyze_numbers *numbers, uint64_t id,
                                        coffer_error *err)
{
    if (numbers->unlisted_count >= numbers->max_unlisted)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "more than %zu ids that the metadata does not list", numbers->max_unlisted);
    coffer_status status = coffer__array_reserve_one(&numbers->unlisted, &numbers->unlisted_capacity,
                                                     numbers->unlisted_count, sizeof *numbers->unlisted, err);
    if (!status)
        status = coffer__table_add(&numbers->table, coffer__table_hash(&numbers->table, &id, sizeof id),
                                   numbers->unlisted_count, err);
    if (status)
        return status;
    numbers->unlisted[numbers->unlisted_count++] = id;
    *row = (uint32_t)(coffer__mlyze_numbers_count(numbers) - 1);
    return COFFER_OK;
}
