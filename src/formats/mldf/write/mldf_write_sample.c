/* Values of the current sample: checked against their fields, and set. */
#include "formats/mldf/write/mldf_write.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mldf/analyze/mldf_survey.h"

#include <inttypes.h>

/* Checking new values against their fields, and their row entries. */

static coffer_status fail_value(coffer_error *err, const coffer_mldf_field *field, const char *what)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s: %s", field->name,
                        what);
}

/* Where the caller leaves the entry open, it follows from the type and the size. */
static void complete_entry(coffer_mldf_entry *entry, const coffer_mldf_field *field, size_t size, bool given)
{
    size_t tokens;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->mode == COFFER_MLDF_MODE_RAW &&
        field->type != COFFER_MLDF_IMAGE_RAW)
        entry->mode = field->type == COFFER_MLDF_IMAGE_JPEG ? COFFER_MLDF_MODE_JPEG : COFFER_MLDF_MODE_PNG;
    if (field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->sample_rate == 0)
        entry->sample_rate = field->sample_rate;
    if (field->kind != COFFER_MLDF_ENTRY_TEXT)
        return;
    if (!given && field->type == COFFER_MLDF_TEXT_TOKENISED)
        entry->encoding = COFFER_MLDF_ENCODING_I32;
    if (entry->encoding == COFFER_MLDF_ENCODING_UTF8)
        return;
    tokens = size / (entry->encoding == COFFER_MLDF_ENCODING_I32 ? 4 : 2);
    entry->num_tokens = (uint16_t)(tokens < COFFER_MLDF_TOKENS_BY_SIZE ? tokens : COFFER_MLDF_TOKENS_BY_SIZE);
}

/* Checks a value against its field, and completes the entry. given : the entry is the caller's. */
static coffer_status check_new_value(coffer_mldf_entry *entry, const coffer_mldf_field *field,
                                     const uint8_t *bytes, size_t size, bool given, coffer_error *err)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    if (!coffer__mldf_has_payload(field->kind))
        return fail_value(err, field, "it has no payload");
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->channels > UINT8_MAX)
        return fail_value(err, field, "an image has at most 255 channels");
    complete_entry(entry, field, size, given);
    status = coffer__mldf_check_entry_values(field, entry, &found);
    if (!status)
        status = coffer__mldf_check_content(field, entry, bytes, size, &limits, &found);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_no_memory(err, size);
    return status ? fail_value(err, field, found.text) : COFFER_OK;
}

/* ---- The row ---- */

static void store_entry(uint8_t *at, coffer_mldf_entry_kind kind, const coffer_mldf_entry *entry)
{
    switch (kind) {
    case COFFER_MLDF_ENTRY_IMAGE:
        coffer__store_u16(at + 12, entry->height);
        coffer__store_u16(at + 14, entry->width);
        at[16] = (uint8_t)entry->channels;
        at[17] = entry->mode;
        break;
    case COFFER_MLDF_ENTRY_AUDIO:
        coffer__store_u32(at + 12, entry->num_samples);
        coffer__store_u32(at + 16, entry->sample_rate);
        coffer__store_u16(at + 20, entry->channels);
        at[22] = entry->bit_depth;
        at[23] = entry->codec;
        break;
    case COFFER_MLDF_ENTRY_TEXT:
        coffer__store_u16(at + 12, entry->num_tokens);
        at[14] = entry->encoding;
        break;
    default:
        break;
    }
}

/* ---- Arrays ---- */

static bool shape_varies(const coffer_mldf_field *field)
{
    for (uint32_t i = 0; i < field->ndim; i++) {
        if (field->dims[i] == 0)
            return true;
    }
    return false;
}

coffer_status coffer_mldf_writer_set_array(coffer_mldf_writer *writer, size_t field, const uint64_t *dims,
                                           const void *elements, size_t size, coffer_error *err)
{
    const coffer_mldf_field *descriptor;
    const coffer__mldf_type_info *info;
    uint8_t *value;
    size_t front;
    coffer_status status;
    if (field >= writer->column_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: the set has %zu fields", field, writer->column_count);
    descriptor = &writer->columns[field].field;
    info = coffer__mldf_type_info_of(descriptor->type);
    if (!info || !info->has_array)
        return fail_value(err, descriptor, "it does not contain arrays");
    for (uint32_t i = 0; i < descriptor->ndim; i++) {
        if (descriptor->dims[i] != 0 && dims[i] != descriptor->dims[i])
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "field %s: dimension %u is %" PRIu64 ", the field says %" PRIu64,
                                descriptor->name, i, dims[i], descriptor->dims[i]);
    }
    if (!shape_varies(descriptor))
        return coffer_mldf_writer_set_bytes(writer, field, elements, size, NULL, err);
    front = 8 * (size_t)descriptor->ndim;
    if (size > COFFER__MLDF_PAYLOAD_MAX - front)
        return fail_value(err, descriptor, "the array is too large for a payload");
    value = coffer__malloc(front + size);
    if (!value)
        return coffer__fail_no_memory(err, front + size);
    for (uint32_t i = 0; i < descriptor->ndim; i++)
        coffer__store_u64(value + 8 * (size_t)i, dims[i]);
    if (size > 0)
        memcpy(value + front, elements, size);
    writer->copies = true;
    status = coffer_mldf_writer_set_bytes(writer, field, value, front + size, NULL, err);
    writer->copies = false;
    coffer__free(value);
    return status;
}

/* Setting the values of the current sample. */

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
        status = check_new_value(&known, descriptor, bytes, size, entry != NULL, err);
    if (!status)
        status = coffer__mldf_put_payload(writer, field, bytes, size, steps_of(descriptor), err);
    if (status)
        return status;
    store_entry(coffer__mldf_current_row(writer) + descriptor->row_offset, descriptor->kind, &known);
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
