/* Statistics of the tensors of a set: one pass for the moments, a second for the histogram, whose bins need
 * the range, and the outliers, which need mean and deviation. */
#include "base/elements.h"
#include "base/options.h"
#include "convert/tensor_pass.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define BINS 64
#define OUTLIER_DEVIATIONS 6.0
/* Elements that are turned into doubles at a time; a constant for the compiler to make vectors of. */
#define BLOCK 512

/* ---- First pass ---- */

static void init_summary(void *result)
{
    coffer__summary_init(result);
}

static void add_summary(void *result, const void *context, uint64_t first, const coffer__tensor_run *runs,
                        size_t count)
{
    (void)context;
    (void)first;
    coffer__summary_add(result, runs[0].elements, runs[0].dtype, count);
}

static void merge_summary(void *into, const void *from)
{
    coffer__summary_merge(into, from);
}

static const coffer__tensor_pass summary_pass = { sizeof(coffer__summary), init_summary, add_summary,
                                                  merge_summary };

/* ---- Second pass ---- */

typedef struct stats_ruler {
    double half_min, bins_per_half; /* halves: a range of doubles may be larger than a double */
    double mean, reach;
} stats_ruler;

typedef struct stats_histogram {
    uint64_t bins[BINS];
    uint64_t outliers;
} stats_histogram;

static void init_histogram(void *result)
{
    memset(result, 0, sizeof(stats_histogram));
}

/* Counts in several tables, so that equal neighbours do not wait for each other. */
#define TABLES 4

static void count_block(uint32_t tables[TABLES][BINS + 1], uint64_t *outliers, const double values[BLOCK],
                        const stats_ruler *ruler)
{
    int32_t bins[BLOCK];
    int32_t outside[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        double at = (values[i] * 0.5 - ruler->half_min) * ruler->bins_per_half;
        at = at < (double)(BINS - 1) ? at : (double)(BINS - 1);
        bool finite = fabs(values[i]) <= DBL_MAX;
        bins[i] = finite ? (int32_t)at : BINS;
        outside[i] = finite & (fabs(values[i] - ruler->mean) > ruler->reach);
    }
    int32_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += outside[i];
    *outliers += (uint64_t)sum;
    for (size_t i = 0; i < BLOCK; i += TABLES) {
        for (size_t k = 0; k < TABLES; k++)
            tables[k][bins[i + k]]++;
    }
}

static void to_doubles(double *out, const void *elements, coffer_dtype dtype, size_t count)
{
    double pairs[2 * BLOCK];
    if (!coffer_dtype_is_complex(dtype)) {
        coffer__elements_convert(out, COFFER_DTYPE_F64, elements, dtype, count);
        return;
    }
    coffer__elements_convert(pairs, COFFER_DTYPE_C128, elements, dtype, count);
    for (size_t i = 0; i < count; i++)
        out[i] = hypot(pairs[2 * i], pairs[2 * i + 1]);
}

static void add_histogram(void *result, const void *context, uint64_t first, const coffer__tensor_run *runs,
                          size_t count)
{
    stats_histogram *histogram = result;
    uint32_t tables[TABLES][BINS + 1] = { { 0 } };
    const uint8_t *elements = runs[0].elements;
    size_t size = coffer_dtype_size(runs[0].dtype);
    double values[BLOCK];
    (void)first;
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t now = count - done < BLOCK ? count - done : BLOCK;
        to_doubles(values, elements + done * size, runs[0].dtype, now);
        for (size_t i = now; i < BLOCK; i++)
            values[i] = (double)NAN;
        count_block(tables, &histogram->outliers, values, context);
    }
    for (size_t k = 0; k < TABLES; k++) {
        for (size_t i = 0; i < BINS; i++)
            histogram->bins[i] += tables[k][i];
    }
}

static void merge_histogram(void *into, const void *from)
{
    stats_histogram *to = into;
    const stats_histogram *other = from;
    for (size_t i = 0; i < BINS; i++)
        to->bins[i] += other->bins[i];
    to->outliers += other->outliers;
}

static const coffer__tensor_pass histogram_pass = { sizeof(stats_histogram), init_histogram, add_histogram,
                                                    merge_histogram };

/* ---- Both ---- */

static stats_ruler ruler_of(const coffer_tensor_stats *stats)
{
    double half_range = stats->max * 0.5 - stats->min * 0.5;
    double bins_per_half = half_range > 0 ? BINS / half_range : 0.0;
    return (stats_ruler){
        .half_min = stats->min * 0.5,
        .bins_per_half = bins_per_half < DBL_MAX ? bins_per_half : DBL_MAX,
        .mean = stats->mean,
        .reach = OUTLIER_DEVIATIONS * stats->std,
    };
}

static coffer_status measure(coffer_tensor_stats *out, coffer__tensor_workers *workers,
                             const coffer__tensor_place *place, coffer_error *err)
{
    coffer__summary summary;
    stats_histogram histogram;
    coffer_status status = coffer__tensor_pass_run(&summary, workers, &summary_pass, NULL, place, 1, err);
    if (status)
        return status;
    *out = (coffer_tensor_stats){
        .elements = summary.count,
        .nans = summary.nans,
        .infinities = summary.infinities,
        .zeros = summary.zeros,
        .min = summary.min,
        .max = summary.max,
        .mean = coffer__summary_mean(&summary),
        .std = coffer__summary_deviation(&summary),
    };
    stats_ruler ruler = ruler_of(out);
    status = coffer__tensor_pass_run(&histogram, workers, &histogram_pass, &ruler, place, 1, err);
    if (status)
        return status;
    out->outliers = histogram.outliers;
    memcpy(out->histogram, histogram.bins, sizeof out->histogram);
    return COFFER_OK;
}

coffer_status coffer_tensors_stats(const coffer_tensors *set, const coffer_tensors_work *work,
                                   coffer_status (*each)(void *context, size_t tensor,
                                                         const coffer_tensor_stats *stats),
                                   void *context, coffer_error *err)
{
    coffer_tensors_work options = COFFER_TENSORS_WORK_INIT;
    coffer__tensor_workers *workers = NULL;
    uint64_t bytes = 0;
    coffer_status status = coffer__take_options(&options, sizeof options, work, err);
    if (status)
        return status;
    for (size_t i = 0; i < set->count; i++)
        bytes += coffer__tensor_is_wanted(coffer_tensors_at(set, i), &options)
                     ? coffer_tensors_at(set, i)->size
                     : 0;
    status = coffer__tensor_workers_new(&workers, options.threads, options.progress, 2 * bytes, err);
    for (size_t i = 0; !status && i < set->count; i++) {
        coffer__tensor_place place = { set, i };
        coffer_tensor_stats stats;
        if (!coffer__tensor_is_wanted(coffer_tensors_at(set, i), &options))
            continue;
        status = measure(&stats, workers, &place, err);
        if (!status)
            status = each(context, i, &stats);
    }
    coffer__tensor_workers_free(workers);
    return status;
}
