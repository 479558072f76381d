/* Kind and size of a picture from its first bytes. */
#include "base/fail.h"
#include "base/options.h"
#include "coffer/media.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t png_magic[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };

#define PNG_HEADER_SIZE 29 /* magic, length and name of IHDR, and its 13 bytes */
#define PNG_SIDE_MAX 0x7fffffffu

static uint32_t big_u16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t big_u32(const uint8_t *at)
{
    return big_u16(at) << 16 | big_u16(at + 2);
}

/* 0 for an unknown color type. A palette counts as color. */
static uint32_t png_channels(uint8_t color_type)
{
    static const uint8_t channels[7] = { 1, 0, 3, 3, 2, 0, 4 };
    return color_type < sizeof channels ? channels[color_type] : 0;
}

static coffer_status probe_png(coffer_image_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    if (size < PNG_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "PNG: %zu bytes, the header has %d", size,
                            PNG_HEADER_SIZE);
    coffer_image_info info = { sizeof(coffer_image_info), COFFER_IMAGE_PNG, big_u32(bytes + 16),
                               big_u32(bytes + 20), png_channels(bytes[25]) };
    if (memcmp(bytes + 12, "IHDR", 4) != 0 || big_u32(bytes + 8) != 13)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 8, "PNG: the first chunk is not a header");
    if (info.width == 0 || info.height == 0 || info.width > PNG_SIDE_MAX || info.height > PNG_SIDE_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 16, "PNG: %" PRIu32 " × %" PRIu32 " pixels", info.width,
                            info.height);
    if (info.channels == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 25, "PNG: color type %d", bytes[25]);
    *out = info;
    return COFFER_OK;
}

/* Markers that have no length after them. */
static bool stands_alone(uint8_t marker)
{
    return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}

static bool is_frame_header(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static coffer_status read_frame_header(coffer_image_info *out, const uint8_t *bytes, size_t at, size_t len,
                                       coffer_error *err)
{
    if (len < 8)
        return coffer__fail(err, COFFER_E_BAD_VALUE, at, "JPEG: a frame header of %zu bytes", len);
    coffer_image_info info = { sizeof(coffer_image_info), COFFER_IMAGE_JPEG, big_u16(bytes + at + 5),
                               big_u16(bytes + at + 3), bytes[at + 7] };
    if (info.width == 0 || info.height == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, at, "JPEG: %" PRIu32 " × %" PRIu32 " pixels", info.width,
                            info.height);
    if (info.channels == 0 || info.channels > 4)
        return coffer__fail(err, COFFER_E_BAD_VALUE, at + 7, "JPEG: %" PRIu32 " components", info.channels);
    *out = info;
    return COFFER_OK;
}

/* From segment to segment up to the one that has the size. */
static coffer_status probe_jpeg(coffer_image_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    size_t at = 2;
    while (at < size) {
        if (bytes[at] != 0xff)
            return coffer__fail(err, COFFER_E_BAD_VALUE, at, "JPEG: no marker at byte %zu", at);
        while (at < size && bytes[at] == 0xff)
            at++;
        if (at == size)
            break;
        uint8_t marker = bytes[at++];
        if (stands_alone(marker))
            continue;
        if (marker == 0xd9 || marker == 0xda)
            return coffer__fail(err, COFFER_E_BAD_VALUE, at, "JPEG: no frame header before byte %zu", at);
        if (size - at < 2)
            break;
        size_t len = big_u16(bytes + at);
        if (len < 2)
            return coffer__fail(err, COFFER_E_BAD_VALUE, at, "JPEG: a segment of %zu bytes", len);
        if (size - at < len)
            break;
        if (is_frame_header(marker))
            return read_frame_header(out, bytes, at, len, err);
        at += len;
    }
    return coffer__fail(err, COFFER_E_TRUNCATED, size, "JPEG: ends after %zu bytes, before its frame header",
                        size);
}

coffer_status coffer_image_probe(coffer_image_info *out, const void *bytes, size_t size, coffer_error *err)
{
    const uint8_t *head = bytes;
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    coffer_status status;
    if (size >= sizeof png_magic && memcmp(head, png_magic, sizeof png_magic) == 0)
        status = probe_png(&info, head, size, err);
    else if (size >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff)
        status = probe_jpeg(&info, head, size, err);
    else
        status = coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "%zu bytes are neither JPEG nor PNG", size);
    return status ? status : coffer__give_struct(out, &info, sizeof info, err);
}
