/* A first heat map of a large scan, from stretches of its records at even distances. */
#include "page/page_scan.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>

/* Reading verifies whole chunks: a few long stretches are read faster than many short ones. */
enum { MOST_COLUMNS = 128, MOST_ROWS = 256, STRETCH = 8192, MOST_STRETCHES = MOST_COLUMNS };

typedef struct sampled_grid {
    uint64_t tokens, rows;
    uint32_t width, height;
    double *sums[2];
    uint32_t *counts;
} sampled_grid;

static void count_record(sampled_grid *grid, const coffer_mscan_record *record)
{
    if (record->token_idx >= grid->tokens || record->param_id >= grid->rows)
        return;
    size_t column = (size_t)((double)record->token_idx / (double)grid->tokens * grid->width);
    size_t row = (size_t)((double)record->param_id / (double)grid->rows * grid->height);
    size_t cell = row * grid->width + column;
    grid->sums[0][cell] += record->activation;
    grid->sums[1][cell] += record->grad_norm;
    grid->counts[cell]++;
}

static coffer_status read_stretches(sampled_grid *grid, uint64_t *read, const coffer_mscan *scan,
                                    coffer_error *err)
{
    uint64_t total = coffer_mscan_record_count(scan);
    uint64_t stretches = (total + STRETCH - 1) / STRETCH;
    uint64_t count = stretches < MOST_STRETCHES ? stretches : MOST_STRETCHES;
    coffer_mscan_record *records = coffer__alloc_array(STRETCH, sizeof *records);
    coffer_status status = records ? COFFER_OK : coffer__fail_no_memory(err, STRETCH * sizeof *records);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint64_t first = coffer__page_even(stretches, i, count) * STRETCH;
        uint64_t size = total - first < STRETCH ? total - first : STRETCH;
        status = coffer_mscan_read(records, scan, first, size, err);
        for (uint64_t j = 0; j < size && !status; j++)
            count_record(grid, &records[j]);
        *read += size;
    }
    coffer__free(records);
    return status;
}

static void put_grid(coffer_chunks *chunks, coffer_node *view, const sampled_grid *grid, const char *group,
                     int metric)
{
    coffer__chunk_name name;
    size_t cells = (size_t)grid->width * grid->height;
    const char *word = coffer__page_metrics[metric];
    float *to = coffer__chunks_f32(chunks, coffer__chunk_name_of(name, group, word), cells);
    for (size_t i = 0; to && i < cells; i++)
        to[i] = grid->counts[i] ? (float)(grid->sums[metric][i] / grid->counts[i]) : NAN;
    coffer__page_add_grid_size(view, word,
                               &(coffer_mscan_grid){ .width = grid->width,
                                                     .height = grid->height,
                                                     .token_end = grid->tokens,
                                                     .row_end = grid->rows });
}

coffer_status coffer__page_add_scan_sample(coffer_chunks *chunks, coffer_node *view, const coffer_mscan *scan,
                                           const char *group, coffer_error *err)
{
    size_t params = coffer_mscan_param_count(scan);
    uint64_t read = 0;
    sampled_grid grid = { .tokens = coffer_mscan_total_tokens(scan),
                          .rows = params ? (uint64_t)coffer_mscan_param_at(scan, params - 1)->id + 1 : 0 };
    grid.width = grid.tokens < MOST_COLUMNS ? (uint32_t)grid.tokens : MOST_COLUMNS;
    grid.height = grid.rows < MOST_ROWS ? (uint32_t)grid.rows : MOST_ROWS;
    size_t cells = (size_t)grid.width * grid.height;
    for (int i = 0; i < 2; i++)
        grid.sums[i] = coffer__calloc(cells + 1, sizeof **grid.sums);
    grid.counts = coffer__calloc(cells + 1, sizeof *grid.counts);
    coffer_status status = grid.sums[0] && grid.sums[1] && grid.counts
                               ? COFFER_OK
                               : coffer__fail_no_memory(err, cells * sizeof **grid.sums);
    if (!status)
        status = read_stretches(&grid, &read, scan, err);
    for (int i = 0; i < 2 && !status; i++)
        put_grid(chunks, view, &grid, group, i);
    if (!status && read < coffer_mscan_record_count(scan))
        coffer__chunks_note(chunks,
                            "the first picture is of %" PRIu64 " of %" PRIu64
                            " records; the rest is being read",
                            read, coffer_mscan_record_count(scan));
    coffer__free(grid.counts);
    coffer__free(grid.sums[0]);
    coffer__free(grid.sums[1]);
    return status;
}
