/* Pictures of another size: each side by itself, area average where it shrinks, bilinear where it grows. */
#include "media/image_resize.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The weights of one dimension: pixels of the input for each pixel of the output. */
typedef struct side {
    coffer__taps *taps;
    float *weights;
} side;

static void side_free(side *one)
{
    coffer__free(one->taps);
    coffer__free(one->weights);
}

/* Output pixel i covers [i × in / out, (i + 1) × in / out) of the input; each of those counts by how much of
 * it is covered. In whole numbers: lengths are multiples of 1 / out. */
static uint32_t area_taps(coffer__taps *taps, float *weights, uint64_t i, uint64_t in, uint64_t out)
{
    uint64_t begin = i * in, end = begin + in;
    uint32_t first = (uint32_t)(begin / out), last = (uint32_t)((end - 1) / out);
    *taps = (coffer__taps){ first, last - first + 1, weights };
    for (uint32_t k = first; k <= last; k++) {
        uint64_t from = k * out > begin ? k * out : begin;
        uint64_t to = (k + 1) * out < end ? (k + 1) * out : end;
        *weights++ = (float)((double)(to - from) / (double)in);
    }
    return taps->count;
}

/* Between the centers of the two nearest; beyond the outermost centers their value continues. */
static uint32_t linear_taps(coffer__taps *taps, float *weights, uint64_t i, uint64_t in, uint64_t out)
{
    double center = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    if (center <= 0 || in == 1) {
        *taps = (coffer__taps){ 0, 1, weights };
        weights[0] = 1;
        return 1;
    }
    uint32_t first = (uint32_t)center;
    float second = (float)(center - (double)first);
    if (first + 1 >= in) {
        *taps = (coffer__taps){ (uint32_t)in - 1, 1, weights };
        weights[0] = 1;
        return 1;
    }
    *taps = (coffer__taps){ first, 2, weights };
    weights[0] = 1 - second;
    weights[1] = second;
    return 2;
}

static coffer_status side_init(side *one, uint32_t in, uint32_t out, coffer_error *err)
{
    /* Neighboring areas share at most one pixel. */
    size_t most = (size_t)in + 2 * (size_t)out;
    one->taps = coffer__alloc_array(out, sizeof *one->taps);
    one->weights = coffer__alloc_array(most, sizeof *one->weights);
    if (!one->taps || !one->weights)
        return coffer__fail_no_memory(err, most * sizeof *one->weights);
    float *weights = one->weights;
    for (uint32_t i = 0; i < out; i++)
        weights += out <= in ? area_taps(&one->taps[i], weights, i, in, out)
                             : linear_taps(&one->taps[i], weights, i, in, out);
    return COFFER_OK;
}

static const coffer__resize_kernels *choose_kernels(void)
{
#if defined(__x86_64__)
    coffer__cpu_level level = coffer__cpu();
    if (level == COFFER__CPU_AVX2 || level == COFFER__CPU_AVX512)
        return &coffer__resize_avx2;
#endif
    return &coffer__resize_generic;
}

static uint16_t to_wide(float value)
{
    return value <= 0 ? 0 : value >= 65535 ? 65535 : (uint16_t)lroundf(value);
}

/* Pixels of 16 bits are rare: one plain loop for all machines. */
static void blend_wide(coffer_pixels *out, const coffer_pixels *in, const side *across, const side *down,
                       float *row)
{
    size_t channels = in->channels, in_row = (size_t)in->width * channels, place = 0;
    for (size_t y = 0; y < out->height; y++) {
        const coffer__taps *rows = &down->taps[y];
        for (size_t i = 0; i < in_row; i++) {
            row[i] = 0;
            for (uint32_t t = 0; t < rows->count; t++) {
                uint16_t value;
                memcpy(&value, in->data + ((rows->first + t) * in_row + i) * sizeof value, sizeof value);
                row[i] += rows->weights[t] * (float)value;
            }
        }
        for (size_t x = 0; x < out->width; x++) {
            const coffer__taps *columns = &across->taps[x];
            for (size_t c = 0; c < channels; c++, place++) {
                float sum = 0;
                for (uint32_t t = 0; t < columns->count; t++)
                    sum += columns->weights[t] * row[(columns->first + t) * channels + c];
                uint16_t value = to_wide(sum);
                memcpy(out->data + place * sizeof value, &value, sizeof value);
            }
        }
    }
}

static coffer_status blend(coffer_pixels *out, const coffer_pixels *in, const side *across, const side *down,
                           coffer_error *err)
{
    const coffer__resize_kernels *kernels = choose_kernels();
    size_t in_row = (size_t)in->width * in->channels, out_row = (size_t)out->width * out->channels;
    float *row = coffer__calloc(in_row + COFFER__RESIZE_SLACK, sizeof *row);
    if (!row)
        return coffer__fail_no_memory(err, in_row * sizeof *row);
    bool wide = coffer__pixels_depth(in) == 16;
    if (wide)
        blend_wide(out, in, across, down, row);
    for (size_t y = 0; !wide && y < out->height; y++) {
        kernels->rows(row, in->data, in_row, &down->taps[y]);
        kernels->columns(out->data + y * out_row, row, across->taps, out->width, out->channels);
    }
    coffer__free(row);
    return COFFER_OK;
}

coffer_status coffer_pixels_resize(coffer_pixels *out, const coffer_pixels *in, uint32_t width,
                                   uint32_t height, coffer_error *err)
{
    side across = { 0 }, down = { 0 };
    if (out == in || in->channels < 1 || in->channels > 4 || in->width == 0 || in->height == 0 ||
        width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu32 " × %" PRIu32 " pixels of %" PRIu32 " channels cannot become %" PRIu32
                            " × %" PRIu32,
                            in->width, in->height, in->channels, width, height);
    coffer_status status = side_init(&across, in->width, width, err);
    if (!status)
        status = side_init(&down, in->height, height, err);
    if (!status)
        status =
            coffer__pixels_reserve(out, width, height, in->channels, coffer__pixels_depth(in), SIZE_MAX, err);
    if (!status)
        status = blend(out, in, &across, &down, err);
    side_free(&across);
    side_free(&down);
    return status;
}
