/* GIF: the first picture of a file, on its canvas. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

enum {
    SCREEN_SIZE = 13, /* magic and logical screen */
    DESCRIPTOR_SIZE = 10,
    BLOCK_EXTENSION = 0x21,
    BLOCK_PICTURE = 0x2c,
    BLOCK_END = 0x3b,
    LABEL_CONTROL = 0xf9,
    HAS_COLORS = 0x80,
    INTERLACED = 0x40,
    LZW_CODES = 4096
};

/* The blocks of a file up to its first picture. */
typedef struct gif {
    const uint8_t *bytes;
    size_t size;
    uint32_t width, height; /* of the canvas */
    uint32_t frames;
    int transparent; /* index, or −1 */
    const uint8_t *colors;
    size_t color_count;
    uint32_t left, top, frame_width, frame_height;
    bool interlaced, ends; /* ends : has a block that says so */
    size_t data;           /* where the codes of the picture begin */
} gif;

static coffer_status fail_cut(const gif *file, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_TRUNCATED, file->size, "GIF: ends after %zu bytes, inside a block",
                        file->size);
}

/* Moves *at past the blocks of data and the empty one that ends them. */
static bool skip_data(const gif *file, size_t *at)
{
    while (*at < file->size) {
        size_t len = file->bytes[*at];
        if (len == 0) {
            ++*at;
            return true;
        }
        if (len >= file->size - *at)
            return false;
        *at += 1 + len;
    }
    return false;
}

static bool take_colors(const gif *file, size_t *at, uint8_t flags, const uint8_t **colors, size_t *count)
{
    size_t entries = (size_t)2 << (flags & 7);
    if (!(flags & HAS_COLORS))
        return true;
    if (file->size - *at < 3 * entries)
        return false;
    *colors = file->bytes + *at;
    *count = entries;
    *at += 3 * entries;
    return true;
}

static bool take_picture(gif *file, size_t *at)
{
    const uint8_t *head = file->bytes + *at;
    if (file->size - *at < DESCRIPTOR_SIZE)
        return false;
    const uint8_t *colors = file->colors;
    size_t count = file->color_count;
    *at += DESCRIPTOR_SIZE;
    if (!take_colors(file, at, head[9], &colors, &count) || *at >= file->size)
        return false;
    if (file->frames++ == 0) {
        file->left = coffer__load_u16(head + 1);
        file->top = coffer__load_u16(head + 3);
        file->frame_width = coffer__load_u16(head + 5);
        file->frame_height = coffer__load_u16(head + 7);
        file->interlaced = (head[9] & INTERLACED) != 0;
        file->colors = colors;
        file->color_count = count;
        file->data = *at;
    }
    ++*at; /* the size of the first codes */
    return skip_data(file, at);
}

static bool take_extension(gif *file, size_t *at)
{
    const uint8_t *head = file->bytes + *at;
    if (file->size - *at < 3)
        return false;
    if (head[1] == LABEL_CONTROL && file->frames == 0 && head[2] == 4 && file->size - *at >= 8)
        file->transparent = head[3] & 1 ? head[6] : -1;
    *at += 2;
    return skip_data(file, at);
}

static coffer_status read_blocks(gif *file, const uint8_t *bytes, size_t size, coffer_error *err)
{
    *file = (gif){ .bytes = bytes, .size = size, .transparent = -1 };
    if (size < SCREEN_SIZE)
        return fail_cut(file, err);
    size_t at = SCREEN_SIZE;
    file->width = coffer__load_u16(bytes + 6);
    file->height = coffer__load_u16(bytes + 8);
    bool whole = take_colors(file, &at, bytes[10], &file->colors, &file->color_count);
    while (whole && at < size && bytes[at] != BLOCK_END) {
        if (bytes[at] == BLOCK_PICTURE)
            whole = take_picture(file, &at);
        else if (bytes[at] == BLOCK_EXTENSION)
            whole = take_extension(file, &at);
        else
            break; /* some programs write bytes after the last picture */
    }
    file->ends = whole && at < size;
    if (file->frames == 0)
        return whole && at < size
                   ? coffer__fail(err, COFFER_E_MISSING, at, "GIF: %zu bytes without a picture", size)
                   : fail_cut(file, err);
    return COFFER_OK;
}

static bool covers_canvas(const gif *file)
{
    return file->left == 0 && file->top == 0 && file->frame_width >= file->width &&
           file->frame_height >= file->height;
}

coffer_status coffer__image_probe_gif(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err)
{
    gif file;
    coffer_status status = read_blocks(&file, bytes, size, err);
    if (status)
        return status;
    if (file.width == 0 || file.height == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 6, "GIF: %" PRIu32 " × %" PRIu32 " pixels", file.width,
                            file.height);
    if (!file.ends && file.frames == 1)
        return fail_cut(&file, err);
    coffer_image_info info = COFFER_IMAGE_INFO_INIT;
    info.kind = COFFER_IMAGE_GIF;
    info.width = file.width;
    info.height = file.height;
    info.channels = file.transparent >= 0 || !covers_canvas(&file) ? 4 : 3;
    info.frames = file.frames;
    *out = info;
    return COFFER_OK;
}

/* ---- Codes ---- */

typedef struct lzw {
    const gif *file;
    size_t at, block_end; /* the next byte, and the end of the block that has it */
    uint32_t bits, bit_count;
    uint16_t before[LZW_CODES]; /* the code without its last index */
    uint8_t last[LZW_CODES], stack[LZW_CODES];
} lzw;

static bool next_byte(lzw *codes, uint8_t *out)
{
    const gif *file = codes->file;
    if (codes->at == codes->block_end) {
        size_t len = codes->at < file->size ? file->bytes[codes->at] : 0;
        if (len == 0 || file->size - codes->at - 1 < len)
            return false;
        codes->block_end = ++codes->at + len;
    }
    *out = file->bytes[codes->at++];
    return true;
}

static bool next_code(lzw *codes, uint32_t width, uint32_t *out)
{
    uint8_t byte;
    while (codes->bit_count < width) {
        if (!next_byte(codes, &byte))
            return false;
        codes->bits |= (uint32_t)byte << codes->bit_count;
        codes->bit_count += 8;
    }
    *out = codes->bits & ((1U << width) - 1);
    codes->bits >>= width;
    codes->bit_count -= width;
    return true;
}

/* The indices of the colors, frame_width × frame_height of them. Returns how many were there. */
static size_t read_indices(uint8_t *out, size_t count, lzw *codes, uint32_t first_width)
{
    uint32_t clear = 1U << first_width, next = clear + 2, width = first_width + 1, code, old = LZW_CODES;
    uint8_t first = 0;
    size_t done = 0;
    while (done < count && next_code(codes, width, &code) && code != clear + 1) {
        if (code == clear) {
            next = clear + 2;
            width = first_width + 1;
            old = LZW_CODES;
            continue;
        }
        if (code > next || (code == next && old == LZW_CODES) || (old == LZW_CODES && code >= clear))
            break;
        size_t depth = 0;
        uint32_t walk = code;
        if (code == next) {
            codes->stack[depth++] = first;
            walk = old;
        }
        for (; walk >= clear && depth < LZW_CODES - 1; walk = codes->before[walk])
            codes->stack[depth++] = codes->last[walk];
        first = (uint8_t)walk;
        codes->stack[depth++] = first;
        while (depth && done < count)
            out[done++] = codes->stack[--depth];
        if (old != LZW_CODES && next < LZW_CODES) {
            codes->before[next] = (uint16_t)old;
            codes->last[next++] = first;
            if (next == 1U << width && width < 12)
                width++;
        }
        old = code;
    }
    return done;
}

/* Rows of an interlaced picture come in four passes. */
static uint32_t row_of(uint32_t index, uint32_t height, bool interlaced)
{
    static const uint8_t begin[4] = { 0, 4, 2, 1 }, step[4] = { 8, 8, 4, 2 };
    for (size_t pass = 0; interlaced && pass < 4; pass++) {
        uint32_t rows = height > begin[pass] ? (height - begin[pass] + step[pass] - 1U) / step[pass] : 0;
        if (index < rows)
            return begin[pass] + index * step[pass];
        index -= rows;
    }
    return index;
}

static void paint(coffer_pixels *out, const gif *file, const uint8_t *indices)
{
    for (uint32_t i = 0; i < file->frame_height; i++) {
        uint32_t y = file->top + row_of(i, file->frame_height, file->interlaced);
        for (uint32_t x = 0; x < file->frame_width && y < out->height; x++) {
            uint8_t index = indices[(size_t)i * file->frame_width + x];
            if (file->left + x >= out->width || index == file->transparent || index >= file->color_count)
                continue;
            uint8_t *pixel = out->data + ((size_t)y * out->width + file->left + x) * out->channels;
            memcpy(pixel, file->colors + 3 * (size_t)index, 3);
            if (out->channels == 4)
                pixel[3] = 255;
        }
    }
}

coffer_status coffer__image_decode_gif(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err)
{
    gif file;
    (void)opts;
    coffer_status status = read_blocks(&file, bytes, size, err);
    if (status)
        return status;
    size_t count = (size_t)file.frame_width * file.frame_height; /* at most 65535 × 65535 */
    uint32_t first_width = file.bytes[file.data];
    if (first_width < 1 || first_width > 11 || !file.colors)
        return coffer__fail(err, COFFER_E_BAD_VALUE, file.data, "GIF: codes of %" PRIu32 " bits, %zu colors",
                            first_width, file.color_count);
    if (count > max_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, file.data, "GIF: a frame of %" PRIu32 " × %" PRIu32,
                            file.frame_width, file.frame_height);
    status = coffer__pixels_reserve(out, file.width, file.height, info->channels, 8, max_bytes, err);
    if (status)
        return status;
    uint8_t *indices = coffer__calloc(count + 1, 1);
    lzw *codes = coffer__calloc(1, sizeof *codes);
    if (!indices || !codes) {
        status = coffer__fail_no_memory(err, count);
        goto out;
    }
    codes->file = &file;
    codes->at = codes->block_end = file.data + 1;
    size_t done = read_indices(indices, count, codes, first_width);
    if (done < count) {
        status = coffer__fail(err, COFFER_E_TRUNCATED, codes->at, "GIF: %zu of %zu pixels can be read", done,
                              count);
        goto out;
    }
    memset(out->data, 0, coffer__pixels_bytes(out));
    paint(out, &file, indices);
out:
    coffer__free(codes);
    coffer__free(indices);
    return status;
}
