/* Pictures on their way into a set: kept as they are, made smaller, encoded again, or decoded. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>

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

coffer_status coffer__dataset_try_picture(const void *bytes, size_t size, coffer__dataset_taker *taker,
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
    coffer_status status = taker->opts->decode
                               ? coffer__dataset_try_picture(value->bytes, value->size, taker, err)
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
