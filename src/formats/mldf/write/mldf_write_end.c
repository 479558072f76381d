/* Finishes a set: the parts after the data, the guard, header and field descriptors. */
#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "formats/mldf/write/mldf_write.h"

#include <inttypes.h>
#include <sodium.h>

/* Bytes on their way into the file, and the two parts that are made last: header and field descriptors. */

coffer_status coffer__mldf_out_write(coffer__mldf_output *out, const void *bytes, size_t len,
                                     coffer_error *err)
{
    coffer_status status = out->sink ? coffer__sink_write(out->sink, bytes, len, err)
                                     : coffer__update_append(out->update, bytes, len, err);
    if (status)
        return status;
    if (out->summed)
        out->crc = coffer__crc32(out->crc, bytes, len);
    if (out->payload)
        out->tail_crc = 0;
    else if (out->guarded)
        out->tail_crc = coffer__crc32(out->tail_crc, bytes, len);
    out->position += len;
    return COFFER_OK;
}

coffer_status coffer__mldf_out_take(void *output, const void *bytes, size_t len, coffer_error *err)
{
    return coffer__mldf_out_write(output, bytes, len, err);
}

coffer_status coffer__mldf_out_zeros(coffer__mldf_output *out, uint64_t count, coffer_error *err)
{
    static const uint8_t zeros[4096];
    coffer_status status = COFFER_OK;
    while (!status && count > 0) {
        size_t len = count < sizeof zeros ? (size_t)count : sizeof zeros;
        status = coffer__mldf_out_write(out, zeros, len, err);
        count -= len;
    }
    return status;
}

coffer_status coffer__mldf_out_align(coffer__mldf_output *out, uint64_t alignment, coffer_error *err)
{
    uint64_t end;
    if (!coffer__align_up(&end, out->position, alignment))
        return coffer__fail(err, COFFER_E_LIMIT, out->position, "no room after %" PRIu64 " bytes",
                            out->position);
    return coffer__mldf_out_zeros(out, end - out->position, err);
}

coffer_status coffer__mldf_out_patch(coffer__mldf_output *out, uint64_t offset, const void *bytes, size_t len,
                                     coffer_error *err)
{
    return out->sink ? coffer__sink_patch(out->sink, offset, bytes, len, err)
                     : coffer__update_overwrite(out->update, offset, bytes, len, err);
}

void coffer__mldf_compose_head(uint8_t out[COFFER__MLDF_HEAD_SIZE], const coffer__mldf_header *head)
{
    uint8_t *header = out + COFFER__MLDF_HEADER_AT;
    memset(out, 0, COFFER__MLDF_HEAD_SIZE);
    memcpy(out, COFFER__MLDF_MAGIC, COFFER__MLDF_MAGIC_SIZE);
    coffer__store_u16(header, head->major);
    coffer__store_u16(header + COFFER__MLDF_MINOR_AT, head->minor);
    coffer__store_u32(header + COFFER__MLDF_FLAGS_AT, head->flags);
    coffer__store_u64(header + COFFER__MLDF_SAMPLES_AT, head->samples);
    coffer__store_u16(header + COFFER__MLDF_FIELDS_AT, head->fields);
    coffer__store_u32(header + COFFER__MLDF_PAGE_SIZE_AT, head->page_size);
    coffer__store_u64(header + COFFER__MLDF_DESCRIPTORS_AT, head->descriptors);
    coffer__store_u64(header + COFFER__MLDF_METADATA_AT, head->metadata);
    coffer__store_u64(header + COFFER__MLDF_DATA_AT, head->data);
    coffer__store_u64(header + COFFER__MLDF_TABLE_AT, head->table);
    coffer__store_u32(header + COFFER__MLDF_DATA_CRC_AT, head->data_crc);
    coffer__store_u32(header + COFFER__MLDF_TABLE_CRC_AT, head->table_crc);
}

static void compose_array(uint8_t *at, const coffer_mldf_field *field)
{
    at[0] = coffer__dtype_code(field->dtype);
    at[1] = (uint8_t)field->ndim;
    for (uint32_t i = 0; i < field->ndim; i++)
        coffer__store_u64(at + 8 + 8 * (size_t)i, field->dims[i]);
}

void coffer__mldf_compose_field(uint8_t out[COFFER__MLDF_STRIDE_TUTORIAL], const coffer_mldf_field *field,
                                const uint8_t *arguments)
{
    uint8_t *at = out + COFFER__MLDF_ARGUMENTS_AT;
    memset(out, 0, COFFER__MLDF_STRIDE_TUTORIAL);
    memcpy(out, field->name, strlen(field->name));
    coffer__store_u16(out + COFFER__MLDF_FIELD_TYPE_AT, field->type);
    coffer__store_u16(out + COFFER__MLDF_FIELD_FLAGS_AT, field->flags);
    coffer__store_u32(out + COFFER__MLDF_FIELD_ROW_SIZE_AT, field->row_size);
    if (arguments)
        memcpy(at, arguments, COFFER__MLDF_ARGUMENTS_SIZE);
    if (field->kind == COFFER_MLDF_ENTRY_OPAQUE)
        return;
    if (coffer__mldf_type_info_of(field->type)->has_array)
        compose_array(at, field);
    else if (field->type == COFFER_MLDF_IMAGE_JPEG)
        at[0] = field->jpeg_quality;
    else if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        coffer__store_u32(at, field->sample_rate);
    coffer__store_u64(at + COFFER__MLDF_DICTIONARY_AT, field->dictionary_offset);
    coffer__store_u32(at + COFFER__MLDF_DICTIONARY_AT + 8, field->dictionary_size);
}

/* The guard of a set that is being written, and the marks of what could not be verified. */

void coffer__mldf_guard_begin(coffer_mldf_writer *writer)
{
    bool encrypted = false;
    for (size_t i = 0; i < writer->column_count; i++)
        encrypted = encrypted || (writer->columns[i].field.flags & COFFER_MLDF_FIELD_ENCRYPTED);
    writer->guarded = writer->checksums || encrypted;
    if (encrypted && !writer->keeps_id)
        randombytes_buf(writer->id, sizeof writer->id);
    writer->out.guarded = writer->guarded;
    writer->recovery.on = writer->checksums && writer->row_size > 0;
}

/* ---- Marks ---- */

coffer_status coffer__mldf_add_mark(coffer_mldf_writer *writer, const coffer__mldf_mark *mark,
                                    coffer_error *err)
{
    coffer__mldf_mark *last = writer->mark_count ? &writer->marks[writer->mark_count - 1] : NULL;
    if (last && last->field == mark->field && last->kind == mark->kind &&
        last->first + last->count == mark->first) {
        last->count += mark->count;
        return COFFER_OK;
    }
    if (last && writer->mark_count == COFFER__MLDF_MARK_MAX) {
        /* Too many to list: the last one covers all rows up to here. */
        uint64_t end = mark->first + mark->count;
        last->field = COFFER__MLDF_MARK_ROW;
        last->kind = COFFER_MLDF_MARK_UNVERIFIED;
        if (mark->first < last->first)
            last->first = 0;
        if (end > last->first + last->count)
            last->count = end - last->first;
        return COFFER_OK;
    }
    coffer_status status = coffer__array_reserve_one(&writer->marks, &writer->mark_capacity,
                                                     writer->mark_count, sizeof *writer->marks, err);
    if (status)
        return status;
    writer->marks[writer->mark_count++] = *mark;
    return COFFER_OK;
}

/* The end of the marks from `first` on that have its field and kind. */
static size_t end_of_group(const coffer__mldf_mark *marks, size_t count, size_t first)
{
    size_t low = first + 1, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (coffer__mldf_compare_marks(&marks[first], &marks[middle]) == 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The mark between begin and end, of one field and kind, that covers the sample; NULL without one. */
static const coffer__mldf_mark *find_mark(const coffer__mldf_mark *marks, size_t begin, size_t end,
                                          uint64_t sample)
{
    size_t count = COFFER__COUNT_UP_TO(marks + begin, end - begin, coffer__mldf_mark, first, sample);
    const coffer__mldf_mark *last = count ? &marks[begin + count - 1] : NULL;
    return last && sample - last->first < last->count ? last : NULL;
}

coffer_status coffer__mldf_carry_marks(coffer_mldf_writer *writer, const coffer__mldf_mark *marks,
                                       size_t count, uint64_t sample, const size_t *fields, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t group = 0, end; group < count && !status; group = end) {
        end = end_of_group(marks, count, group);
        const coffer__mldf_mark *found = find_mark(marks, group, end, sample);
        size_t to = 0;
        if (!found)
            continue;
        coffer__mldf_mark mark = { writer->sample, 1, found->field, found->kind };
        if (fields && mark.field != COFFER__MLDF_MARK_ROW) {
            while (to < writer->column_count && fields[to] != mark.field)
                to++;
            if (to == writer->column_count)
                continue;
            mark.field = (uint16_t)to;
        }
        status = coffer__mldf_add_mark(writer, &mark, err);
    }
    return status;
}

/* ---- The guard ---- */

coffer_status coffer__mldf_guard_place(coffer_mldf_writer *writer, coffer__mldf_guard *guard,
                                       coffer_error *err)
{
    coffer__mldf_output *out = &writer->out;
    bool summed = out->summed;
    coffer_status status = COFFER_OK;
    if (!writer->guarded)
        return COFFER_OK;
    out->summed = false;
    *guard = (coffer__mldf_guard){ .data_end = writer->data_end,
                                   .recovery_from = writer->recovery.from,
                                   .marks = writer->mark_count ? out->position : 0,
                                   .mark_count = writer->mark_count };
    memcpy(guard->id, writer->id, sizeof guard->id);
    for (size_t i = 0; i < writer->mark_count && !status; i++) {
        uint8_t mark[COFFER__MLDF_MARK_SIZE];
        coffer__mldf_compose_mark(mark, &writer->marks[i]);
        status = coffer__mldf_out_write(out, mark, sizeof mark, err);
    }
    guard->tail_crc = out->tail_crc;
    if (!status)
        status = coffer__mldf_out_zeros(out, COFFER__MLDF_GUARD_SIZE, err);
    out->summed = summed;
    return status;
}

uint32_t coffer__mldf_sum_zeros(uint32_t crc, uint64_t count)
{
    static const uint8_t zeros[4096];
    while (count > 0) {
        size_t len = count < sizeof zeros ? (size_t)count : sizeof zeros;
        crc = coffer__crc32(crc, zeros, len);
        count -= len;
    }
    return crc;
}

coffer_status coffer__mldf_guard_finish(coffer_mldf_writer *writer, coffer__mldf_guard *guard,
                                        const coffer__mldf_header *head, coffer_error *err)
{
    uint8_t bytes[COFFER__MLDF_GUARD_SIZE];
    if (!writer->guarded)
        return COFFER_OK;
    coffer__mldf_compose_head(guard->head, head);
    guard->file_size = writer->out.position;
    coffer__mldf_compose_guard(bytes, guard);
    coffer_status status =
        coffer__mldf_out_patch(&writer->out, writer->data_at - sizeof bytes, bytes, sizeof bytes, err);
    return status
               ? status
               : coffer__mldf_out_patch(&writer->out, head->table - sizeof bytes, bytes, sizeof bytes, err);
}

/* The parts after the data, rows and allocation table, and then the front of the file. */

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

/* Rows, table, descriptors and header; the file is then whole but does not have its name. */
static coffer_status mldf_finish(coffer_mldf_writer *writer, coffer_error *err)
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
    coffer_status status = mldf_finish(writer, err);
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
