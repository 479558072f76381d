/* Pictures of all kinds to pixels and back, by the modules of their codecs. */
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

/* TIFF and WebP pictures by programs. */

typedef struct picture_answer {
    coffer_pixels *out;
    const coffer_image_info *info;
    uint64_t max_bytes;
} picture_answer;

static coffer_status take_size(coffer__media_call *call, uint32_t kind, const coffer__buffer *frame,
                               bool *sane, coffer_error *err)
{
    const picture_answer *answer = call->context;
    const coffer_image_info *info = answer->info;
    coffer__cursor from = coffer__cursor_over(frame->data, frame->len, 0);
    uint32_t width = coffer__cursor_u32(&from), height = coffer__cursor_u32(&from);
    uint32_t channels = coffer__cursor_u32(&from), depth = coffer__cursor_u32(&from);
    *sane = kind == COFFER__PICTURE_SIZE && !from.failed && !call->out && width == info->width &&
            height == info->height && channels >= 1 && channels <= 4 && (depth == 8 || depth == 16);
    if (!*sane)
        return COFFER_OK;
    coffer_status status =
        coffer__pixels_reserve(answer->out, width, height, channels, depth, answer->max_bytes, err);
    if (status)
        return status;
    call->out = answer->out->data;
    call->out_size = coffer__pixels_bytes(answer->out);
    return COFFER_OK;
}

/* Decodes by the program. helper : started with the first picture. */
static coffer_status image_decode_remote(coffer_pixels *out, coffer__helper *helper, coffer__module_id id,
                                         const void *bytes, size_t size, const coffer_image_info *info,
                                         uint64_t max_bytes, coffer_error *err)
{
    uint8_t begin[28];
    coffer__store_u64(begin, size);
    coffer__store_u64(begin + 8, max_bytes);
    coffer__store_u32(begin + 16, info->width);
    coffer__store_u32(begin + 20, info->height);
    coffer__store_u32(begin + 24, info->channels);
    picture_answer answer = { out, info, max_bytes };
    coffer__media_call call = { .helper = helper,
                                .name = id == COFFER__MODULE_TIFF ? "TIFF" : "WebP",
                                .begin = begin,
                                .begin_len = sizeof begin,
                                .bytes = bytes,
                                .size = size,
                                .take = take_size,
                                .context = &answer };
    return coffer__media_decode(&call, id, err);
}

/* The most pixels that one byte of a file can encode: a PNG deflates at most 1032 to 1, eight pixels to the
 * byte; a JPEG needs a bit for each block of 64. Files that claim more are truncated or malicious. */
#define PNG_PIXELS_PER_BYTE (1032 * 8)
#define JPEG_PIXELS_PER_BYTE (8 * 64)

struct coffer_image_decoder {
    coffer_limits limits;
    const coffer__jpeg_module *jpeg;
    void *jpeg_handle;         /* created with the first JPEG */
    coffer__helper tiff, webp; /* started with the first picture of the kind */
};

COFFER__INIT_FUNCTION(coffer_image_info, COFFER_IMAGE_INFO_INIT)
COFFER__INIT_FUNCTION(coffer_pixels, COFFER_PIXELS_INIT)
COFFER__INIT_FUNCTION(coffer_image_decoder_opts, COFFER_IMAGE_DECODER_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_image_decode_opts, COFFER_IMAGE_DECODE_OPTS_INIT)

coffer_status coffer_image_decoder_new(coffer_image_decoder **out, const coffer_image_decoder_opts *opts,
                                       coffer_error *err)
{
    coffer_image_decoder_opts options = COFFER_IMAGE_DECODER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_image_decoder *decoder = coffer__calloc(1, sizeof *decoder);
    if (!decoder)
        return coffer__fail_no_memory(err, sizeof *decoder);
    decoder->limits = coffer__limits(options.limits);
    decoder->tiff.fd = decoder->webp.fd = -1;
    *out = decoder;
    return COFFER_OK;
}

void coffer_image_decoder_free(coffer_image_decoder *decoder)
{
    if (!decoder)
        return;
    if (decoder->jpeg_handle)
        decoder->jpeg->free_handle(decoder->jpeg_handle);
    if (decoder->tiff.fd >= 0)
        coffer__helper_stop(&decoder->tiff);
    if (decoder->webp.fd >= 0)
        coffer__helper_stop(&decoder->webp);
    coffer__free(decoder);
}

/* 0: a few bytes can encode any number of pixels, and only the limit on memory counts. */
static uint64_t pixels_per_byte(coffer_image_kind kind)
{
    switch (kind) {
    case COFFER_IMAGE_JPEG:
        return JPEG_PIXELS_PER_BYTE;
    case COFFER_IMAGE_PNG:
    case COFFER_IMAGE_TIFF:
        return PNG_PIXELS_PER_BYTE;
    case COFFER_IMAGE_BMP:
    case COFFER_IMAGE_PNM:
        return 8;
    default:
        return 0;
    }
}

static coffer_status check_size(const coffer_image_decoder *decoder, const coffer_image_info *info,
                                size_t size, coffer_error *err)
{
    uint64_t pixels = (uint64_t)info->width * info->height; /* both below 2^31 */
    uint64_t per_byte = pixels_per_byte(info->kind);
    /* The codecs work on the whole picture, however small it comes out. */
    if (pixels > decoder->limits.memory_bytes / 4)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu32 " × %" PRIu32
                            " pixels needs more than the limit of %" PRIu64 " bytes",
                            info->width, info->height, decoder->limits.memory_bytes);
    if (per_byte && pixels / per_byte > size)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "%zu bytes cannot hold the %" PRIu32 " × %" PRIu32 " pixels that the header says",
                            size, info->width, info->height);
    return COFFER_OK;
}

static const coffer__jpeg_module *load_jpeg(coffer_error *err)
{
    return coffer__module_load(COFFER__MODULE_JPEG, sizeof(coffer__jpeg_module), err);
}

static const coffer__png_module *load_png(coffer_error *err)
{
    return coffer__module_load(COFFER__MODULE_PNG, sizeof(coffer__png_module), err);
}

/* NULL for TIFF and WebP, which programs decode, unless they are linked. */
static coffer__image_decode find_decode(coffer_image_kind kind)
{
    if (kind == COFFER_IMAGE_GIF)
        return coffer__image_decode_gif;
    if (kind == COFFER_IMAGE_BMP)
        return coffer__image_decode_bmp;
    if (kind == COFFER_IMAGE_PNM)
        return coffer__image_decode_pnm;
    const coffer__picture_module *module =
        coffer__module_linked(kind == COFFER_IMAGE_TIFF ? COFFER__MODULE_TIFF : COFFER__MODULE_WEBP);
    return module ? module->decode : NULL;
}

static coffer_status decode_kind(coffer_pixels *out, coffer_image_decoder *decoder, const void *bytes,
                                 size_t size, const coffer_image_info *info,
                                 const coffer_image_decode_opts *opts, coffer_error *err)
{
    uint64_t max_bytes = decoder->limits.memory_bytes;
    if (info->kind == COFFER_IMAGE_JPEG) {
        decoder->jpeg = load_jpeg(err);
        return decoder->jpeg ? decoder->jpeg->decode(out, &decoder->jpeg_handle, bytes, size, info, opts,
                                                     max_bytes, err)
                             : COFFER_E_UNSUPPORTED;
    }
    if (info->kind == COFFER_IMAGE_PNG) {
        const coffer__png_module *png = load_png(err);
        return png ? png->decode(out, bytes, size, opts, max_bytes, err) : COFFER_E_UNSUPPORTED;
    }
    coffer__image_decode decode = find_decode(info->kind);
    bool tiff = info->kind == COFFER_IMAGE_TIFF;
    coffer_status status = decode ? decode(out, bytes, size, info, opts, max_bytes, err)
                                  : image_decode_remote(out, tiff ? &decoder->tiff : &decoder->webp,
                                                        tiff ? COFFER__MODULE_TIFF : COFFER__MODULE_WEBP,
                                                        bytes, size, info, max_bytes, err);
    return status ? status : coffer__pixels_adapt(out, opts->channels, opts->depth, max_bytes, err);
}

coffer_status coffer_image_decode(coffer_pixels *out, coffer_image_decoder *decoder, const void *bytes,
                                  size_t size, const coffer_image_decode_opts *opts, coffer_error *err)
{
    coffer_image_decode_opts options = COFFER_IMAGE_DECODE_OPTS_INIT;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status && (options.channels > 4 || options.channels == 2))
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "%" PRIu32 " channels: 1, 3, 4, or 0 for those of the file", options.channels);
    if (!status && options.depth != 0 && options.depth != 8)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "a depth of %" PRIu32 ": 8, or 0 for that of the file", options.depth);
    if (!status)
        status = coffer_image_probe(&info, bytes, size, err);
    if (!status)
        status = check_size(decoder, &info, size, err);
    if (status)
        return status;
    if (!options.ignore_orientation && info.orientation >= 5) {
        uint32_t width = options.min_width;
        options.min_width = options.min_height;
        options.min_height = width;
    }
    status = decode_kind(out, decoder, bytes, size, &info, &options, err);
    return status || options.ignore_orientation ? status : coffer__pixels_orient(out, info.orientation, err);
}

coffer_status coffer_image_encode_jpeg(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                       int quality, coffer_error *err)
{
    const coffer__jpeg_module *jpeg = load_jpeg(err);
    return jpeg ? jpeg->encode(bytes, size, pixels, quality, err) : COFFER_E_UNSUPPORTED;
}

coffer_status coffer_image_encode_png(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                      coffer_error *err)
{
    const coffer__png_module *png = load_png(err);
    return png ? png->encode(bytes, size, pixels, err) : COFFER_E_UNSUPPORTED;
}
