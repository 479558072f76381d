/* Summary statistics. Each block is summed about its own mean, and the sums of blocks are added in twice the
 * precision of a double: the deviation of numbers far from zero keeps its digits. */
#include "base/elements_blocks.h"

#include <string.h>

/* Adds to a number of two parts, the second of which is what did not fit into the first. */
static void add_to(double *high, double *low, double value)
{
    double sum = *high + value;
    if (!isfinite(sum)) { /* an overflow stays one */
        *high = isinf(*high) ? *high : sum;
        *low = 0.0;
        return;
    }
    double part = sum - *high;
    double rest = (*high - (sum - part)) + (value - part) + *low;
    *high = sum + rest;
    *low = rest - (*high - sum);
}

static void add_product(double *high, double *low, double a, double b)
{
    double product = a * b;
    add_to(high, low, product);
    if (isfinite(product))
        add_to(high, low, fma(a, b, -product));
}

void coffer__summary_init(coffer__summary *summary)
{
    memset(summary, 0, sizeof *summary);
    summary->min = summary->max = NAN;
}

static void take_extremes(coffer__summary *summary, double min, double max)
{
    if (!(summary->min <= min))
        summary->min = min;
    if (!(summary->max >= max))
        summary->max = max;
}

static void take_block(coffer__summary *summary, const coffer__moments *block, size_t count, size_t padding)
{
    double finite = (double)block->finite;
    summary->count += count;
    summary->nans += block->nans - padding;
    summary->zeros += block->zeros;
    summary->infinities += count + padding - block->finite - block->nans;
    if (block->finite == 0)
        return;
    take_extremes(summary, block->min, block->max);
    add_product(&summary->sum, &summary->sum_low, finite, block->mean);
    add_to(&summary->sum, &summary->sum_low, block->deviations);
    /* sum of x^2 = sum of (x - m)^2 + 2 m sum of (x - m) + n m^2 */
    double high = 0, low = 0;
    add_product(&high, &low, block->mean, block->mean);
    add_to(&summary->squares, &summary->squares_low, block->squares);
    add_product(&summary->squares, &summary->squares_low, 2 * block->mean, block->deviations);
    add_product(&summary->squares, &summary->squares_low, finite, high);
    add_product(&summary->squares, &summary->squares_low, finite, low);
}

/* The numbers themselves, or the magnitudes of complex ones. */
static void load_block(double *block, const uint8_t *from, coffer_dtype dtype, size_t count,
                       const coffer__elements_kernels *kernels)
{
    double pairs[2 * COFFER__ELEMENTS_BLOCK];
    if (coffer_dtype_is_complex(dtype)) {
        coffer__elements_convert_by(kernels, pairs, COFFER_DTYPE_C128, from, dtype, count);
        for (size_t i = 0; i < count; i++)
            block[i] = coffer__magnitude(pairs[2 * i], pairs[2 * i + 1]);
    } else {
        coffer__elements_convert_by(kernels, block, COFFER_DTYPE_F64, from, dtype, count);
    }
    coffer__block_pad(block, count);
}

void coffer__summary_add(coffer__summary *summary, const void *elements, coffer_dtype dtype, size_t count)
{
    const coffer__elements_kernels *kernels = coffer__elements_kernels_for(coffer__cpu());
    const uint8_t *from = elements;
    size_t size = coffer_dtype_size(dtype);
    double block[COFFER__ELEMENTS_BLOCK];
    for (size_t done = 0; done < count; done += COFFER__ELEMENTS_BLOCK) {
        size_t n = count - done < COFFER__ELEMENTS_BLOCK ? count - done : COFFER__ELEMENTS_BLOCK;
        size_t padded = coffer__block_padded(n);
        coffer__moments found;
        load_block(block, from + done * size, dtype, n, kernels);
        kernels->moments(&found, block, padded);
        take_block(summary, &found, n, padded - n);
    }
}

void coffer__summary_add_repeated(coffer__summary *summary, double value, uint64_t count)
{
    double times = (double)count; /* exact up to 2^53 */
    summary->count += count;
    if (isnan(value)) {
        summary->nans += count;
    } else if (isinf(value)) {
        summary->infinities += count;
    } else if (count > 0) {
        double high = 0, low = 0;
        summary->zeros += value == 0 ? count : 0;
        take_extremes(summary, value, value);
        add_product(&summary->sum, &summary->sum_low, value, times);
        add_product(&high, &low, value, value);
        add_product(&summary->squares, &summary->squares_low, high, times);
        add_product(&summary->squares, &summary->squares_low, low, times);
    }
}

void coffer__summary_merge(coffer__summary *into, const coffer__summary *from)
{
    into->count += from->count;
    into->nans += from->nans;
    into->infinities += from->infinities;
    into->zeros += from->zeros;
    if (from->min <= from->max)
        take_extremes(into, from->min, from->max);
    add_to(&into->sum, &into->sum_low, from->sum);
    add_to(&into->sum, &into->sum_low, from->sum_low);
    add_to(&into->squares, &into->squares_low, from->squares);
    add_to(&into->squares, &into->squares_low, from->squares_low);
}

static double finite_count(const coffer__summary *summary)
{
    return (double)(summary->count - summary->nans - summary->infinities);
}

double coffer__summary_mean(const coffer__summary *summary)
{
    double count = finite_count(summary);
    return count > 0 ? summary->sum / count : NAN;
}

double coffer__summary_deviation(const coffer__summary *summary)
{
    double count = finite_count(summary);
    if (!(count > 0))
        return NAN;
    if (!isfinite(summary->squares) || !isfinite(summary->sum))
        return INFINITY;
    /* sum of x^2 - (sum of x)^2 / n */
    double mean = summary->sum / count, high = summary->squares, low = summary->squares_low;
    double rest = fma(-mean, count, summary->sum) + summary->sum_low; /* sum = mean n + rest */
    double product = mean * count;
    add_product(&high, &low, -mean, product);
    add_to(&high, &low, -mean * fma(mean, count, -product));
    add_product(&high, &low, -2 * mean, rest);
    double variance = (high - rest * rest / count) / count;
    return variance > 0 ? sqrt(variance) : 0.0;
}

double coffer__summary_norm(const coffer__summary *summary)
{
    return sqrt(summary->squares);
}
