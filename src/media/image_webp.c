/* The module for WebP, by libwebp. */
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

static coffer_status fail_decode(VP8StatusCode code, coffer_error *err)
{
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return coffer__fail_no_memory(err, 0);
    bool cut = code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED;
    return coffer__fail(err, cut ? COFFER_E_TRUNCATED : COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "WebP: %s",
                        cut ? "the file ends inside the picture" : "damaged picture");
}

static coffer_status check_size(int width, int height, const coffer_image_info *info, coffer_error *err)
{
    if ((uint32_t)width == info->width && (uint32_t)height == info->height)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                        "WebP: a picture of %d × %d, the header says %" PRIu32 " × %" PRIu32, width, height,
                        info->width, info->height);
}

static coffer_status decode_still(coffer_pixels *out, const uint8_t *bytes, size_t size,
                                  const coffer_image_info *info, uint64_t max_bytes, coffer_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "WebP: another version of libwebp");
    VP8StatusCode code = WebPGetFeatures(bytes, size, &config.input);
    if (code != VP8_STATUS_OK)
        return fail_decode(code, err);
    uint32_t channels = config.input.has_alpha ? 4 : 3;
    coffer_status status = check_size(config.input.width, config.input.height, info, err);
    if (!status)
        status = coffer__pixels_reserve(out, info->width, info->height, channels, 8, max_bytes, err);
    if (status)
        return status;
    config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = out->data;
    config.output.u.RGBA.stride = (int)(info->width * channels);
    config.output.u.RGBA.size = coffer__pixels_bytes(out);
    code = WebPDecode(bytes, size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? COFFER_OK : fail_decode(code, err);
}

/* The first frame of an animation, on its canvas. */
static coffer_status decode_animation(coffer_pixels *out, const uint8_t *bytes, size_t size,
                                      const coffer_image_info *info, uint64_t max_bytes, coffer_error *err)
{
    WebPData data = { bytes, size };
    WebPAnimDecoderOptions options;
    WebPAnimInfo about;
    uint8_t *canvas = NULL;
    int when;
    if (!WebPAnimDecoderOptionsInit(&options))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "WebP: another version of libwebp");
    WebPAnimDecoder *decoder = WebPAnimDecoderNew(&data, &options);
    if (!decoder || !WebPAnimDecoderGetInfo(decoder, &about)) {
        WebPAnimDecoderDelete(decoder);
        return fail_decode(VP8_STATUS_NOT_ENOUGH_DATA, err);
    }
    coffer_status status = check_size((int)about.canvas_width, (int)about.canvas_height, info, err);
    if (!status && !WebPAnimDecoderGetNext(decoder, &canvas, &when))
        status = fail_decode(VP8_STATUS_BITSTREAM_ERROR, err);
    if (!status)
        status = coffer__pixels_reserve(out, info->width, info->height, 4, 8, max_bytes, err);
    if (!status)
        memcpy(out->data, canvas, coffer__pixels_bytes(out));
    WebPAnimDecoderDelete(decoder);
    return status;
}

static coffer_status decode(coffer_pixels *out, const void *bytes, size_t size, const coffer_image_info *info,
                            const coffer_image_decode_opts *opts, uint64_t max_bytes, coffer_error *err)
{
    (void)opts;
    return (info->frames > 1 ? decode_animation : decode_still)(out, bytes, size, info, max_bytes, err);
}

static const char *library_version(void)
{
    static char text[16];
    int version = WebPGetDecoderVersion();
    snprintf(text, sizeof text, "%d.%d.%d", version >> 16 & 0xff, version >> 8 & 0xff, version & 0xff);
    return text;
}

static const coffer__picture_module table = {
    COFFER__MODULE_INIT(coffer__picture_module, library_version),
    decode,
};
COFFER__MODULE_EXPORT(webp, table);
