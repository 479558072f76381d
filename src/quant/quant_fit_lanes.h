/* The fitter, sixteen blocks at a time, in vectors of the compiler: each including file is compiled for
 * another instruction set, and all give the same bits, because every operation is rounded once and in the
 * same order. */
#include "base/cpu.h"
#include "base/elements.h"
#include "quant/quant_encode.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi" /* everything below is inlined */

#define LANES COFFER__QUANT_LANES
#define BLOCK COFFER__QUANT_BLOCK
#define HERE static inline __attribute__((always_inline))

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));

HERE floats load(const float *from)
{
    floats value;
    memcpy(&value, from, sizeof value);
    return value;
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

/* The compiler knows no vector maximum; the processors do. */
#if defined(__AVX512F__)
HERE floats larger(floats a, floats b)
{
    return (floats)_mm512_max_ps((__m512)a, (__m512)b);
}

HERE floats smaller(floats a, floats b)
{
    return (floats)_mm512_min_ps((__m512)a, (__m512)b);
}
#elif defined(__AVX__)
typedef union halves {
    floats all;
    __m256 half[2];
} halves;

HERE floats larger(floats a, floats b)
{
    halves x = { a }, y = { b };
    for (size_t i = 0; i < 2; i++)
        x.half[i] = _mm256_max_ps(x.half[i], y.half[i]);
    return x.all;
}

HERE floats smaller(floats a, floats b)
{
    halves x = { a }, y = { b };
    for (size_t i = 0; i < 2; i++)
        x.half[i] = _mm256_min_ps(x.half[i], y.half[i]);
    return x.all;
}
#elif defined(__aarch64__)
typedef union quarters {
    floats all;
    float32x4_t quarter[4];
} quarters;

HERE floats larger(floats a, floats b)
{
    quarters x = { a }, y = { b };
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        x.quarter[i] = vmaxq_f32(x.quarter[i], y.quarter[i]);
    return x.all;
}

HERE floats smaller(floats a, floats b)
{
    quarters x = { a }, y = { b };
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        x.quarter[i] = vminq_f32(x.quarter[i], y.quarter[i]);
    return x.all;
}
#else
HERE floats larger(floats a, floats b)
{
    return choose(a > b, a, b);
}

HERE floats smaller(floats a, floats b)
{
    return choose(a < b, a, b);
}
#endif

HERE floats magnitude(floats value)
{
    return (floats)((ints)value & 0x7FFFFFFF);
}

/* To the nearest whole number: those up to 2^22 lose their fraction next to this one. */
HERE floats nearest(floats value)
{
    const float big = 12582912.0f; /* 1.5 × 2^23 */
    return value + big - big;
}

HERE floats inverse(floats value)
{
    return choose(value > all(0.0f), all(1.0f) / value, all(0.0f));
}

HERE floats largest_magnitudes(const coffer__quant_lanes *lanes)
{
    floats most = all(0.0f);
    for (size_t i = 0; i < BLOCK; i++)
        most = larger(most, magnitude(load(lanes->values[i])));
    return most;
}

/* The grid of scales. An `end` is the code of the largest magnitude of a block: beyond the largest code it
 * is clipped, which pays for types with few codes. The counts are the smallest that come within 0.2 % (q*)
 * and 1 % (k*) of the exact optimum on Gaussian, Laplace and Student data. */
typedef struct fit_grid {
    float first_end, last_end;
    size_t ends;
    int half_steps; /* f16 numbers on either side of the best scale */
    float first_super_end,
        last_super_end; /* what the largest scale of a super becomes, in 32nds of the super-scale */
    size_t super_ends;
    int subs_below, subs_above; /* sub-scales around the nearest */
} fit_grid;

static const fit_grid grids[] = {
    [COFFER__QUANT_Q8] = { 127.49f, 102.0f, 60, 1, 0, 0, 0, 0, 0 },
    [COFFER__QUANT_Q4] = { 6.0f, 9.0f, 16, 1, 0, 0, 0, 0, 0 },
    [COFFER__QUANT_K6] = { 31.49f, 31.49f, 1, 0, 63.0f, 53.0f, 14, 0, 8 },
    [COFFER__QUANT_K4] = { 6.0f, 9.0f, 16, 0, 63.0f, 56.0f, 4, 1, 1 },
    [COFFER__QUANT_K3] = { 2.5f, 5.0f, 16, 0, 63.0f, 56.0f, 4, 1, 1 },
    [COFFER__QUANT_K2] = { 0.9f, 3.2f, 16, 0, 63.0f, 56.0f, 4, 1, 1 },
};

HERE float spread(float first, float last, size_t index, size_t count)
{
    return count > 1 ? first + (last - first) * (float)index / (float)(count - 1) : first;
}

HERE floats codes_for(floats value, floats inverse_scale, float largest)
{
    return smaller(larger(nearest(value * inverse_scale), all(-largest)), all(largest));
}

/* The squared error that the best codes for a scale leave. clamp : the scale may be too small for the largest
 * code. */
HERE floats error_of(const coffer__quant_lanes *lanes, floats scale, float largest, bool weighted)
{
    floats inverse_scale = inverse(scale), error[2] = { all(0.0f), all(0.0f) };
    COFFER__UNROLL(4)
    for (size_t i = 0; i < BLOCK; i++) {
        floats value = load(lanes->values[i]);
        floats miss = value - scale * codes_for(value, inverse_scale, largest);
        error[i % 2] += weighted ? miss * miss * load(lanes->weights[i]) : miss * miss;
    }
    return error[0] + error[1];
}

/* Of codes that are held fixed the best scale is Σwxq / Σwq², and the larger (Σwxq)² / Σwq², their gain, the
 * smaller the error that is left. */
HERE floats scales_by_gain(const coffer__quant_lanes *lanes, const fit_grid *grid, float largest,
                           bool weighted)
{
    floats most = largest_magnitudes(lanes), unit = inverse(most);
    floats best_gain = all(0.0f), best = all(0.0f);
    for (size_t e = 0; e < grid->ends; e++) {
        floats products = all(0.0f), squares = all(0.0f);
        floats inverse_scale = unit * spread(grid->first_end, grid->last_end, e, grid->ends);
        for (size_t i = 0; i < BLOCK; i++) {
            floats value = load(lanes->values[i]), code = codes_for(value, inverse_scale, largest);
            floats weighed = weighted ? code * load(lanes->weights[i]) : code;
            products += weighed * value;
            squares += weighed * code;
        }
        floats scale = products * inverse(squares), gain = scale * products;
        ints better = gain > best_gain;
        best_gain = choose(better, gain, best_gain);
        best = choose(better, scale, best);
    }
    return choose(best > all(0.0f), best, most * (1.0f / largest)); /* squares of huge numbers overflow */
}

/* The same choice for eight bits, which leave so little error that gains, sums of large numbers, would not
 * tell the scales apart: from what is left at a scale of the grid, Σw(x−sq)², and the part of it that a
 * better scale for the same codes takes away, (Σw(x−sq)q)² / Σwq². The grid stays below the largest code:
 * nothing is cut off. */
HERE floats scales_by_rest(const coffer__quant_lanes *lanes, const fit_grid *grid, bool weighted)
{
    floats most = largest_magnitudes(lanes), best = all(0.0f), best_rest = all(0.0f);
    for (size_t e = 0; e < grid->ends; e++) {
        floats scale = most * (1.0f / spread(grid->first_end, grid->last_end, e, grid->ends));
        floats inverse_scale = inverse(scale), rest = all(0.0f), slopes = all(0.0f), squares = all(0.0f);
        for (size_t i = 0; i < BLOCK; i++) {
            floats value = load(lanes->values[i]), code = nearest(value * inverse_scale);
            floats miss = value - scale * code;
            floats weighed_code = weighted ? code * load(lanes->weights[i]) : code;
            rest += weighted ? miss * miss * load(lanes->weights[i]) : miss * miss;
            slopes += miss * weighed_code;
            squares += code * weighed_code;
        }
        floats change = slopes * inverse(squares);
        rest -= slopes * change;
        ints better = e == 0 ? rest == rest : rest < best_rest;
        best = choose(better, scale + change, best);
        best_rest = choose(better, rest, best_rest);
    }
    return best;
}

HERE void put_codes(coffer__quant_fitted *out, const coffer__quant_lanes *lanes, floats scale, float largest)
{
    floats inverse_scale = inverse(scale);
    for (size_t i = 0; i < BLOCK; i++) {
        floats codes = codes_for(load(lanes->values[i]), inverse_scale, largest);
        for (size_t lane = 0; lane < LANES; lane++)
            out->codes[i][lane] = (int8_t)codes[lane];
    }
}

/* The f16 number that many steps away, of those that are finite and not negative. */
HERE uint16_t step_half(float scale, int step)
{
    int half = (scale < 65504.0f ? coffer__f16_from_f32(scale) : 0x7BFF) + step;
    return (uint16_t)(half < 0 ? 0 : half > 0x7BFF ? 0x7BFF : half);
}

/* The scale of `absmax`: f16 with a truncated mantissa. Since it is one of the candidates, fit is never
 * worse. */
HERE floats cut_to_halves(floats scale)
{
    floats cut = (floats)((ints)scale & ~0x1FFF);
    return smaller(choose(scale < all(0x1p-14f), all(0.0f), cut), all(65504.0f));
}

/* ---- q*: a scale for each block ---- */

HERE void fit_blocks(coffer__quant_fitted *out, const coffer__quant_lanes *lanes, const fit_grid *grid,
                     float largest, bool weighted)
{
    floats scale = largest > 100.0f ? scales_by_rest(lanes, grid, weighted)
                                    : scales_by_gain(lanes, grid, largest, weighted);
    floats best = cut_to_halves(largest_magnitudes(lanes) / largest);
    floats best_error = error_of(lanes, best, largest, weighted);
    for (int step = -grid->half_steps; step <= grid->half_steps; step++) {
        floats held = all(0.0f);
        for (size_t lane = 0; lane < LANES; lane++)
            held[lane] = coffer__f16_to_f32(step_half(scale[lane], step));
        floats error = error_of(lanes, held, largest, weighted);
        ints better = error < best_error;
        best = choose(better, held, best);
        best_error = choose(better, error, best_error);
    }
    for (size_t lane = 0; lane < LANES; lane++)
        out->scales[lane] = coffer__f16_from_f32(best[lane]);
    put_codes(out, lanes, best, largest);
}

/* ---- k*: a scale for each super, and for each of its blocks how many 32nds of it ---- */

#define SUPER_LANES COFFER__QUANT_SUPER_BLOCKS

/* State of each super, repeated in each of its lanes. */
typedef struct super_choice {
    floats super, sub; /* as numbers */
    floats error;      /* of the block */
} super_choice;

HERE floats sum_of_supers(floats value)
{
    floats sums = all(0.0f);
    for (size_t first = 0; first < LANES; first += SUPER_LANES) {
        float sum = 0.0f;
        for (size_t lane = first; lane < first + SUPER_LANES; lane++)
            sum += value[lane];
        for (size_t lane = first; lane < first + SUPER_LANES; lane++)
            sums[lane] = sum;
    }
    return sums;
}

HERE floats most_of_supers(floats value)
{
    floats most = all(0.0f);
    for (size_t first = 0; first < LANES; first += SUPER_LANES) {
        float here = 0.0f;
        for (size_t lane = first; lane < first + SUPER_LANES; lane++)
            here = value[lane] > here ? value[lane] : here;
        for (size_t lane = first; lane < first + SUPER_LANES; lane++)
            most[lane] = here;
    }
    return most;
}

/* To f16 and back, as the file holds it. */
HERE floats rounded_supers(floats super, int step)
{
    floats rounded = all(0.0f);
    for (size_t first = 0; first < LANES; first += SUPER_LANES) {
        float held = coffer__f16_to_f32(step_half(super[first], step));
        for (size_t lane = first; lane < first + SUPER_LANES; lane++)
            rounded[lane] = held;
    }
    return rounded;
}

HERE floats scale_of(floats super, floats sub)
{
    return super * (sub * 0.03125f);
}

HERE void keep_better(super_choice *best, const super_choice *other)
{
    ints better = sum_of_supers(other->error) < sum_of_supers(best->error);
    best->super = choose(better, other->super, best->super);
    best->sub = choose(better, other->sub, best->sub);
    best->error = choose(better, other->error, best->error);
}

/* The best sub-scales beside those that come nearest to the wanted scales. */
HERE super_choice choose_subs(const coffer__quant_lanes *lanes, const fit_grid *grid, floats super,
                              floats wanted, float largest, bool weighted)
{
    floats nearest_sub = nearest(smaller(wanted * inverse(super) * 32.0f, all(63.0f)));
    super_choice best = { .super = super };
    for (int step = -grid->subs_below; step <= grid->subs_above; step++) {
        floats sub = smaller(larger(nearest_sub + (float)step, all(0.0f)), all(63.0f));
        floats error = error_of(lanes, scale_of(super, sub), largest, weighted);
        ints better = step == -grid->subs_below ? error == error : error < best.error;
        best.sub = choose(better, sub, best.sub);
        best.error = choose(better, error, best.error);
    }
    return best;
}

/* The best super-scale for the given codes and sub-scales. */
HERE floats refit_super(const coffer__quant_lanes *lanes, const super_choice *choice, float largest,
                        bool weighted)
{
    floats inverse_scale = inverse(scale_of(choice->super, choice->sub)), products = all(0.0f),
           squares = all(0.0f);
    for (size_t i = 0; i < BLOCK; i++) {
        floats value = load(lanes->values[i]);
        floats step = codes_for(value, inverse_scale, largest) * (choice->sub * 0.03125f);
        floats weighed = weighted ? step * load(lanes->weights[i]) : step;
        products += weighed * value;
        squares += weighed * step;
    }
    return sum_of_supers(products) * inverse(sum_of_supers(squares));
}

/* The choice of `absmax`. */
HERE super_choice plain_choice(const coffer__quant_lanes *lanes, float largest, bool weighted)
{
    floats scale = largest_magnitudes(lanes) / largest, super = most_of_supers(scale);
    floats ratio = scale / choose(super > all(0.0f), super, all(1.0f)), half_up = ratio * 32.0f + 0.5f;
    floats sub = __builtin_convertvector(__builtin_convertvector(half_up, ints), floats);
    sub = choose(scale > all(0.0f), larger(sub, all(1.0f)), all(0.0f));
    super_choice choice = { .super = cut_to_halves(super), .sub = sub };
    choice.error = error_of(lanes, scale_of(choice.super, sub), largest, weighted);
    return choice;
}

HERE void fit_supers(coffer__quant_fitted *out, const coffer__quant_lanes *lanes, const fit_grid *grid,
                     float largest, bool weighted)
{
    floats wanted = scales_by_gain(lanes, grid, largest, weighted), most = most_of_supers(wanted);
    super_choice best = plain_choice(lanes, largest, weighted);
    for (size_t e = 0; e < grid->super_ends; e++) {
        float end = spread(grid->first_super_end, grid->last_super_end, e, grid->super_ends);
        floats super = rounded_supers(most * (32.0f / end), 0);
        super_choice here = choose_subs(lanes, grid, super, wanted, largest, weighted);
        keep_better(&best, &here);
    }
    floats refitted = refit_super(lanes, &best, largest, weighted);
    for (int step = -1; step <= 1; step++) {
        super_choice here = { .super = rounded_supers(refitted, step), .sub = best.sub };
        here.error = error_of(lanes, scale_of(here.super, here.sub), largest, weighted);
        keep_better(&best, &here);
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        out->scales[lane] = coffer__f16_from_f32(best.super[lane]);
        out->subs[lane] = (uint8_t)best.sub[lane];
    }
    put_codes(out, lanes, scale_of(best.super, best.sub), largest);
}

HERE void fit_kind(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                   const coffer__quant_type *type, bool weighted)
{
    float largest = (float)coffer__quant_largest_code(type);
    if (type->family == COFFER__QUANT_BLOCKS)
        fit_blocks(out, lanes, &grids[type->index], largest, weighted);
    else
        fit_supers(out, lanes, &grids[type->index], largest, weighted);
}

HERE void fit(coffer__quant_fitted *out, const coffer__quant_lanes *lanes, const coffer__quant_type *type)
{
    if (lanes->weighted)
        fit_kind(out, lanes, type, true);
    else
        fit_kind(out, lanes, type, false);
}
