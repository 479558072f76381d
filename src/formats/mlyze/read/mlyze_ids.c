#include "formats/mlyze/read/mlyze_ids.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"

/* Ids are dense when an array of them is at most this many times as long as their number. */
#define DENSE_FACTOR 4
#define DENSE_EXTRA 1024

coffer_status coffer__mlyze_ids_add(coffer__mlyze_ids *ids, uint64_t id, coffer_error *err)
{
    coffer_status status =
        coffer__array_reserve_one(&ids->items, &ids->capacity, ids->count, sizeof *ids->items, err);
    if (!status)
        ids->items[ids->count++] = id;
    return status;
}

/* An array of numbers by id. */
static coffer_status index_dense(coffer__mlyze_ids *ids, uint64_t highest, size_t *second, coffer_error *err)
{
    ids->dense = coffer__calloc((size_t)highest + 1, sizeof *ids->dense);
    if (!ids->dense)
        return coffer__fail_no_memory(err, (highest + 1) * sizeof *ids->dense);
    ids->dense_count = highest + 1;
    for (size_t i = 0; i < ids->count; i++) {
        uint32_t *number = &ids->dense[ids->items[i]];
        if (*number == 0)
            *number = (uint32_t)i + 1;
        else if (*second == SIZE_MAX)
            *second = i;
    }
    return COFFER_OK;
}

static coffer_status index_sparse(coffer__mlyze_ids *ids, size_t *second, coffer_error *err)
{
    coffer__table_init_keyed(&ids->table);
    ids->seed = ids->table.seed;
    coffer_status status = coffer__table_reserve(&ids->table, ids->count, err);
    for (size_t i = 0; i < ids->count && !status; i++) {
        if (coffer__mlyze_ids_find(ids, ids->items[i]) == SIZE_MAX)
            status = coffer__table_add(&ids->table, coffer__mlyze_ids_hash(ids, ids->items[i]), i, err);
        else if (*second == SIZE_MAX)
            *second = i;
    }
    return status;
}

coffer_status coffer__mlyze_ids_index(coffer__mlyze_ids *ids, size_t *second, coffer_error *err)
{
    *second = SIZE_MAX;
    if (ids->count == 0)
        return COFFER_OK;
    if (ids->count >= UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%zu ids in one table", ids->count);
    uint64_t highest = 0;
    for (size_t i = 0; i < ids->count; i++)
        highest = ids->items[i] > highest ? ids->items[i] : highest;
    if (highest / DENSE_FACTOR < ids->count + DENSE_EXTRA / DENSE_FACTOR)
        return index_dense(ids, highest, second, err);
    return index_sparse(ids, second, err);
}

void coffer__mlyze_ids_free(coffer__mlyze_ids *ids)
{
    coffer__free(ids->items);
    coffer__free(ids->dense);
    coffer__table_free(&ids->table);
    *ids = (coffer__mlyze_ids){ .items = NULL };
}
