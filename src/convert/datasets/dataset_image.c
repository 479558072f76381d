/* Pictures on their way into a set: kept as they are, made smaller, encoded again, or decoded. */
#include "base/fail.h"
#include "base/memory.h"
#include "convert/datasets/dataset_input.h"

#include <inttypes.h>

enum { MODE_RAW = 0, MODE_JPEG = 1, MODE_PNG = 2 };

/* Quality of pictures that are encoded again only because they were too large. */
#define USUAL_QUALITY 90

static uint32_t scaled_side(uint32_t side, uint32_t longest, uint32_t max)
{
    uint32_t result = (uint32_t)(((uint64_t)side * max + longest / 2) / longest);
    return result ? result : 1;
}

/* The picture in taker->pixels or taker->scaled, no side longer than asked for. */
static coffer_status decode_to_size(const coffer_pixels **out, const coffer__dataset_value *value,
                                    const coffer_image_info *info, coffer__dataset_taker *taker,
                                    coffer_error *err)
{
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    uint32_t max = taker->opts->max_size, longest = info->width > info->height ? info->width : info->height;
    bool shrink = max && longest > max;
    opts.channels = info->channels == 1 ? 1 : 3;
    if (taker->opts->raw && info->channels == 4)
        opts.channels = 4;
    if (shrink) {
        opts.min_width = scaled_side(info->width, longest, max);
        opts.min_height = scaled_side(info->height, longest, max);
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

static coffer_status take_pixels(coffer__dataset_value *value, const coffer_pixels *pixels, coffer_error *err)
{
    return coffer__dataset_value_copy(value, pixels->data,
                                      (size_t)pixels->width * pixels->height * pixels->channels, err);
}

static coffer_status encode_again(coffer__dataset_value *value, const coffer_image_info *info,
                                  coffer__dataset_taker *taker, coffer_error *err)
{
    const coffer_pixels *pixels = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;
    int quality = taker->opts->jpeg_quality ? (int)taker->opts->jpeg_quality : USUAL_QUALITY;
    coffer_status status = decode_to_size(&pixels, value, info, taker, err);
    if (status)
        return status;
    value->entry.width = (uint16_t)pixels->width;
    value->entry.height = (uint16_t)pixels->height;
    value->entry.channels = (uint16_t)pixels->channels;
    if (taker->opts->raw) {
        value->entry.mode = MODE_RAW;
        return take_pixels(value, pixels, err);
    }
    value->entry.mode = taker->opts->jpeg_quality || info->kind == COFFER_IMAGE_JPEG ? MODE_JPEG : MODE_PNG;
    status = value->entry.mode == MODE_JPEG ? coffer_image_encode_jpeg(&bytes, &size, pixels, quality, err)
                                            : coffer_image_encode_png(&bytes, &size, pixels, err);
    if (!status)
        status = coffer__dataset_value_copy(value, bytes, size, err);
    coffer_free(bytes);
    return status;
}

coffer_status coffer__dataset_take_image(coffer__dataset_value *value, coffer__dataset_taker *taker,
                                         coffer_error *err)
{
    const coffer_mldf_pack_opts *opts = taker->opts;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_status status = coffer_image_probe(&info, value->bytes, value->size, err);
    if (status)
        return status;
    bool too_large = opts->max_size && (info.width > opts->max_size || info.height > opts->max_size);
    bool again = opts->raw || opts->jpeg_quality || too_large;
    value->has_entry = true;
    value->entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                        .present = true,
                                        .channels = (uint16_t)info.channels,
                                        .mode = info.kind == COFFER_IMAGE_JPEG ? MODE_JPEG : MODE_PNG };
    if (!too_large && (info.width > UINT16_MAX || info.height > UINT16_MAX))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu32 " × %" PRIu32 " pixels, a side has at most 65535",
                            info.width, info.height);
    value->entry.width = (uint16_t)info.width;
    value->entry.height = (uint16_t)info.height;
    return again ? encode_again(value, &info, taker, err) : COFFER_OK;
}
