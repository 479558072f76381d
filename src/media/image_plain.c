/* Pictures without compression: BMP and PNM. */
#include "base/bytes.h"
#include "base/fail.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

/* BMP: pictures without compression. */

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

static coffer_status read_bmp_head(bmp *out, const uint8_t *bytes, size_t size, coffer_error *err)
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
    coffer_status status = read_bmp_head(&file, bytes, size, err);
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
    coffer_status status = read_bmp_head(&file, bytes, size, err);
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

/* PNM: .pbm, .pgm and .ppm files, as text (P1 to P3) and in bytes (P4 to P6). */

typedef struct pnm {
    const uint8_t *at, *end;
    char kind; /* '1' to '6' */
    uint32_t width, height, channels, max;
} pnm;

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(pnm *file)
{
    while (file->at < file->end && (is_space(*file->at) || *file->at == '#')) {
        if (*file->at == '#') {
            while (file->at < file->end && *file->at != '\n')
                file->at++;
        } else {
            file->at++;
        }
    }
}

static bool read_number(pnm *file, uint32_t *out)
{
    uint32_t value = 0;
    skip_space(file);
    const uint8_t *begin = file->at;
    while (file->at < file->end && *file->at >= '0' && *file->at <= '9' && value < 100000000)
        value = value * 10 + (uint32_t)(*file->at++ - '0');
    *out = value;
    return file->at > begin;
}

static coffer_status read_pnm_head(pnm *file, const uint8_t *bytes, size_t size, coffer_error *err)
{
    *file = (pnm){ .at = bytes + 2, .end = bytes + size, .kind = (char)bytes[1], .max = 1 };
    bool has_max = file->kind != '1' && file->kind != '4';
    file->channels = file->kind == '3' || file->kind == '6' ? 3 : 1;
    if (!read_number(file, &file->width) || !read_number(file, &file->height) ||
        (has_max && !read_number(file, &file->max)) || file->at == file->end)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "PNM: no complete header in %zu bytes", size);
    if (!is_space(*file->at) || file->width == 0 || file->height == 0 || file->max == 0 || file->max > 65535)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 2,
                            "PNM: %" PRIu32 " × %" PRIu32 " pixels from 0 to %" PRIu32, file->width,
                            file->height, file->max);
    file->at++;
    return COFFER_OK;
}

static uint64_t bytes_of_row(const pnm *file)
{
    uint64_t samples = (uint64_t)file->width * file->channels;
    return file->kind == '4'  ? (samples + 7) / 8
           : file->kind < '4' ? samples
                              : samples * (file->max > 255 ? 2 : 1);
}

coffer_status coffer__image_probe_pnm(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err)
{
    pnm file;
    coffer_status status = read_pnm_head(&file, bytes, size, err);
    if (status)
        return status;
    if ((uint64_t)(file.end - file.at) / bytes_of_row(&file) < file.height)
        return coffer__fail(err, COFFER_E_TRUNCATED, size,
                            "PNM: %zu bytes cannot hold %" PRIu32 " × %" PRIu32 " pixels", size, file.width,
                            file.height);
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    info.kind = COFFER_IMAGE_PNM;
    info.width = file.width;
    info.height = file.height;
    info.channels = file.channels;
    info.depth = file.max > 255 ? 16 : 8;
    *out = info;
    return COFFER_OK;
}

/* In text, the digits of a bitmap need no space between them. */
static bool read_text_sample(pnm *file, uint32_t *out)
{
    if (file->kind != '1')
        return read_number(file, out);
    skip_space(file);
    if (file->at == file->end || (*file->at != '0' && *file->at != '1'))
        return false;
    *out = (uint32_t)(*file->at++ - '0');
    return true;
}

static bool read_sample(pnm *file, uint32_t *out, const uint8_t *row, size_t index)
{
    if (file->kind < '4')
        return read_text_sample(file, out);
    if (file->kind == '4')
        *out = row[index / 8] >> (7 - index % 8) & 1U;
    else
        *out = file->max > 255 ? (uint32_t)row[2 * index] << 8 | row[2 * index + 1] : row[index];
    return true;
}

coffer_status coffer__image_decode_pnm(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err)
{
    pnm file;
    (void)opts;
    coffer_status status = read_pnm_head(&file, bytes, size, err);
    if (!status)
        status =
            coffer__pixels_reserve(out, file.width, file.height, file.channels, info->depth, max_bytes, err);
    if (status)
        return status;
    size_t count = (size_t)file.width * file.channels, at = 0, row = (size_t)bytes_of_row(&file);
    uint32_t full = info->depth == 16 ? 65535 : 255;
    for (uint32_t y = 0; y < file.height; y++) {
        const uint8_t *from = file.at + (file.kind < '4' ? 0 : (size_t)y * row);
        for (size_t i = 0; i < count; i++, at++) {
            uint32_t value;
            if (!read_sample(&file, &value, from, i) || value > file.max)
                return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                    "PNM: sample %zu is missing or more than %" PRIu32, at, file.max);
            if (file.channels == 1 && (file.kind == '1' || file.kind == '4'))
                value = 1 - value; /* 1 is black */
            value = (uint32_t)(((uint64_t)value * full + file.max / 2) / file.max);
            uint16_t wide = (uint16_t)value;
            if (info->depth == 16)
                memcpy(out->data + 2 * at, &wide, sizeof wide);
            else
                out->data[at] = (uint8_t)value;
        }
    }
    return COFFER_OK;
}
