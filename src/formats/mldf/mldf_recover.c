/* Reading recovery blocks: the second copy of rows and table entries that our writer leaves between the
 * payloads. What is in a block with the right checksum is as it was written. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "base/work.h"
#include "formats/mldf/mldf_repair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#define PIECE ((size_t)1 << 20) /* a multiple of the alignment */

typedef struct block_head {
    uint64_t sample;
    uint32_t rows, entries, body;
} block_head;

/* True when the bytes can be the head of a block at this place. */
static bool load_head(block_head *out, const coffer__mldf_rescue *work, const uint8_t *at, uint64_t place)
{
    const coffer_mldf *set = &work->set;
    if (memcmp(at, COFFER__MLDF_RECOVERY_MAGIC, 8) != 0 ||
        coffer__load_u32(at + COFFER__MLDF_RECOVERY_VERSION_AT) != COFFER__MLDF_RECOVERY_VERSION ||
        coffer__load_u64(at + COFFER__MLDF_RECOVERY_OFFSET_AT) != place ||
        coffer__load_u32(at + COFFER__MLDF_RECOVERY_ROW_SIZE_AT) != set->schema.row_size)
        return false;
    *out = (block_head){ coffer__load_u64(at + COFFER__MLDF_RECOVERY_SAMPLE_AT),
                         coffer__load_u32(at + COFFER__MLDF_RECOVERY_ROWS_AT),
                         coffer__load_u32(at + COFFER__MLDF_RECOVERY_ENTRIES_AT),
                         coffer__load_u32(at + COFFER__MLDF_RECOVERY_BODY_AT) };
    uint64_t rows = (uint64_t)out->rows * set->schema.row_size;
    uint64_t entries = (uint64_t)out->entries * COFFER__MLDF_TABLE_ENTRY;
    return coffer__range_fits(place + COFFER__MLDF_RECOVERY_HEAD, out->body, set->file_size) &&
           (rows <= COFFER__MLDF_RECOVERY_MAX || out->rows == 1) && entries <= COFFER__MLDF_RECOVERY_MAX &&
           out->body <= ZSTD_compressBound((size_t)(rows + entries)) && out->rows <= work->samples &&
           out->sample <= work->samples - out->rows;
}

static coffer_status keep_entries(coffer__mldf_rescue *work, const uint8_t *bytes, uint32_t count,
                                  coffer_error *err)
{
    coffer__mldf_recovered *found = &work->recovered;
    coffer_status status = COFFER_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        status = coffer__array_reserve_one(&found->entries, &found->entry_capacity, found->entry_count,
                                           sizeof *found->entries, err);
        if (!status)
            found->entries[found->entry_count++] =
                coffer__mldf_load_allocation(bytes + (size_t)i * COFFER__MLDF_TABLE_ENTRY);
    }
    return status;
}

static coffer_status keep_block(coffer__mldf_rescue *work, const block_head *head, const uint8_t *raw,
                                coffer_error *err)
{
    coffer__mldf_recovered *found = &work->recovered;
    size_t rows = (size_t)head->rows * work->set.schema.row_size;
    coffer__mldf_stretch stretch = { head->sample, head->rows, coffer__mldf_spill_size(&found->rows) };
    coffer_status status = coffer__array_reserve_one(&found->stretches, &found->stretch_capacity,
                                                     found->stretch_count, sizeof *found->stretches, err);
    if (!status)
        status = coffer__mldf_spill_add(&found->rows, raw, rows, err);
    if (!status)
        status = keep_entries(work, raw + rows, head->entries, err);
    if (status)
        return status;
    if (head->rows > 0)
        found->stretches[found->stretch_count++] = stretch;
    if (stretch.first + stretch.count > found->end)
        found->end = stretch.first + stretch.count;
    return COFFER_OK;
}

/* A few bytes can be a block of 2 MiB. */
static coffer_status count_unpacked(coffer__mldf_rescue *work, size_t raw_len, coffer_error *err)
{
    const coffer_limits *limits = &work->set.limits;
    uint64_t most;
    if (!coffer__mul_u64(&most, work->set.file_size, limits->unpack_ratio))
        most = UINT64_MAX;
    if (most < limits->memory_bytes)
        most = limits->memory_bytes;
    work->recovered.unpacked += raw_len;
    if (work->recovered.unpacked <= most)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                        "recovery blocks give more than %" PRIu64 " bytes, the limit (unpack-ratio)", most);
}

/* *size gets the bytes that the block takes, or 0 when it is damaged or is not one. */
static coffer_status take_block(uint64_t *size, coffer__mldf_rescue *work, const uint8_t *at, uint64_t place,
                                coffer_error *err)
{
    block_head head;
    coffer_status status = COFFER_OK;
    *size = 0;
    /* Blocks do not overlap, so damaged ones cannot be longer than the file; heads that a malicious file
     * made up would be read for hours. */
    if (work->recovered.wasted > work->set.file_size || !load_head(&head, work, at, place))
        return COFFER_OK;
    size_t raw_len =
        (size_t)head.rows * work->set.schema.row_size + (size_t)head.entries * COFFER__MLDF_TABLE_ENTRY;
    uint8_t *body = coffer__malloc(head.body), *raw = coffer__malloc(raw_len);
    if (!body || !raw) {
        status = coffer__fail_no_memory(err, raw_len);
        goto out;
    }
    status =
        coffer_source_read_at(body, work->set.source, place + COFFER__MLDF_RECOVERY_HEAD, head.body, err);
    if (status)
        goto out;
    uint32_t crc = coffer__crc32(0, at + COFFER__MLDF_RECOVERY_SUMMED_AT,
                                 COFFER__MLDF_RECOVERY_HEAD - COFFER__MLDF_RECOVERY_SUMMED_AT);
    if (coffer__crc32(crc, body, head.body) != coffer__load_u32(at + COFFER__MLDF_RECOVERY_CRC_AT) ||
        ZSTD_decompress(raw, raw_len, body, head.body) != raw_len) {
        work->recovered.wasted += COFFER__MLDF_RECOVERY_HEAD + (uint64_t)head.body;
        goto out;
    }
    *size = COFFER__MLDF_RECOVERY_HEAD + (uint64_t)head.body;
    status = count_unpacked(work, raw_len, err);
    if (!status)
        status = keep_block(work, &head, raw, err);
out:
    coffer__free(body);
    coffer__free(raw);
    return status;
}

static int by_sample(const void *a, const void *b)
{
    const coffer__mldf_stretch *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static coffer_status scan(coffer__mldf_rescue *work, uint64_t place, uint8_t *piece, coffer_error *err)
{
    uint64_t end = work->set.file_size;
    coffer_status status = COFFER_OK;
    while (!status && end > place && end - place >= COFFER__MLDF_RECOVERY_HEAD) {
        size_t len = end - place < PIECE ? (size_t)(end - place) : PIECE;
        uint64_t next = place + (len - len % COFFER__MLDF_RECOVERY_HEAD);
        status = coffer_source_read_at(piece, work->set.source, place, len, err);
        for (size_t at = 0; !status && at + COFFER__MLDF_RECOVERY_HEAD <= len;
             at += COFFER__MLDF_RECOVERY_ALIGNMENT) {
            uint64_t size = 0;
            if (piece[at] != COFFER__MLDF_RECOVERY_MAGIC[0])
                continue;
            status = take_block(&size, work, piece + at, place + at, err);
            if (!status && size > 0 &&
                !coffer__align_up(&next, place + at + size, COFFER__MLDF_RECOVERY_ALIGNMENT))
                next = end;
            if (size > 0)
                break;
        }
        place = next;
    }
    return status;
}

coffer_status coffer__mldf_recover(coffer__mldf_rescue *work, coffer_error *err)
{
    const coffer_mldf *set = &work->set;
    coffer__mldf_recovered *found = &work->recovered;
    uint64_t place = 0;
    coffer__mldf_spill_init(&found->rows, (size_t)(set->limits.memory_bytes / 4));
    if (set->guard.recovery_from == 0 || set->schema.row_size == 0 ||
        !coffer__align_up(&place, set->guard.recovery_from, COFFER__MLDF_RECOVERY_ALIGNMENT))
        return COFFER_OK;
    uint8_t *piece = coffer__malloc(PIECE);
    if (!piece)
        return coffer__fail_no_memory(err, PIECE);
    coffer_status status = scan(work, place, piece, err);
    coffer__free(piece);
    if (found->stretch_count > 0)
        qsort(found->stretches, found->stretch_count, sizeof *found->stretches, by_sample);
    return status;
}

coffer_status coffer__mldf_recovered_row(bool *found, uint8_t *row, const coffer__mldf_rescue *work,
                                         uint64_t sample, coffer_error *err)
{
    const coffer__mldf_recovered *recovered = &work->recovered;
    size_t low = COFFER__COUNT_UP_TO(recovered->stretches, recovered->stretch_count, coffer__mldf_stretch,
                                     first, sample);
    *found = false;
    if (low == 0 || sample - recovered->stretches[low - 1].first >= recovered->stretches[low - 1].count)
        return COFFER_OK;
    const coffer__mldf_stretch *stretch = &recovered->stretches[low - 1];
    size_t row_size = work->set.schema.row_size;
    *found = true;
    return coffer__mldf_spill_read(&recovered->rows, stretch->at + (sample - stretch->first) * row_size, row,
                                   row_size, err);
}

void coffer__mldf_recovered_free(coffer__mldf_recovered *recovered)
{
    coffer__mldf_spill_free(&recovered->rows);
    coffer__free(recovered->stretches);
    coffer__free(recovered->entries);
}
