/* Decodes every picture and sound of a set, to find those that cannot be. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>

COFFER__INIT_FUNCTION(coffer_mldf_decode_opts, COFFER_MLDF_DECODE_OPTS_INIT)

enum { TURN = 256 }; /* samples between two steps of the progress */

typedef struct decoding {
    const coffer_mldf *set;
    coffer_report *report;
    coffer_mldf_pack_opts pack;
    coffer_limits limits;
    size_t field;
    uint64_t first, count; /* samples of the turn */
    coffer_error failures[TURN];
    coffer__work *work;
    coffer__dataset_taker *takers; /* one per thread, as the next ones */
    coffer_bytes *bytes;
    uint64_t without_decoder;
} decoding;

static coffer_status try_value(const decoding *work, uint64_t sample, coffer__dataset_taker *taker,
                               coffer_bytes *bytes, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(work->set, work->field);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_read(bytes, &entry, work->set, sample, work->field, NULL);
    /* The check itself reports a value that cannot be read. */
    if (status || !entry.present)
        return COFFER_OK;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE)
        return entry.mode == COFFER_MLDF_MODE_RAW
                   ? COFFER_OK
                   : coffer__dataset_try_picture(bytes->data, bytes->size, taker, err);
    return entry.codec == COFFER_MLDF_CODEC_PCM
               ? COFFER_OK
               : coffer__dataset_try_sound(bytes->data, bytes->size, taker, &work->limits, err);
}

static coffer_status try_piece(void *context, uint64_t piece, uint32_t worker, coffer_error *err)
{
    decoding *work = context;
    coffer_error *failure = &work->failures[piece];
    (void)err;
    *failure = (coffer_error)COFFER_ERROR_INIT;
    failure->status =
        try_value(work, work->first + piece, &work->takers[worker], &work->bytes[worker], failure);
    return COFFER_OK;
}

static void report_turn(decoding *work)
{
    const char *field = coffer_mldf_field_at(work->set, work->field)->name;
    for (uint64_t i = 0; i < work->count; i++) {
        const coffer_error *failure = &work->failures[i];
        if (failure->status == COFFER_E_UNSUPPORTED)
            work->without_decoder++;
        else if (failure->status)
            coffer__report_add(work->report, COFFER_E_UNDECODABLE, COFFER_ERROR, COFFER_OFFSET_NONE,
                               "sample %" PRIu64 ", field \"%s\": %s", work->first + i, field, failure->text);
    }
}

static coffer_status try_field(decoding *work, const coffer_progress *progress, coffer_error *err)
{
    uint64_t samples = coffer_mldf_sample_count(work->set);
    coffer_status status = COFFER_OK;
    for (work->first = 0; !status && work->first < samples; work->first += work->count) {
        work->count = samples - work->first < TURN ? samples - work->first : TURN;
        status = coffer__work_run(work->work, work->count, try_piece, work, err);
        if (status)
            break;
        report_turn(work);
        status = coffer__progress_step(progress, work->first + work->count, samples, err);
    }
    return status;
}

static coffer_status prepare(decoding *work, uint32_t threads, coffer_error *err)
{
    coffer_image_decoder_opts decoder = COFFER_IMAGE_DECODER_OPTS_INIT;
    decoder.limits = &work->limits;
    coffer_status status = coffer__work_new(&work->work, &(coffer__work_opts){ .threads = threads }, err);
    if (status)
        return status;
    uint32_t count = coffer__work_threads(work->work);
    work->takers = coffer__calloc(count, sizeof *work->takers);
    work->bytes = coffer__calloc(count, sizeof *work->bytes);
    if (!work->takers || !work->bytes)
        return coffer__fail_no_memory(err, count * sizeof *work->takers);
    for (uint32_t i = 0; !status && i < count; i++) {
        work->takers[i].opts = &work->pack;
        work->takers[i].pixels = (coffer_pixels)COFFER_PIXELS_INIT;
        work->bytes[i] = (coffer_bytes)COFFER_BYTES_INIT;
        status = coffer_image_decoder_new(&work->takers[i].decoder, &decoder, err);
    }
    return status;
}

static void release(decoding *work)
{
    uint32_t threads = work->work ? coffer__work_threads(work->work) : 0;
    for (uint32_t i = 0; work->takers && i < threads; i++)
        coffer__dataset_taker_free(&work->takers[i]);
    for (uint32_t i = 0; work->bytes && i < threads; i++)
        coffer_free(work->bytes[i].data);
    coffer__free(work->takers);
    coffer__free(work->bytes);
    coffer__work_free(work->work);
}

coffer_status coffer_mldf_check_decode(coffer_report *out, const coffer_mldf *set,
                                       const coffer_mldf_decode_opts *opts, coffer_error *err)
{
    coffer_mldf_decode_opts options = COFFER_MLDF_DECODE_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    decoding *work = coffer__calloc(1, sizeof *work);
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    work->set = set;
    work->report = out;
    work->pack = (coffer_mldf_pack_opts)COFFER_MLDF_PACK_OPTS_INIT;
    work->limits = coffer__limits(options.limits);
    status = prepare(work, options.threads, err);
    for (size_t f = 0; !status && f < coffer_mldf_field_count(set); f++) {
        const coffer_mldf_field *field = coffer_mldf_field_at(set, f);
        work->field = f;
        if (field->kind == COFFER_MLDF_ENTRY_IMAGE || field->kind == COFFER_MLDF_ENTRY_AUDIO)
            status = try_field(work, options.progress, err);
    }
    if (!status && work->without_decoder)
        coffer__report_add(out, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%" PRIu64 " values were not decoded: there is no decoder for them",
                           work->without_decoder);
    release(work);
    coffer__free(work);
    return status ? status : coffer__report_status(out, err);
}
