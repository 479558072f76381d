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
#include "base/crc32.h"
#include "base/memory.h"
#include "formats/mscan/mscan_pyramid.h"
#include "io/sink.h"

#include <string.h>

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

static uint64_t level_bytes(const coffer__mscan_pyramid *pyramid, int kind, unsigned level)
{
    return (uint64_t)pyramid->bands[kind].count * coffer__mscan_pyramid_width(pyramid, level) * CELL_SIZE +
           CRC_SIZE;
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

bool coffer__mscan_pyramid_load(coffer__mscan_pyramid *out, const coffer_mscan *scan, const char *path)
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
    coffer__mscan_pyramid_shape(out, scan, block_rows);
    if (out->levels == 0 || coffer_source_size(file) != level_offset(out, 2, 0))
        goto stale;
    out->file = file;
    return true;
stale:
    coffer_source_close(file);
    return false;
}

bool coffer__mscan_pyramid_load_level(coffer__mscan_pyramid *pyramid, coffer_mscan_rows rows, unsigned level)
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

void coffer__mscan_pyramid_save(const coffer__mscan_pyramid *pyramid, const coffer_mscan *scan,
                                const char *path)
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
