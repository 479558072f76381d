/* Statistics by layer, which are sums of those by parameter, and by parameter and block. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_stats.h"
#include "formats/mscan/mscan_tally.h"

#include <inttypes.h>

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

coffer_status coffer__mscan_stats_by_layer(coffer_mscan_stats **out, coffer__mscan_selection *selection,
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

coffer_status coffer__mscan_stats_by_param_block(coffer_mscan_stats **out, coffer__mscan_selection *selection,
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
