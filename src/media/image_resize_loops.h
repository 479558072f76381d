/* The loops themselves. Every sum is taken in the same order whatever the width of the registers. */
#ifndef COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H
#define COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H

#include "base/bytes.h"
#include "media/image_resize.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Four values, which is a pixel, or the beginning of the next one behind it. */
typedef float pixel_lanes __attribute__((vector_size(16)));

static inline pixel_lanes load_lanes(const float *from)
{
    pixel_lanes lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

/* Four values rounded to bytes, of which the caller keeps as many as a pixel has. */
static inline uint32_t to_bytes(pixel_lanes value)
{
    uint32_t bytes = 0;
#if defined(__SSE2__)
    __m128i rounded = _mm_cvttps_epi32(_mm_add_ps((__m128)value, _mm_set1_ps(0.5f)));
    rounded = _mm_packs_epi32(rounded, rounded);
    bytes = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(rounded, rounded));
#else
    for (unsigned c = 0; c < 4; c++) {
        int rounded = (int)(value[c] + 0.5f);
        bytes |= (uint32_t)(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded) << (8 * c);
    }
#endif
    return bytes;
}

static inline void store_pixel(uint8_t *out, uint32_t bytes, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        out[c] = (uint8_t)(bytes >> (8 * c));
}

static void blend_rows(float *restrict out, const uint8_t *restrict rows, size_t len,
                       const coffer__taps *taps)
{
    const uint8_t *row = rows + (size_t)taps->first * len;
    float weight = taps->weights[0];
    uint32_t done = 1;
    /* Two or three rows are what there is to blend when a picture has been decoded close to its new size. */
    if (taps->count == 2) {
        float second = taps->weights[1];
        for (size_t i = 0; i < len; i++)
            out[i] = weight * (float)row[i] + second * (float)row[len + i];
        return;
    }
    if (taps->count >= 3) {
        float second = taps->weights[1], third = taps->weights[2];
        for (size_t i = 0; i < len; i++)
            out[i] = weight * (float)row[i] + second * (float)row[len + i] + third * (float)row[2 * len + i];
        done = 3;
    } else {
        for (size_t i = 0; i < len; i++)
            out[i] = weight * (float)row[i];
    }
    for (; done < taps->count; done++) {
        const uint8_t *next = row + done * len;
        weight = taps->weights[done];
        for (size_t i = 0; i < len; i++)
            out[i] += weight * (float)next[i];
    }
}

static inline pixel_lanes blend_pixel(const float *row, const coffer__taps *taps, size_t channels)
{
    const float *from = row + taps->first * channels;
    const float *weights = taps->weights;
    pixel_lanes sum = load_lanes(from) * weights[0];
    for (uint32_t i = 1; i < taps->count; i++)
        sum += load_lanes(from + i * channels) * weights[i];
    return sum;
}

static void blend_columns(uint8_t *restrict out, const float *restrict row, const coffer__taps *taps,
                          size_t width, size_t channels)
{
    size_t x = 0;
    /* Colours as a rule: the fourth byte is overwritten by the next pixel. */
    for (; channels == 3 && x + 1 < width; x++, out += 3)
        coffer__store_u32(out, to_bytes(blend_pixel(row, &taps[x], 3)));
    for (; x < width; x++, out += channels)
        store_pixel(out, to_bytes(blend_pixel(row, &taps[x], channels)), channels);
}

#endif
