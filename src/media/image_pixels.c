/* Memory for pixels, and changes of their channels, depth and orientation. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <string.h>

/* Callers built against 0.1 have no depth. */
static bool has_depth(const coffer_pixels *pixels)
{
    return pixels->struct_size >= offsetof(coffer_pixels, depth) + sizeof pixels->depth;
}

uint32_t coffer__pixels_depth(const coffer_pixels *pixels)
{
    return has_depth(pixels) && pixels->depth == 16 ? 16 : 8;
}

coffer_status coffer__pixels_reserve(coffer_pixels *pixels, uint32_t width, uint32_t height,
                                     uint32_t channels, uint32_t depth, uint64_t max_bytes, coffer_error *err)
{
    uint64_t bytes;
    size_t size;
    if (pixels->struct_size < offsetof(coffer_pixels, depth) || (depth == 16 && !has_depth(pixels)))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %" PRIu32 ": initialize the pixels with COFFER_PIXELS_INIT",
                            pixels->struct_size);
    if (!coffer__mul_u64(&bytes, (uint64_t)width * channels * (depth / 8), height) || bytes > max_bytes ||
        !coffer__to_size(&size, bytes))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu32 " × %" PRIu32 " × %" PRIu32
                            " samples needs more than the limit of %" PRIu64 " bytes",
                            width, height, channels, max_bytes);
    if (size > pixels->capacity) {
        uint8_t *data = coffer__malloc(size);
        if (!data)
            return coffer__fail_no_memory(err, size);
        coffer__free(pixels->data);
        pixels->data = data;
        pixels->capacity = size;
    }
    pixels->width = width;
    pixels->height = height;
    pixels->channels = channels;
    if (has_depth(pixels))
        pixels->depth = depth;
    return COFFER_OK;
}

/* ---- Channels and depth ---- */

static uint32_t sample_at(const uint8_t *data, size_t index, uint32_t depth)
{
    uint16_t wide;
    if (depth == 8)
        return data[index];
    memcpy(&wide, data + 2 * index, sizeof wide);
    return wide;
}

static void put_sample(uint8_t *data, size_t index, uint32_t value, uint32_t from_depth, uint32_t depth)
{
    if (from_depth == 16 && depth == 8)
        value = (value * 255 + 32767) / 65535;
    uint16_t wide = (uint16_t)value;
    if (depth == 8)
        data[index] = (uint8_t)value;
    else
        memcpy(data + 2 * index, &wide, sizeof wide);
}

/* The weights are those of libpng, in 1/32768. */
static uint32_t gray_of(const uint32_t color[4])
{
    return (color[0] * 6968U + color[1] * 23434U + color[2] * 2366U + 16384U) >> 15;
}

static void adapt_pixel(uint32_t out[4], const uint8_t *data, size_t first, uint32_t channels,
                        uint32_t wanted, uint32_t depth)
{
    uint32_t full = depth == 16 ? 65535 : 255, in[4] = { 0, 0, 0, full };
    for (uint32_t c = 0; c < channels; c++)
        in[channels == 2 && c == 1 ? 3 : c] = sample_at(data, first + c, depth);
    if (channels < 3)
        in[1] = in[2] = in[0];
    memcpy(out, in, sizeof in);
    if (wanted == 1 && channels >= 3)
        out[0] = gray_of(in);
}

coffer_status coffer__pixels_adapt(coffer_pixels *pixels, uint32_t channels, uint32_t depth,
                                   uint64_t max_bytes, coffer_error *err)
{
    uint32_t old_depth = coffer__pixels_depth(pixels);
    if (channels == 0)
        channels = pixels->channels;
    if (depth == 0)
        depth = old_depth;
    if (channels == pixels->channels && depth == old_depth)
        return COFFER_OK;
    coffer_pixels out = COFFER_PIXELS_INIT;
    coffer_status status =
        coffer__pixels_reserve(&out, pixels->width, pixels->height, channels, depth, max_bytes, err);
    if (status)
        return status;
    size_t count = out.data ? (size_t)pixels->width * pixels->height : 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t values[4];
        adapt_pixel(values, pixels->data, i * pixels->channels, pixels->channels, channels, old_depth);
        if (channels == 2)
            values[1] = values[3];
        for (uint32_t c = 0; c < channels; c++)
            put_sample(out.data, i * channels + c, values[c], old_depth, depth);
    }
    coffer__free(pixels->data);
    pixels->data = out.data;
    pixels->capacity = out.capacity;
    pixels->channels = channels;
    if (has_depth(pixels))
        pixels->depth = depth;
    return COFFER_OK;
}

/* ---- Orientation ---- */

coffer_status coffer__pixels_orient(coffer_pixels *pixels, uint32_t orientation, coffer_error *err)
{
    if (orientation < 2 || orientation > 8)
        return COFFER_OK;
    bool turned = orientation >= 5;
    size_t each = (size_t)pixels->channels * (coffer__pixels_depth(pixels) / 8);
    uint32_t width = pixels->width, height = pixels->height;
    uint8_t *out = coffer__malloc(coffer__pixels_bytes(pixels));
    if (!out)
        return coffer__fail_no_memory(err, coffer__pixels_bytes(pixels));
    uint32_t out_width = turned ? height : width, out_height = turned ? width : height;
    bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    for (uint32_t y = 0; y < out_height; y++) {
        for (uint32_t x = 0; x < out_width; x++) {
            /* Where the pixel is stored: a turned picture exchanges rows and columns first. */
            uint32_t from_x = turned ? y : x, from_y = turned ? x : y;
            if (flip_x)
                from_x = width - 1 - from_x;
            if (flip_y)
                from_y = height - 1 - from_y;
            memcpy(out + ((size_t)y * out_width + x) * each,
                   pixels->data + ((size_t)from_y * width + from_x) * each, each);
        }
    }
    size_t size = coffer__pixels_bytes(pixels);
    coffer__free(pixels->data);
    pixels->data = out;
    pixels->capacity = size;
    pixels->width = out_width;
    pixels->height = out_height;
    return COFFER_OK;
}
