/* Statistics of the tensors of a set: one pass for the moments, a second for the histogram, whose bins need
 * the range, and the outliers, which need mean and deviation. */
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "convert/tensors/histogram.h"
#include "convert/tensors/tensor_pass.h"

#include <string.h>

#define OUTLIER_DEVIATIONS 6.0

/* ---- First pass ---- */

static void init_summary(void *result)
{
    coffer__summary_init(result);
}

static void add_summary(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
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

static const coffer__tensors_pass summary_pass = { sizeof(coffer__summary), init_summary, add_summary,
                                                   merge_summary };

/* ---- Second pass ---- */

static void init_histogram(void *result)
{
    memset(result, 0, sizeof(coffer__histogram));
}

static void add_histogram(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                          size_t count)
{
    (void)first;
    coffer__histogram_add(result, context, runs[0].elements, runs[0].dtype, count);
}

static void merge_histogram(void *into, const void *from)
{
    coffer__histogram_merge(into, from);
}

static const coffer__tensors_pass histogram_pass = { sizeof(coffer__histogram), init_histogram, add_histogram,
                                                     merge_histogram };

/* ---- One tensor ---- */

static coffer__histogram_ruler ruler_of(const coffer_tensor_stats *stats)
{
    double reach = OUTLIER_DEVIATIONS * stats->std;
    return coffer__histogram_rule(stats->min, stats->max, stats->mean - reach, stats->mean + reach);
}

static coffer_status measure(coffer_tensor_stats *out, coffer__tensors_workers *workers,
                             const coffer__tensors_place *place, coffer_error *err)
{
    coffer__summary summary;
    coffer__histogram histogram;
    coffer_status status = coffer__tensors_pass_run(&summary, workers, &summary_pass, NULL, place, 1, err);
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
    coffer__histogram_ruler ruler = ruler_of(out);
    status = coffer__tensors_pass_run(&histogram, workers, &histogram_pass, &ruler, place, 1, err);
    if (status)
        return status;
    out->outliers = histogram.outside;
    memcpy(out->histogram, histogram.bins, sizeof out->histogram);
    return COFFER_OK;
}

/* ---- The statistics of a set ---- */

struct coffer_tensors_stats {
    size_t count;
    coffer_tensor_stats rows[];
};

COFFER__INIT_FUNCTION(coffer_tensors_stats_opts, COFFER_TENSORS_STATS_OPTS_INIT)

static bool is_wanted(const coffer_tensors *set, size_t tensor, const coffer_tensors_stats_opts *opts)
{
    return coffer__tensors_is_wanted(coffer_tensors_at(set, tensor), opts->include, opts->exclude);
}

coffer_status coffer_tensors_stats_new(coffer_tensors_stats **out, const coffer_tensors *set,
                                       const coffer_tensors_stats_opts *opts, coffer_error *err)
{
    coffer_tensors_stats_opts options = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer__tensors_workers *workers = NULL;
    uint64_t bytes = 0;
    size_t wanted = 0, size;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    for (size_t i = 0; i < set->count; i++) {
        bool counts = is_wanted(set, i, &options);
        wanted += counts;
        bytes += counts ? coffer_tensors_at(set, i)->size : 0;
    }
    coffer_tensors_stats *stats = NULL;
    if (coffer__mul_size(&size, wanted, sizeof stats->rows[0]) &&
        coffer__add_size(&size, size, sizeof *stats))
        stats = coffer__calloc(1, size);
    if (!stats)
        return coffer__fail_no_memory(err, wanted * sizeof(coffer_tensor_stats));
    status = coffer__tensors_workers_new(&workers, options.threads, options.progress, 2 * bytes, err);
    for (size_t i = 0; !status && i < set->count; i++) {
        coffer__tensors_place place = { set, i };
        if (!is_wanted(set, i, &options))
            continue;
        status = measure(&stats->rows[stats->count], workers, &place, err);
        stats->rows[stats->count++].tensor = i;
    }
    coffer__tensors_workers_free(workers);
    if (status) {
        coffer_tensors_stats_free(stats);
        return status;
    }
    *out = stats;
    return COFFER_OK;
}

void coffer_tensors_stats_free(coffer_tensors_stats *stats)
{
    coffer__free(stats);
}

size_t coffer_tensors_stats_count(const coffer_tensors_stats *stats)
{
    return stats->count;
}

const coffer_tensor_stats *coffer_tensors_stats_at(const coffer_tensors_stats *stats, size_t index)
{
    return index < stats->count ? &stats->rows[index] : NULL;
}
