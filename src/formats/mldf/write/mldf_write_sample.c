/* Setting the values of the current sample. */
#include "formats/mldf/write/mldf_write.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/options.h"

#include <inttypes.h>

#define BATCH_ITEMS ((size_t)1 << 16)
#define LARGE ((size_t)8 << 20) /* from here on a value is written at once, and never copied */
#define BORROWED_MIN 4096       /* smaller values are copied, so that many are written at once */

uint64_t coffer_mldf_writer_sample(const coffer_mldf_writer *writer)
{
    return writer->sample;
}

size_t coffer_mldf_writer_field_count(const coffer_mldf_writer *writer)
{
    return writer->column_count;
}

const coffer_mldf_field *coffer_mldf_writer_field_at(const coffer_mldf_writer *writer, size_t index)
{
    return index < writer->column_count ? &writer->columns[index].field : NULL;
}

COFFER__INIT_FUNCTION(coffer_mldf_origin, COFFER_MLDF_ORIGIN_INIT)

coffer_status coffer_mldf_writer_set_origin(coffer_mldf_writer *writer, const coffer_mldf_origin *origin,
                                            coffer_error *err)
{
    coffer_mldf_origin taken = COFFER_MLDF_ORIGIN_INIT;
    coffer_status status = coffer__take_options(&taken, sizeof taken, origin, err);
    if (!status && writer->checkpoint)
        writer->checkpoint->origin = taken;
    return status;
}

void coffer_mldf_writer_set_mark(coffer_mldf_writer *writer, uint64_t mark)
{
    writer->next_mark = mark;
}

uint64_t coffer_mldf_writer_mark(const coffer_mldf_writer *writer)
{
    return writer->mark;
}

uint8_t *coffer__mldf_current_row(coffer_mldf_writer *writer)
{
    return writer->batch.rows.data + writer->batch.row_count * writer->row_size;
}

void coffer__mldf_put_row(coffer_mldf_writer *writer, const uint8_t *row, size_t len)
{
    memcpy(coffer__mldf_current_row(writer), row, len);
}

/* Removes the item of a value that is set again. */
static void take_back(coffer_mldf_writer *writer, size_t field)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    for (size_t i = batch->item_count; i > 0 && batch->items[i - 1].row == batch->row_count; i--) {
        if (batch->items[i - 1].field != field)
            continue;
        memmove(&batch->items[i - 1], &batch->items[i], (batch->item_count - i) * sizeof *batch->items);
        batch->item_count--;
        return;
    }
}

static coffer_status add_item(coffer_mldf_writer *writer, size_t field, const void *bytes, size_t size,
                              unsigned steps, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    coffer__mldf_item item = { .sample = writer->sample, .row = batch->row_count, .field = (uint16_t)field };
    coffer_status status = coffer__array_reserve_one(&batch->items, &batch->item_capacity, batch->item_count,
                                                     sizeof *batch->items, err);
    if (status)
        return status;
    if (writer->dedup && !(steps & COFFER__MLDF_STEP_SEAL) &&
        !(writer->columns[field].field.flags & COFFER_MLDF_FIELD_ENCRYPTED))
        steps |= COFFER__MLDF_STEP_HASH;
    item.steps = (uint8_t)steps;
    item.size = size;
    item.at = batch->bytes.len;
    if (size >= LARGE || (writer->opts.borrow && !writer->copies && size >= BORROWED_MIN))
        item.outside = bytes;
    else if (!coffer__buffer_append(&batch->bytes, bytes, size))
        return coffer__fail_no_memory(err, size);
    batch->heavy = batch->heavy || steps & (COFFER__MLDF_STEP_ZSTD | COFFER__MLDF_STEP_SEAL);
    batch->items[batch->item_count++] = item;
    batch->value_bytes += size;
    batch->borrows = batch->borrows || item.outside;
    return COFFER_OK;
}

static bool batch_is_full(const coffer__mldf_batch_out *batch)
{
    return batch->value_bytes >= batch->limit || batch->rows.len >= COFFER__MLDF_PLAIN_BATCH ||
           batch->item_count >= BATCH_ITEMS;
}

coffer_status coffer__mldf_put_payload(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                       size_t size, unsigned steps, coffer_error *err)
{
    coffer__mldf_column *column = &writer->columns[field];
    coffer_status status = COFFER_OK;
    bool at_once = size >= LARGE && (!writer->opts.borrow || writer->copies);
    bool empty = size == 0 && !(steps & COFFER__MLDF_STEP_SEAL);
    if (steps & COFFER__MLDF_STEP_SEAL && !writer->has_key)
        return coffer__mldf_fail_without_key(column, err);
    if (column->set_in == writer->sample + 1)
        take_back(writer, field);
    if (at_once || batch_is_full(&writer->batch))
        status = coffer__mldf_flush(writer, err);
    if (!status && !empty)
        status = add_item(writer, field, bytes, size, steps, err);
    if (status)
        return status;
    if (empty) {
        uint8_t *entry = coffer__mldf_current_row(writer) + column->field.row_offset;
        coffer__store_u64(entry, writer->data_at);
        coffer__store_u32(entry + 8, 0);
    }
    column->set_in = writer->sample + 1;
    return at_once ? coffer__mldf_flush(writer, err) : COFFER_OK;
}

static coffer_status expect_field(const coffer_mldf_writer *writer, size_t field, coffer_error *err)
{
    coffer_status status = coffer__sticky_check(&writer->sticky, err);
    if (status)
        return status;
    if (field >= writer->column_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: the set has %zu fields", field, writer->column_count);
    if (writer->only_field != SIZE_MAX && field != writer->only_field)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s is not the one that is being filled", writer->columns[field].name);
    return COFFER_OK;
}

static coffer_status set_scalar(coffer_mldf_writer *writer, size_t field, coffer_mldf_entry_kind kind,
                                uint64_t bits, coffer_error *err)
{
    coffer_status status = expect_field(writer, field, err);
    if (status)
        return status;
    if (writer->columns[field].field.kind != kind)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s does not contain %s", writer->columns[field].name,
                            kind == COFFER_MLDF_ENTRY_INT ? "integers" : "floating-point numbers");
    coffer__store_u64(coffer__mldf_current_row(writer) + writer->columns[field].field.row_offset, bits);
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_set_int(coffer_mldf_writer *writer, size_t field, int64_t value,
                                         coffer_error *err)
{
    return set_scalar(writer, field, COFFER_MLDF_ENTRY_INT, (uint64_t)value, err);
}

coffer_status coffer_mldf_writer_set_float(coffer_mldf_writer *writer, size_t field, double value,
                                           coffer_error *err)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return set_scalar(writer, field, COFFER_MLDF_ENTRY_FLOAT, bits, err);
}

static unsigned steps_of(const coffer_mldf_field *field)
{
    return (field->flags & COFFER_MLDF_FIELD_ZSTD ? COFFER__MLDF_STEP_ZSTD : 0) |
           (field->flags & COFFER_MLDF_FIELD_ENCRYPTED ? COFFER__MLDF_STEP_SEAL : 0);
}

static coffer_status set_row_bytes(coffer_mldf_writer *writer, const coffer_mldf_field *descriptor,
                                   const void *bytes, size_t size, coffer_error *err)
{
    if (size != descriptor->row_size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: %zu bytes, its entries in the row have %lu", descriptor->name, size,
                            (unsigned long)descriptor->row_size);
    memcpy(coffer__mldf_current_row(writer) + descriptor->row_offset, bytes, size);
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_set_bytes(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                           size_t size, const coffer_mldf_entry *entry, coffer_error *err)
{
    coffer_mldf_entry known = COFFER_MLDF_ENTRY_INIT;
    const coffer_mldf_field *descriptor;
    uint64_t most;
    coffer_status status = expect_field(writer, field, err);
    if (status)
        return status;
    descriptor = &writer->columns[field].field;
    if (descriptor->kind == COFFER_MLDF_ENTRY_OPAQUE)
        return set_row_bytes(writer, descriptor, bytes, size, err);
    most = COFFER__MLDF_PAYLOAD_MAX -
           (descriptor->flags & COFFER_MLDF_FIELD_ENCRYPTED ? (uint64_t)COFFER__MLDF_SEAL_SIZE : 0);
    if (size > most)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "sample %" PRIu64 ", field %s: a value of %zu bytes, the maximum is %" PRIu64,
                            writer->sample, descriptor->name, size, most);
    status = coffer__take_options(&known, sizeof known, entry, err);
    if (!status)
        status = coffer__mldf_check_new_value(&known, descriptor, bytes, size, entry != NULL, err);
    if (!status)
        status = coffer__mldf_put_payload(writer, field, bytes, size, steps_of(descriptor), err);
    if (status)
        return status;
    coffer__mldf_store_entry(coffer__mldf_current_row(writer) + descriptor->row_offset, descriptor->kind,
                             &known);
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_set_text(coffer_mldf_writer *writer, size_t field, const char *text,
                                          size_t len, coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = expect_field(writer, field, err);
    if (status)
        return status;
    if (writer->columns[field].field.type != COFFER_MLDF_JSON &&
        writer->columns[field].field.type != COFFER_MLDF_TEXT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s does not contain text", writer->columns[field].name);
    return coffer_mldf_writer_set_bytes(writer, field, text, len, &entry, err);
}

coffer_status coffer__mldf_end_row(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    coffer_error failure = COFFER_ERROR_INIT;
    if (!coffer__buffer_fill(&batch->rows, 0, writer->row_size)) {
        coffer_status status = coffer__fail_no_memory(&failure, writer->row_size);
        return coffer__sticky_keep(&writer->sticky, status, &failure, err);
    }
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer__mldf_column *column = &writer->columns[i];
        if (column->set_in != writer->sample + 1 && coffer__mldf_has_payload(column->field.kind) &&
            coffer__load_u64(coffer__mldf_current_row(writer) + column->field.row_offset) == 0)
            column->field.flags |= COFFER_MLDF_FIELD_OPTIONAL;
    }
    if (writer->checkpoint) {
        coffer_status status = coffer__mldf_checkpoint_origin(writer, &failure);
        if (status)
            return coffer__sticky_keep(&writer->sticky, status, &failure, err);
    }
    batch->row_count++;
    writer->begun_on_disk = false;
    writer->sample++;
    writer->mark = writer->next_mark;
    return batch_is_full(batch) ? coffer__mldf_flush(writer, err) : COFFER_OK;
}

coffer_status coffer_mldf_writer_flush(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = expect_field(writer, 0, err);
    if (!status && !coffer__mldf_between_samples(writer))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "sample %" PRIu64 " has not been ended: flush between samples", writer->sample);
    return status || !writer->batch.borrows ? status : coffer__mldf_flush(writer, err);
}

coffer_status coffer_mldf_writer_end_sample(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = expect_field(writer, 0, err);
    if (!status && writer->only_field != SIZE_MAX)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "coffer_mldf_writer_end_sample must not be called from a fill callback");
    return status ? status : coffer__mldf_end_row(writer, err);
}

void coffer_mldf_writer_cancel_sample(coffer_mldf_writer *writer)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    while (batch->item_count > 0 && batch->items[batch->item_count - 1].row == batch->row_count)
        batch->item_count--;
    memset(coffer__mldf_current_row(writer), 0, writer->row_size);
    for (size_t i = 0; i < writer->column_count; i++)
        writer->columns[i].set_in = 0;
}
