/* Kind and size of a picture from its headers, and whether the file is complete. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/options.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

#define PNG_MAGIC_SIZE 8
#define PNG_HEADER_SIZE 29 /* magic, length and name of IHDR, and its 13 bytes */
#define PNG_SIDE_MAX 0x7fffffffu
#define PNG_CHUNK_EXTRA 12 /* length, name and checksum */

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

/* Orientation, frames and transparency are in chunks before the pixels. */
static void read_png_chunks(coffer_image_info *info, const uint8_t *bytes, size_t size)
{
    size_t at = PNG_MAGIC_SIZE;
    while (size - at >= PNG_CHUNK_EXTRA) {
        uint32_t len = big_u32(bytes + at);
        const uint8_t *name = bytes + at + 4;
        if (len > size - at - PNG_CHUNK_EXTRA || memcmp(name, "IDAT", 4) == 0)
            return;
        if (memcmp(name, "eXIf", 4) == 0)
            info->orientation = coffer__image_exif_orientation(name + 4, len);
        if (memcmp(name, "acTL", 4) == 0 && len >= 8)
            info->frames = big_u32(name + 4) ? big_u32(name + 4) : 1;
        at += PNG_CHUNK_EXTRA + len;
    }
}

static coffer_status probe_png(coffer_image_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    if (size < PNG_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "PNG: %zu bytes, the header has %d", size,
                            PNG_HEADER_SIZE);
    coffer_image_info info = { .struct_size = sizeof(coffer_image_info),
                               .kind = COFFER_IMAGE_PNG,
                               .width = big_u32(bytes + 16),
                               .height = big_u32(bytes + 20),
                               .channels = png_channels(bytes[25]),
                               .depth = bytes[24] == 16 ? 16 : 8,
                               .orientation = 1,
                               .frames = 1 };
    if (memcmp(bytes + 12, "IHDR", 4) != 0 || big_u32(bytes + 8) != 13)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 8, "PNG: the first chunk is not a header");
    if (info.width == 0 || info.height == 0 || info.width > PNG_SIDE_MAX || info.height > PNG_SIDE_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 16, "PNG: %" PRIu32 " × %" PRIu32 " pixels", info.width,
                            info.height);
    if (info.channels == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 25, "PNG: color type %d", bytes[25]);
    read_png_chunks(&info, bytes, size);
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
    coffer_image_info info = { .struct_size = sizeof(coffer_image_info),
                               .kind = COFFER_IMAGE_JPEG,
                               .width = big_u16(bytes + at + 5),
                               .height = big_u16(bytes + at + 3),
                               .channels = bytes[at + 7],
                               .depth = 8,
                               .orientation = out->orientation,
                               .frames = 1 };
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
        if (marker == 0xe1 && len >= 8 && memcmp(bytes + at + 2, "Exif\0\0", 6) == 0)
            out->orientation = coffer__image_exif_orientation(bytes + at + 2, len - 2);
        if (is_frame_header(marker))
            return read_frame_header(out, bytes, at, len, err);
        at += len;
    }
    return coffer__fail(err, COFFER_E_TRUNCATED, size, "JPEG: ends after %zu bytes, before its frame header",
                        size);
}

/* ---- All kinds ---- */

typedef struct image_kind {
    coffer_image_kind kind;
    const char *name;
    const char *magic;
    size_t magic_len;
    coffer_status (*probe)(coffer_image_info *out, const uint8_t *bytes, size_t size, coffer_error *err);
} image_kind;

static const image_kind kinds[] = {
    { COFFER_IMAGE_PNG, "PNG", "\x89PNG\r\n\x1a\n", 8, probe_png },
    { COFFER_IMAGE_JPEG, "JPEG", "\xff\xd8\xff", 3, probe_jpeg },
    { COFFER_IMAGE_GIF, "GIF", "GIF87a", 6, coffer__image_probe_gif },
    { COFFER_IMAGE_GIF, "GIF", "GIF89a", 6, coffer__image_probe_gif },
    { COFFER_IMAGE_WEBP, "WebP", "RIFF", 4, coffer__image_probe_webp },
    { COFFER_IMAGE_TIFF, "TIFF", "II*\0", 4, coffer__image_probe_tiff },
    { COFFER_IMAGE_TIFF, "TIFF", "MM\0*", 4, coffer__image_probe_tiff },
    { COFFER_IMAGE_BMP, "BMP", "BM", 2, coffer__image_probe_bmp },
    { COFFER_IMAGE_PNM, "PNM", "P", 1, coffer__image_probe_pnm },
};

static bool is_kind(const image_kind *kind, const uint8_t *bytes, size_t size)
{
    if (size < kind->magic_len || memcmp(bytes, kind->magic, kind->magic_len) != 0)
        return false;
    if (kind->kind == COFFER_IMAGE_WEBP)
        return size >= 12 && memcmp(bytes + 8, "WEBP", 4) == 0;
    if (kind->kind == COFFER_IMAGE_BMP) /* two letters are little: the size of the next header, too */
        return size >= 18 && (coffer__load_u32(bytes + 14) == 12 ||
                              (coffer__load_u32(bytes + 14) >= 40 && coffer__load_u32(bytes + 14) <= 256));
    if (kind->kind == COFFER_IMAGE_PNM)
        return size >= 4 && bytes[1] >= '1' && bytes[1] <= '6' &&
               (bytes[2] == '\n' || bytes[2] == ' ' || bytes[2] == '\t' || bytes[2] == '\r') &&
               (bytes[3] == '#' || (bytes[3] >= '0' && bytes[3] <= '9'));
    return true;
}

static const image_kind *find_kind(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_kind(&kinds[i], bytes, size))
            return &kinds[i];
    return NULL;
}

const char *coffer_image_kind_name(coffer_image_kind kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return "picture";
}

coffer_status coffer_image_probe(coffer_image_info *out, const void *bytes, size_t size, coffer_error *err)
{
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    const image_kind *kind = find_kind(bytes, size);
    if (size == 0)
        return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0, "an empty file, not a picture");
    if (!kind)
        return coffer__fail(
            err, COFFER_E_NOT_RECOGNISED, 0,
            "%zu bytes are not a picture of a known kind (JPEG, PNG, WebP, GIF, BMP, TIFF, PNM)", size);
    coffer_status status = kind->probe(&info, bytes, size, err);
    return status ? status : coffer__give_struct(out, &info, sizeof info, err);
}

/* ---- Complete files ---- */

static coffer_status verify_png(const uint8_t *bytes, size_t size, coffer_error *err)
{
    size_t at = PNG_MAGIC_SIZE;
    while (size - at >= PNG_CHUNK_EXTRA) {
        uint32_t len = big_u32(bytes + at);
        if (len > size - at - PNG_CHUNK_EXTRA)
            break;
        const uint8_t *name = bytes + at + 4;
        if (coffer__crc32(0, name, (size_t)len + 4) != big_u32(name + 4 + len))
            return coffer__fail(err, COFFER_E_BAD_CHECKSUM, at,
                                "PNG: the chunk at byte %zu does not match its checksum", at);
        if (memcmp(name, "IEND", 4) == 0)
            return COFFER_OK;
        at += PNG_CHUNK_EXTRA + len;
    }
    return coffer__fail(err, COFFER_E_TRUNCATED, size, "PNG: ends after %zu bytes, before its last chunk",
                        size);
}

/* The end marker, after which programs may have put other data. */
static coffer_status verify_jpeg(const uint8_t *bytes, size_t size, coffer_error *err)
{
    for (size_t at = size; at >= 4; at--)
        if (bytes[at - 2] == 0xff && bytes[at - 1] == 0xd9)
            return COFFER_OK;
    return coffer__fail(err, COFFER_E_TRUNCATED, size, "JPEG: ends after %zu bytes, before its end marker",
                        size);
}

coffer_status coffer_image_verify(const void *bytes, size_t size, coffer_error *err)
{
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    const uint8_t *head = bytes;
    coffer_status status = coffer_image_probe(&info, bytes, size, err);
    if (status)
        return status;
    if (info.kind == COFFER_IMAGE_PNG)
        return verify_png(head, size, err);
    if (info.kind == COFFER_IMAGE_JPEG)
        return verify_jpeg(head, size, err);
    if (info.kind == COFFER_IMAGE_WEBP && coffer__load_u32(head + 4) > size - 8)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "WebP: %zu bytes, its header says %" PRIu64, size,
                            (uint64_t)coffer__load_u32(head + 4) + 8);
    return COFFER_OK;
}
