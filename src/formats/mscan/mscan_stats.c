#include "formats/mscan/mscan_stats.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_keys.h"
#include "formats/mscan/mscan_pass.h"

#include <inttypes.h>
#include <math.h>

/* Statistics by layer, which are sums of those by parameter, and by parameter and block. */

/* Moves the groups that have records to the front. The total is that of all of them. */
static coffer_status finish(coffer_mscan_stats **out, coffer_mscan_group *groups, size_t count,
                            coffer_error *err)
{
    coffer_mscan_stats *stats = coffer__calloc(1, sizeof *stats);
    if (!stats) {
        coffer__free(groups);
        return coffer__fail_no_memory(err, sizeof *stats);
    }
    for (size_t i = 0; i < count; i++) {
        if (groups[i].count == 0)
            continue;
        coffer__mscan_add_group(&stats->total, &groups[i]);
        groups[stats->count++] = groups[i];
    }
    stats->groups = groups;
    *out = stats;
    return COFFER_OK;
}

/* ---- By layer ---- */

static coffer_status stats_by_layer(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                    const coffer_mscan_stats_opts *query, coffer_error *err)
{
    const coffer_mscan *scan = selection->scan;
    size_t count = coffer_mscan_layer_count(scan);
    coffer_mscan_stats_opts by_param = *query;
    coffer_mscan_stats *params = NULL;
    by_param.by = COFFER_MSCAN_BY_PARAM;
    coffer_mscan_group *groups = coffer__calloc(count, sizeof *groups);
    if (!groups)
        return coffer__fail_no_memory(err, count * sizeof *groups);
    coffer_status status = coffer__mscan_stats_of(&params, selection, &by_param, err);
    if (status) {
        coffer__free(groups);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        groups[i].key = i;
    for (size_t i = 0; i < params->count; i++) {
        size_t layer = coffer_mscan_layer_of_param(scan, (uint16_t)params->groups[i].key);
        coffer__mscan_add_group(&groups[layer], &params->groups[i]);
    }
    coffer_mscan_stats_free(params);
    return finish(out, groups, count, err);
}

/* ---- By parameter and block ---- */

/* The blocks of each parameter are numbered from 0: the first pass finds how many there are, the second one
 * adds records to a table with a place for each. */
typedef struct block_tally {
    uint32_t *blocks;           /* by thread and param_id: 1 + the largest block */
    uint64_t *first;            /* by param_id: the place of its block 0 */
    coffer_mscan_group *groups; /* by thread and place */
    size_t places;
} block_tally;

static void visit_to_count(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    block_tally *tally = context;
    uint32_t *blocks = tally->blocks + (size_t)worker * COFFER__MSCAN_PARAM_IDS;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint32_t end = (uint32_t)coffer__load_u16(record + COFFER__MSCAN_BLOCK_AT) + 1;
        uint32_t *most = &blocks[coffer__mscan_load_param(record)];
        *most = end > *most ? end : *most;
    }
}

static void visit_to_add(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    block_tally *tally = context;
    coffer_mscan_group *groups = tally->groups + (size_t)worker * tally->places;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint64_t place = tally->first[coffer__mscan_load_param(record)] +
                         coffer__load_u16(record + COFFER__MSCAN_BLOCK_AT);
        coffer__mscan_add_records(&groups[place], record, 1);
    }
}

static void lay_out(block_tally *tally, uint32_t threads)
{
    uint64_t next = 0;
    for (size_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        uint32_t most = 0;
        for (uint32_t thread = 0; thread < threads; thread++) {
            uint32_t blocks = tally->blocks[(size_t)thread * COFFER__MSCAN_PARAM_IDS + id];
            most = blocks > most ? blocks : most;
        }
        tally->first[id] = next;
        tally->blocks[id] = most;
        next += most;
    }
    tally->places = (size_t)next;
}

static coffer_status new_groups(block_tally *tally, uint32_t *threads, const coffer_limits *limits,
                                coffer_error *err)
{
    uint64_t most = limits->memory_bytes / sizeof *tally->groups;
    if (tally->places > most)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "statistics of %zu blocks need %zu bytes each, the limit is %" PRIu64
                            " in all: choose parameters by name",
                            tally->places, sizeof *tally->groups, limits->memory_bytes);
    while (*threads > 1 && (uint64_t)*threads * tally->places > most)
        --*threads;
    size_t count = *threads * tally->places;
    tally->groups = coffer__calloc(count ? count : 1, sizeof *tally->groups);
    return tally->groups ? COFFER_OK : coffer__fail_no_memory(err, count * sizeof *tally->groups);
}

static void merge(block_tally *tally, uint32_t threads)
{
    for (uint32_t thread = 1; thread < threads; thread++) {
        for (size_t i = 0; i < tally->places; i++)
            coffer__mscan_add_group(&tally->groups[i], &tally->groups[thread * tally->places + i]);
    }
    for (uint64_t id = 0; id < COFFER__MSCAN_PARAM_IDS; id++) {
        for (uint64_t block = 0; block < tally->blocks[id]; block++)
            tally->groups[tally->first[id] + block].key = id << 16 | block;
    }
}

static coffer_status stats_by_param_block(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                          const coffer_mscan_stats_opts *query, coffer_error *err)
{
    coffer_limits limits = coffer__limits(query->limits);
    block_tally tally = { 0 };
    coffer__mscan_pass pass = { .selection = selection, .context = &tally };
    pass.threads = coffer__mscan_pass_threads(selection, query->threads, UINT32_MAX);
    pass.progress = query->progress;
    tally.blocks = coffer__calloc((size_t)pass.threads * COFFER__MSCAN_PARAM_IDS, sizeof *tally.blocks);
    tally.first = coffer__alloc_array(COFFER__MSCAN_PARAM_IDS, sizeof *tally.first);
    coffer_status status = tally.blocks && tally.first
                               ? COFFER_OK
                               : coffer__fail_no_memory(err, COFFER__MSCAN_PARAM_IDS * sizeof *tally.first);
    pass.visit = visit_to_count;
    if (!status)
        status = coffer__mscan_pass_run(&pass, err);
    if (!status) {
        lay_out(&tally, pass.threads);
        status = new_groups(&tally, &pass.threads, &limits, err);
    }
    pass.visit = visit_to_add;
    if (!status)
        status = coffer__mscan_pass_run(&pass, err);
    if (!status) {
        merge(&tally, pass.threads);
        status = finish(out, tally.groups, tally.places, err);
    } else {
        coffer__free(tally.groups);
    }
    coffer__free(tally.blocks);
    coffer__free(tally.first);
    return status;
}

/* Tables stay below this in all, whatever the machine and the file. */
#define TABLES_BYTES ((uint64_t)60 << 20)
#define FEW_KEYS 4096 /* so few that two rows for each stay in the cache */

/* As finish, for groups whose keys begin with `base`; the room of those without records is given back. */
static coffer_status take_groups(coffer_mscan_stats **out, coffer_mscan_group *groups, size_t count,
                                 uint64_t base, coffer_error *err)
{
    for (size_t i = 0; i < count; i++)
        groups[i].key = base + i;
    coffer_mscan_stats *stats;
    coffer_status status = finish(&stats, groups, count, err);
    if (status)
        return status;
    coffer_mscan_group *smaller = coffer__realloc(groups, stats->count ? stats->count * sizeof *groups : 1);
    if (smaller)
        stats->groups = smaller;
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
        return stats_by_layer(out, selection, query, err);
    if (query->by == COFFER_MSCAN_BY_PARAM_BLOCK)
        return stats_by_param_block(out, selection, query, err);
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
