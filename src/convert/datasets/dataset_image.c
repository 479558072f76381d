/* Pictures and sounds of a set: on their way into it, and decoded to find those that cannot be. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/report.h"
#include "base/work.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>

/* Pictures on their way into a set: kept as they are, made smaller, encoded again, or decoded. */

/* Quality of pictures that are encoded again only because they were too large. */
#define USUAL_QUALITY 90

static uint32_t scaled_side(uint32_t side, uint32_t longest, uint32_t max)
{
    uint32_t result = (uint32_t)(((uint64_t)side * max + longest / 2) / longest);
    return result ? result : 1;
}

/* The picture in taker->pixels or taker->scaled, upright, no side longer than asked for, with the depth and
 * the channels of the file. */
static coffer_status decode_to_size(const coffer_pixels **out, const coffer__dataset_value *value,
                                    const coffer_image_info *info, coffer__dataset_taker *taker,
                                    coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    bool turned = info->orientation >= 5;
    uint32_t width = turned ? info->height : info->width, height = turned ? info->width : info->height;
    uint32_t max = taker->opts->max_size, longest = width > height ? width : height;
    bool shrink = max && longest > max;
    opts.channels = 0;
    opts.depth = 0;
    if (shrink) {
        opts.min_width = scaled_side(width, longest, max);
        opts.min_height = scaled_side(height, longest, max);
    }
    coffer_status status =
        coffer_image_decode(&taker->pixels, taker->decoder, value->bytes, value->size, &opts, err);
    *out = &taker->pixels;
    if (!status && shrink) {
        status = coffer_pixels_resize(&taker->scaled, &taker->pixels, opts.min_width, opts.min_height, err);
        *out = &taker->scaled;
    }
    return status;
}

/* A form that loses nothing of the pixels: what was asked for, or PNG when that has no room for them. */
static coffer_mldf_image_mode choose_mode(const coffer_pixels *pixels, const coffer_image_info *info,
                                          coffer__dataset_taker *taker)
{
    const coffer_mldf_pack_opts *opts = taker->opts;
    bool wide = pixels->depth == 16, alpha = pixels->channels == 2 || pixels->channels == 4;
    if (!opts->raw && !opts->jpeg_quality && info->kind != COFFER_IMAGE_JPEG)
        return COFFER_MLDF_MODE_PNG;
    coffer_mldf_image_mode wanted = opts->raw ? COFFER_MLDF_MODE_RAW : COFFER_MLDF_MODE_JPEG;
    if (!wide && (!alpha || opts->raw))
        return wanted;
    taker->changes[COFFER__KEPT_AS_PNG]++;
    return COFFER_MLDF_MODE_PNG;
}

static coffer_status encode(coffer__dataset_value *value, const coffer_pixels *pixels, int quality,
                            coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    coffer_status status = value->entry.mode == COFFER_MLDF_MODE_JPEG
                               ? coffer_image_encode_jpeg(&bytes, &size, pixels, quality, err)
                               : coffer_image_encode_png(&bytes, &size, pixels, err);
    if (!status)
        status = coffer__dataset_value_copy(value, bytes, size, err);
    coffer_free(bytes);
    return status;
}

static coffer_status encode_again(coffer__dataset_value *value, const coffer_image_info *info,
                                  coffer__dataset_taker *taker, coffer_error *err)
{
    const coffer_pixels *pixels = NULL;
    int quality = taker->opts->jpeg_quality ? (int)taker->opts->jpeg_quality : USUAL_QUALITY;
    coffer_status status = decode_to_size(&pixels, value, info, taker, err);
    if (status)
        return status;
    value->entry.width = (uint16_t)pixels->width;
    value->entry.height = (uint16_t)pixels->height;
    value->entry.channels = (uint16_t)pixels->channels;
    value->entry.mode = (uint8_t)choose_mode(pixels, info, taker);
    taker->changes[COFFER__TURNED] += info->orientation > 1;
    taker->changes[COFFER__FIRST_FRAME] += info->frames > 1;
    taker->changes[COFFER__STORED_AS_PNG] += value->entry.mode == COFFER_MLDF_MODE_PNG &&
                                             info->kind != COFFER_IMAGE_PNG &&
                                             info->kind != COFFER_IMAGE_JPEG;
    if (value->entry.mode != COFFER_MLDF_MODE_RAW)
        return encode(value, pixels, quality, err);
    return coffer__dataset_value_copy(value, pixels->data,
                                      (size_t)pixels->width * pixels->height * pixels->channels, err);
}

/* Decodes a stored value and throws the result away. COFFER_E_UNSUPPORTED without a decoder for it. */
static coffer_status dataset_try_picture(const void *bytes, size_t size, coffer__dataset_taker *taker,
                                         coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    opts.channels = 0;
    opts.depth = 0;
    opts.ignore_orientation = true;
    /* The smallest scale reads every code of a JPEG all the same. */
    opts.min_width = opts.min_height = 1;
    coffer_status status = coffer_image_decode(&taker->pixels, taker->decoder, bytes, size, &opts, err);
    return status ? status : coffer_image_verify(bytes, size, err);
}

/* A picture that is stored as it is must be complete, and decodable where that is asked for. */
static coffer_status check_stored(const coffer__dataset_value *value, coffer__dataset_taker *taker,
                                  coffer_error *err)
{
    coffer_status status = taker->opts->decode ? dataset_try_picture(value->bytes, value->size, taker, err)
                                               : coffer_image_verify(value->bytes, value->size, err);
    if (status == COFFER_E_UNSUPPORTED) {
        taker->changes[COFFER__NOT_DECODED]++;
        return COFFER_OK;
    }
    if (!status || !taker->opts->store_damaged)
        return status;
    taker->changes[COFFER__STORED_DAMAGED]++;
    return COFFER_OK;
}

static coffer_status expect_one_frame(const coffer_image_info *info, const coffer_mldf_pack_opts *opts,
                                      coffer_error *err)
{
    if (!opts->strict || info->frames <= 1)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "%s: %" PRIu32 " frames or pages, only the first one can be stored",
                        coffer_image_kind_name(info->kind), info->frames);
}

coffer_status coffer__dataset_take_image(coffer__dataset_value *value, coffer__dataset_taker *taker,
                                         coffer_error *err)
{
    const coffer_mldf_pack_opts *opts = taker->opts;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_status status = coffer_image_probe(&info, value->bytes, value->size, err);
    if (status)
        return status;
    bool is_ours = info.kind == COFFER_IMAGE_JPEG || info.kind == COFFER_IMAGE_PNG;
    bool too_large = opts->max_size && (info.width > opts->max_size || info.height > opts->max_size);
    bool again = opts->raw || opts->jpeg_quality || too_large || !is_ours;
    value->has_entry = true;
    value->entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                        .present = true,
                                        .channels = (uint16_t)info.channels,
                                        .mode = info.kind == COFFER_IMAGE_JPEG ? COFFER_MLDF_MODE_JPEG
                                                                               : COFFER_MLDF_MODE_PNG };
    if (!too_large && (info.width > UINT16_MAX || info.height > UINT16_MAX))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu32 " × %" PRIu32 " pixels, a side has at most 65535",
                            info.width, info.height);
    value->entry.width = (uint16_t)info.width;
    value->entry.height = (uint16_t)info.height;
    if (!again)
        return check_stored(value, taker, err);
    status = expect_one_frame(&info, opts, err);
    return status ? status : encode_again(value, &info, taker, err);
}

/* Decodes every picture and sound of a set, to find those that cannot be. */

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
        return entry.mode == COFFER_MLDF_MODE_RAW ? COFFER_OK
                                                  : dataset_try_picture(bytes->data, bytes->size, taker, err);
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
                           "%" PRIu64 " values were not decoded: Coffer has no decoder for them",
                           work->without_decoder);
    release(work);
    coffer__free(work);
    return status ? status : coffer__report_status(out, err);
}
