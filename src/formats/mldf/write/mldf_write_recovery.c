/* Recovery blocks: a second copy of rows and table entries between the payloads that they describe, so that a
 * set that was cut off, or whose rows were damaged, keeps its samples. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"

#define LEVEL 1 /* of zstd */
/* Payload bytes between two blocks: a part of what was written, so that small sets have blocks as well. */
#define INTERVAL_PART 64
#define INTERVAL_MIN ((uint64_t)4 << 10)
#define INTERVAL_MAX ((uint64_t)16 << 10)
#define ROWS_MAX COFFER__MLDF_RECOVERY_MAX

bool coffer__mldf_recovery_due(const coffer_mldf_writer *writer, uint64_t position)
{
    uint64_t interval = (position - writer->data_at) / INTERVAL_PART;
    if (!writer->recovery.on)
        return false;
    interval = interval < INTERVAL_MIN ? INTERVAL_MIN : interval > INTERVAL_MAX ? INTERVAL_MAX : interval;
    return position - writer->recovery.last_end >= interval;
}

/* One block: `rows` bytes of rows and `entries` bytes of table entries that are not in a block yet. */
typedef struct recovery_block {
    uint64_t rows, entries;
    uint8_t *raw, *body;
} recovery_block;

/* Rows from writer->rows, then from the batch. */
static coffer_status gather_rows(const coffer_mldf_writer *writer, const recovery_block *block,
                                 coffer_error *err)
{
    uint64_t spilled = coffer__mldf_spill_size(&writer->rows), from = writer->recovery.rows;
    uint64_t here = from < spilled ? spilled - from : 0;
    if (here > block->rows)
        here = block->rows;
    coffer_status status = coffer__mldf_spill_read(&writer->rows, from, block->raw, (size_t)here, err);
    if (!status && block->rows > here)
        memcpy(block->raw + here, writer->batch.rows.data + (from + here - spilled),
               (size_t)(block->rows - here));
    return status;
}

static coffer_status write_block(coffer_mldf_writer *writer, const recovery_block *block, size_t body_len,
                                 coffer_error *err)
{
    coffer__mldf_recovery *state = &writer->recovery;
    uint8_t head[COFFER__MLDF_RECOVERY_HEAD] = { 0 };
    uint64_t place;
    coffer_status status = coffer__mldf_out_align(&writer->out, COFFER__MLDF_RECOVERY_ALIGNMENT, err);
    if (status)
        return status;
    place = writer->out.position;
    memcpy(head, COFFER__MLDF_RECOVERY_MAGIC, 8);
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_VERSION_AT, COFFER__MLDF_RECOVERY_VERSION);
    coffer__store_u64(head + COFFER__MLDF_RECOVERY_OFFSET_AT, place);
    coffer__store_u64(head + COFFER__MLDF_RECOVERY_BEFORE_AT, state->last);
    coffer__store_u64(head + COFFER__MLDF_RECOVERY_SAMPLE_AT,
                      state->first_sample + state->rows / writer->row_size);
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_ROWS_AT, (uint32_t)(block->rows / writer->row_size));
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_ENTRIES_AT,
                      (uint32_t)(block->entries / COFFER__MLDF_TABLE_ENTRY));
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_BODY_AT, (uint32_t)body_len);
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_ROW_SIZE_AT, writer->row_size);
    uint32_t crc = coffer__crc32(0, head + COFFER__MLDF_RECOVERY_SUMMED_AT,
                                 sizeof head - COFFER__MLDF_RECOVERY_SUMMED_AT);
    coffer__store_u32(head + COFFER__MLDF_RECOVERY_CRC_AT, coffer__crc32(crc, block->body, body_len));
    status = coffer__mldf_out_write(&writer->out, head, sizeof head, err);
    if (!status)
        status = coffer__mldf_out_write(&writer->out, block->body, body_len, err);
    if (status)
        return status;
    if (state->from == 0)
        state->from = writer->data_at;
    state->last = place;
    state->rows += block->rows;
    state->entries += block->entries;
    return COFFER_OK;
}

static coffer_status make_block(coffer_mldf_writer *writer, recovery_block *block, coffer_error *err)
{
    size_t raw = (size_t)(block->rows + block->entries), room = ZSTD_compressBound(raw);
    coffer_status status;
    block->raw = coffer__malloc(raw);
    block->body = coffer__malloc(room);
    status = block->raw && block->body ? gather_rows(writer, block, err) : coffer__fail_no_memory(err, room);
    if (!status)
        status = coffer__mldf_spill_read(&writer->table, writer->recovery.entries, block->raw + block->rows,
                                         (size_t)block->entries, err);
    if (!status) {
        size_t len = ZSTD_compress(block->body, room, block->raw, raw, LEVEL);
        status = ZSTD_isError(len)
                     ? coffer__fail(err, COFFER_E_NO_MEMORY, COFFER_OFFSET_NONE,
                                    "%zu bytes of rows cannot be compressed: %s", raw, ZSTD_getErrorName(len))
                     : write_block(writer, block, len, err);
    }
    coffer__free(block->raw);
    coffer__free(block->body);
    return status;
}

coffer_status coffer__mldf_recovery_write(coffer_mldf_writer *writer, size_t batch_rows, coffer_error *err)
{
    coffer__mldf_recovery *state = &writer->recovery;
    uint64_t rows = coffer__mldf_spill_size(&writer->rows) + (uint64_t)batch_rows * writer->row_size;
    uint64_t entries = coffer__mldf_spill_size(&writer->table);
    uint64_t rows_max =
        writer->row_size < ROWS_MAX ? ROWS_MAX - ROWS_MAX % writer->row_size : writer->row_size;
    coffer_status status = COFFER_OK;
    if (!state->on || writer->data_end == writer->data_at)
        return COFFER_OK;
    while (!status && (state->rows < rows || state->entries < entries)) {
        recovery_block block = { .rows = rows - state->rows, .entries = entries - state->entries };
        if (block.rows > rows_max)
            block.rows = rows_max;
        if (block.entries > ROWS_MAX)
            block.entries = ROWS_MAX;
        status = make_block(writer, &block, err);
    }
    state->last_end = writer->out.position;
    return status;
}
