/* The guard of a set that is being written, and the marks of what could not be verified. */
#include "base/buffer.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mldf/write/mldf_write.h"

#include <sodium.h>

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

coffer_status coffer__mldf_carry_marks(coffer_mldf_writer *writer, const coffer__mldf_mark *marks,
                                       size_t count, uint64_t sample, const size_t *fields, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        coffer__mldf_mark mark = marks[i];
        size_t to = 0;
        if (sample < mark.first || sample - mark.first >= mark.count)
            continue;
        if (fields && mark.field != COFFER__MLDF_MARK_ROW) {
            while (to < writer->column_count && fields[to] != mark.field)
                to++;
            if (to == writer->column_count)
                continue;
            mark.field = (uint16_t)to;
        }
        mark.first = writer->sample;
        mark.count = 1;
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
