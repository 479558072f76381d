#include "formats/mscan/mscan_stats.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/mscan/mscan_layout.h"

#include <string.h>

static void add_column(coffer_mscan_column *sum, const coffer_mscan_column *from, bool first)
{
    sum->sum += from->sum;
    sum->sum_squares += from->sum_squares;
    sum->zeros += from->zeros;
    sum->saturated += from->saturated;
    sum->min = first || from->min < sum->min ? from->min : sum->min;
    sum->max = first || from->max > sum->max ? from->max : sum->max;
}

void coffer__mscan_add_group(coffer_mscan_group *sum, const coffer_mscan_group *from)
{
    if (from->count == 0)
        return;
    for (int metric = 0; metric < 2; metric++)
        add_column(&sum->column[metric], &from->column[metric], sum->count == 0);
    sum->count += from->count;
}

void coffer__mscan_add_row(coffer_mscan_group *sum, const coffer__mscan_row *row)
{
    coffer_mscan_group group = { .count = coffer__mscan_row_count(row) };
    for (int metric = 0; metric < 2; metric++) {
        const uint16_t *extreme = row->extreme + (metric == 0 ? 0 : 4);
        uint64_t lane = row->lane[metric];
        group.column[metric] = (coffer_mscan_column){
            .sum = lane & UINT32_MAX,
            .sum_squares = row->lane[2 + metric] & ((UINT64_C(1) << 48) - 1),
            .zeros = lane >> 32 & UINT16_MAX,
            .saturated = lane >> 48,
            .min = (uint16_t)~extreme[COFFER__MSCAN_MIN_ACTIVATION],
            .max = extreme[COFFER__MSCAN_MAX_ACTIVATION],
        };
    }
    coffer__mscan_add_group(sum, &group);
}

static void add_value(coffer_mscan_column *column, uint64_t value)
{
    column->sum += value;
    column->sum_squares += value * value;
    column->zeros += value == 0;
    column->saturated += value == UINT16_MAX;
    column->min = value < column->min ? (uint16_t)value : column->min;
    column->max = value > column->max ? (uint16_t)value : column->max;
}

void coffer__mscan_add_records(coffer_mscan_group *sum, const uint8_t *records, size_t count)
{
    coffer_mscan_group group = { .count = count };
    group.column[0].min = group.column[1].min = UINT16_MAX;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        add_value(&group.column[COFFER_MSCAN_ACTIVATION],
                  coffer__load_u16(record + COFFER__MSCAN_ACTIVATION_AT));
        add_value(&group.column[COFFER_MSCAN_GRAD_NORM],
                  coffer__load_u16(record + COFFER__MSCAN_GRAD_NORM_AT));
    }
    coffer__mscan_add_group(sum, &group);
}

coffer_status coffer__mscan_tally_init(coffer__mscan_tally *tally, uint32_t threads, unsigned rows_shift,
                                       uint16_t base, coffer_error *err)
{
    const size_t alignment = alignof(coffer__mscan_row);
    size_t rows_bytes = threads * COFFER__MSCAN_ROWS_BYTES(rows_shift);
    memset(tally, 0, sizeof *tally);
    tally->kernel = coffer__mscan_kernel_for(coffer__cpu());
    tally->rows_shift = rows_shift;
    tally->base = base;
    tally->threads = threads;
    pthread_mutex_init(&tally->lock, NULL);
    tally->rows_memory = coffer__calloc(1, rows_bytes + alignment - 1);
    tally->groups = coffer__calloc(1, COFFER__MSCAN_GROUPS_BYTES);
    if (!tally->rows_memory || !tally->groups) {
        coffer__mscan_tally_free(tally);
        return coffer__fail_no_memory(err, rows_bytes + COFFER__MSCAN_GROUPS_BYTES);
    }
    tally->rows = (coffer__mscan_row *)(((uintptr_t)tally->rows_memory + alignment - 1) & ~(alignment - 1));
    return COFFER_OK;
}

void coffer__mscan_tally_free(coffer__mscan_tally *tally)
{
    pthread_mutex_destroy(&tally->lock);
    coffer__free(tally->rows_memory);
    coffer__free(tally->groups);
    tally->rows_memory = tally->rows = NULL;
    tally->groups = NULL;
}

static coffer__mscan_row *rows_of(const coffer__mscan_tally *tally, uint32_t worker)
{
    return tally->rows + (((size_t)worker * COFFER__MSCAN_KEYS) << tally->rows_shift);
}

static void drain_rows(coffer__mscan_tally *tally, coffer__mscan_row *rows, uint16_t key, uint32_t at_least)
{
    for (size_t i = (size_t)key << tally->rows_shift; i < (key + (size_t)1) << tally->rows_shift; i++) {
        if (coffer__mscan_row_count(&rows[i]) < at_least)
            continue;
        coffer__mscan_add_row(&tally->groups[(uint16_t)(key - tally->base)], &rows[i]);
        memset(&rows[i], 0, sizeof rows[i]);
    }
}

/* Only the last records that the kernel took can have filled a row. */
static void drain_full(coffer__mscan_tally *tally, coffer__mscan_row *rows, const uint8_t *keys_end,
                       size_t key_stride, size_t taken)
{
    for (size_t i = 1; i <= 4 && i <= taken; i++) {
        uint16_t key = coffer__load_u16(keys_end - i * key_stride);
        const coffer__mscan_row *pair = &rows[(size_t)key << tally->rows_shift];
        if (coffer__mscan_row_count(&pair[0]) < COFFER__MSCAN_ROW_FULL &&
            coffer__mscan_row_count(&pair[tally->rows_shift]) < COFFER__MSCAN_ROW_FULL)
            continue;
        pthread_mutex_lock(&tally->lock);
        drain_rows(tally, rows, key, COFFER__MSCAN_ROW_FULL);
        pthread_mutex_unlock(&tally->lock);
    }
}

void coffer__mscan_tally_take(coffer__mscan_tally *tally, uint32_t worker, const uint8_t *records,
                              size_t count, const uint8_t *keys, size_t key_stride)
{
    coffer__mscan_row *rows = rows_of(tally, worker);
    while (count > 0) {
        size_t taken = tally->kernel(rows, tally->rows_shift, records, count, keys, key_stride);
        records += taken * COFFER__MSCAN_RECORD_SIZE;
        keys += taken * key_stride;
        count -= taken;
        drain_full(tally, rows, keys, key_stride, taken);
    }
}

void coffer__mscan_tally_finish(coffer__mscan_tally *tally, size_t key_count)
{
    for (uint32_t worker = 0; worker < tally->threads; worker++) {
        for (size_t i = 0; i < key_count; i++)
            drain_rows(tally, rows_of(tally, worker), (uint16_t)(tally->base + i), 1);
    }
}
