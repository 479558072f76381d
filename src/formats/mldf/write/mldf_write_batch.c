/* Writing a set: values gather in a batch, are encoded together and written in order; rows and table entries
 * wait for the end of the data. */
#include "formats/mldf/write/mldf_write.h"

#include "base/crc32.h"
#include "base/fail.h"

coffer_status coffer__mldf_add_entry(coffer_mldf_writer *writer, uint64_t offset, uint32_t size, uint32_t crc,
                                     coffer_error *err)
{
    uint8_t entry[COFFER__MLDF_TABLE_ENTRY];
    coffer__store_u64(entry, offset);
    coffer__store_u32(entry + 8, size);
    coffer__store_u32(entry + 12, writer->checksums ? crc : 0);
    if (writer->checkpoint && !coffer__buffer_append(&writer->checkpoint->entries, entry, sizeof entry))
        return coffer__fail_no_memory(err, sizeof entry);
    writer->data_end = offset + size;
    return coffer__mldf_spill_add(&writer->table, entry, sizeof entry, err);
}

/* Payloads that are contiguous in memory are written at once. */
typedef struct run {
    const uint8_t *from;
    size_t len;
} run;

static coffer_status write_run(coffer_mldf_writer *writer, run *gathered, coffer_error *err)
{
    writer->out.payload = gathered->len > 0;
    coffer_status status = coffer__mldf_out_write(&writer->out, gathered->from, gathered->len, err);
    writer->out.payload = false;
    if (gathered->len > 0)
        writer->data_crc = writer->out.crc;
    gathered->len = 0;
    return status;
}

/* Offset of an equal payload in the file; 0 if the file does not have one. */
static coffer_status find_equal(uint64_t *offset, const coffer_mldf_writer *writer,
                                const coffer__mldf_item *item, const coffer__mldf_known *payload,
                                coffer_error *err)
{
    *offset = 0;
    if (item->steps & COFFER__MLDF_STEP_HASH)
        *offset = coffer__mldf_dedup_find(&writer->known, payload);
    if (*offset == 0 && item->steps & COFFER__MLDF_STEP_HASH && writer->base)
        return coffer__mldf_base_find(offset, writer, item, err);
    return COFFER_OK;
}

static coffer_status place(coffer_mldf_writer *writer, const coffer__mldf_item *item, run *gathered,
                           coffer_error *err)
{
    coffer__mldf_known payload = { { item->hash[0], item->hash[1] }, 0, item->stored_size, item->crc };
    uint8_t *entry = writer->batch.rows.data + item->row * writer->row_size +
                     writer->columns[item->field].field.row_offset;
    coffer_status status = find_equal(&payload.offset, writer, item, &payload, err);
    if (!status && payload.offset == 0) {
        if (gathered->len > 0 && gathered->from + gathered->len != item->stored)
            status = write_run(writer, gathered, err);
        if (status)
            return status;
        payload.offset = writer->out.position + gathered->len;
        if (gathered->len == 0)
            gathered->from = item->stored;
        gathered->len += item->stored_size;
        status = coffer__mldf_add_entry(writer, payload.offset, item->stored_size, item->crc, err);
        if (!status && item->steps & COFFER__MLDF_STEP_HASH)
            status = coffer__mldf_dedup_add(&writer->known, &payload, err);
    }
    coffer__store_u64(entry, payload.offset);
    coffer__store_u32(entry + 8, item->stored_size);
    return status;
}

/* Where blocks go depends on the values alone, not on the size of the batches. */
static bool begins_sample(const coffer_mldf_writer *writer, size_t index)
{
    const coffer__mldf_batch_out *batch = &writer->batch;
    if (index > 0)
        return batch->items[index].row != batch->items[index - 1].row;
    return batch->items[0].row > 0 || !writer->begun_on_disk;
}

static coffer_status write_batch(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    run gathered = { NULL, 0 };
    coffer_status status = coffer__mldf_encode_batch(writer, err);
    for (size_t i = 0; i < batch->item_count && !status; i++) {
        if (begins_sample(writer, i) &&
            coffer__mldf_recovery_due(writer, writer->out.position + gathered.len)) {
            status = write_run(writer, &gathered, err);
            if (!status)
                status = coffer__mldf_recovery_write(writer, batch->items[i].row, err);
        }
        if (!status)
            status = place(writer, &batch->items[i], &gathered, err);
    }
    if (!status)
        status = write_run(writer, &gathered, err);
    return status;
}

static bool has_unfinished(const coffer__mldf_batch_out *batch)
{
    return batch->item_count > 0 && batch->items[batch->item_count - 1].row == batch->row_count;
}

bool coffer__mldf_between_samples(const coffer_mldf_writer *writer)
{
    return !writer->begun_on_disk && !has_unfinished(&writer->batch);
}

coffer_status coffer__mldf_flush(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    size_t finished = batch->row_count * writer->row_size;
    coffer_error failure = COFFER_ERROR_INIT;
    if (batch->item_count == 0 && finished == 0)
        return COFFER_OK;
    coffer_status status = COFFER_OK;
    if (writer->base)
        status = coffer__mldf_base_begin(writer, &failure);
    if (!status)
        status = write_batch(writer, &failure);
    if (!status)
        status = coffer__mldf_spill_add(&writer->rows, batch->rows.data, finished, &failure);
    if (!status && writer->checkpoint)
        status = coffer__mldf_checkpoint_add(writer, batch->rows.data, finished, &failure);
    if (status)
        return coffer__sticky_keep(&writer->sticky, status, &failure, err);
    writer->begun_on_disk = writer->begun_on_disk || has_unfinished(batch);
    memmove(batch->rows.data, batch->rows.data + finished, writer->row_size);
    batch->rows.len = writer->row_size;
    batch->bytes.len = batch->value_bytes = 0;
    batch->row_count = batch->item_count = 0;
    batch->heavy = batch->borrows = false;
    return COFFER_OK;
}

coffer_status coffer__mldf_store_payload(coffer_mldf_writer *writer, const void *bytes, uint32_t size,
                                         coffer_error *err)
{
    uint64_t offset = writer->out.position;
    run whole = { bytes, size };
    coffer_status status = write_run(writer, &whole, err);
    if (status)
        return status;
    return coffer__mldf_add_entry(writer, offset, size, writer->checksums ? coffer__crc32(0, bytes, size) : 0,
                                  err);
}
