/* The loops themselves. Every sum is taken in the same order whatever the width of the registers. */
#ifndef COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H
#define COFFER_MEDIA_IMAGE_RESIZE_LOOPS_H

#include "media/image_resize.h"

#include <string.h>

/* Four values, which is a pixel, or the beginning of the next one behind it. */
typedef float pixel_lanes __attribute__((vector_size(16)));

static inline pixel_lanes load_lanes(const float *from)
{
    pixel_lanes lanes;
    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

static inline uint8_t to_byte(float value)
{
    int rounded = (int)(value + 0.5f);
    return (uint8_t)(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
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

static void blend_columns(uint8_t *restrict out, const float *restrict row, const coffer__taps *taps,
                          size_t width, size_t channels)
{
    for (size_t x = 0; x < width; x++) {
        const float *from = row + taps[x].first * channels;
        pixel_lanes sum = load_lanes(from) * taps[x].weights[0];
        for (uint32_t i = 1; i < taps[x].count; i++)
            sum += load_lanes(from + i * channels) * taps[x].weights[i];
        for (size_t c = 0; c < channels; c++)
            *out++ = to_byte(sum[c]);
    }
}

#endif
