/* Headers made of tags: TIFF, the EXIF data of other pictures, which is a TIFF header too, and the chunks of
 * WebP. */
#include "base/bytes.h"
#include "base/fail.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

/* ---- TIFF and EXIF ---- */

enum {
    TAG_WIDTH = 256,
    TAG_HEIGHT = 257,
    TAG_BITS = 258,
    TAG_PHOTOMETRIC = 262,
    TAG_ORIENTATION = 274,
    TAG_SAMPLES = 277,
    PHOTOMETRIC_PALETTE = 3,
    TYPE_SHORT = 3,
    TYPE_LONG = 4,
    TIFF_ENTRY_SIZE = 12,
    TIFF_PAGES_MAX = 100000 /* a list of pages that leads back to itself ends here */
};

typedef struct tiff {
    const uint8_t *bytes;
    size_t size;
    bool big_endian;
} tiff;

static uint32_t load16(const tiff *file, size_t at)
{
    const uint8_t *bytes = file->bytes + at;
    return file->big_endian ? (uint32_t)bytes[0] << 8 | bytes[1] : coffer__load_u16(bytes);
}

static uint32_t load32(const tiff *file, size_t at)
{
    return file->big_endian ? load16(file, at) << 16 | load16(file, at + 2)
                            : coffer__load_u32(file->bytes + at);
}

static bool tiff_open(tiff *out, const uint8_t *bytes, size_t size)
{
    *out = (tiff){ bytes, size, size >= 1 && bytes[0] == 'M' };
    return size >= 8 && (memcmp(bytes, "II*\0", 4) == 0 || memcmp(bytes, "MM\0*", 4) == 0);
}

/* The entries of a directory that are in the file, and where the next directory is. */
static size_t count_entries(const tiff *file, size_t directory, size_t *next)
{
    *next = 0;
    if (directory < 8 || directory > file->size || file->size - directory < 2)
        return 0;
    size_t count = load16(file, directory), room = (file->size - directory - 2) / TIFF_ENTRY_SIZE;
    if (count > room)
        return room;
    size_t end = directory + 2 + count * TIFF_ENTRY_SIZE;
    if (file->size - end >= 4)
        *next = load32(file, end);
    return count;
}

/* The first value of a tag of whole numbers; `missing` when the directory does not have it. */
static uint32_t tag_value(const tiff *file, size_t directory, uint32_t tag, uint32_t missing)
{
    size_t next, count = count_entries(file, directory, &next);
    for (size_t i = 0; i < count; i++) {
        size_t at = directory + 2 + i * TIFF_ENTRY_SIZE;
        if (load16(file, at) != tag)
            continue;
        uint32_t type = load16(file, at + 2), values = load32(file, at + 4);
        size_t place = at + 8;
        if (type == TYPE_SHORT && values > 2)
            place = load32(file, at + 8);
        if ((type != TYPE_SHORT && type != TYPE_LONG) || values == 0 || (type == TYPE_LONG && values > 1) ||
            place > file->size || file->size - place < 4)
            return missing;
        return type == TYPE_SHORT ? load16(file, place) : load32(file, place);
    }
    return missing;
}

static uint32_t valid_orientation(uint32_t value)
{
    return value >= 1 && value <= 8 ? value : 1;
}

uint32_t coffer__image_exif_orientation(const uint8_t *exif, size_t size)
{
    tiff file;
    if (size >= 6 && memcmp(exif, "Exif\0\0", 6) == 0) {
        exif += 6;
        size -= 6;
    }
    if (!tiff_open(&file, exif, size))
        return 1;
    return valid_orientation(tag_value(&file, load32(&file, 4), TAG_ORIENTATION, 1));
}

static uint32_t count_pages(const tiff *file, size_t directory)
{
    uint32_t pages = 0;
    for (size_t next; directory && pages < TIFF_PAGES_MAX; directory = next) {
        if (count_entries(file, directory, &next) == 0)
            break;
        pages++;
    }
    return pages;
}

coffer_status coffer__image_probe_tiff(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                       coffer_error *err)
{
    tiff file;
    size_t next;
    if (!tiff_open(&file, bytes, size))
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "TIFF: %zu bytes, the header has 8", size);
    size_t directory = load32(&file, 4);
    if (count_entries(&file, directory, &next) == 0)
        return coffer__fail(err, COFFER_E_TRUNCATED, 4,
                            "TIFF: the directory at %zu is not in the %zu bytes of the file", directory,
                            size);
    bool palette = tag_value(&file, directory, TAG_PHOTOMETRIC, 0) == PHOTOMETRIC_PALETTE;
    uint32_t channels = palette ? 3 : tag_value(&file, directory, TAG_SAMPLES, 1);
    *out = (coffer_image_info){ .struct_size = sizeof(coffer_image_info),
                                .kind = COFFER_IMAGE_TIFF,
                                .width = tag_value(&file, directory, TAG_WIDTH, 0),
                                .height = tag_value(&file, directory, TAG_HEIGHT, 0),
                                .channels = channels < 1   ? 1
                                            : channels > 4 ? 4
                                                           : channels,
                                .depth = tag_value(&file, directory, TAG_BITS, 1) == 16 ? 16 : 8,
                                .orientation =
                                    valid_orientation(tag_value(&file, directory, TAG_ORIENTATION, 1)),
                                .frames = count_pages(&file, directory) };
    if (out->width == 0 || out->height == 0 || out->width > INT32_MAX || out->height > INT32_MAX)
        return coffer__fail(err, COFFER_E_BAD_VALUE, directory, "TIFF: %" PRIu32 " × %" PRIu32 " pixels",
                            out->width, out->height);
    return COFFER_OK;
}

/* ---- WebP ---- */

enum { WEBP_HEAD = 12, CHUNK_HEAD = 8, WEBP_ALPHA = 0x10 };

static uint32_t load24(const uint8_t *at)
{
    return coffer__load_u16(at) | (uint32_t)at[2] << 16;
}

/* Takes width, height and channels from the first chunk that has them. */
static void read_webp_chunk(coffer_image_info *info, const uint8_t *chunk, size_t len)
{
    const uint8_t *data = chunk + CHUNK_HEAD;
    if (memcmp(chunk, "EXIF", 4) == 0)
        info->orientation = coffer__image_exif_orientation(data, len);
    if (memcmp(chunk, "ANMF", 4) == 0)
        info->frames++;
    if (info->width)
        return;
    if (memcmp(chunk, "VP8X", 4) == 0 && len >= 10) {
        info->width = load24(data + 4) + 1;
        info->height = load24(data + 7) + 1;
        info->channels = data[0] & WEBP_ALPHA ? 4 : 3;
    } else if (memcmp(chunk, "VP8L", 4) == 0 && len >= 5 && data[0] == 0x2f) {
        uint32_t bits = coffer__load_u32(data + 1);
        info->width = (bits & 0x3fff) + 1;
        info->height = (bits >> 14 & 0x3fff) + 1;
        info->channels = bits >> 28 & 1 ? 4 : 3;
    } else if (memcmp(chunk, "VP8 ", 4) == 0 && len >= 10) {
        info->width = coffer__load_u16(data + 6) & 0x3fff;
        info->height = coffer__load_u16(data + 8) & 0x3fff;
        info->channels = 3;
    }
}

coffer_status coffer__image_probe_webp(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                       coffer_error *err)
{
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    info.kind = COFFER_IMAGE_WEBP;
    info.frames = 0;
    for (size_t at = WEBP_HEAD; size - at >= CHUNK_HEAD;) {
        size_t len = coffer__load_u32(bytes + at + 4), left = size - at - CHUNK_HEAD;
        read_webp_chunk(&info, bytes + at, len < left ? len : left);
        if (len >= left)
            break;
        at += CHUNK_HEAD + len;
        if (len % 2 && at < size)
            at++;
    }
    if (info.frames == 0)
        info.frames = 1;
    if (info.width == 0 || info.height == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, WEBP_HEAD, "WebP: no size in the first %zu bytes", size);
    *out = info;
    return COFFER_OK;
}
