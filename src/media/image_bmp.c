/* BMP: pictures without compression. */
#include "base/bytes.h"
#include "base/fail.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

enum {
    FILE_HEAD = 14,
    OLD_HEAD = 12, /* of OS/2 */
    USUAL_HEAD = 40,
    MASKS_HEAD = 52,
    ALPHA_HEAD = 56,
    PLAIN = 0,
    RLE8 = 1,
    RLE4 = 2,
    BITFIELDS = 3,
    ALPHA_BITFIELDS = 6
};

typedef struct bmp {
    uint32_t width, height, bits, compression;
    bool from_top;
    uint32_t masks[4]; /* red, green, blue, alpha */
    const uint8_t *colors;
    size_t color_count, color_size;
    size_t data, row;
} bmp;

static coffer_status fail_cut(size_t size, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_TRUNCATED, size, "BMP: ends after %zu bytes, inside its header", size);
}

/* Channels of 16 and 32 bits are where the masks say. */
static bool read_masks(bmp *out, const uint8_t *bytes, size_t size, size_t head)
{
    static const uint32_t usual[2][4] = { { 0x7c00, 0x3e0, 0x1f, 0 }, { 0xff0000, 0xff00, 0xff, 0 } };
    memcpy(out->masks, usual[out->bits == 32], sizeof out->masks);
    if (out->compression != BITFIELDS && out->compression != ALPHA_BITFIELDS)
        return true;
    size_t count = head >= ALPHA_HEAD || out->compression == ALPHA_BITFIELDS ? 4 : 3;
    if (size < FILE_HEAD + USUAL_HEAD + 4 * count)
        return false;
    for (size_t i = 0; i < count; i++)
        out->masks[i] = coffer__load_u32(bytes + FILE_HEAD + USUAL_HEAD + 4 * i);
    return true;
}

static coffer_status read_head(bmp *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    if (size < FILE_HEAD + OLD_HEAD)
        return fail_cut(size, err);
    size_t head = coffer__load_u32(bytes + FILE_HEAD);
    bool is_old = head == OLD_HEAD;
    *out = (bmp){ .data = coffer__load_u32(bytes + 10), .color_size = is_old ? 3 : 4 };
    if (!is_old && (head < USUAL_HEAD || head > 256))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, FILE_HEAD, "BMP: a header of %zu bytes", head);
    if (size - FILE_HEAD < head)
        return fail_cut(size, err);
    int64_t height;
    if (is_old) {
        out->width = coffer__load_u16(bytes + 18);
        height = coffer__load_u16(bytes + 20);
        out->bits = coffer__load_u16(bytes + 24);
    } else {
        out->width = coffer__load_u32(bytes + 18);
        height = (int32_t)coffer__load_u32(bytes + 22);
        out->bits = coffer__load_u16(bytes + 28);
        out->compression = coffer__load_u32(bytes + 30);
        out->color_count = coffer__load_u32(bytes + 46);
    }
    out->from_top = height < 0;
    out->height = (uint32_t)(height < 0 ? -height : height);
    if (out->width == 0 || out->height == 0 || out->width > INT32_MAX || out->height > INT32_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 18, "BMP: %" PRIu32 " × %" PRIu32 " pixels", out->width,
                            out->height);
    if (out->bits <= 8 && (out->color_count == 0 || out->color_count > (size_t)1 << out->bits))
        out->color_count = (size_t)1 << out->bits;
    size_t colors = FILE_HEAD + head;
    if (out->compression == BITFIELDS && head == USUAL_HEAD)
        colors += 12;
    if (!read_masks(out, bytes, size, head) ||
        (out->bits <= 8 && size - FILE_HEAD - head < out->color_count * out->color_size))
        return fail_cut(size, err);
    out->colors = bytes + colors;
    out->row = ((size_t)out->width * out->bits + 31) / 32 * 4;
    return COFFER_OK;
}

static coffer_status check_supported(const bmp *file, size_t size, coffer_error *err)
{
    bool known = file->bits == 1 || file->bits == 4 || file->bits == 8 || file->bits == 16 ||
                 file->bits == 24 || file->bits == 32;
    bool masked = file->bits == 16 || file->bits == 32;
    bool plain = file->compression == PLAIN ||
                 (masked && (file->compression == BITFIELDS || file->compression == ALPHA_BITFIELDS));
    if (!known || !plain)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, 28,
                            "BMP: %" PRIu32 " bits a pixel with compression %" PRIu32, file->bits,
                            file->compression);
    if (file->data > size || (size - file->data) / file->row < file->height)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "BMP: %zu bytes, the %" PRIu32 " × %" PRIu32 " pixels need %zu", size,
                            file->width, file->height, file->data + file->row * file->height);
    return COFFER_OK;
}

coffer_status coffer__image_probe_bmp(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err)
{
    bmp file;
    coffer_status status = read_head(&file, bytes, size, err);
    if (status)
        return status;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    info.kind = COFFER_IMAGE_BMP;
    info.width = file.width;
    info.height = file.height;
    info.channels = file.bits >= 16 && file.masks[3] ? 4 : 3;
    *out = info;
    return COFFER_OK;
}

/* The bits of a mask, stretched to 0 … 255. */
static uint8_t masked(uint32_t value, uint32_t mask)
{
    if (mask == 0)
        return 0;
    uint32_t shift = (uint32_t)__builtin_ctz(mask), full = mask >> shift;
    return (uint8_t)(((uint64_t)((value & mask) >> shift) * 255 + full / 2) / full);
}

static void read_pixel(uint8_t out[4], const bmp *file, const uint8_t *row, uint32_t x)
{
    if (file->bits <= 8) {
        uint32_t per_byte = 8 / file->bits, shift = (per_byte - 1 - x % per_byte) * file->bits;
        size_t index = row[x / per_byte] >> shift & ((1U << file->bits) - 1);
        const uint8_t *color = file->colors + index * file->color_size;
        static const uint8_t black[3] = { 0 };
        if (index >= file->color_count)
            color = black;
        out[0] = color[2], out[1] = color[1], out[2] = color[0];
    } else if (file->bits == 24) {
        const uint8_t *pixel = row + 3 * (size_t)x;
        out[0] = pixel[2], out[1] = pixel[1], out[2] = pixel[0];
    } else {
        uint32_t value =
            file->bits == 16 ? coffer__load_u16(row + 2 * (size_t)x) : coffer__load_u32(row + 4 * (size_t)x);
        for (size_t c = 0; c < 4; c++)
            out[c] = masked(value, file->masks[c]);
    }
}

coffer_status coffer__image_decode_bmp(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err)
{
    bmp file;
    (void)opts;
    coffer_status status = read_head(&file, bytes, size, err);
    if (!status)
        status = check_supported(&file, size, err);
    if (!status)
        status = coffer__pixels_reserve(out, file.width, file.height, info->channels, 8, max_bytes, err);
    if (status)
        return status;
    const uint8_t *data = (const uint8_t *)bytes + file.data;
    for (uint32_t y = 0; y < file.height; y++) {
        const uint8_t *row = data + (size_t)(file.from_top ? y : file.height - 1 - y) * file.row;
        for (uint32_t x = 0; x < file.width; x++) {
            uint8_t pixel[4];
            read_pixel(pixel, &file, row, x);
            memcpy(out->data + ((size_t)y * file.width + x) * out->channels, pixel, out->channels);
        }
    }
    return COFFER_OK;
}
