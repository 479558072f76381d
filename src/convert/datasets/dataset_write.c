/* Samples of any input into a set: a batch is loaded on all threads while the one before is encoded and
 * written, in order and without another copy. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "convert/datasets/dataset_input.h"
#include "io/os.h"

#include <inttypes.h>
#include <string.h>

/* A batch has at most this many samples, and about this many bytes: sizes are known only after reading, so
 * the batch before decides, and the first one is small. */
#define BATCH_SAMPLES 256
#define FIRST_BATCH 8
#define BATCH_BYTES ((size_t)64 << 20)

typedef struct batch {
    coffer__dataset_sample *samples;
    coffer__dataset_value *values;
    size_t count;
} batch;

typedef struct packing {
    coffer__dataset_input *input;
    const coffer_mldf_pack_opts *opts;
    coffer_mldf_writer *writer;
    coffer__work *work;
    coffer__dataset_taker *takers; /* one per thread */
    batch batches[2];              /* one is loaded while the other is written */
    size_t batch_limit;            /* most samples of the next batch */
    bool more;                     /* the input has samples left */
    uint64_t index;                /* of the next sample */
    uint64_t end;                  /* after the last one to pack; UINT64_MAX = that of the input */
    uint64_t written;              /* samples of all batches before the one being loaded */
    uint64_t resumed;              /* samples that were there already */
    coffer__dataset_account account;
    coffer_node *out; /* may be NULL */
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
    uint32_t threads = work->takers ? coffer__work_threads(work->work) : 0;
    size_t fields = work->input->schema.count;
    /* First: it may still write values that it borrows from the batches. */
    coffer_mldf_writer_discard(work->writer);
    for (uint32_t i = 0; i < threads; i++)
        coffer__dataset_taker_free(&work->takers[i]);
    for (size_t i = 0; i < 2; i++)
        batch_free(&work->batches[i], fields);
    coffer__free(work->takers);
    coffer__work_free(work->work);
}

static coffer_status make_takers(packing *work, coffer_error *err)
{
    uint32_t threads = coffer__work_threads(work->work);
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
void coffer__dataset_clear_sample(coffer__dataset_sample *sample, size_t fields)
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
    sample->origin = (coffer_mldf_origin)COFFER_MLDF_ORIGIN_INIT;
}

static size_t sample_bytes(const coffer__dataset_sample *sample, size_t fields)
{
    size_t bytes = 0;
    for (size_t f = 0; f < fields; f++)
        bytes += sample->values[f].own.len;
    return bytes;
}

static coffer_status fill_batch(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    packing *work = context;
    size_t bytes = 0, fields = work->input->schema.count;
    batch *loading = &work->batches[slot];
    loading->count = 0;
    work->written = work->index;
    while (work->more && work->index < work->end && loading->count < work->batch_limit &&
           bytes < BATCH_BYTES) {
        coffer__dataset_sample *sample = &loading->samples[loading->count];
        coffer__dataset_clear_sample(sample, fields);
        sample->index = work->index;
        sample->units = 1;
        coffer_status status = work->input->next(&work->more, sample, work->input, err);
        if (status)
            return status;
        if (!work->more)
            break;
        bytes += sample_bytes(sample, fields);
        loading->count++;
        work->index++;
    }
    *pieces = loading->count;
    return COFFER_OK;
}

static coffer_status load_piece(void *context, size_t slot, uint64_t piece, uint32_t worker,
                                coffer_error *err)
{
    packing *work = context;
    (void)err;
    load_sample(work, &work->batches[slot].samples[piece], worker);
    return COFFER_OK;
}

static void choose_next_limit(packing *work, const batch *last)
{
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
        coffer_node_add_text_len(work->out, "failed", (const char *)sample->name.data, sample->name.len);
    coffer__fail_copy(err, why);
    return coffer__fail_prefix(err, why->status, "%.*s", (int)sample->name.len,
                               (const char *)sample->name.data);
}

/* True when a sample that failed with this status may be skipped. */
static bool can_go_without(const packing *work, coffer_status status)
{
    return work->opts->keep_going && (coffer__is_about_file(status) || status == COFFER_E_IO ||
                                      status == COFFER_E_NOT_FOUND || status == COFFER_E_UNSUPPORTED);
}

static coffer_status write_batch(void *context, size_t slot, coffer_error *err)
{
    packing *work = context;
    batch *writing = &work->batches[slot];
    for (size_t i = 0; i < writing->count; i++) {
        coffer__dataset_sample *sample = &writing->samples[i];
        if (sample->failure.status && !can_go_without(work, sample->failure.status))
            return fail_sample(work, sample, &sample->failure, err);
        coffer_status status = COFFER_OK;
        if (sample->failure.status) {
            status = coffer__dataset_account_skip(&work->account, sample, err);
            if (status)
                return status;
            continue;
        }
        for (size_t f = 0; !status && f < work->input->schema.count; f++) {
            status = coffer__dataset_put(work->writer, f, &sample->values[f], &sample->failure);
            if (status)
                return fail_sample(work, sample, &sample->failure, err);
        }
        coffer_mldf_writer_set_mark(work->writer, sample->index + 1);
        status = coffer_mldf_writer_set_origin(work->writer, &sample->origin, err);
        if (!status)
            status = coffer_mldf_writer_end_sample(work->writer, err);
        if (status)
            return status;
        work->account.packed += sample->units;
    }
    /* The writer borrows the values, and the batch is filled again. */
    return coffer_mldf_writer_flush(work->writer, err);
}

static coffer_status end_turn(void *context, size_t slot, coffer_error *err)
{
    packing *work = context;
    choose_next_limit(work, &work->batches[slot]);
    return coffer__progress_step(work->opts->progress, work->written, work->input->count, err);
}

/* Skips the samples that an interrupted pack has stored, or those before a part. */
static coffer_status skip_samples(packing *work, uint64_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; !status && work->more && i < count; i++) {
        coffer__dataset_sample *sample = &work->batches[0].samples[0];
        coffer__dataset_clear_sample(sample, work->input->schema.count);
        sample->index = i;
        sample->units = 1;
        status = work->input->next(&work->more, sample, work->input, err);
        if (!status && work->more && !work->opts->count)
            coffer__dataset_account_resumed(&work->account, sample);
    }
    return status;
}

static coffer_status write_all(packing *work, coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { fill_batch, load_piece, write_batch, end_turn };
    const coffer_mldf_pack_opts *opts = work->opts;
    if (opts->part_count)
        return coffer__dataset_copy_parts(work->writer, opts, err);
    work->index = opts->count ? opts->first : coffer_mldf_writer_mark(work->writer);
    work->end =
        opts->count && opts->count < UINT64_MAX - opts->first ? opts->first + opts->count : UINT64_MAX;
    work->more = true;
    coffer_status status = skip_samples(work, work->index, err);
    return status ? status : coffer__work_run_pipeline(work->work, &pipeline, work, err);
}

/* ---- Types and flags of the fields ---- */

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

/* Settings that must be the same when an interrupted pack is resumed. keep_going is not one of them: a pack
 * that stopped at a file can be resumed without that file. */
static void make_tag(char tag[COFFER__DIGEST_HEX + 1], const coffer__dataset_input *input,
                     const coffer_mldf_pack_opts *opts)
{
    uint64_t settings[] = { opts->jpeg_quality, opts->max_size, opts->raw, input->count };
    coffer__digest_add(input->seen, settings, sizeof settings);
    coffer__digest_hex(tag, input->seen);
}

/* Samples from the first one on whose files have changed are packed again. */
static coffer_status resume_writer(packing *work, const char *out_path, coffer_mldf_writer_opts *opts,
                                   coffer_error *err)
{
    const coffer__dataset_schema *schema = &work->input->schema;
    coffer__dataset_resume resume = { .input = work->input, .sample = &work->batches[0].samples[0] };
    opts->resume_check = coffer__dataset_unchanged;
    opts->resume_context = &resume;
    coffer_status status =
        coffer_mldf_writer_resume(&work->writer, out_path, schema->fields, schema->count, opts, err);
    work->resumed = status ? 0 : coffer_mldf_writer_sample(work->writer);
    if (resume.changed && work->out)
        coffer_node_add_text_len(work->out, "changed_since", (const char *)resume.sample->name.data,
                                 resume.sample->name.len);
    if (status && status != COFFER_E_NOT_FOUND)
        return status;
    coffer_status rewound = resume.index > 0 ? work->input->rewind(work->input, err) : COFFER_OK;
    return rewound ? rewound : status;
}

static coffer_status open_writer(packing *work, const char *out_path, bool resumable, coffer_error *err)
{
    coffer__dataset_schema *schema = &work->input->schema;
    coffer_mldf_writer_opts opts = *work->opts->write;
    char tag[COFFER__DIGEST_HEX + 1];
    make_tag(tag, work->input, work->opts);
    opts.borrow = !work->opts->part_count;
    opts.resumable = resumable;
    opts.resume_tag = resumable ? tag : NULL;
    if (opts.page_size == 0 && work->input->bytes && work->input->bytes < COFFER__DATASET_LARGE)
        opts.page_size = COFFER__DATASET_SMALL_PAGE;
    opts.dedup = opts.dedup || (work->input->shares_payloads && !work->opts->encrypt);
    if (resumable && work->opts->resume) {
        coffer_status status = resume_writer(work, out_path, &opts, err);
        if (status != COFFER_E_NOT_FOUND)
            return status;
    }
    return coffer_mldf_writer_create(&work->writer, out_path, schema->fields, schema->count, &opts, err);
}

static void describe(coffer_node *out, packing *work)
{
    const coffer__dataset_schema *schema = &work->input->schema;
    uint64_t changes[COFFER__CHANGE_COUNT] = { 0 };
    for (uint32_t i = 0; i < coffer__work_threads(work->work); i++)
        for (size_t c = 0; c < COFFER__CHANGE_COUNT; c++)
            changes[c] += work->takers[i].changes[c];
    coffer_node_add_u64(out, "samples", coffer_mldf_writer_sample(work->writer), COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "fields", schema->count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "classes", work->input->class_count, COFFER_UNIT_NONE);
    coffer_node_add_u64(out, "resumed", work->resumed, COFFER_UNIT_NONE);
    coffer__dataset_account_describe(&work->account, work->input, changes, work->opts->count > 0);
    if (work->input->kept_as_text)
        coffer_node_add_text(out, "kept_as_text", work->input->kept_as_text);
}

static void describe_size(coffer_node *out, const char *path)
{
    struct stat st;
    if (coffer__os_stat(path, &st) == 0)
        coffer_node_add_u64(out, "size", (uint64_t)st.st_size, COFFER_UNIT_BYTES);
}

static coffer_status prepare(packing *work, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    settle_fields(&work->input->schema, work->opts);
    if (work->opts->dictionary && work->opts->zstd)
        status = coffer__dataset_train(work->input, work->opts, err);
    if (!status)
        status =
            coffer__work_new(&work->work, &(coffer__work_opts){ .threads = work->opts->write->threads }, err);
    if (!status)
        status = make_takers(work, err);
    return status ? status : make_batches(work, err);
}

coffer_status coffer__dataset_write(coffer_node *out, coffer__dataset_input *input, const char *out_path,
                                    const coffer_mldf_pack_opts *opts, bool resumable, coffer_error *err)
{
    packing work = { .input = input, .opts = opts, .out = out, .account.fd = -1 };
    coffer_status status = prepare(&work, err);
    if (!status)
        status = open_writer(&work, out_path, resumable, err);
    bool opened = !status;
    if (!status)
        status = coffer__dataset_account_open(&work.account, out, resumable ? out_path : NULL,
                                              work.resumed > 0, err);
    if (!status)
        status = write_all(&work, err);
    if (!status && out) {
        describe(out, &work);
        status = coffer_node_status(out, err);
    }
    if (!status && opts->part_count)
        status = coffer__dataset_expect_files(input, opts, err);
    if (!status) {
        status = coffer_mldf_writer_commit(work.writer, err);
        work.writer = NULL;
    }
    if (!status && out)
        describe_size(out, out_path);
    /* Nothing to resume. */
    bool empty = opened && work.writer && coffer_mldf_writer_sample(work.writer) == 0;
    coffer__dataset_account_close(&work.account, !status || empty);
    packing_free(&work);
    if (status && resumable && empty)
        coffer__ignore(coffer_mldf_writer_drop_partial(out_path, NULL));
    return status;
}
