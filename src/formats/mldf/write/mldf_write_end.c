/* The parts after the data, rows and allocation table, and then the front of the file. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"

uint32_t coffer__mldf_file_flags(const coffer_mldf_writer *writer)
{
    uint32_t flags = COFFER_MLDF_LITTLE_ENDIAN | (writer->checksums ? COFFER_MLDF_CHECKSUMMED : 0u);
    for (size_t i = 0; i < writer->column_count; i++) {
        uint16_t field = writer->columns[i].field.flags;
        if (field & COFFER_MLDF_FIELD_ZSTD)
            flags |= COFFER_MLDF_COMPRESSED;
        if (field & COFFER_MLDF_FIELD_ENCRYPTED)
            flags |= COFFER_MLDF_ENCRYPTED;
    }
    return flags;
}

coffer_status coffer__mldf_compose_fields(uint8_t **out, size_t *len, const coffer_mldf_writer *writer,
                                          coffer_error *err)
{
    size_t size = (size_t)writer->stride * writer->column_count;
    uint8_t *bytes = coffer__calloc(1, size);
    if (!bytes)
        return coffer__fail_no_memory(err, size);
    for (size_t i = 0; i < writer->column_count; i++)
        coffer__mldf_compose_field(bytes + i * writer->stride, &writer->columns[i].field,
                                   writer->columns[i].arguments);
    *out = bytes;
    *len = size;
    return COFFER_OK;
}

/* Rows and table; the sum begins with that of the descriptors. */
static coffer_status write_tables(coffer_mldf_writer *writer, coffer__mldf_header *head,
                                  coffer__mldf_guard *guard, const uint8_t *fields, size_t fields_len,
                                  coffer_error *err)
{
    coffer__mldf_output *out = &writer->out;
    out->summed = false;
    coffer_status status = coffer__mldf_recovery_write(writer, 0, err);
    if (!status)
        status = coffer__mldf_out_align(out, COFFER__MLDF_METADATA_ALIGNMENT, err);
    if (status)
        return status;
    head->metadata = out->position;
    out->summed = writer->checksums;
    out->crc = writer->checksums ? coffer__crc32(0, fields, fields_len) : 0;
    status = coffer__mldf_spill_each(&writer->rows, coffer__mldf_out_take, out, err);
    if (!status)
        status = coffer__mldf_guard_place(writer, guard, err);
    if (status)
        return status;
    head->table = out->position;
    status = coffer__mldf_spill_each(&writer->table, coffer__mldf_out_take, out, err);
    head->table_crc = out->crc;
    return status;
}

coffer_status coffer__mldf_finish(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_header head = { .major = COFFER__MLDF_MAJOR,
                                 .minor = COFFER__MLDF_MINOR,
                                 .flags = coffer__mldf_file_flags(writer),
                                 .samples = writer->sample,
                                 .fields = (uint16_t)writer->column_count,
                                 .page_size = writer->opts.page_size,
                                 .descriptors = COFFER__MLDF_HEAD_SIZE,
                                 .data = writer->data_at,
                                 .data_crc = writer->checksums ? writer->data_crc : 0 };
    uint8_t bytes[COFFER__MLDF_HEAD_SIZE], *fields = NULL;
    coffer__mldf_guard guard = { 0 };
    size_t fields_len = 0;
    coffer_status status = coffer__mldf_compose_fields(&fields, &fields_len, writer, err);
    if (!status)
        status = write_tables(writer, &head, &guard, fields, fields_len, err);
    if (!status)
        status = coffer__mldf_out_patch(&writer->out, head.descriptors, fields, fields_len, err);
    if (status)
        goto out;
    coffer__mldf_compose_head(bytes, &head);
    status = coffer__mldf_out_patch(&writer->out, 0, bytes, sizeof bytes, err);
    if (status || !writer->guarded)
        goto out;
    guard.front_crc = coffer__crc32(coffer__crc32(0, bytes, sizeof bytes), fields, fields_len);
    guard.front_crc = coffer__mldf_sum_zeros(guard.front_crc, writer->data_at - COFFER__MLDF_GUARD_SIZE -
                                                                  head.descriptors - fields_len);
    status = coffer__mldf_guard_finish(writer, &guard, &head, err);
out:
    coffer__free(fields);
    return status;
}

static coffer_status commit_new(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__sink *sink = writer->out.sink;
    coffer_status status = coffer__mldf_finish(writer, err);
    if (status)
        return status;
    writer->out.sink = NULL;
    status = coffer__sink_commit(sink, err);
    if (!status && writer->checkpoint)
        coffer__mldf_checkpoint_remove(writer->checkpoint);
    return status;
}

coffer_status coffer_mldf_writer_commit(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (!status) {
        coffer_mldf_writer_cancel_sample(writer);
        status = coffer__mldf_flush(writer, err);
    }
    if (!status)
        status = writer->base ? coffer__mldf_base_commit(writer, err) : commit_new(writer, err);
    coffer__mldf_writer_free(writer);
    return status;
}
