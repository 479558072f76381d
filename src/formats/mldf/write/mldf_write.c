/* Writing a set: values gather in a batch, are encoded together and written in order; rows and table entries
 * wait for the end of the data. */
#include "formats/mldf/write/mldf_write.h"

#include "base/array.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/options.h"

#include <sodium.h>

/* Plain values are written as soon as the sink takes them without another copy; those that are compressed
 * gather until all threads have something to do. */
#define PLAIN_BATCH ((size_t)1 << 20)
#define THREAD_BATCH ((size_t)2 << 20)
#define BATCH_ITEMS ((size_t)1 << 16)
#define LARGE ((size_t)8 << 20) /* from here on a value is written at once, and never copied */

/* ---- Life ---- */

COFFER__INIT_FUNCTION(coffer_mldf_writer_opts, COFFER_MLDF_WRITER_OPTS_INIT)

static coffer_status check_options(coffer_mldf_writer_opts *options, coffer_error *err)
{
    if (options->page_size == 0)
        options->page_size = COFFER__MLDF_PAGE_SIZE_DEFAULT;
    if (options->page_size < COFFER__MLDF_PAGE_SIZE_MIN ||
        (options->page_size & (options->page_size - 1)) != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a page size of %lu: it must be a power of two, at least %u",
                            (unsigned long)options->page_size, COFFER__MLDF_PAGE_SIZE_MIN);
    if (options->descriptor_stride == 0)
        options->descriptor_stride = COFFER__MLDF_STRIDE;
    if (options->descriptor_stride != COFFER__MLDF_STRIDE &&
        options->descriptor_stride != COFFER__MLDF_STRIDE_TUTORIAL)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a descriptor stride of %lu: it is %d or %d",
                            (unsigned long)options->descriptor_stride, COFFER__MLDF_STRIDE,
                            COFFER__MLDF_STRIDE_TUTORIAL);
    if (options->zstd_level == 0)
        options->zstd_level = ZSTD_CLEVEL_DEFAULT;
    if (options->zstd_level < ZSTD_minCLevel() || options->zstd_level > ZSTD_maxCLevel())
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a zstd level of %d: from %d to %d are possible", options->zstd_level,
                            ZSTD_minCLevel(), ZSTD_maxCLevel());
    return COFFER_OK;
}

/* Half of the memory is for telling equal payloads, the rest for rows and table entries. */
static void share_memory(coffer_mldf_writer *writer)
{
    uint64_t quarter = writer->limits.memory_bytes / 4;
    size_t limit = quarter < SIZE_MAX ? (size_t)quarter : SIZE_MAX;
    coffer__mldf_spill_init(&writer->rows, limit);
    coffer__mldf_spill_init(&writer->table, limit);
    coffer__mldf_dedup_init(&writer->known, 2 * quarter);
    coffer__buffer_init(&writer->batch.bytes, SIZE_MAX);
    coffer__buffer_init(&writer->batch.rows, SIZE_MAX);
}

coffer_status coffer__mldf_writer_new(coffer_mldf_writer **out, const char *path,
                                      const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer_opts options = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_writer *writer;
    coffer_status status;
    if ((status = coffer__take_options(&options, sizeof options, opts, err)) ||
        (status = check_options(&options, err)))
        return status;
    if (sodium_init() < 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "no source of random numbers");
    writer = coffer__calloc(1, sizeof *writer);
    if (!writer)
        return coffer__fail_no_memory(err, sizeof *writer);
    writer->limits = coffer__limits(options.limits);
    writer->opts = options;
    writer->opts.limits = NULL;
    writer->opts.key = NULL;
    writer->has_key = options.key != NULL;
    if (options.key)
        memcpy(writer->key, options.key, sizeof writer->key);
    writer->stride = options.descriptor_stride;
    writer->checksums = !options.no_checksums;
    writer->dedup = options.dedup;
    writer->only_field = SIZE_MAX;
    share_memory(writer);
    writer->path = coffer__strdup(path);
    if (!writer->path) {
        coffer__mldf_writer_free(writer);
        return coffer__fail_no_memory(err, strlen(path) + 1);
    }
    *out = writer;
    return COFFER_OK;
}

void coffer__mldf_writer_free(coffer_mldf_writer *writer)
{
    if (!writer)
        return;
    coffer__sink_discard(writer->out.sink);
    coffer__mldf_base_free(writer->base);
    coffer__mldf_checkpoint_free(writer->checkpoint);
    coffer__mldf_encoders_free(writer);
    coffer__mldf_columns_free(writer->columns, writer->column_count);
    coffer__mldf_spill_free(&writer->rows);
    coffer__mldf_spill_free(&writer->table);
    coffer__mldf_dedup_free(&writer->known);
    coffer__buffer_free(&writer->batch.bytes);
    coffer__buffer_free(&writer->batch.rows);
    coffer__free(writer->batch.items);
    coffer__free(writer->batch.encoded);
    coffer__free(writer->path);
    sodium_memzero(writer->key, sizeof writer->key);
    coffer__free(writer);
}

void coffer_mldf_writer_discard(coffer_mldf_writer *writer)
{
    int fd;
    if (writer && writer->checkpoint && writer->failure.status == COFFER_OK) {
        coffer_mldf_writer_cancel_sample(writer);
        if (coffer__mldf_flush(writer, NULL) == COFFER_OK)
            coffer__sink_read_back(&fd, writer->out.sink, NULL);
    }
    coffer__mldf_writer_free(writer);
}

coffer_status coffer__mldf_writer_columns(coffer_mldf_writer *writer, const coffer_mldf_field *fields,
                                          size_t count, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    coffer_status status;
    if ((status = coffer__mldf_make_columns(&writer->columns, &writer->row_size, fields, count, err)))
        return status;
    writer->column_count = count;
    batch->limit = PLAIN_BATCH;
    for (size_t i = 0; i < count && status == COFFER_OK; i++) {
        coffer__mldf_column *column = &writer->columns[i];
        if (column->field.flags & (COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_ZSTD))
            batch->limit = THREAD_BATCH * (writer->opts.threads ? writer->opts.threads : coffer__cpu_count());
        status = coffer__mldf_prepare_dictionary(column, writer->opts.zstd_level, err);
    }
    if (status == COFFER_OK && !coffer__buffer_fill(&batch->rows, 0, writer->row_size))
        status = coffer__fail_no_memory(err, writer->row_size);
    return status;
}

static coffer_status fail_without_key(const coffer__mldf_column *column, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_KEY_NEEDED, COFFER_OFFSET_NONE,
                        "field %s is encrypted: a key is needed", column->name);
}

coffer_status coffer__mldf_expect_key(const coffer_mldf_writer *writer, coffer_error *err)
{
    for (size_t i = 0; i < writer->column_count; i++) {
        if (writer->columns[i].field.flags & COFFER_MLDF_FIELD_ENCRYPTED && !writer->has_key)
            return fail_without_key(&writer->columns[i], err);
    }
    return COFFER_OK;
}

coffer_status coffer__mldf_writer_fail(coffer_mldf_writer *writer, coffer_status status,
                                       const coffer_error *failure, coffer_error *err)
{
    if (writer->failure.status == COFFER_OK) {
        writer->failure = *failure;
        writer->failure.status = status;
    }
    if (err)
        *err = writer->failure;
    return writer->failure.status;
}

coffer_status coffer__mldf_write_dictionary(coffer_mldf_writer *writer, size_t field, coffer_error *err)
{
    coffer_mldf_field *of = &writer->columns[field].field;
    if (!of->dictionary || of->dictionary_offset != 0)
        return COFFER_OK;
    of->dictionary_offset = writer->out.position;
    return coffer__mldf_store_payload(writer, of->dictionary, of->dictionary_size, err);
}

coffer_status coffer__mldf_write_front(coffer_mldf_writer *writer, coffer_error *err)
{
    uint64_t front = COFFER__MLDF_HEAD_SIZE + (uint64_t)writer->stride * writer->column_count;
    coffer_status status;
    /* The head and the descriptors are written last. */
    if ((status = coffer__mldf_out_zeros(&writer->out, front, err)) ||
        (status = coffer__mldf_out_align(&writer->out, writer->opts.page_size, err)))
        return status;
    writer->data_at = writer->out.position;
    writer->out.summed = writer->checksums || writer->checkpoint;
    writer->out.crc = 0;
    for (size_t i = 0; i < writer->column_count && status == COFFER_OK; i++)
        status = coffer__mldf_write_dictionary(writer, i, err);
    return status;
}

coffer_status coffer__mldf_open_sink(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->opts.overwrite, .partial = writer->opts.resumable };
    coffer_status status = coffer__sink_create(&writer->out.sink, writer->path, &options, err);
    if (status == COFFER_OK && !coffer__sink_can_patch(writer->out.sink))
        status =
            coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                         "%s: a set cannot be written to a stream, its header is written last", writer->path);
    return status;
}

coffer_status coffer_mldf_writer_create(coffer_mldf_writer **out, const char *path,
                                        const coffer_mldf_field *fields, size_t field_count,
                                        const coffer_mldf_writer_opts *opts, coffer_error *err)
{
    coffer_mldf_writer *writer = NULL;
    coffer_status status;
    if ((status = coffer__mldf_writer_new(&writer, path, opts, err)) ||
        (status = coffer__mldf_writer_columns(writer, fields, field_count, err)) ||
        (status = coffer__mldf_expect_key(writer, err)) || (status = coffer__mldf_open_sink(writer, err)) ||
        (writer->opts.resumable && (status = coffer__mldf_checkpoint_start(writer, err))) ||
        (status = coffer__mldf_write_front(writer, err))) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}

/* ---- Writing what has gathered ---- */

coffer_status coffer__mldf_add_entry(coffer_mldf_writer *writer, uint64_t offset, uint32_t size, uint32_t crc,
                                     coffer_error *err)
{
    uint8_t entry[COFFER__MLDF_TABLE_ENTRY];
    coffer__store_u64(entry, offset);
    coffer__store_u32(entry + 8, size);
    coffer__store_u32(entry + 12, writer->checksums ? crc : 0);
    if (writer->checkpoint && !coffer__buffer_append(&writer->checkpoint->entries, entry, sizeof entry))
        return coffer__fail_no_memory(err, sizeof entry);
    return coffer__mldf_spill_add(&writer->table, entry, sizeof entry, err);
}

/* Payloads that lie one behind the other in memory are written in one go. */
typedef struct run {
    const uint8_t *from;
    size_t len;
} run;

static coffer_status write_run(coffer_mldf_writer *writer, run *gathered, coffer_error *err)
{
    coffer_status status = coffer__mldf_out_write(&writer->out, gathered->from, gathered->len, err);
    if (gathered->len > 0)
        writer->data_crc = writer->out.crc;
    gathered->len = 0;
    return status;
}

/* Where an equal payload stands already; 0 when none does. */
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
    if (status == COFFER_OK && payload.offset == 0) {
        if (gathered->from + gathered->len != item->stored && (status = write_run(writer, gathered, err)))
            return status;
        payload.offset = writer->out.position + gathered->len;
        if (gathered->len == 0)
            gathered->from = item->stored;
        gathered->len += item->stored_size;
        status = coffer__mldf_add_entry(writer, payload.offset, item->stored_size, item->crc, err);
        if (status == COFFER_OK && item->steps & COFFER__MLDF_STEP_HASH)
            status = coffer__mldf_dedup_add(&writer->known, &payload, err);
    }
    coffer__store_u64(entry, payload.offset);
    coffer__store_u32(entry + 8, item->stored_size);
    return status;
}

static coffer_status write_batch(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    run gathered = { NULL, 0 };
    coffer_status status = coffer__mldf_encode_batch(writer, err);
    for (size_t i = 0; i < batch->item_count && status == COFFER_OK; i++)
        status = place(writer, &batch->items[i], &gathered, err);
    if (status == COFFER_OK)
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
    coffer_status status;
    if (batch->item_count == 0 && finished == 0)
        return COFFER_OK;
    if ((writer->base && (status = coffer__mldf_base_begin(writer, &failure))) ||
        (status = write_batch(writer, &failure)) ||
        (status = coffer__mldf_spill_add(&writer->rows, batch->rows.data, finished, &failure)) ||
        (writer->checkpoint &&
         (status = coffer__mldf_checkpoint_add(writer, batch->rows.data, finished, &failure))))
        return coffer__mldf_writer_fail(writer, status, &failure, err);
    writer->begun_on_disk = writer->begun_on_disk || has_unfinished(batch);
    memmove(batch->rows.data, batch->rows.data + finished, writer->row_size);
    batch->rows.len = writer->row_size;
    batch->bytes.len = 0;
    batch->row_count = batch->item_count = 0;
    batch->heavy = false;
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

/* ---- The current sample ---- */

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

/* A value that is set once more takes the place of the one before. */
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
    if (size >= LARGE)
        item.outside = bytes;
    else if (!coffer__buffer_append(&batch->bytes, bytes, size))
        return coffer__fail_no_memory(err, size);
    batch->heavy = batch->heavy || steps & (COFFER__MLDF_STEP_ZSTD | COFFER__MLDF_STEP_SEAL);
    batch->items[batch->item_count++] = item;
    return COFFER_OK;
}

static bool batch_is_full(const coffer__mldf_batch_out *batch)
{
    return batch->bytes.len >= batch->limit || batch->rows.len >= PLAIN_BATCH ||
           batch->item_count >= BATCH_ITEMS;
}

coffer_status coffer__mldf_put_payload(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                       size_t size, unsigned steps, coffer_error *err)
{
    coffer__mldf_column *column = &writer->columns[field];
    coffer_status status = COFFER_OK;
    bool empty = size == 0 && !(steps & COFFER__MLDF_STEP_SEAL);
    if (steps & COFFER__MLDF_STEP_SEAL && !writer->has_key)
        return fail_without_key(column, err);
    if (column->set_in == writer->sample + 1)
        take_back(writer, field);
    if ((size >= LARGE || batch_is_full(&writer->batch)) && (status = coffer__mldf_flush(writer, err)))
        return status;
    if (!empty && (status = add_item(writer, field, bytes, size, steps, err)))
        return status;
    if (empty) {
        uint8_t *entry = coffer__mldf_current_row(writer) + column->field.row_offset;
        coffer__store_u64(entry, writer->data_at);
        coffer__store_u32(entry + 8, 0);
    }
    column->set_in = writer->sample + 1;
    return size >= LARGE ? coffer__mldf_flush(writer, err) : COFFER_OK;
}

static coffer_status expect_field(const coffer_mldf_writer *writer, size_t field, coffer_error *err)
{
    if (writer->failure.status != COFFER_OK) {
        if (err)
            *err = writer->failure;
        return writer->failure.status;
    }
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
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s holds no %s",
                            writer->columns[field].name,
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

static coffer_status set_row_bytes(coffer_mldf_writer *writer, const coffer_mldf_field *of, const void *bytes,
                                   size_t size, coffer_error *err)
{
    if (size != of->row_size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: %zu bytes, its entries in the row have %lu", of->name, size,
                            (unsigned long)of->row_size);
    memcpy(coffer__mldf_current_row(writer) + of->row_offset, bytes, size);
    return COFFER_OK;
}

coffer_status coffer_mldf_writer_set_bytes(coffer_mldf_writer *writer, size_t field, const void *bytes,
                                           size_t size, const coffer_mldf_entry *entry, coffer_error *err)
{
    coffer_mldf_entry known = COFFER_MLDF_ENTRY_INIT;
    const coffer_mldf_field *of;
    uint64_t most;
    coffer_status status = expect_field(writer, field, err);
    if (status)
        return status;
    of = &writer->columns[field].field;
    if (of->kind == COFFER_MLDF_ENTRY_OPAQUE)
        return set_row_bytes(writer, of, bytes, size, err);
    most = COFFER__MLDF_PAYLOAD_MAX -
           (of->flags & COFFER_MLDF_FIELD_ENCRYPTED ? (uint64_t)COFFER__MLDF_SEAL_SIZE : 0);
    if (size > most)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "sample %llu, field %s: a value of %zu bytes, %llu are the most",
                            (unsigned long long)writer->sample, of->name, size, (unsigned long long)most);
    if ((status = coffer__take_options(&known, sizeof known, entry, err)) ||
        (status = coffer__mldf_check_new_value(&known, of, bytes, size, entry != NULL, err)) ||
        (status = coffer__mldf_put_payload(writer, field, bytes, size, steps_of(of), err)))
        return status;
    coffer__mldf_store_entry(coffer__mldf_current_row(writer) + of->row_offset, of->kind, &known);
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
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s holds no text",
                            writer->columns[field].name);
    return coffer_mldf_writer_set_bytes(writer, field, text, len, &entry, err);
}

coffer_status coffer__mldf_end_row(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__mldf_batch_out *batch = &writer->batch;
    coffer_error failure = COFFER_ERROR_INIT;
    if (!coffer__buffer_fill(&batch->rows, 0, writer->row_size)) {
        coffer_status status = coffer__fail_no_memory(&failure, writer->row_size);
        return coffer__mldf_writer_fail(writer, status, &failure, err);
    }
    for (size_t i = 0; i < writer->column_count; i++) {
        coffer__mldf_column *column = &writer->columns[i];
        if (column->set_in != writer->sample + 1 && coffer__mldf_has_payload(column->field.kind) &&
            coffer__load_u64(coffer__mldf_current_row(writer) + column->field.row_offset) == 0)
            column->field.flags |= COFFER_MLDF_FIELD_OPTIONAL;
    }
    batch->row_count++;
    writer->begun_on_disk = false;
    writer->sample++;
    writer->mark = writer->next_mark;
    return batch_is_full(batch) ? coffer__mldf_flush(writer, err) : COFFER_OK;
}

coffer_status coffer_mldf_writer_end_sample(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status = expect_field(writer, 0, err);
    if (status == COFFER_OK && writer->only_field != SIZE_MAX)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "samples that are changed end by themselves");
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
