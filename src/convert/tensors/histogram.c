#include "convert/tensors/histogram.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/elements.h"
#include "convert/tensors/histogram_loops.h"

#include <float.h>
#include <math.h>

/* Counts go into several tables, so that equal neighbors do not wait for each other. */
#define TABLES 8

/* On aarch64 these are NEON, which all such processors have. */
const coffer__histogram_kernels coffer__histogram_generic = COFFER__HISTOGRAM_TABLE;

static const coffer__histogram_kernels *kernels_in_use(void)
{
#if defined(__x86_64__)
    coffer__cpu_level level = coffer__cpu();
    if (level == COFFER__CPU_AVX512)
        return &coffer__histogram_avx512;
    if (level == COFFER__CPU_AVX2)
        return &coffer__histogram_avx2;
#endif
    return &coffer__histogram_generic;
}

coffer__histogram_ruler coffer__histogram_rule(double min, double max, double low, double high)
{
    double half_range = max * 0.5 - min * 0.5;
    double scale = half_range > 0 ? COFFER__HISTOGRAM_BINS / half_range : 0.0;
    return (coffer__histogram_ruler){ min * 0.5, scale < DBL_MAX ? scale : DBL_MAX, low, high };
}

/* Types whose numbers are all floats, and a ruler whose numbers are. */
static bool fits_f32(coffer_dtype dtype, const coffer__histogram_ruler *ruler)
{
    bool narrow = dtype == COFFER_DTYPE_F32 || dtype == COFFER_DTYPE_BF16 || dtype == COFFER_DTYPE_F16;
    return narrow && ruler->bins_per_half < (double)FLT_MAX;
}

static void load_doubles(double *out, const void *elements, coffer_dtype dtype, size_t count)
{
    double pairs[2 * COFFER__HISTOGRAM_BLOCK];
    if (!coffer_dtype_is_complex(dtype)) {
        coffer__elements_convert(out, COFFER_DTYPE_F64, elements, dtype, count);
        return;
    }
    coffer__elements_convert(pairs, COFFER_DTYPE_C128, elements, dtype, count);
    for (size_t i = 0; i < count; i++)
        out[i] = hypot(pairs[2 * i], pairs[2 * i + 1]);
}

/* A block that is not full is filled up with NaN. */
static uint32_t place(uint8_t *bins, const coffer__histogram_kernels *kernels,
                      const coffer__histogram_ruler *ruler, const void *elements, coffer_dtype dtype,
                      size_t count)
{
    if (fits_f32(dtype, ruler)) {
        if (dtype == COFFER_DTYPE_F32 && count == COFFER__HISTOGRAM_BLOCK)
            return kernels->place_f32(bins, elements, ruler);
        float values[COFFER__HISTOGRAM_BLOCK];
        coffer__elements_convert(values, COFFER_DTYPE_F32, elements, dtype, count);
        for (size_t i = count; i < COFFER__HISTOGRAM_BLOCK; i++)
            values[i] = NAN;
        return kernels->place_f32(bins, values, ruler);
    }
    double values[COFFER__HISTOGRAM_BLOCK];
    load_doubles(values, elements, dtype, count);
    for (size_t i = count; i < COFFER__HISTOGRAM_BLOCK; i++)
        values[i] = (double)NAN;
    return kernels->place_f64(bins, values, ruler);
}

static void count_bins(uint32_t tables[TABLES][COFFER__HISTOGRAM_BINS + 1],
                       const uint8_t bins[COFFER__HISTOGRAM_BLOCK])
{
    for (size_t i = 0; i < COFFER__HISTOGRAM_BLOCK; i += TABLES) {
        uint64_t eight = coffer__load_u64(bins + i);
        for (unsigned k = 0; k < TABLES; k++)
            tables[k][eight >> (8 * k) & 0xFF]++;
    }
}

void coffer__histogram_add(coffer__histogram *histogram, const coffer__histogram_ruler *ruler,
                           const void *elements, coffer_dtype dtype, size_t count)
{
    const coffer__histogram_kernels *kernels = kernels_in_use();
    uint32_t tables[TABLES][COFFER__HISTOGRAM_BINS + 1] = { { 0 } };
    const uint8_t *from = elements;
    size_t size = coffer_dtype_size(dtype);
    for (size_t done = 0; done < count; done += COFFER__HISTOGRAM_BLOCK) {
        uint8_t bins[COFFER__HISTOGRAM_BLOCK];
        size_t now = count - done < COFFER__HISTOGRAM_BLOCK ? count - done : COFFER__HISTOGRAM_BLOCK;
        histogram->outside += place(bins, kernels, ruler, from + done * size, dtype, now);
        count_bins(tables, bins);
    }
    for (size_t k = 0; k < TABLES; k++) {
        for (size_t i = 0; i < COFFER__HISTOGRAM_BINS; i++)
            histogram->bins[i] += tables[k][i];
    }
}

void coffer__histogram_merge(coffer__histogram *into, const coffer__histogram *from)
{
    for (size_t i = 0; i < COFFER__HISTOGRAM_BINS; i++)
        into->bins[i] += from->bins[i];
    into->outside += from->outside;
}
