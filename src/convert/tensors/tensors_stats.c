/* Statistics of the tensors of a set: one pass for the moments, a second for the histogram, whose bins need
 * the range, and the outliers, which need mean and deviation. */
#include "base/elements.h"
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

static void init_histogram(void *result)
{
    memset(result, 0, sizeof(coffer__histogram));
}

static void add_histogram(void *result, const void *context, uint64_t first, const coffer__tensor_run *runs,
                          size_t count)
{
    (void)first;
    coffer__histogram_add(result, context, runs[0].elements, runs[0].dtype, count);
}

static void merge_histogram(void *into, const void *from)
{
    coffer__histogram_merge(into, from);
}

static const coffer__tensor_pass histogram_pass = { sizeof(coffer__histogram), init_histogram, add_histogram,
                                                    merge_histogram };

/* ---- Both ---- */

static coffer__histogram_ruler ruler_of(const coffer_tensor_stats *stats)
{
    double reach = OUTLIER_DEVIATIONS * stats->std;
    return coffer__histogram_rule(stats->min, stats->max, stats->mean - reach, stats->mean + reach);
}

static coffer_status measure(coffer_tensor_stats *out, coffer__tensor_workers *workers,
                             const coffer__tensor_place *place, coffer_error *err)
{
    coffer__summary summary;
    coffer__histogram histogram;
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
    coffer__histogram_ruler ruler = ruler_of(out);
    status = coffer__tensor_pass_run(&histogram, workers, &histogram_pass, &ruler, place, 1, err);
    if (status)
        return status;
    out->outliers = histogram.outside;
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
