/* Samples of any input into a set: read and encoded on all threads a batch at a time, and written in order
 * while the next batch is read. */
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>
#include <string.h>

/* A batch has at most this many samples, and about this many bytes: sizes are known only after reading, so
 * it is told by the batch before, and the first one is small. */
#define BATCH_SAMPLES 256
#define FIRST_BATCH 8
#define BATCH_BYTES ((size_t)64 << 20)
/* How many samples that were left out are listed. */
#define SKIPPED_LISTED 1000

typedef struct batch {
    coffer__dataset_sample *samples;
    coffer__dataset_value *values;
    size_t count;
} batch;

typedef struct packing {
    coffer__dataset_input *input;
    const coffer_mldf_pack_opts *opts;
    coffer_mldf_writer *writer;
    coffer__pool *pool;
    coffer__dataset_taker *takers; /* one per thread */
    batch batches[2];
    batch *loading, *writing; /* the two of them, in turn */
    size_t batch_limit;       /* how many samples the next batch may have */
    uint64_t resumed;         /* samples that were there already */
    uint64_t skipped;
    coffer_node *list; /* of those; may be NULL */
    coffer_node *out;  /* may be NULL */
} packing;

static void batch_free(batch *one, size_t fields)
{
    for (size_t i = 0; one->values && i < BATCH_SAMPLES * fields; i++)
        coffer__buffer_free(&one->values[i].own);
    for (size_t i = 0; one->samples && i < BATCH_SAMPLES; i++)
        coffer__buffer_free(&one->samples[i].name);
    coffer__free(one->values);
    coffer__free(one->samples);
}

static void packing_free(packing *work)
{
    uint32_t threads = work->takers ? coffer__pool_threads(work->pool) : 0;
    size_t fields = work->input->schema.count;
    for (uint32_t i = 0; i < threads; i++) {
        coffer_image_decoder_free(work->takers[i].decoder);
        coffer_free(work->takers[i].pixels.data);
        coffer_free(work->takers[i].scaled.data);
    }
    for (size_t i = 0; i < 2; i++)
        batch_free(&work->batches[i], fields);
    coffer__free(work->takers);
    coffer__pool_free(work->pool);
    coffer_mldf_writer_discard(work->writer);
}

static coffer_status make_takers(packing *work, coffer_error *err)
{
    uint32_t threads = coffer__pool_threads(work->pool);
    coffer_status status = COFFER_OK;
    coffer_image_decoder_opts decoder = COFFER_IMAGE_DECODER_OPTS_INIT;
    decoder.limits = work->opts->write->limits;
    work->takers = coffer__calloc(threads, sizeof *work->takers);
    if (!work->takers)
        return coffer__fail_no_memory(err, threads * sizeof *work->takers);
    for (uint32_t i = 0; !status && i < threads; i++) {
        work->takers[i].opts = work->opts;
        work->takers[i].pixels = work->takers[i].scaled = (coffer_pixels)COFFER_PIXELS_INIT;
        status = coffer_image_decoder_new(&work->takers[i].decoder, &decoder, err);
    }
    return status;
}

static coffer_status make_batch(batch *one, size_t fields, coffer_error *err)
{
    one->samples = coffer__calloc(BATCH_SAMPLES, sizeof *one->samples);
    one->values = coffer__calloc(BATCH_SAMPLES * (fields ? fields : 1), sizeof *one->values);
    if (!one->samples || !one->values)
        return coffer__fail_no_memory(err, BATCH_SAMPLES * fields * sizeof *one->values);
    for (size_t i = 0; i < BATCH_SAMPLES; i++) {
        coffer__buffer_init(&one->samples[i].name, SIZE_MAX);
        one->samples[i].values = one->values + i * fields;
        for (size_t f = 0; f < fields; f++)
            coffer__buffer_init(&one->samples[i].values[f].own, SIZE_MAX);
    }
    return COFFER_OK;
}

static coffer_status make_batches(packing *work, coffer_error *err)
{
    coffer_status status = make_batch(&work->batches[0], work->input->schema.count, err);
    work->loading = &work->batches[0];
    work->writing = &work->batches[1];
    work->batch_limit = FIRST_BATCH;
    return status ? status : make_batch(&work->batches[1], work->input->schema.count, err);
}

/* Each sample keeps its own failure. */
static void load_sample(packing *work, coffer__dataset_sample *sample, uint32_t worker)
{
    const coffer__dataset_input *input = work->input;
    coffer_error *failure = &sample->failure;
    *failure = (coffer_error)COFFER_ERROR_INIT;
    coffer_status status = input->load ? input->load(sample, input, failure) : COFFER_OK;
    for (size_t f = 0; !status && f < input->schema.count; f++)
        status = coffer__dataset_take(&sample->values[f], &input->schema.fields[f], &work->takers[worker],
                                      failure);
    failure->status = status;
}

/* Memory that one huge value took is not kept for all that follow. */
static void clear_sample(coffer__dataset_sample *sample, size_t fields)
{
    for (size_t f = 0; f < fields; f++) {
        coffer__dataset_value *value = &sample->values[f];
        value->form = COFFER__DATASET_ABSENT;
        value->has_entry = false;
        value->is_path = false;
        if (value->own.capacity > BATCH_BYTES / BATCH_SAMPLES)
            coffer__buffer_free(&value->own);
        value->own.len = 0;
        value->own.failed = false;
    }
    sample->name.len = 0;
}

static size_t sample_bytes(const coffer__dataset_sample *sample, size_t fields)
{
    size_t bytes = 0;
    for (size_t f = 0; f < fields; f++)
        bytes += sample->values[f].own.len;
    return bytes;
}

static coffer_status fill_batch(bool *more, packing *work, uint64_t *index, coffer_error *err)
{
    size_t bytes = 0, fields = work->input->schema.count;
    batch *to = work->loading;
    to->count = 0;
    while (*more && to->count < work->batch_limit && bytes < BATCH_BYTES) {
        coffer__dataset_sample *sample = &to->samples[to->count];
        clear_sample(sample, fields);
        sample->index = *index;
        coffer_status status = work->input->next(more, sample, work->input, err);
        if (status)
            return status;
        if (!*more)
            break;
        bytes += sample_bytes(sample, fields);
        to->count++;
        ++*index;
    }
    return COFFER_OK;
}

static void choose_next_limit(packing *work)
{
    const batch *last = work->loading;
    size_t bytes = 0;
    for (size_t i = 0; i < last->count; i++)
        bytes += sample_bytes(&last->samples[i], work->input->schema.count);
    size_t limit = bytes ? BATCH_BYTES / (bytes / last->count + 1) : BATCH_SAMPLES;
    work->batch_limit = limit < 1 ? 1 : limit > BATCH_SAMPLES ? BATCH_SAMPLES : limit;
}

coffer_status coffer__dataset_put(coffer_mldf_writer *writer, size_t index,
                                  const coffer__dataset_value *value, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_writer_field_at(writer, index);
    if (value->form == COFFER__DATASET_ABSENT)
        return COFFER_OK;
    if (field->type == COFFER_MLDF_INT)
        return coffer_mldf_writer_set_int(writer, index, value->i64, err);
    if (field->type == COFFER_MLDF_FLOAT)
        return coffer_mldf_writer_set_float(writer, index, value->f64, err);
    if (coffer__dataset_is_array(field->type))
        return coffer_mldf_writer_set_array(writer, index, value->dims, value->bytes, value->size, err);
    if (field->type == COFFER_MLDF_TEXT)
        return coffer_mldf_writer_set_text(writer, index, (const char *)value->bytes, value->size, err);
    return coffer_mldf_writer_set_bytes(writer, index, value->bytes, value->size,
                                        value->has_entry ? &value->entry : NULL, err);
}

static coffer_status fail_sample(const packing *work, const coffer__dataset_sample *sample,
                                 const coffer_error *why, coffer_error *err)
{
    if (work->out)
        coffer__node_text_len(work->out, "failed", (const char *)sample->name.data, sample->name.len);
    coffer__fail_copy(err, why);
    return coffer__fail_prefix(err, why->status, "%.*s", (int)sample->name.len,
                               (const char *)sample->name.data);
}

/* Whether the rest of a set can do without a sample that failed like this. */
static bool can_go_without(const packing *work, coffer_status status)
{
    return work->opts->keep_going && (coffer__is_about_file(status) || status == COFFER_E_IO ||
                                      status == COFFER_E_NOT_FOUND || status == COFFER_E_UNSUPPORTED);
}

static void list_skipped(packing *work, const coffer__dataset_sample *sample)
{
    if (work->skipped++ >= SKIPPED_LISTED)
        return;
    coffer_node *entry = coffer__node_map(work->list, NULL);
    coffer__node_text_len(entry, "sample", (const char *)sample->name.data, sample->name.len);
    coffer__node_text(entry, "code", coffer_status_name(sample->failure.status));
    coffer__node_text(entry, "text", sample->failure.text);
}

static coffer_status write_batch(packing *work, coffer_error *err)
{
    for (size_t i = 0; i < work->writing->count; i++) {
        coffer__dataset_sample *sample = &work->writing->samples[i];
        if (sample->failure.status && !can_go_without(work, sample->failure.status))
            return fail_sample(work, sample, &sample->failure, err);
        if (sample->failure.status) {
            list_skipped(work, sample);
            continue;
        }
        coffer_status status = COFFER_OK;
        for (size_t f = 0; !status && f < work->input->schema.count; f++) {
            status = coffer__dataset_put(work->writer, f, &sample->values[f], &sample->failure);
            if (status)
                return fail_sample(work, sample, &sample->failure, err);
        }
        coffer_mldf_writer_set_mark(work->writer, sample->index + 1);
        status = coffer_mldf_writer_end_sample(work->writer, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status tell_progress(const packing *work, uint64_t done, coffer_error *err)
{
    const coffer_progress *progress = work->opts->progress;
    if (progress && progress->step(progress->context, done, work->input->count))
        return coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "stopped after %" PRIu64 " samples",
                            done);
    return COFFER_OK;
}

/* Passes by what an interrupted pack has stored. */
static coffer_status pass_by(bool *more, packing *work, uint64_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && *more && i < count; i++) {
        coffer__dataset_sample *sample = &work->loading->samples[0];
        clear_sample(sample, work->input->schema.count);
        status = work->input->next(more, sample, work->input, err);
    }
    return status;
}

/* Piece 0 writes the batch that was loaded before; the others load one sample each. */
static coffer_status run_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    packing *work = context;
    if (index == 0)
        return write_batch(work, err);
    load_sample(work, &work->loading->samples[index - 1], worker);
    return COFFER_OK;
}

static coffer_status write_all(packing *work, coffer_error *err)
{
    uint64_t index = coffer_mldf_writer_mark(work->writer);
    bool more = true;
    coffer_status status = pass_by(&more, work, index, err);
    while (!status && (more || work->writing->count)) {
        uint64_t written = index;
        status = fill_batch(&more, work, &index, err);
        if (!status)
            status = coffer__pool_run(work->pool, work->loading->count + 1, run_piece, work, err);
        choose_next_limit(work);
        batch *loaded = work->loading;
        work->loading = work->writing;
        work->writing = loaded;
        if (!status)
            status = tell_progress(work, written, err);
    }
    return status;
}

/* ---- Fields as they are asked for ---- */

static bool is_packed_already(const coffer_mldf_field *field)
{
    return field->type == COFFER_MLDF_IMAGE_JPEG || field->type == COFFER_MLDF_IMAGE_PNG ||
           field->type == COFFER_MLDF_AUDIO_COMPRESSED || field->type == COFFER_MLDF_VIDEO_COMPRESSED;
}

static void settle_fields(coffer__dataset_schema *schema, const coffer_mldf_pack_opts *opts)
{
    for (size_t f = 0; f < schema->count; f++) {
        coffer_mldf_field *field = &schema->fields[f];
        bool scalar = field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT;
        if (coffer__dataset_is_image(field->type) && (opts->raw || opts->jpeg_quality)) {
            field->type = opts->raw ? COFFER_MLDF_IMAGE_RAW : COFFER_MLDF_IMAGE_JPEG;
            field->jpeg_quality = opts->raw ? 0 : (uint8_t)opts->jpeg_quality;
        }
        if (opts->zstd && !scalar && !is_packed_already(field))
            field->flags |= COFFER_MLDF_FIELD_ZSTD;
        if (opts->encrypt && !scalar)
            field->flags |= COFFER_MLDF_FIELD_ENCRYPTED;
    }
}

/* What must be the same when an interrupted pack goes on. Not whether it keeps going: a pack that a file has
 * stopped can go on without it. */
static void make_tag(char tag[COFFER__DIGEST_HEX + 1], const coffer__dataset_input *input,
                     const coffer_mldf_pack_opts *opts)
{
    uint64_t settings[] = { opts->jpeg_quality, opts->max_size, opts->raw, input->count };
    coffer__digest_add(input->seen, settings, sizeof settings);
    coffer__digest_hex(tag, input->seen);
}

static coffer_status open_writer(packing *work, const char *out_path, bool resumable, coffer_error *err)
{
    coffer__dataset_schema *schema = &work->input->schema;
    coffer_mldf_writer_opts opts = *work->opts->write;
    char tag[COFFER__DIGEST_HEX + 1];
    make_tag(tag, work->input, work->opts);
    opts.resumable = resumable;
    opts.resume_tag = resumable ? tag : NULL;
    opts.dedup = opts.dedup || (work->input->shares_payloads && !work->opts->encrypt);
    if (resumable && work->opts->resume) {
        coffer_status status =
            coffer_mldf_writer_resume(&work->writer, out_path, schema->fields, schema->count, &opts, err);
        if (status != COFFER_E_NOT_FOUND) {
            work->resumed = status ? 0 : coffer_mldf_writer_sample(work->writer);
            return status;
        }
    }
    return coffer_mldf_writer_create(&work->writer, out_path, schema->fields, schema->count, &opts, err);
}

static void describe(coffer_node *out, const packing *work)
{
    const coffer__dataset_schema *schema = &work->input->schema;
    coffer__node_u64(out, "samples", coffer_mldf_writer_sample(work->writer), COFFER_UNIT_NONE);
    coffer__node_u64(out, "fields", schema->count, COFFER_UNIT_NONE);
    coffer__node_u64(out, "classes", work->input->class_count, COFFER_UNIT_NONE);
    coffer__node_u64(out, "skipped", work->skipped, COFFER_UNIT_NONE);
    coffer__node_u64(out, "resumed", work->resumed, COFFER_UNIT_NONE);
    if (work->input->kept_as_text)
        coffer__node_text(out, "kept_as_text", work->input->kept_as_text);
}

static coffer_status prepare(packing *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    settle_fields(&work->input->schema, work->opts);
    if (work->opts->dictionary && work->opts->zstd)
        status = coffer__dataset_train(work->input, work->opts, err);
    if (!status)
        status = coffer__pool_new(&work->pool, work->opts->write->threads, err);
    if (!status)
        status = make_takers(work, err);
    return status ? status : make_batches(work, err);
}

coffer_status coffer__dataset_write(coffer_node *out, coffer__dataset_input *input, const char *out_path,
                                    const coffer_mldf_pack_opts *opts, bool resumable, coffer_error *err)
{
    packing work = { .input = input, .opts = opts, .out = out };
    coffer_status status = prepare(&work, err);
    if (!status)
        status = open_writer(&work, out_path, resumable, err);
    bool opened = !status;
    work.list = out && opts->keep_going ? coffer__node_list(out, "left_out") : NULL;
    if (!status)
        status = write_all(&work, err);
    if (!status && out) {
        describe(out, &work);
        status = coffer__node_status(out, err);
    }
    if (!status) {
        status = coffer_mldf_writer_commit(work.writer, err);
        work.writer = NULL;
    }
    /* There is nothing to go on with. */
    bool empty = opened && work.writer && coffer_mldf_writer_sample(work.writer) == 0;
    packing_free(&work);
    if (status && resumable && empty)
        coffer_mldf_writer_drop_partial(out_path, NULL);
    return status;
}
