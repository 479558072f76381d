/* The loops themselves. Every sum is taken in the same order whatever the width of the registers. */
#ifndef COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H
#define COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H

#include "base/bytes.h"
#include "media/image_resize.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Four values, which is a pixel, or the beginning of the next one after it. */
typedef float pixel_lanes __attribute__((vector_size(16)));

static inline pixel_lanes load_lanes(const float *from)
{
    pixel_lanes lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

/* Four values rounded to bytes; the caller keeps the channels of a pixel. */
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

/* Neighboring bytes as numbers, as many as fill a register. Written with intrinsics because the
 * compiler converts byte by byte. */
#if defined(__AVX2__)
enum { ROW_LANES = 8 };
typedef float row_lanes __attribute__((vector_size(32)));

static inline row_lanes load_row_lanes(const uint8_t *from)
{
    __m128i bytes = _mm_cvtsi64_si128((int64_t)coffer__load_u64(from));
    return (row_lanes)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}
#else
enum { ROW_LANES = 4 };
typedef pixel_lanes row_lanes;

static inline row_lanes load_row_lanes(const uint8_t *from)
{
#if defined(__SSE2__)
    __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128((int32_t)coffer__load_u32(from));
    return (row_lanes)_mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero));
#else
    return (row_lanes){ from[0], from[1], from[2], from[3] };
#endif
}
#endif

/* One value of the blended row; the lanes below add in the same order. */
static inline float blend_value(const uint8_t *row, size_t len, const coffer__taps *taps)
{
    float sum = taps->weights[0] * (float)row[0];
    for (uint32_t i = 1; i < taps->count; i++)
        sum += taps->weights[i] * (float)row[i * len];
    return sum;
}

static void blend_rows(float *restrict out, const uint8_t *restrict rows, size_t len,
                       const coffer__taps *taps)
{
    const uint8_t *row = rows + (size_t)taps->first * len;
    size_t at = 0;
    for (; at + ROW_LANES <= len; at += ROW_LANES) {
        row_lanes sum = load_row_lanes(row + at) * taps->weights[0];
        for (uint32_t i = 1; i < taps->count; i++)
            sum += load_row_lanes(row + i * len + at) * taps->weights[i];
        memcpy(out + at, &sum, sizeof sum);
    }
    for (; at < len; at++)
        out[at] = blend_value(row + at, len, taps);
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
    /* Colors as a rule: the fourth byte is overwritten by the next pixel. */
    for (; channels == 3 && x + 1 < width; x++, out += 3)
        coffer__store_u32(out, to_bytes(blend_pixel(row, &taps[x], 3)));
    for (; x < width; x++, out += channels)
        store_pixel(out, to_bytes(blend_pixel(row, &taps[x], channels)), channels);
}

#endif
