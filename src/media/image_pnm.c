/* PNM: .pbm, .pgm and .ppm files, as text (P1 to P3) and in bytes (P4 to P6). */
#include "base/fail.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

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

static coffer_status read_head(pnm *file, const uint8_t *bytes, size_t size, coffer_error *err)
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
    coffer_status status = read_head(&file, bytes, size, err);
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
    coffer_status status = read_head(&file, bytes, size, err);
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
