#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdlib.h>
#include <string.h>

struct coffer_mlyze_stats {
    coffer_mlyze_totals totals;
    coffer_mlyze_histogram sizes, lifetimes;
    coffer_mlyze_stack_row *stacks;
    size_t stack_count;
    coffer_mlyze_thread_row *threads;
    size_t thread_count;
    coffer_mlyze_mark *marks;
    size_t mark_count;
    coffer_mlyze_phase *phases;
    size_t phase_count;
};

void coffer_mlyze_stats_free(coffer_mlyze_stats *stats)
{
    if (!stats)
        return;
    coffer__free(stats->stacks);
    coffer__free(stats->threads);
    coffer__free(stats->marks);
    coffer__free(stats->phases);
    coffer__free(stats);
}

/* ---- Totals ---- */

static void fill_totals(coffer_mlyze_stats *out, const coffer__mlyze_pass *pass)
{
    out->totals = pass->results.totals;
    out->sizes = pass->results.sizes;
    out->lifetimes = pass->results.lifetimes;
    for (size_t i = 0; i < COFFER_MLYZE_BUCKETS; i++)
        out->totals.total_allocated_bytes =
            coffer__mlyze_sum(out->totals.total_allocated_bytes, out->sizes.bytes[i]);
    out->totals.live_bytes_at_end = coffer__mlyze_narrow(pass->state.level);
}

/* ---- Rows ---- */

static void fill_stack(coffer_mlyze_stack_row *out, const coffer__mlyze_pass *pass, size_t row,
                       const coffer__mlyze_row *sum)
{
    size_t listed = pass->stacks.listed->count;
    *out = (coffer_mlyze_stack_row){ .stack = row < listed ? row : SIZE_MAX,
                                     .id = coffer__mlyze_numbers_id(&pass->stacks, row),
                                     .allocs = sum->allocs,
                                     .allocated_bytes = sum->allocated_bytes,
                                     .peak_allocs = sum->peak_allocs,
                                     .peak_bytes = sum->peak_bytes,
                                     .temporary_allocs = sum->temporary_allocs,
                                     .temporary_bytes = sum->temporary_bytes,
                                     .freed_allocs = sum->freed_allocs,
                                     .lifetime_us = sum->lifetime };
    if (row < pass->results.leftover_count && pass->results.leftovers[row].allocs > 0) {
        const coffer__mlyze_leftover *leftover = &pass->results.leftovers[row];
        out->live_allocs = leftover->allocs;
        out->live_bytes = leftover->bytes;
        out->oldest_us = coffer__mlyze_since(leftover->oldest, pass->state.last_time);
        out->newest_us = coffer__mlyze_since(leftover->newest, pass->state.last_time);
    }
    if (pass->opts.growth_windows > 0)
        coffer__mlyze_growth_fit(&out->growth_bytes_per_s, &out->growth_fit, &pass->growth, row);
}

static int by_id(const void *a, const void *b)
{
    const coffer_mlyze_stack_row *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static coffer_status fill_stacks(coffer_mlyze_stats *out, const coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t rows = coffer__mlyze_numbers_count(&pass->stacks), used = 0;
    for (size_t row = 0; row < rows; row++) {
        coffer__mlyze_row_touch(&pass->results.rows[row], pass->state.epoch);
        used += !coffer__mlyze_row_is_empty(&pass->results.rows[row]);
    }
    out->stacks = coffer__alloc_array(used, sizeof *out->stacks);
    if (!out->stacks)
        return coffer__fail_no_memory(err, used * sizeof *out->stacks);
    for (size_t row = 0; row < rows; row++) {
        const coffer__mlyze_row *sum = &pass->results.rows[row];
        if (coffer__mlyze_row_is_empty(sum))
            continue;
        fill_stack(&out->stacks[out->stack_count++], pass, row, sum);
        out->totals.peak_allocs += sum->peak_allocs;
        out->totals.live_allocs_at_end += sum->live_allocs;
        out->totals.temporary_allocs += sum->temporary_allocs;
        out->totals.temporary_bytes += sum->temporary_bytes;
    }
    if (out->stack_count > 1)
        qsort(out->stacks, out->stack_count, sizeof *out->stacks, by_id);
    return COFFER_OK;
}

/* The last THREAD event decides, then the table of the metadata. */
static const char *thread_name(const coffer__mlyze_pass *pass, size_t thread)
{
    const uint64_t *names = pass->results.thread_names;
    const char *name =
        names && names[thread] ? coffer_mlyze_function_name(pass->trace, names[thread] - 1) : NULL;
    return name ? name : coffer_mlyze_thread_name(pass->trace, (uint16_t)thread);
}

static coffer_status fill_threads(coffer_mlyze_stats *out, const coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t used = 0;
    for (size_t i = 0; i <= pass->state.threads; i++) {
        coffer__mlyze_row_touch(&pass->results.threads[i], pass->state.epoch);
        used += !coffer__mlyze_row_is_empty(&pass->results.threads[i]);
    }
    out->threads = coffer__alloc_array(used, sizeof *out->threads);
    if (!out->threads)
        return coffer__fail_no_memory(err, used * sizeof *out->threads);
    for (size_t i = 0; i <= pass->state.threads; i++) {
        const coffer__mlyze_row *sum = &pass->results.threads[i];
        if (coffer__mlyze_row_is_empty(sum))
            continue;
        out->threads[out->thread_count++] =
            (coffer_mlyze_thread_row){ .thread = (uint16_t)i,
                                       .allocs = sum->allocs,
                                       .allocated_bytes = sum->allocated_bytes,
                                       .live_allocs = sum->live_allocs,
                                       .live_bytes = sum->live_bytes,
                                       .peak_bytes = sum->peak_bytes,
                                       .name = thread_name(pass, i) };
    }
    return COFFER_OK;
}

static coffer_status make_stats(coffer_mlyze_stats **out, coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer_mlyze_stats *stats = coffer__calloc(1, sizeof *stats);
    if (!stats)
        return coffer__fail_no_memory(err, sizeof *stats);
    fill_totals(stats, pass);
    coffer_status status = fill_stacks(stats, pass, err);
    if (!status)
        status = fill_threads(stats, pass, err);
    if (status) {
        coffer_mlyze_stats_free(stats);
        return status;
    }
    stats->totals.growth_by_events = pass->growth.by_events;
    stats->marks = pass->results.marks;
    stats->mark_count = pass->results.mark_count;
    pass->results.marks = NULL;
    stats->phases = pass->results.phases;
    stats->phase_count = pass->results.phase_count;
    pass->results.phases = NULL;
    *out = stats;
    return COFFER_OK;
}

/* ---- Public function ---- */

static coffer_status analyze(coffer_mlyze_stats **out, bool *again, const coffer_mlyze *trace,
                             const coffer_mlyze_stats_opts *query, coffer_error *err)
{
    coffer__mlyze_pass *pass = coffer__malloc(sizeof *pass);
    coffer_status status =
        pass ? coffer__mlyze_pass_init(pass, trace, query, err) : coffer__fail_no_memory(err, sizeof *pass);
    if (status)
        goto out;
    status = coffer__mlyze_run(pass, err);
    *again = status != COFFER_E_CANCELLED && coffer__mlyze_pass_is_outdated(pass);
    if (!status && !*again)
        status = make_stats(out, pass, err);
    coffer__mlyze_pass_free(pass);
out:
    coffer__free(pass);
    return status;
}

coffer_status coffer_mlyze_stats_new(coffer_mlyze_stats **out, const coffer_mlyze *trace,
                                     const coffer_mlyze_stats_opts *opts, coffer_error *err)
{
    coffer_mlyze_stats_opts options = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    bool again = !status;
    while (again) {
        again = false;
        status = analyze(out, &again, trace, &options, err);
    }
    return status;
}

/* ---- Accessors ---- */

const coffer_mlyze_totals *coffer_mlyze_stats_totals(const coffer_mlyze_stats *stats)
{
    return &stats->totals;
}

size_t coffer_mlyze_stats_stack_count(const coffer_mlyze_stats *stats)
{
    return stats->stack_count;
}

const coffer_mlyze_stack_row *coffer_mlyze_stats_stack_at(const coffer_mlyze_stats *stats, size_t index)
{
    return index < stats->stack_count ? &stats->stacks[index] : NULL;
}

size_t coffer_mlyze_stats_thread_count(const coffer_mlyze_stats *stats)
{
    return stats->thread_count;
}

const coffer_mlyze_thread_row *coffer_mlyze_stats_thread_at(const coffer_mlyze_stats *stats, size_t index)
{
    return index < stats->thread_count ? &stats->threads[index] : NULL;
}

const coffer_mlyze_histogram *coffer_mlyze_stats_sizes(const coffer_mlyze_stats *stats)
{
    return &stats->sizes;
}

const coffer_mlyze_histogram *coffer_mlyze_stats_lifetimes(const coffer_mlyze_stats *stats)
{
    return &stats->lifetimes;
}

size_t coffer_mlyze_stats_mark_count(const coffer_mlyze_stats *stats)
{
    return stats->mark_count;
}

const coffer_mlyze_mark *coffer_mlyze_stats_mark_at(const coffer_mlyze_stats *stats, size_t index)
{
    return index < stats->mark_count ? &stats->marks[index] : NULL;
}

size_t coffer_mlyze_stats_phase_count(const coffer_mlyze_stats *stats)
{
    return stats->phase_count;
}

const coffer_mlyze_phase *coffer_mlyze_stats_phase_at(const coffer_mlyze_stats *stats, size_t index)
{
    return index < stats->phase_count ? &stats->phases[index] : NULL;
}

COFFER__INIT_FUNCTION(coffer_mlyze_stats_opts, COFFER_MLYZE_STATS_OPTS_INIT)

/* ---- Measures ---- */

uint64_t coffer_mlyze_stack_row_bytes(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return row->peak_bytes;
    case COFFER_MLYZE_MEASURE_LIVE:
        return row->live_bytes;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return row->temporary_bytes;
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return row->allocated_bytes;
}

uint64_t coffer_mlyze_stack_row_allocs(const coffer_mlyze_stack_row *row, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return row->peak_allocs;
    case COFFER_MLYZE_MEASURE_LIVE:
        return row->live_allocs;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return row->temporary_allocs;
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return row->allocs;
}

uint64_t coffer_mlyze_totals_bytes(const coffer_mlyze_totals *totals, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return totals->peak_bytes;
    case COFFER_MLYZE_MEASURE_LIVE:
        return totals->live_bytes_at_end;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return totals->temporary_bytes;
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return totals->total_allocated_bytes;
}

uint64_t coffer_mlyze_totals_allocs(const coffer_mlyze_totals *totals, coffer_mlyze_measure measure)
{
    switch (measure) {
    case COFFER_MLYZE_MEASURE_PEAK:
        return totals->peak_allocs;
    case COFFER_MLYZE_MEASURE_LIVE:
        return totals->live_allocs_at_end;
    case COFFER_MLYZE_MEASURE_TEMPORARY:
        return totals->temporary_allocs;
    case COFFER_MLYZE_MEASURE_TOTAL:
        break;
    }
    return totals->allocs;
}

bool coffer_mlyze_stack_row_is_growing(const coffer_mlyze_stack_row *row)
{
    return row->growth_bytes_per_s > 0 && row->growth_fit >= COFFER_MLYZE_GROWTH_FIT_MIN;
}
