/* The inner loops of calibrated encoding, in vectors of the compiler: each including file is compiled for
 * another instruction set, and all give the same bits, because every operation is rounded once and in the
 * same order. Lanes do not depend on each other, so each instruction set works on as many at a time as its
 * registers have. */
#include "base/cpu.h"
#include "quant/quant_calibrate.h"

#include <string.h>

#define LANES COFFER__QUANT_LANES
#define BLOCK COFFER__QUANT_BLOCK
#define HERE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define WIDTH 64  /* bytes of a register */
#define ACROSS 16 /* sums in registers */
#elif defined(__AVX__)
#define WIDTH 32
#define ACROSS 8
#else
#define WIDTH 16
#define ACROSS 8
#endif
#define PART (WIDTH / 4) /* lanes at a time */

typedef float floats __attribute__((vector_size(WIDTH)));
typedef int32_t ints __attribute__((vector_size(WIDTH)));
typedef double doubles __attribute__((vector_size(WIDTH)));

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
    for (size_t lane = 0; lane < PART; lane++)
        codes[lane] = (float)from[lane];
    return codes;
}

HERE void store_codes(int8_t *to, floats codes)
{
    for (size_t lane = 0; lane < PART; lane++)
        to[lane] = (int8_t)codes[lane];
}

/* To the nearest whole number within the codes; numbers up to 2^22 lose their fraction next to the large
 * one. */
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

HERE void try_scale(outcome *out, const coffer__quant_trial *trial, size_t lane, floats scale)
{
    floats inverse_scale = inverse(scale), targets[BLOCK];
    for (size_t i = 0; i < trial->count; i++)
        targets[i] = load(trial->targets + i * LANES + lane);
    out->cost = all(0.0f);
    for (size_t i = trial->count; i-- > 0;) {
        const float *row = trial->factor + i * trial->stride;
        floats code = code_for(targets[i], inverse_scale, trial->largest), decoded = scale * code;
        floats miss = targets[i] - decoded, error = load(trial->values + i * LANES + lane) - decoded;
        out->cost += miss * miss * trial->pivots[i];
        out->codes[i] = code;
        out->errors[i] = error;
        for (size_t k = 0; k < i; k++)
            targets[k] += error * row[k];
    }
}

HERE void encode_part(coffer__quant_trial *trial, size_t lane)
{
    outcome best, here;
    ints best_index = { 0 };
    try_scale(&best, trial, lane, load(trial->scales[0] + lane));
    for (size_t s = 1; s < trial->scale_count; s++) {
        try_scale(&here, trial, lane, load(trial->scales[s] + lane));
        ints better = here.cost < best.cost;
        best_index = (better & (int32_t)s) | (~better & best_index);
        best.cost = choose(better, here.cost, best.cost);
        for (size_t i = 0; i < trial->count; i++) {
            best.codes[i] = choose(better, here.codes[i], best.codes[i]);
            best.errors[i] = choose(better, here.errors[i], best.errors[i]);
        }
    }
    for (size_t i = 0; i < PART; i++)
        trial->best[lane + i] = (uint8_t)best_index[i];
    for (size_t i = 0; i < trial->count; i++) {
        store(trial->errors + i * LANES + lane, best.errors[i]);
        store_codes(trial->codes + i * LANES + lane, best.codes[i]);
    }
}

static void encode_block(coffer__quant_trial *trial)
{
    for (size_t lane = 0; lane < LANES; lane += PART)
        encode_part(trial, lane);
}

/* ---- A code at a time, all others held fixed ---- */

/* The error is least where its slope is 0: at ŵ + (eH)ₚ/Hₚₚ. */
HERE void refine_part(const coffer__quant_refinement *block, size_t lane)
{
    floats scale = load(block->scale + lane), inverse_scale = inverse(scale), errors[BLOCK];
    for (size_t i = 0; i < block->count; i++)
        errors[i] = load(block->errors + i * LANES + lane);
    for (size_t i = 0; i < block->count; i++) {
        const float *row = block->moments + i * block->stride;
        floats slope = load(block->slopes + i * LANES + lane);
        for (size_t k = 0; k < i; k++)
            slope += errors[k] * block->moments[k * block->stride + i];
        for (size_t k = i; k < block->count; k++)
            slope += errors[k] * row[k];
        floats old = scale * load_codes(block->codes + i * LANES + lane);
        floats code = code_for(old + slope * (1.0f / row[i]), inverse_scale, block->largest);
        errors[i] -= scale * code - old;
        store(block->errors + i * LANES + lane, errors[i]);
        store_codes(block->codes + i * LANES + lane, code);
    }
}

static void refine_block(const coffer__quant_refinement *block)
{
    for (size_t lane = 0; lane < LANES; lane += PART)
        refine_part(block, lane);
}

/* ---- Errors of other columns ---- */

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
    for (size_t done = 0; done < width;) {
        size_t here = width - done >= ACROSS ? ACROSS : 1;
        const float *at = factors->at + done * factors->across;
        for (size_t lane = 0; lane < LANES; lane += PART) {
            float *sum = sums + done * LANES + lane;
            if (here == ACROSS)
                add_some(sum, ACROSS, errors + lane, count, factors, at);
            else
                add_some(sum, 1, errors + lane, count, factors, at);
        }
        done += here;
    }
}

/* ---- The factor ---- */

#define ROWS_A 4
#define ROWS_B 2
#define SUMS 8               /* partial sums of a product of two rows */
#define SUM_PART (WIDTH / 8) /* of them at a time */

HERE doubles load_doubles(const double *from)
{
    doubles value;
    memcpy(&value, from, sizeof value);
    return value;
}

static void subtract_products(double *out, const double *a, const double *b, size_t stride, size_t count)
{
    double lanes[ROWS_A][ROWS_B][SUMS];
    for (size_t first = 0; first < SUMS; first += SUM_PART) {
        doubles sums[ROWS_A][ROWS_B] = { 0 };
        for (size_t k = first; k < count / SUMS * SUMS; k += SUMS) {
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
        for (size_t i = 0; i < ROWS_A; i++)
            for (size_t j = 0; j < ROWS_B; j++)
                memcpy(lanes[i][j] + first, &sums[i][j], sizeof sums[i][j]);
    }
    for (size_t i = 0; i < ROWS_A; i++) {
        for (size_t j = 0; j < ROWS_B; j++) {
            double sum = 0.0;
            for (size_t k = 0; k < SUMS; k++)
                sum += lanes[i][j][k];
            out[i * stride + j] -= sum;
        }
    }
}

#define KERNELS                                                     \
    {                                                               \
        encode_block, refine_block, add_products, subtract_products \
    }
