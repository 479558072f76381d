/* Summary statistics. Each block is summed about its own mean, and the sums of blocks are added in twice the
 * precision of a double: the deviation of numbers far from zero keeps its digits. */
#include "base/elements_kernels.h"

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

/* How two rows of numbers differ. */

void coffer__comparison_init(coffer__comparison *comparison)
{
    memset(comparison, 0, sizeof *comparison);
    comparison->first = UINT64_MAX;
}

/* ---- One pair ---- */

static double real_distance(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0.0;
    double distance = fabs(a - b);
    return isnan(distance) ? INFINITY : distance;
}

static double complex_distance(const double *a, const double *b)
{
    double distance = coffer__magnitude(real_distance(a[0], b[0]), real_distance(a[1], b[1]));
    return isnan(distance) ? INFINITY : distance;
}

static bool is_wide_integer(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_I64 || dtype == COFFER_DTYPE_U64;
}

/* Distances of 64-bit integers, which a double cannot represent exactly. */
static double integer_distance(const uint8_t *a, coffer_dtype a_type, const uint8_t *b, coffer_dtype b_type)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    bool x_negative = a_type == COFFER_DTYPE_I64 && x >> 63,
         y_negative = b_type == COFFER_DTYPE_I64 && y >> 63;
    if (x_negative == y_negative) {
        uint64_t distance = x > y ? x - y : y - x;
        return (double)distance;
    }
    return x_negative ? (double)(0 - x) + (double)y : (double)x + (double)(0 - y);
}

/* ---- Blocks ---- */

/* Notes where in a block the first difference and the largest one are. distances : filled in when there are
 * any. */
static void take_pair_block(coffer__comparison *comparison, const coffer__differences *block, uint64_t index,
                            const double *distances, size_t count, double tolerance)
{
    comparison->count += count;
    if (block->differing > 0 && comparison->first == UINT64_MAX) {
        size_t i = 0;
        while (!(distances[i] > tolerance))
            i++;
        comparison->first = index + i;
    }
    comparison->differing += block->differing;
    if (block->max_abs > comparison->max_abs) {
        size_t i = 0;
        while (distances[i] != block->max_abs)
            i++;
        comparison->max_abs = block->max_abs;
        comparison->max_at = index + i;
    }
    comparison->squares += block->squares;
    comparison->a_squares += block->a_squares;
    comparison->b_squares += block->b_squares;
    comparison->products += block->products;
}

static void gather(coffer__differences *block, double *distances, const double *a, const double *b,
                   size_t count, double tolerance, const coffer__elements_kernels *kernels)
{
    kernels->differences(block, a, b, coffer__block_padded(count), tolerance);
    if (block->max_abs > 0) {
        for (size_t i = 0; i < count; i++)
            distances[i] = real_distance(a[i], b[i]);
    }
}

/* Counts distances that were computed one by one, as the kernel does. */
static void count_distances(coffer__differences *block, const double *distances, size_t count,
                            double tolerance)
{
    block->differing = 0;
    block->max_abs = block->squares = 0;
    for (size_t i = 0; i < count; i++) {
        block->differing += distances[i] > tolerance;
        block->max_abs = distances[i] > block->max_abs ? distances[i] : block->max_abs;
        block->squares += distances[i] * distances[i];
    }
}

static void compare_reals(coffer__differences *block, double *distances, const uint8_t *a,
                          coffer_dtype a_type, const uint8_t *b, coffer_dtype b_type, size_t count,
                          double tolerance, const coffer__elements_kernels *kernels)
{
    double x[COFFER__ELEMENTS_BLOCK], y[COFFER__ELEMENTS_BLOCK];
    coffer__elements_convert_by(kernels, x, COFFER_DTYPE_F64, a, a_type, count);
    coffer__elements_convert_by(kernels, y, COFFER_DTYPE_F64, b, b_type, count);
    coffer__block_pad(x, count);
    coffer__block_pad(y, count);
    gather(block, distances, x, y, count, tolerance, kernels);
    if (is_wide_integer(a_type) && is_wide_integer(b_type)) {
        for (size_t i = 0; i < count; i++)
            distances[i] = integer_distance(a + 8 * i, a_type, b + 8 * i, b_type);
        count_distances(block, distances, count, tolerance);
    }
}

static void compare_complexes(coffer__differences *block, double *distances, const uint8_t *a,
                              coffer_dtype a_type, const uint8_t *b, coffer_dtype b_type, size_t count,
                              double tolerance, const coffer__elements_kernels *kernels)
{
    double x[2 * COFFER__ELEMENTS_BLOCK], y[2 * COFFER__ELEMENTS_BLOCK];
    coffer__elements_convert_by(kernels, x, COFFER_DTYPE_C128, a, a_type, count);
    coffer__elements_convert_by(kernels, y, COFFER_DTYPE_C128, b, b_type, count);
    coffer__block_pad(x, 2 * count);
    coffer__block_pad(y, 2 * count);
    /* Sums of squares and products over the parts are those over the numbers. */
    kernels->differences(block, x, y, coffer__block_padded(2 * count), tolerance);
    for (size_t i = 0; i < count; i++)
        distances[i] = complex_distance(x + 2 * i, y + 2 * i);
    count_distances(block, distances, count, tolerance);
}

void coffer__comparison_add(coffer__comparison *comparison, uint64_t index, const void *a,
                            coffer_dtype a_type, const void *b, coffer_dtype b_type, size_t count,
                            double tolerance)
{
    const coffer__elements_kernels *kernels = coffer__elements_kernels_for(coffer__cpu());
    bool complex_pair = coffer_dtype_is_complex(a_type) || coffer_dtype_is_complex(b_type);
    size_t a_size = coffer_dtype_size(a_type), b_size = coffer_dtype_size(b_type);
    const uint8_t *a_at = a, *b_at = b;
    double distances[COFFER__ELEMENTS_BLOCK] = { 0 };
    if (!(tolerance >= 0))
        tolerance = 0;
    for (size_t done = 0; done < count; done += COFFER__ELEMENTS_BLOCK) {
        size_t n = count - done < COFFER__ELEMENTS_BLOCK ? count - done : COFFER__ELEMENTS_BLOCK;
        coffer__differences block;
        (complex_pair ? compare_complexes : compare_reals)(&block, distances, a_at + done * a_size, a_type,
                                                           b_at + done * b_size, b_type, n, tolerance,
                                                           kernels);
        take_pair_block(comparison, &block, index + done, distances, n, tolerance);
    }
}

void coffer__comparison_merge(coffer__comparison *into, const coffer__comparison *from)
{
    into->count += from->count;
    into->differing += from->differing;
    into->first = from->first < into->first ? from->first : into->first;
    if (from->max_abs > into->max_abs || (from->max_abs == into->max_abs && from->max_at < into->max_at)) {
        into->max_abs = from->max_abs;
        into->max_at = from->max_at;
    }
    into->squares += from->squares;
    into->a_squares += from->a_squares;
    into->b_squares += from->b_squares;
    into->products += from->products;
}

double coffer__comparison_rmse(const coffer__comparison *comparison)
{
    return comparison->count ? sqrt(comparison->squares / (double)comparison->count) : 0.0;
}

double coffer__comparison_snr(const coffer__comparison *comparison)
{
    return comparison->squares > 0 ? 10 * log10(comparison->a_squares / comparison->squares) : INFINITY;
}

double coffer__comparison_cosine(const coffer__comparison *comparison)
{
    double lengths = sqrt(comparison->a_squares) * sqrt(comparison->b_squares);
    if (lengths > 0)
        return comparison->products / lengths;
    return comparison->a_squares == comparison->b_squares ? 1.0 : 0.0;
}
