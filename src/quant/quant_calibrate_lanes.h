/* The inner loops of calibrated encoding, in vectors of the compiler: each including file is compiled for
 * another instruction set, and all give the same bits, because every operation is rounded once and in the
 * same order. */
#include "base/cpu.h"
#include "quant/quant_calibrate.h"

#include <string.h>

#pragma GCC diagnostic ignored "-Wpsabi" /* everything below is inlined */

#define LANES COFFER__QUANT_LANES
#define BLOCK COFFER__QUANT_BLOCK
#define HERE static inline __attribute__((always_inline))

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

#define SUMS 8 /* partial sums of a product of two rows */
typedef double doubles __attribute__((vector_size(8 * SUMS)));

HERE floats load(const float *from)
{
    floats value;
    memcpy(&value, from, sizeof value);
    return value;
}

HERE void store(float *to, floats value)
{
    memcpy(to, &value, sizeof value);
}

HERE floats all(float value)
{
    floats none = { 0 };
    return none + value;
}

HERE floats choose(ints mask, floats yes, floats no)
{
    return (floats)((mask & (ints)yes) | (~mask & (ints)no));
}

HERE floats inverse(floats value)
{
    return choose(value > all(0.0f), all(1.0f) / value, all(0.0f));
}

HERE floats load_codes(const int8_t *from)
{
    floats codes = { 0 };
    for (size_t lane = 0; lane < LANES; lane++)
        codes[lane] = (float)from[lane];
    return codes;
}

HERE void store_codes(int8_t *to, floats codes)
{
    for (size_t lane = 0; lane < LANES; lane++)
        to[lane] = (int8_t)codes[lane];
}

/* To the nearest whole number within the codes; numbers up to 2^22 lose their fraction next to the large one.
 */
HERE floats code_for(floats value, floats inverse_scale, float largest)
{
    const float big = 12582912.0f; /* 1.5 × 2^23 */
    floats code = value * inverse_scale;
    code = choose(code > all(largest), all(largest), code);
    code = choose(code < all(-largest), all(-largest), code);
    return code + big - big;
}

/* ---- A block with one scale in each lane ---- */

typedef struct outcome {
    floats codes[BLOCK], errors[BLOCK], cost;
} outcome;

HERE void try_scale(outcome *out, const coffer__quant_trial *trial, floats scale)
{
    floats inverse_scale = inverse(scale), targets[BLOCK];
    for (size_t i = 0; i < trial->count; i++)
        targets[i] = load(trial->targets + i * LANES);
    out->cost = all(0.0f);
    for (size_t i = trial->count; i-- > 0;) {
        const float *row = trial->factor + i * trial->stride;
        floats code = code_for(targets[i], inverse_scale, trial->largest), decoded = scale * code;
        floats miss = targets[i] - decoded, error = load(trial->values + i * LANES) - decoded;
        out->cost += miss * miss * trial->pivots[i];
        out->codes[i] = code;
        out->errors[i] = error;
        for (size_t k = 0; k < i; k++)
            targets[k] += error * row[k];
    }
}

static void encode_block(coffer__quant_trial *trial)
{
    outcome best, here;
    ints best_index = { 0 };
    try_scale(&best, trial, load(trial->scales[0]));
    for (size_t s = 1; s < trial->scale_count; s++) {
        try_scale(&here, trial, load(trial->scales[s]));
        ints better = here.cost < best.cost;
        best_index = (better & (int32_t)s) | (~better & best_index);
        best.cost = choose(better, here.cost, best.cost);
        for (size_t i = 0; i < trial->count; i++) {
            best.codes[i] = choose(better, here.codes[i], best.codes[i]);
            best.errors[i] = choose(better, here.errors[i], best.errors[i]);
        }
    }
    for (size_t lane = 0; lane < LANES; lane++)
        trial->best[lane] = (uint8_t)best_index[lane];
    for (size_t i = 0; i < trial->count; i++) {
        store(trial->errors + i * LANES, best.errors[i]);
        store_codes(trial->codes + i * LANES, best.codes[i]);
    }
}

/* ---- A code at a time, all others held fixed ---- */

/* The error is least where its slope is 0: at ŵ + (eH)ₚ/Hₚₚ. */
static void refine_block(const coffer__quant_refinement *block)
{
    floats scale = load(block->scale), inverse_scale = inverse(scale), errors[BLOCK];
    for (size_t i = 0; i < block->count; i++)
        errors[i] = load(block->errors + i * LANES);
    for (size_t i = 0; i < block->count; i++) {
        const float *row = block->moments + i * block->stride;
        floats slope = load(block->slopes + i * LANES);
        for (size_t k = 0; k < i; k++)
            slope += errors[k] * block->moments[k * block->stride + i];
        for (size_t k = i; k < block->count; k++)
            slope += errors[k] * row[k];
        floats old = scale * load_codes(block->codes + i * LANES);
        floats code = code_for(old + slope * (1.0f / row[i]), inverse_scale, block->largest);
        errors[i] -= scale * code - old;
        store(block->errors + i * LANES, errors[i]);
        store_codes(block->codes + i * LANES, code);
    }
}

/* ---- Errors of other columns ---- */

#if defined(__AVX512F__)
#define ACROSS 16 /* sums in registers */
#else
#define ACROSS 4
#endif

HERE void add_some(float *sums, size_t width, const float *errors, size_t count,
                   const coffer__quant_factors *factors, const float *at)
{
    floats here[ACROSS];
    COFFER__UNROLL(ACROSS)
    for (size_t i = 0; i < width; i++)
        here[i] = load(sums + i * LANES);
    for (size_t j = 0; j < count; j++, at += factors->down) {
        floats error = load(errors + j * LANES);
        COFFER__UNROLL(ACROSS)
        for (size_t i = 0; i < width; i++)
            here[i] += error * at[i * factors->across];
    }
    COFFER__UNROLL(ACROSS)
    for (size_t i = 0; i < width; i++)
        store(sums + i * LANES, here[i]);
}

static void add_products(float *sums, size_t width, const float *errors, size_t count,
                         const coffer__quant_factors *factors)
{
    size_t done = 0;
    for (; done + ACROSS <= width; done += ACROSS)
        add_some(sums + done * LANES, ACROSS, errors, count, factors, factors->at + done * factors->across);
    for (; done < width; done++)
        add_some(sums + done * LANES, 1, errors, count, factors, factors->at + done * factors->across);
}

/* ---- The factor ---- */

HERE doubles load_doubles(const double *from)
{
    doubles value;
    memcpy(&value, from, sizeof value);
    return value;
}

#define ROWS_A 4
#define ROWS_B 2

static void subtract_products(double *out, const double *a, const double *b, size_t stride, size_t count)
{
    doubles sums[ROWS_A][ROWS_B] = { 0 };
    for (size_t k = 0; k + SUMS <= count; k += SUMS) {
        doubles right[ROWS_B];
        COFFER__UNROLL(ROWS_B)
        for (size_t j = 0; j < ROWS_B; j++)
            right[j] = load_doubles(b + j * stride + k);
        COFFER__UNROLL(ROWS_A)
        for (size_t i = 0; i < ROWS_A; i++) {
            doubles left = load_doubles(a + i * stride + k);
            COFFER__UNROLL(ROWS_B)
            for (size_t j = 0; j < ROWS_B; j++)
                sums[i][j] += left * right[j];
        }
    }
    for (size_t i = 0; i < ROWS_A; i++) {
        for (size_t j = 0; j < ROWS_B; j++) {
            double sum = 0.0;
            for (size_t lane = 0; lane < SUMS; lane++)
                sum += sums[i][j][lane];
            out[i * stride + j] -= sum;
        }
    }
}

#define KERNELS                                                     \
    {                                                               \
        encode_block, refine_block, add_products, subtract_products \
    }
