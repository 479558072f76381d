#include "formats/mscan/mscan_stats.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_keys.h"
#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_tally.h"

#include <math.h>

/* Tables stay below this in all, whatever the machine and the file. */
#define TABLES_BYTES ((uint64_t)60 << 20)
#define FEW_KEYS 4096 /* so few that two rows for each stay in the cache */

/* Moves the groups that have records to the front and adds them up. */
static coffer_status take_groups(coffer_mscan_stats **out, coffer_mscan_group *groups, size_t count,
                                 uint64_t base, coffer_error *err)
{
    coffer_mscan_stats *stats = coffer__calloc(1, sizeof *stats);
    coffer_mscan_group *smaller;
    if (!stats) {
        coffer__free(groups);
        return coffer__fail_no_memory(err, sizeof *stats);
    }
    for (size_t i = 0; i < count; i++) {
        if (groups[i].count == 0)
            continue;
        coffer__mscan_add_group(&stats->total, &groups[i]);
        groups[stats->count] = groups[i];
        groups[stats->count++].key = base + i;
    }
    smaller = coffer__realloc(groups, stats->count ? stats->count * sizeof *groups : 1);
    stats->groups = smaller ? smaller : groups;
    *out = stats;
    return COFFER_OK;
}

/* ---- Up to 65536 keys: the kernels ---- */

typedef struct small_tally {
    coffer__mscan_tally sums;
    const coffer__mscan_keys *keys;
} small_tally;

static void visit_small(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    small_tally *tally = context;
    coffer__mscan_tally_take(&tally->sums, worker, records, count, records + tally->keys->at,
                             COFFER__MSCAN_RECORD_SIZE);
}

/* Runs of records with one key that they do not carry themselves. */
static void visit_runs(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    small_tally *tally = context;
    while (count > 0) {
        coffer__mscan_key_span span;
        uint8_t key[2];
        bool has_key = coffer__mscan_key_of(&span, tally->keys, coffer__mscan_load_token(records));
        size_t run = coffer__mscan_span_records(&span, records, count);
        coffer__store_u16(key, (uint16_t)span.key);
        if (has_key)
            coffer__mscan_tally_take(&tally->sums, worker, records, run, key, 0);
        records += run * COFFER__MSCAN_RECORD_SIZE;
        count -= run;
    }
}

static unsigned rows_shift_for(const coffer_mscan *scan, coffer_mscan_by by)
{
    const coffer__mscan_metadata *metadata = &scan->metadata;
    if (by != COFFER_MSCAN_BY_PARAM)
        return 1;
    return metadata->param_count == 0 || metadata->params[metadata->param_count - 1].id < FEW_KEYS;
}

static coffer_status stats_by_small_key(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                        const coffer__mscan_keys *keys, const coffer_mscan_stats_opts *query,
                                        coffer_error *err)
{
    coffer_limits limits = coffer__limits(query->limits);
    uint64_t budget = limits.memory_bytes < TABLES_BYTES ? limits.memory_bytes : TABLES_BYTES;
    unsigned rows_shift = rows_shift_for(selection->scan, query->by);
    uint64_t thread_bytes = COFFER__MSCAN_ROWS_BYTES(rows_shift) + COFFER__MSCAN_PASS_BYTES;
    coffer__mscan_pass pass = { .selection = selection, .progress = query->progress };
    small_tally tally = { .keys = keys };
    coffer_mscan_group *groups;
    coffer_status status;

    if (budget < COFFER__MSCAN_GROUPS_BYTES + thread_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "statistics need %llu bytes, the limit is %llu",
                            (unsigned long long)(COFFER__MSCAN_GROUPS_BYTES + thread_bytes),
                            (unsigned long long)limits.memory_bytes);
    pass.threads = coffer__mscan_pass_threads(selection, query->threads,
                                              (budget - COFFER__MSCAN_GROUPS_BYTES) / thread_bytes);
    status = coffer__mscan_tally_init(&tally.sums, pass.threads, rows_shift, (uint16_t)keys->base, err);
    if (status)
        return status;
    pass.visit = keys->in_record ? visit_small : visit_runs;
    pass.context = &tally;
    status = coffer__mscan_pass_run(&pass, err);
    if (status)
        goto out;
    coffer__mscan_tally_finish(&tally.sums, (size_t)keys->count);
    groups = tally.sums.groups;
    tally.sums.groups = NULL;
    status = take_groups(out, groups, (size_t)keys->count, keys->base, err);
out:
    coffer__mscan_tally_free(&tally.sums);
    return status;
}

/* ---- More keys than that: tokens and sequences ---- */

typedef struct wide_tally {
    const coffer__mscan_keys *keys;
    coffer_mscan_group *groups;
} wide_tally;

static void visit_wide(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    wide_tally *tally = context;
    (void)worker;
    while (count > 0) {
        coffer__mscan_key_span span;
        bool has_key = coffer__mscan_key_of(&span, tally->keys, coffer__mscan_load_token(records));
        size_t run = coffer__mscan_span_records(&span, records, count);
        if (has_key)
            coffer__mscan_add_records(&tally->groups[span.key - tally->keys->base], records, run);
        records += run * COFFER__MSCAN_RECORD_SIZE;
        count -= run;
    }
}

static uint64_t wide_group_end(void *context, uint32_t token)
{
    wide_tally *tally = context;
    coffer__mscan_key_span span;
    coffer__mscan_key_of(&span, tally->keys, token);
    return span.end;
}

static coffer_status stats_by_wide_key(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                       const coffer__mscan_keys *keys, const coffer_mscan_stats_opts *query,
                                       coffer_error *err)
{
    coffer_limits limits = coffer__limits(query->limits);
    wide_tally tally = { .keys = keys };
    coffer__mscan_pass pass = { .selection = selection, .progress = query->progress };
    coffer_status status;

    if (keys->count > limits.memory_bytes / sizeof *tally.groups)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "statistics of %llu %s need %llu bytes each, the limit is %llu in all: choose "
                            "a smaller range of tokens",
                            (unsigned long long)keys->count,
                            query->by == COFFER_MSCAN_BY_TOKEN ? "tokens" : "sequences",
                            (unsigned long long)sizeof *tally.groups,
                            (unsigned long long)limits.memory_bytes);
    tally.groups = coffer__calloc((size_t)keys->count, sizeof *tally.groups);
    if (!tally.groups)
        return coffer__fail_no_memory(err, keys->count * sizeof *tally.groups);
    /* Without order any thread might meet any group, so there is one. */
    pass.threads = selection->sorted ? coffer__mscan_pass_threads(selection, query->threads, UINT32_MAX) : 1;
    pass.group_end = selection->sorted ? wide_group_end : NULL;
    pass.visit = visit_wide;
    pass.context = &tally;
    status = coffer__mscan_pass_run(&pass, err);
    if (status) {
        coffer__free(tally.groups);
        return status;
    }
    return take_groups(out, tally.groups, (size_t)keys->count, keys->base, err);
}

/* ---- Public functions ---- */

coffer_status coffer__mscan_stats_of(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                     const coffer_mscan_stats_opts *query, coffer_error *err)
{
    coffer__mscan_keys keys;
    if (query->by == COFFER_MSCAN_BY_LAYER)
        return coffer__mscan_stats_by_layer(out, selection, query, err);
    if (query->by == COFFER_MSCAN_BY_PARAM_BLOCK)
        return coffer__mscan_stats_by_param_block(out, selection, query, err);
    coffer_status status = coffer__mscan_keys_find(&keys, selection, query, err);
    if (status)
        return status;
    if (keys.count > COFFER__MSCAN_KEYS)
        return stats_by_wide_key(out, selection, &keys, query, err);
    return stats_by_small_key(out, selection, &keys, query, err);
}

COFFER__INIT_FUNCTION(coffer_mscan_stats_opts, COFFER_MSCAN_STATS_OPTS_INIT)

coffer_status coffer_mscan_stats_new(coffer_mscan_stats **out, const coffer_mscan *scan,
                                     const coffer_mscan_stats_opts *opts, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer__mscan_selection selection;
    coffer_status status = coffer__take_options(&query, sizeof query, opts, err);
    if (!status)
        status = coffer__mscan_select_query(&selection, scan, &query, err);
    return status ? status : coffer__mscan_stats_of(out, &selection, &query, err);
}

void coffer_mscan_stats_free(coffer_mscan_stats *stats)
{
    if (!stats)
        return;
    coffer__free(stats->groups);
    coffer__free(stats);
}

size_t coffer_mscan_stats_count(const coffer_mscan_stats *stats)
{
    return stats->count;
}

const coffer_mscan_group *coffer_mscan_stats_at(const coffer_mscan_stats *stats, size_t index)
{
    return index < stats->count ? &stats->groups[index] : NULL;
}

const coffer_mscan_group *coffer_mscan_stats_total(const coffer_mscan_stats *stats)
{
    return &stats->total;
}

double coffer_mscan_mean(const coffer_mscan_group *group, coffer_mscan_metric metric)
{
    return group->count ? (double)group->column[metric].sum / (double)group->count : 0;
}

/* n·Σx² − (Σx)² is exact in 128 bits, so that no digits are lost where the values lie close together. */
double coffer_mscan_stddev(const coffer_mscan_group *group, coffer_mscan_metric metric)
{
    const coffer_mscan_column *column = &group->column[metric];
    double n = (double)group->count;
    if (group->count < 2)
        return 0;
    coffer__wide numerator =
        (coffer__wide)group->count * column->sum_squares - (coffer__wide)column->sum * column->sum;
    return sqrt((double)numerator / (n * (n - 1)));
}
