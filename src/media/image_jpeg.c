/* The module for JPEG, by libjpeg-turbo. */
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>
#include <turbojpeg.h>

static void free_handle(void *handle)
{
    if (handle)
        tjDestroy(handle);
}

/* Remarks of the library about files that are whole nevertheless. All others mean that pixels are missing or
 * made up. */
static bool is_harmless(const char *text)
{
    return strstr(text, "extraneous bytes before marker") || strstr(text, "Unknown Adobe color transform") ||
           strstr(text, "unknown JFIF revision");
}

static coffer_status fail_decode(tjhandle handle, coffer_error *err)
{
    const char *text = tjGetErrorStr2(handle);
    bool cut = strstr(text, "remature end") != NULL;
    return coffer__fail(err, cut ? COFFER_E_TRUNCATED : COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "JPEG: %s",
                        text);
}

static int pixel_format(uint32_t channels)
{
    return channels == 1 ? TJPF_GRAY : channels == 4 ? TJPF_RGBA : TJPF_RGB;
}

static int scaled(int side, int divisor)
{
    return (side + divisor - 1) / divisor;
}

/* The smallest of 1/8, 1/4, 1/2 and 1/1 that is large enough on both sides. The library has others, in
 * eighths, but they are slower than the next larger one of these, which it computes with vectors. */
static int choose_divisor(int width, int height, const coffer_image_decode_opts *opts)
{
    int divisor = opts->min_width || opts->min_height ? 8 : 1;
    while (divisor > 1 && ((uint32_t)scaled(width, divisor) < opts->min_width ||
                           (uint32_t)scaled(height, divisor) < opts->min_height))
        divisor /= 2;
    return divisor;
}

static coffer_status read_header(tjhandle handle, const void *bytes, size_t size, int *width, int *height,
                                 bool *gray, coffer_error *err)
{
    int subsampling, colors;
    if (tjDecompressHeader3(handle, bytes, size, width, height, &subsampling, &colors) != 0 &&
        !(tjGetErrorCode(handle) == TJERR_WARNING && is_harmless(tjGetErrorStr2(handle))))
        return fail_decode(handle, err);
    if (colors == TJCS_CMYK || colors == TJCS_YCCK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "JPEG: colors for print (%s) cannot be turned into RGB without their profile",
                            colors == TJCS_CMYK ? "CMYK" : "YCCK");
    *gray = colors == TJCS_GRAY;
    return COFFER_OK;
}

static coffer_status decode_with(tjhandle handle, coffer_pixels *out, const void *bytes, size_t size,
                                 const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                 uint64_t max_bytes, coffer_error *err)
{
    int width = 0, height = 0;
    bool gray = false;
    coffer_status status = read_header(handle, bytes, size, &width, &height, &gray, err);
    if (status)
        return status;
    if ((uint32_t)width != info->width || (uint32_t)height != info->height)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "JPEG: a frame of %" PRIu32 " × %" PRIu32 " and one of %d × %d", info->width,
                            info->height, width, height);
    uint32_t channels = opts->channels ? opts->channels : gray ? 1 : 3;
    int divisor = choose_divisor(width, height, opts);
    width = scaled(width, divisor);
    height = scaled(height, divisor);
    status = coffer__pixels_reserve(out, (uint32_t)width, (uint32_t)height, channels, 8, max_bytes, err);
    if (status)
        return status;
    if (tjDecompress2(handle, bytes, size, out->data, width, 0, height, pixel_format(channels),
                      TJFLAG_LIMITSCANS) != 0 &&
        !(tjGetErrorCode(handle) == TJERR_WARNING && is_harmless(tjGetErrorStr2(handle))))
        return fail_decode(handle, err);
    return COFFER_OK;
}

static coffer_status decode(coffer_pixels *out, void **handle, const void *bytes, size_t size,
                            const coffer_image_info *info, const coffer_image_decode_opts *opts,
                            uint64_t max_bytes, coffer_error *err)
{
    if (!*handle)
        *handle = tjInitDecompress();
    if (!*handle)
        return coffer__fail_no_memory(err, 0);
    coffer_status status = decode_with(*handle, out, bytes, size, info, opts, max_bytes, err);
    if (status) {
        /* The handle keeps tables and state of the damaged file, which would spoil the next one. */
        free_handle(*handle);
        *handle = NULL;
    }
    return status;
}

static coffer_status compress(uint8_t **bytes, unsigned long *size, tjhandle handle,
                              const coffer_pixels *pixels, int quality, coffer_error *err)
{
    int width = (int)pixels->width, height = (int)pixels->height;
    int subsampling = pixels->channels == 1 ? TJSAMP_GRAY : TJSAMP_420;
    *size = tjBufSize(width, height, subsampling);
    if (*size == (unsigned long)-1)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "JPEG: %d × %d pixels", width, height);
    *bytes = coffer__malloc(*size);
    if (!*bytes)
        return coffer__fail_no_memory(err, *size);
    if (tjCompress2(handle, pixels->data, width, 0, height, pixel_format(pixels->channels), bytes, size,
                    subsampling, quality, TJFLAG_NOREALLOC) != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "JPEG: %s",
                            tjGetErrorStr2(handle));
    return COFFER_OK;
}

static coffer_status encode(uint8_t **bytes, size_t *size, const coffer_pixels *pixels, int quality,
                            coffer_error *err)
{
    uint8_t *encoded = NULL;
    unsigned long encoded_size = 0;
    if (quality < 1 || quality > 100)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "JPEG: a quality of %d is not in 1 to 100", quality);
    if (pixels->channels != 1 && pixels->channels != 3 && pixels->channels != 4)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "JPEG: %" PRIu32 " channels: 1, 3 or 4", pixels->channels);
    if (coffer__pixels_depth(pixels) != 8)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "JPEG: samples of 16 bits, it has 8");
    if (pixels->width == 0 || pixels->height == 0 || pixels->width > UINT16_MAX ||
        pixels->height > UINT16_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "JPEG: %" PRIu32 " × %" PRIu32 " pixels, a side has 1 to 65535", pixels->width,
                            pixels->height);
    tjhandle handle = tjInitCompress();
    if (!handle)
        return coffer__fail_no_memory(err, 0);
    coffer_status status = compress(&encoded, &encoded_size, handle, pixels, quality, err);
    tjDestroy(handle);
    if (status) {
        coffer__free(encoded);
        return status;
    }
    *bytes = encoded;
    *size = encoded_size;
    return COFFER_OK;
}

static const char *library_version(void)
{
    return COFFER__TURBOJPEG_VERSION; /* of the build: the library has no function for it */
}

static const coffer__jpeg_module table = {
    COFFER__MODULE_INIT(coffer__jpeg_module, library_version),
    decode,
    free_handle,
    encode,
};
COFFER__MODULE_EXPORT(jpeg, table);
