/* Creating and freeing a writer: its options, its columns, and the front of the file. */
#include "formats/mldf/write/mldf_write.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <sodium.h>

/* Plain values are written as soon as the sink takes them without another copy; those that are compressed
 * gather until all threads have something to do. */
#define THREAD_BATCH ((size_t)2 << 20)

/* ---- Creating and freeing ---- */

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
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_options(&options, err);
    if (status)
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
    coffer__free(writer->marks);
    coffer__free(writer->batch.items);
    coffer__free(writer->batch.encoded);
    coffer__free(writer->path);
    sodium_memzero(writer->key, sizeof writer->key);
    coffer__free(writer);
}

void coffer_mldf_writer_discard(coffer_mldf_writer *writer)
{
    int fd;
    if (writer && writer->checkpoint && !writer->sticky.failure.status) {
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
    coffer_status status = coffer__mldf_make_columns(&writer->columns, &writer->row_size, fields, count, err);
    if (status)
        return status;
    writer->column_count = count;
    batch->limit = COFFER__MLDF_PLAIN_BATCH;
    for (size_t i = 0; i < count && !status; i++) {
        coffer__mldf_column *column = &writer->columns[i];
        if (column->field.flags & (COFFER_MLDF_FIELD_ENCRYPTED | COFFER_MLDF_FIELD_ZSTD))
            batch->limit = THREAD_BATCH * (writer->opts.threads ? writer->opts.threads : coffer__cpu_count());
        status = coffer__mldf_prepare_dictionary(column, writer->opts.zstd_level, err);
    }
    if (!status && !coffer__buffer_fill(&batch->rows, 0, writer->row_size))
        status = coffer__fail_no_memory(err, writer->row_size);
    return status;
}

coffer_status coffer__mldf_fail_without_key(const coffer__mldf_column *column, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_KEY_NEEDED, COFFER_OFFSET_NONE,
                        "field %s is encrypted: a key is needed", column->name);
}

coffer_status coffer__mldf_expect_key(const coffer_mldf_writer *writer, coffer_error *err)
{
    for (size_t i = 0; i < writer->column_count; i++) {
        if (writer->columns[i].field.flags & COFFER_MLDF_FIELD_ENCRYPTED && !writer->has_key)
            return coffer__mldf_fail_without_key(&writer->columns[i], err);
    }
    return COFFER_OK;
}

coffer_status coffer__mldf_write_dictionary(coffer_mldf_writer *writer, size_t field, coffer_error *err)
{
    coffer_mldf_field *descriptor = &writer->columns[field].field;
    if (!descriptor->dictionary || descriptor->dictionary_offset != 0)
        return COFFER_OK;
    descriptor->dictionary_offset = writer->out.position;
    return coffer__mldf_store_payload(writer, descriptor->dictionary, descriptor->dictionary_size, err);
}

uint64_t coffer__mldf_front_size(const coffer_mldf_writer *writer)
{
    return COFFER__MLDF_HEAD_SIZE + (uint64_t)writer->stride * writer->column_count +
           (writer->guarded ? COFFER__MLDF_GUARD_SIZE : 0);
}

coffer_status coffer__mldf_write_front(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer_status status;
    /* The head, the descriptors and the guard are written last. */
    status = coffer__mldf_out_zeros(&writer->out, coffer__mldf_front_size(writer), err);
    if (!status)
        status = coffer__mldf_out_align(&writer->out, writer->opts.page_size, err);
    if (status)
        return status;
    writer->data_at = writer->data_end = writer->recovery.last_end = writer->out.position;
    writer->out.tail_crc = 0;
    writer->out.summed = writer->checksums || writer->checkpoint;
    writer->out.crc = 0;
    for (size_t i = 0; i < writer->column_count && !status; i++)
        status = coffer__mldf_write_dictionary(writer, i, err);
    return status;
}

coffer_status coffer__mldf_open_sink(coffer_mldf_writer *writer, coffer_error *err)
{
    coffer__sink_opts options = { .exclusive = !writer->opts.overwrite, .partial = writer->opts.resumable };
    coffer_status status = coffer__sink_create(&writer->out.sink, writer->path, &options, err);
    if (!status && !coffer__sink_can_patch(writer->out.sink))
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
    coffer_status status = coffer__mldf_writer_new(&writer, path, opts, err);
    if (!status)
        status = coffer__mldf_writer_columns(writer, fields, field_count, err);
    if (!status)
        status = coffer__mldf_expect_key(writer, err);
    if (!status)
        status = coffer__mldf_open_sink(writer, err);
    if (!status)
        coffer__mldf_guard_begin(writer);
    if (!status && writer->opts.resumable)
        status = coffer__mldf_checkpoint_start(writer, err);
    if (!status)
        status = coffer__mldf_write_front(writer, err);
    if (status) {
        coffer__mldf_writer_free(writer);
        return status;
    }
    *out = writer;
    return COFFER_OK;
}
