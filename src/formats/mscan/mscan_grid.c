#include "formats/mscan/mscan_pyramid.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_stats.h"

#include <inttypes.h>
#include <math.h>

coffer__mscan_axis coffer__mscan_axis_over(uint64_t begin, uint64_t end, uint32_t most)
{
    coffer__mscan_axis axis = { begin, 0, 0 };
    if (end <= begin)
        return axis;
    while (((end - 1) >> axis.shift) - (begin >> axis.shift) >= most)
        axis.shift++;
    axis.begin = begin >> axis.shift << axis.shift;
    axis.count = (uint32_t)(((end - 1) >> axis.shift) - (begin >> axis.shift) + 1);
    return axis;
}

uint64_t coffer__mscan_tokens(const coffer_mscan *scan)
{
    uint64_t total = coffer_mscan_total_tokens(scan);
    return total < COFFER__MSCAN_MAX_TOKENS ? total : COFFER__MSCAN_MAX_TOKENS;
}

uint32_t coffer__mscan_param_rows(const coffer_mscan *scan)
{
    const coffer__mscan_metadata *metadata = &scan->metadata;
    uint32_t id = COFFER__MSCAN_PARAM_IDS;
    while (id > 0 && metadata->param_index[id - 1] == 0)
        id--;
    return id;
}

coffer_status coffer__mscan_block_rows(uint32_t *out, const coffer_mscan *scan,
                                       const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer_mscan_stats *stats = NULL;
    coffer_status status;
    query.by = COFFER_MSCAN_BY_BLOCK;
    query.threads = opts->threads;
    query.limits = opts->limits;
    query.progress = opts->progress;
    status = coffer_mscan_stats_new(&stats, scan, &query, err);
    if (!status)
        *out = stats->count ? (uint32_t)stats->groups[stats->count - 1].key + 1 : 0;
    coffer_mscan_stats_free(stats);
    return status;
}

/* ---- From the records ---- */

typedef struct drawing {
    coffer__mscan_axis across, down;
    unsigned row_at;    /* where a record has its row */
    uint64_t row_limit; /* rows from here on are in no cell */
    uint32_t *layers;   /* by param_id: its row; NULL unless rows are layers */
    coffer__mscan_cell *cells;
} drawing;

static void visit(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    const drawing *draw = context;
    (void)worker;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        /* A token before the beginning wraps around to a value past the end. */
        uint64_t column = (coffer__mscan_load_token(record) - draw->across.begin) >> draw->across.shift;
        uint64_t id = coffer__load_u16(record + draw->row_at);
        if (draw->layers)
            id = draw->layers[id];
        uint64_t row = (id - draw->down.begin) >> draw->down.shift;
        if (column < draw->across.count && row < draw->down.count && id < draw->row_limit)
            coffer__mscan_cell_take(&draw->cells[column * draw->down.count + row], record);
    }
}

static uint64_t column_end(void *context, uint32_t token)
{
    const drawing *draw = context;
    return ((uint64_t)token >> draw->across.shift << draw->across.shift) +
           (UINT64_C(1) << draw->across.shift);
}

static coffer_status draw_from_records(drawing *draw, const coffer_mscan *scan,
                                       const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer__mscan_selection selection;
    coffer__mscan_pass pass = {
        .selection = &selection, .progress = opts->progress, .visit = visit, .context = draw
    };
    uint64_t total = coffer__mscan_tokens(scan);
    uint64_t end = coffer__mscan_axis_end(&draw->across);
    coffer_status status;

    draw->row_at = opts->rows == COFFER_MSCAN_ROWS_BLOCK ? COFFER__MSCAN_BLOCK_AT : COFFER__MSCAN_PARAM_AT;
    status = coffer__mscan_select(&selection, scan, opts->param_glob, draw->across.begin,
                                  end < total ? end : total, COFFER_INDEX_NONE, err);
    if (status)
        return status;
    pass.threads = coffer__mscan_pass_threads(&selection, opts->threads, UINT32_MAX);
    if (pass.threads > 1)
        status = coffer_mscan_is_sorted(&selection.sorted, scan, err);
    if (status)
        return status;
    /* In order, each column belongs to one thread; otherwise any thread might meet any cell, so there is one.
     */
    if (selection.sorted)
        pass.group_end = column_end;
    else
        pass.threads = 1;
    return coffer__mscan_pass_run(&pass, err);
}

/* ---- Public functions ---- */

static coffer_status check_options(const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    if (opts->width == 0 || opts->height == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a heat map of %u × %u cells asked for", opts->width, opts->height);
    if ((unsigned)opts->rows > COFFER_MSCAN_ROWS_LAYER)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no such rows: %d",
                            (int)opts->rows);
    if (opts->metric != COFFER_MSCAN_ACTIVATION && opts->metric != COFFER_MSCAN_GRAD_NORM)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no such metric: %d",
                            (int)opts->metric);
    return COFFER_OK;
}

static coffer_status lay_out(drawing *draw, const coffer_mscan *scan, const coffer__mscan_pyramid *pyramid,
                             const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    uint64_t tokens = coffer__mscan_tokens(scan);
    uint32_t rows = COFFER__MSCAN_PARAM_IDS;
    coffer_status status = COFFER_OK;
    if (opts->rows == COFFER_MSCAN_ROWS_PARAM)
        rows = coffer__mscan_param_rows(scan);
    else if (opts->rows == COFFER_MSCAN_ROWS_LAYER)
        rows = (uint32_t)coffer_mscan_layer_count(scan);
    else if (opts->row_end > COFFER__MSCAN_PARAM_IDS && pyramid)
        rows = pyramid->row_count[COFFER_MSCAN_ROWS_BLOCK];
    else if (opts->row_end > COFFER__MSCAN_PARAM_IDS)
        status = coffer__mscan_block_rows(&rows, scan, opts, err);
    if (status)
        return status;
    draw->row_limit = rows;
    draw->across = coffer__mscan_axis_over(opts->token_begin,
                                           opts->token_end < tokens ? opts->token_end : tokens, opts->width);
    draw->down =
        coffer__mscan_axis_over(opts->row_begin, opts->row_end < rows ? opts->row_end : rows, opts->height);
    return COFFER_OK;
}

static void fill_means(coffer_mscan_grid *grid, const coffer__mscan_cell *cells, coffer_mscan_metric metric)
{
    grid->low = grid->high = NAN;
    for (size_t column = 0; column < grid->width; column++) {
        for (size_t row = 0; row < grid->height; row++, cells++) {
            double mean = cells->count ? (double)cells->sum[metric] / cells->count : NAN;
            grid->mean[row * grid->width + column] = mean;
            grid->low = fmin(grid->low, mean); /* a NaN gives way to a number */
            grid->high = fmax(grid->high, mean);
        }
    }
}

static coffer_status new_grid(coffer_mscan_grid **out, const drawing *draw, coffer_mscan_metric metric,
                              coffer_error *err)
{
    size_t count = (size_t)draw->across.count * draw->down.count;
    coffer_mscan_grid *grid = coffer__calloc(1, sizeof *grid);
    double *mean = coffer__alloc_array(count, sizeof *mean);
    if (!grid || !mean) {
        coffer__free(grid);
        coffer__free(mean);
        return coffer__fail_no_memory(err, sizeof *grid + count * sizeof *mean);
    }
    *grid = (coffer_mscan_grid){
        .width = draw->across.count,
        .height = draw->down.count,
        .token_begin = draw->across.begin,
        .token_end = coffer__mscan_axis_end(&draw->across),
        .row_begin = draw->down.begin,
        .row_end = coffer__mscan_axis_end(&draw->down),
        .mean = mean,
    };
    fill_means(grid, draw->cells, metric);
    *out = grid;
    return COFFER_OK;
}

static coffer_status find_layer_rows(drawing *draw, const coffer_mscan *scan, coffer_error *err)
{
    draw->layers = coffer__alloc_array(COFFER__MSCAN_PARAM_IDS, sizeof *draw->layers);
    if (!draw->layers)
        return coffer__fail_no_memory(err, COFFER__MSCAN_PARAM_IDS * sizeof *draw->layers);
    for (uint32_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++)
        draw->layers[id] = (uint32_t)coffer_mscan_layer_of_param(scan, (uint16_t)id);
    return COFFER_OK;
}

static coffer_status new_cells(drawing *draw, const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer_limits limits = coffer__limits(opts->limits);
    uint64_t count = (uint64_t)draw->across.count * draw->down.count;
    if (count > limits.memory_bytes / (sizeof *draw->cells + sizeof(double)))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a heat map of %u × %u cells does not fit into %" PRIu64 " bytes",
                            draw->across.count, draw->down.count, limits.memory_bytes);
    draw->cells = coffer__calloc((size_t)count, sizeof *draw->cells);
    return draw->cells ? COFFER_OK : coffer__fail_no_memory(err, count * sizeof *draw->cells);
}

COFFER__INIT_FUNCTION(coffer_mscan_grid_opts, COFFER_MSCAN_GRID_OPTS_INIT)

coffer_status coffer_mscan_grid_new(coffer_mscan_grid **out, const coffer_mscan *scan,
                                    const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer_mscan_grid_opts options = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer__mscan_pyramid *pyramid = NULL;
    drawing draw = { .cells = NULL };
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_options(&options, err);
    if (!status && options.cache_path && !options.param_glob && options.rows != COFFER_MSCAN_ROWS_LAYER)
        status = coffer__mscan_pyramid_open(&pyramid, scan, &options, err);
    if (!status)
        status = lay_out(&draw, scan, pyramid, &options, err);
    if (!status)
        status = new_cells(&draw, &options, err);
    if (!status && options.rows == COFFER_MSCAN_ROWS_LAYER)
        status = find_layer_rows(&draw, scan, err);
    if (status)
        goto out;
    if (pyramid && coffer__mscan_pyramid_serves(pyramid, options.rows, &draw.down, &draw.across))
        status =
            coffer__mscan_pyramid_draw(draw.cells, pyramid, scan, &options, &draw.down, &draw.across, err);
    else
        status = draw_from_records(&draw, scan, &options, err);
    if (!status)
        status = new_grid(out, &draw, options.metric, err);
out:
    coffer__mscan_pyramid_close(pyramid);
    coffer__free(draw.cells);
    coffer__free(draw.layers);
    return status;
}

void coffer_mscan_grid_free(coffer_mscan_grid *grid)
{
    if (!grid)
        return;
    coffer__free(grid->mean);
    coffer__free(grid);
}
