/* The kernels of histogram.h, written once with vectors of a fixed number of lanes and compiled for each
 * instruction set. */
#ifndef COFFER_CONVERT_HISTOGRAM_LOOPS_H
#define COFFER_CONVERT_HISTOGRAM_LOOPS_H

#include "convert/tensors/histogram.h"

#include <string.h>

typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef int64_t i64x8 __attribute__((vector_size(64)));
typedef uint8_t u8x8 __attribute__((vector_size(8)));

/* Vectors wider than the registers cannot be passed to functions. */
#define TO_BINS(bins, finite) \
    __builtin_convertvector(((bins) & (finite)) | (COFFER__HISTOGRAM_BINS & ~(finite)), u8x8)

static inline uint32_t count_set(const i32x8 *masks)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < 8; i++)
        sum -= (uint32_t)(*masks)[i];
    return sum;
}

/* Numbers past the ends, and NaN, come out at an end: a vector has no way to leave them out before they are
 * made integers. */
static uint32_t place_f32(uint8_t *bins, const void *values, const coffer__histogram_ruler *ruler)
{
    float half_min = (float)ruler->half_min, scale = (float)ruler->bins_per_half;
    float low = (float)ruler->low, high = (float)ruler->high, top = COFFER__HISTOGRAM_BINS - 1;
    const f32x8 last = { top, top, top, top, top, top, top, top };
    i32x8 outside = { 0 };
    for (size_t i = 0; i < COFFER__HISTOGRAM_BLOCK; i += 8) {
        f32x8 x;
        memcpy(&x, (const char *)values + i * sizeof(float), sizeof x);
        f32x8 at = (x * 0.5f - half_min) * scale;
        at = (f32x8)((i32x8)at & (at > 0.0f));
        i32x8 inside = at < last;
        at = (f32x8)(((i32x8)at & inside) | ((i32x8)last & ~inside));
        i32x8 finite = x - x == 0.0f;
        u8x8 placed = TO_BINS(__builtin_convertvector(at, i32x8), finite);
        memcpy(bins + i, &placed, sizeof placed);
        outside += ((x < low) | (x > high)) & finite;
    }
    return count_set(&outside);
}

static uint32_t place_f64(uint8_t *bins, const void *values, const coffer__histogram_ruler *ruler)
{
    double half_min = ruler->half_min, scale = ruler->bins_per_half, top = COFFER__HISTOGRAM_BINS - 1;
    const f64x8 last = { top, top, top, top, top, top, top, top };
    i32x8 outside = { 0 };
    for (size_t i = 0; i < COFFER__HISTOGRAM_BLOCK; i += 8) {
        f64x8 x;
        memcpy(&x, (const char *)values + i * sizeof(double), sizeof x);
        f64x8 at = (x * 0.5 - half_min) * scale;
        at = (f64x8)((i64x8)at & (at > 0.0));
        i64x8 inside = at < last;
        at = (f64x8)(((i64x8)at & inside) | ((i64x8)last & ~inside));
        i64x8 finite = x - x == 0.0;
        u8x8 placed = TO_BINS(__builtin_convertvector(at, i32x8), __builtin_convertvector(finite, i32x8));
        memcpy(bins + i, &placed, sizeof placed);
        outside += __builtin_convertvector(((x < ruler->low) | (x > ruler->high)) & finite, i32x8);
    }
    return count_set(&outside);
}

#define COFFER__HISTOGRAM_TABLE \
    {                           \
        place_f32, place_f64    \
    }

#endif
