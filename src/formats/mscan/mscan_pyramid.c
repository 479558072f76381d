#include "formats/mscan/mscan_pyramid.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_pass.h"

#include <string.h>

#define MAX_BANDS 512          /* rows of a level */
#define MAX_CELLS (1u << 19)   /* of the finest level, for either kind of rows */
#define MAX_COLUMNS (1u << 19) /* so that the levels' number is below COFFER__MSCAN_PYRAMID_LEVELS */

_Static_assert(MAX_COLUMNS <= 1u << (COFFER__MSCAN_PYRAMID_LEVELS - 1), "every half down to one is a level");

void coffer__mscan_pyramid_shape(coffer__mscan_pyramid *out, const coffer_mscan *scan, uint32_t block_rows)
{
    uint32_t most;
    out->tokens = coffer__mscan_tokens(scan);
    out->row_count[COFFER_MSCAN_ROWS_PARAM] = coffer__mscan_param_rows(scan);
    out->row_count[COFFER_MSCAN_ROWS_BLOCK] = block_rows;
    for (int kind = 0; kind < 2; kind++)
        out->bands[kind] = coffer__mscan_axis_over(0, out->row_count[kind], MAX_BANDS);
    most = out->bands[0].count > out->bands[1].count ? out->bands[0].count : out->bands[1].count;
    out->columns = coffer__mscan_axis_over(0, out->tokens, most ? MAX_CELLS / most : 1);
    out->levels = 0;
    if (out->columns.count > 0) {
        while (coffer__mscan_pyramid_width(out, out->levels++) > 1)
            continue;
    }
}

uint32_t coffer__mscan_pyramid_width(const coffer__mscan_pyramid *pyramid, unsigned level)
{
    return ((pyramid->columns.count - 1) >> level) + 1;
}

static size_t level_cells(const coffer__mscan_pyramid *pyramid, int kind, unsigned level)
{
    return (size_t)pyramid->bands[kind].count * coffer__mscan_pyramid_width(pyramid, level);
}

static uint64_t bytes_of(const coffer__mscan_pyramid *pyramid)
{
    uint64_t cells = 0;
    for (int kind = 0; kind < 2; kind++) {
        for (unsigned level = 0; level < pyramid->levels; level++)
            cells += level_cells(pyramid, kind, level);
    }
    return cells * sizeof(coffer__mscan_cell);
}

static void forget_cells(coffer__mscan_pyramid *pyramid)
{
    for (int kind = 0; kind < 2; kind++) {
        for (unsigned level = 0; level < COFFER__MSCAN_PYRAMID_LEVELS; level++) {
            coffer__free(pyramid->cells[kind][level]);
            pyramid->cells[kind][level] = NULL;
        }
    }
}

void coffer__mscan_pyramid_close(coffer__mscan_pyramid *pyramid)
{
    if (!pyramid)
        return;
    forget_cells(pyramid);
    coffer_source_close(pyramid->file);
    coffer__free(pyramid);
}

/* ---- Building ---- */

static void visit(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    coffer__mscan_pyramid *pyramid = context;
    const coffer__mscan_axis *columns = &pyramid->columns;
    const coffer__mscan_axis *params = &pyramid->bands[COFFER_MSCAN_ROWS_PARAM];
    const coffer__mscan_axis *blocks = &pyramid->bands[COFFER_MSCAN_ROWS_BLOCK];
    (void)worker;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint32_t token = coffer__mscan_load_token(record);
        size_t column = token >> columns->shift;
        uint16_t param_id = coffer__mscan_load_param(record);
        size_t param = param_id >> params->shift;
        size_t block = coffer__load_u16(record + COFFER__MSCAN_BLOCK_AT) >> blocks->shift;
        if (token >= pyramid->tokens)
            continue;
        if (param_id < pyramid->row_count[COFFER_MSCAN_ROWS_PARAM])
            coffer__mscan_cell_take(&pyramid->cells[0][0][column * params->count + param], record);
        if (block < blocks->count)
            coffer__mscan_cell_take(&pyramid->cells[1][0][column * blocks->count + block], record);
    }
}

static uint64_t column_end(void *context, uint32_t token)
{
    const coffer__mscan_pyramid *pyramid = context;
    unsigned shift = pyramid->columns.shift;
    return (((uint64_t)token >> shift) + 1) << shift;
}

/* Each cell of a level is two neighbors of the one below. */
static void halve(coffer__mscan_pyramid *pyramid, int kind, unsigned level)
{
    size_t bands = pyramid->bands[kind].count;
    size_t columns = coffer__mscan_pyramid_width(pyramid, level - 1);
    const coffer__mscan_cell *from = pyramid->cells[kind][level - 1];
    for (size_t column = 0; column < columns; column++) {
        coffer__mscan_cell *sum = pyramid->cells[kind][level] + column / 2 * bands;
        for (size_t band = 0; band < bands; band++)
            coffer__mscan_cell_add(sum++, from++);
    }
}

static coffer_status scan_records(coffer__mscan_pyramid *pyramid, const coffer_mscan *scan,
                                  const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer__mscan_selection selection;
    coffer__mscan_pass pass = {
        .selection = &selection, .progress = opts->progress, .visit = visit, .context = pyramid
    };
    coffer_status status =
        coffer__mscan_select(&selection, scan, NULL, 0, UINT64_MAX, COFFER_INDEX_NONE, err);
    if (!status)
        status = coffer_mscan_is_sorted(&selection.sorted, scan, err);
    if (status)
        return status;
    pass.threads = selection.sorted ? coffer__mscan_pass_threads(&selection, opts->threads, UINT32_MAX) : 1;
    pass.group_end = selection.sorted ? column_end : NULL;
    return coffer__mscan_pass_run(&pass, err);
}

static coffer_status build(coffer__mscan_pyramid *pyramid, const coffer_mscan *scan,
                           const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer_status status;
    forget_cells(pyramid);
    for (int kind = 0; kind < 2; kind++) {
        for (unsigned level = 0; level < pyramid->levels; level++) {
            pyramid->cells[kind][level] =
                coffer__calloc(level_cells(pyramid, kind, level), sizeof(coffer__mscan_cell));
            if (!pyramid->cells[kind][level])
                return coffer__fail_no_memory(err, bytes_of(pyramid));
        }
    }
    status = scan_records(pyramid, scan, opts, err);
    if (status)
        return status;
    for (int kind = 0; kind < 2; kind++) {
        for (unsigned level = 1; level < pyramid->levels; level++)
            halve(pyramid, kind, level);
    }
    coffer__mscan_pyramid_save(pyramid, scan, opts->cache_path);
    return COFFER_OK;
}

coffer_status coffer__mscan_pyramid_open(coffer__mscan_pyramid **out, const coffer_mscan *scan,
                                         const coffer_mscan_grid_opts *opts, coffer_error *err)
{
    coffer__mscan_pyramid *pyramid = coffer__calloc(1, sizeof *pyramid);
    uint32_t block_rows = 0;
    coffer_status status = COFFER_OK;
    bool kept;
    if (!pyramid)
        return coffer__fail_no_memory(err, sizeof *pyramid);
    kept = coffer__mscan_pyramid_load(pyramid, scan, opts->cache_path);
    if (!kept) {
        status = coffer__mscan_block_rows(&block_rows, scan, opts, err);
        if (status)
            goto out;
        coffer__mscan_pyramid_shape(pyramid, scan, block_rows);
    }
    if (pyramid->levels == 0 || bytes_of(pyramid) > coffer__limits(opts->limits).memory_bytes)
        goto out;
    if (!kept)
        status = build(pyramid, scan, opts, err);
    if (status)
        goto out;
    *out = pyramid;
    return COFFER_OK;
out:
    coffer__mscan_pyramid_close(pyramid);
    return status;
}

/* ---- Drawing ---- */

bool coffer__mscan_pyramid_serves(const coffer__mscan_pyramid *pyramid, coffer_mscan_rows rows,
                                  const coffer__mscan_axis *down, const coffer__mscan_axis *across)
{
    return across->shift >= pyramid->columns.shift && down->shift >= pyramid->bands[rows].shift;
}

coffer_status coffer__mscan_pyramid_draw(coffer__mscan_cell *out, coffer__mscan_pyramid *pyramid,
                                         const coffer_mscan *scan, const coffer_mscan_grid_opts *opts,
                                         const coffer__mscan_axis *down, const coffer__mscan_axis *across,
                                         coffer_error *err)
{
    const coffer__mscan_axis *bands = &pyramid->bands[opts->rows];
    unsigned finer = across->shift - pyramid->columns.shift;
    unsigned level = finer < pyramid->levels ? finer : pyramid->levels - 1;
    uint32_t width = coffer__mscan_pyramid_width(pyramid, level);
    uint64_t first_column = across->begin >> across->shift;
    coffer_status status = COFFER_OK;

    if (!pyramid->cells[opts->rows][level] && !coffer__mscan_pyramid_load_level(pyramid, opts->rows, level))
        status = build(pyramid, scan, opts, err);
    if (status)
        return status;
    for (uint64_t column = 0; column < across->count && first_column + column < width; column++) {
        const coffer__mscan_cell *from =
            pyramid->cells[opts->rows][level] + (first_column + column) * bands->count;
        for (uint64_t band = 0; band < bands->count; band++) {
            uint64_t row = ((band << bands->shift) - down->begin) >> down->shift;
            if (row < down->count)
                coffer__mscan_cell_add(&out[column * down->count + row], &from[band]);
        }
    }
    return COFFER_OK;
}
