#include "formats/mscan/mscan_pyramid.h"

#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_pass.h"
#include "io/sink.h"

#include <string.h>

/* The file that keeps a pyramid between calls. It is derived data: whatever does not fit leads to building it
 * again, never to an error.
 *
 *   0   8 bytes  "COFFERPY"
 *   8   u32      version, 1
 *   12  u32      blocks of the scan: highest block_idx + 1
 *   16  u64      size of the scan
 *   24  u64      offset of its records
 *   32  u64      records
 *   40  u32      CRC-32 of its metadata
 *   44  u32      CRC-32 of records here and there
 *   48  u32      CRC-32 of the bytes before
 *   52           the levels, parameters before blocks, fine before coarse: cells of 20 bytes (u64 sum of
 *                activation, u64 sum of grad_norm, u32 records), column by column, and a CRC-32 after each
 * level
 *
 * The shape of the levels follows from the scan and the number of blocks. */

#define HEADER_SIZE 52
#define HEADER_CRC_AT 48
#define BLOCKS_AT 12
#define VERSION 1
#define CELL_SIZE 20
#define CRC_SIZE 4
#define SAMPLES 64
#define SAMPLE_RECORDS 64

/* A CRC over the first records, the last ones, and some in between. */
static bool sample_records(uint32_t *crc, const coffer_mscan *scan)
{
    uint8_t scratch[SAMPLE_RECORDS * COFFER__MSCAN_RECORD_SIZE];
    uint64_t count = scan->record_count < SAMPLE_RECORDS ? scan->record_count : SAMPLE_RECORDS;
    *crc = 0;
    for (uint64_t i = 0; count > 0 && i < SAMPLES; i++) {
        uint64_t first = (scan->record_count - count) * i / (SAMPLES - 1);
        const uint8_t *records = NULL;
        if (coffer__mscan_fetch(&records, scan->source, scan->record_area, first, (size_t)count, scratch,
                                NULL))
            return false;
        *crc = coffer__crc32(*crc, records, (size_t)count * COFFER__MSCAN_RECORD_SIZE);
    }
    return true;
}

static bool make_header(uint8_t out[HEADER_SIZE], const coffer_mscan *scan, uint32_t block_rows)
{
    uint32_t records_crc;
    if (!sample_records(&records_crc, scan))
        return false;
    memcpy(out, "COFFERPY", 8);
    coffer__store_u32(out + 8, VERSION);
    coffer__store_u32(out + BLOCKS_AT, block_rows);
    coffer__store_u64(out + 16, coffer_source_size(scan->source));
    coffer__store_u64(out + 24, scan->record_area);
    coffer__store_u64(out + 32, scan->record_count);
    coffer__store_u32(out + 40, coffer__crc32(0, scan->metadata.text, scan->metadata.text_len));
    coffer__store_u32(out + 44, records_crc);
    coffer__store_u32(out + HEADER_CRC_AT, coffer__crc32(0, out, HEADER_CRC_AT));
    return true;
}

/* Cells of a level. */
static uint32_t pyramid_width(const coffer__mscan_pyramid *pyramid, unsigned level)
{
    return ((pyramid->columns.count - 1) >> level) + 1;
}

static uint64_t level_bytes(const coffer__mscan_pyramid *pyramid, int kind, unsigned level)
{
    return (uint64_t)pyramid->bands[kind].count * pyramid_width(pyramid, level) * CELL_SIZE + CRC_SIZE;
}

/* Where a level starts; for the kind after the last, where the file ends. */
static uint64_t level_offset(const coffer__mscan_pyramid *pyramid, int to_kind, unsigned to_level)
{
    uint64_t offset = HEADER_SIZE;
    for (int kind = 0; kind <= to_kind && kind < 2; kind++) {
        unsigned end = kind < to_kind ? pyramid->levels : to_level;
        for (unsigned level = 0; level < end; level++)
            offset += level_bytes(pyramid, kind, level);
    }
    return offset;
}

#define MAX_BANDS 512          /* rows of a level */
#define MAX_CELLS (1u << 19)   /* of the finest level, for either kind of rows */
#define MAX_COLUMNS (1u << 19) /* so that the levels' number is below COFFER__MSCAN_PYRAMID_LEVELS */

_Static_assert(MAX_COLUMNS <= 1u << (COFFER__MSCAN_PYRAMID_LEVELS - 1), "every half down to one is a level");

/* Lays out the axes. block_rows : number of blocks. */
static void pyramid_shape(coffer__mscan_pyramid *out, const coffer_mscan *scan, uint32_t block_rows)
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
        while (pyramid_width(out, out->levels++) > 1)
            continue;
    }
}

static bool pyramid_load(coffer__mscan_pyramid *out, const coffer_mscan *scan, const char *path)
{
    uint8_t found[HEADER_SIZE], expected[HEADER_SIZE];
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *file = NULL;
    uint32_t block_rows;
    opts.access = COFFER_ACCESS_READ;
    opts.ignore_journal = true;
    if (coffer_source_open(&file, path, &opts, NULL))
        return false;
    if (coffer_source_read_at(found, file, 0, sizeof found, NULL))
        goto stale;
    block_rows = coffer__load_u32(found + BLOCKS_AT);
    if (block_rows > COFFER__MSCAN_PARAM_IDS || !make_header(expected, scan, block_rows) ||
        memcmp(found, expected, sizeof found) != 0)
        goto stale;
    pyramid_shape(out, scan, block_rows);
    if (out->levels == 0 || coffer_source_size(file) != level_offset(out, 2, 0))
        goto stale;
    out->file = file;
    return true;
stale:
    coffer_source_close(file);
    return false;
}

static bool pyramid_load_level(coffer__mscan_pyramid *pyramid, coffer_mscan_rows rows, unsigned level)
{
    uint64_t bytes = level_bytes(pyramid, (int)rows, level);
    size_t count = (size_t)(bytes / CELL_SIZE);
    size_t body = (size_t)bytes - CRC_SIZE;
    uint8_t *packed = coffer__malloc((size_t)bytes);
    coffer__mscan_cell *cells = coffer__calloc(count, sizeof *cells);
    bool good = packed && cells &&
                coffer_source_read_at(packed, pyramid->file, level_offset(pyramid, (int)rows, level),
                                      (size_t)bytes, NULL) == COFFER_OK &&
                coffer__crc32(0, packed, body) == coffer__load_u32(packed + body);
    for (size_t i = 0; good && i < count; i++) {
        const uint8_t *from = packed + i * CELL_SIZE;
        cells[i].sum[0] = coffer__load_u64(from);
        cells[i].sum[1] = coffer__load_u64(from + 8);
        cells[i].count = coffer__load_u32(from + 16);
    }
    coffer__free(packed);
    if (good)
        pyramid->cells[rows][level] = cells;
    else
        coffer__free(cells);
    return good;
}

static coffer_status write_level(coffer__sink *sink, const coffer__mscan_pyramid *pyramid, int kind,
                                 unsigned level)
{
    uint8_t packed[256 * CELL_SIZE];
    size_t left = (size_t)(level_bytes(pyramid, kind, level) / CELL_SIZE);
    const coffer__mscan_cell *cell = pyramid->cells[kind][level];
    coffer__sink_crc_begin(sink);
    while (left > 0) {
        size_t count = left < 256 ? left : 256;
        for (size_t i = 0; i < count; i++, cell++) {
            coffer__store_u64(packed + i * CELL_SIZE, cell->sum[0]);
            coffer__store_u64(packed + i * CELL_SIZE + 8, cell->sum[1]);
            coffer__store_u32(packed + i * CELL_SIZE + 16, cell->count);
        }
        coffer_status status = coffer__sink_write(sink, packed, count * CELL_SIZE, NULL);
        if (status)
            return status;
        left -= count;
    }
    coffer__store_u32(packed, coffer__sink_crc(sink));
    return coffer__sink_write(sink, packed, CRC_SIZE, NULL);
}

static void pyramid_save(const coffer__mscan_pyramid *pyramid, const coffer_mscan *scan, const char *path)
{
    coffer__sink_opts opts = { .no_sync = true, .rewrites = true };
    uint8_t header[HEADER_SIZE];
    coffer__sink *sink = NULL;
    coffer_status status;
    if (!make_header(header, scan, pyramid->row_count[COFFER_MSCAN_ROWS_BLOCK]) ||
        coffer__sink_create(&sink, path, &opts, NULL))
        return;
    status = coffer__sink_write(sink, header, sizeof header, NULL);
    for (int kind = 0; !status && kind < 2; kind++) {
        for (unsigned level = 0; !status && level < pyramid->levels; level++)
            status = write_level(sink, pyramid, kind, level);
    }
    if (!status)
        coffer__sink_commit(sink, NULL);
    else
        coffer__sink_discard(sink);
}

static size_t level_cells(const coffer__mscan_pyramid *pyramid, int kind, unsigned level)
{
    return (size_t)pyramid->bands[kind].count * pyramid_width(pyramid, level);
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
    size_t columns = pyramid_width(pyramid, level - 1);
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
    pyramid_save(pyramid, scan, opts->cache_path);
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
    kept = pyramid_load(pyramid, scan, opts->cache_path);
    if (!kept) {
        status = coffer__mscan_block_rows(&block_rows, scan, opts, err);
        if (status)
            goto out;
        pyramid_shape(pyramid, scan, block_rows);
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
    uint32_t width = pyramid_width(pyramid, level);
    uint64_t first_column = across->begin >> across->shift;
    coffer_status status = COFFER_OK;

    if (!pyramid->cells[opts->rows][level] && !pyramid_load_level(pyramid, opts->rows, level))
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
