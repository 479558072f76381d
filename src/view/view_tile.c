#include "view/view_tile.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

#include <math.h>

/* A tile reads this many values at most, and this many at a time. */
#define MOST_VALUES (UINT64_C(1) << 24)
enum { AT_ONCE = 1 << 16 };

typedef struct averaging {
    const coffer__view_tile *tile;
    coffer__view_read read;
    void *from;
    double values[AT_ONCE];
    double *sums;
    uint64_t *counts;
    uint64_t rows_of_cell;   /* rows that are read of each cell, at most */
    uint64_t values_of_cell; /* values that are read of a row of a cell, at most */
    bool sampled;
} averaging;

static void plan(averaging *work)
{
    const coffer__view_tile *tile = work->tile;
    uint64_t across = tile->column_end - tile->column_begin;
    uint64_t of_row = MOST_VALUES / tile->height;
    work->values_of_cell = across <= of_row ? UINT64_MAX : of_row / tile->width;
    work->rows_of_cell = of_row / (across <= of_row ? across : of_row);
    work->values_of_cell = work->values_of_cell ? work->values_of_cell : 1;
    work->rows_of_cell = work->rows_of_cell ? work->rows_of_cell : 1;
}

/* Adds values of a row from `column` on to the cells they belong to. */
static void add_values(averaging *work, uint64_t column, uint64_t count, uint64_t cell)
{
    const coffer__view_tile *tile = work->tile;
    uint64_t across = tile->column_end - tile->column_begin;
    uint64_t end = tile->column_begin + coffer__page_even(across, cell + 1, tile->width);
    for (uint64_t i = 0; i < count; i++) {
        while (column + i >= end)
            end = tile->column_begin + coffer__page_even(across, ++cell + 1, tile->width);
        if (!isfinite(work->values[i]))
            continue;
        work->sums[cell] += work->values[i];
        work->counts[cell]++;
    }
}

static coffer_status read_stretch(averaging *work, uint64_t row, uint64_t begin, uint64_t end, uint64_t cell,
                                  coffer_error *err)
{
    const coffer__view_tile *tile = work->tile;
    uint64_t across = tile->column_end - tile->column_begin;
    coffer_status status = COFFER_OK;
    for (uint64_t at = begin; at < end && !status;) {
        uint64_t count = end - at < AT_ONCE ? end - at : AT_ONCE;
        status = work->read(work->values, work->from, row, at, count, err);
        while (at >= tile->column_begin + coffer__page_even(across, cell + 1, tile->width))
            cell++;
        if (!status)
            add_values(work, at, count, cell);
        at += count;
    }
    return status;
}

static coffer_status read_row(averaging *work, uint64_t row, coffer_error *err)
{
    const coffer__view_tile *tile = work->tile;
    uint64_t across = tile->column_end - tile->column_begin;
    coffer_status status = COFFER_OK;
    if (work->values_of_cell == UINT64_MAX)
        return read_stretch(work, row, tile->column_begin, tile->column_end, 0, err);
    work->sampled = true;
    for (uint64_t cell = 0; cell < tile->width && !status; cell++) {
        uint64_t begin = tile->column_begin + coffer__page_even(across, cell, tile->width);
        uint64_t end = tile->column_begin + coffer__page_even(across, cell + 1, tile->width);
        if (end - begin > work->values_of_cell)
            end = begin + work->values_of_cell;
        status = read_stretch(work, row, begin, end, cell, err);
    }
    return status;
}

static coffer_status read_line(averaging *work, uint64_t line, double *cells, coffer_error *err)
{
    const coffer__view_tile *tile = work->tile;
    uint64_t down = tile->row_end - tile->row_begin;
    uint64_t begin = tile->row_begin + coffer__page_even(down, line, tile->height);
    uint64_t end = tile->row_begin + coffer__page_even(down, line + 1, tile->height);
    uint64_t rows = end - begin < work->rows_of_cell ? end - begin : work->rows_of_cell;
    coffer_status status = COFFER_OK;
    work->sampled |= rows < end - begin;
    for (uint64_t i = 0; i < tile->width; i++) {
        work->sums[i] = 0;
        work->counts[i] = 0;
    }
    for (uint64_t i = 0; i < rows && !status; i++)
        status = read_row(work, begin + coffer__page_even(end - begin, i, rows), err);
    for (uint64_t i = 0; i < tile->width; i++)
        cells[i] = work->counts[i] ? work->sums[i] / (double)work->counts[i] : NAN;
    return status;
}

coffer_status coffer__view_add_means(coffer_chunks *chunks, const coffer__view_tile *tile,
                                     coffer__view_read read, void *from, coffer_error *err)
{
    averaging *work = coffer__calloc(1, sizeof *work);
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    work->tile = tile;
    work->read = read;
    work->from = from;
    work->sums = coffer__calloc((size_t)tile->width, sizeof *work->sums);
    work->counts = coffer__calloc((size_t)tile->width, sizeof *work->counts);
    double *cells = coffer__chunks_f64(chunks, "tile.cells", (size_t)(tile->width * tile->height));
    coffer_status status =
        work->sums && work->counts && cells ? COFFER_OK : coffer__fail_no_memory(err, sizeof *work);
    plan(work);
    for (uint64_t line = 0; line < tile->height && !status; line++) {
        status = coffer__progress_step(chunks->opts.progress, line, tile->height, err);
        if (!status)
            status = read_line(work, line, cells + line * tile->width, err);
    }
    coffer__view_add_tile(chunks, tile, work->sampled);
    coffer__free(work->sums);
    coffer__free(work->counts);
    coffer__free(work);
    return status;
}
