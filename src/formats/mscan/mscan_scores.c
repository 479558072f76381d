#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mscan/mscan_keys.h"
#include "formats/mscan/mscan_pass.h"
#include "formats/mscan/mscan_stats.h"

#include <string.h>

/* z-scores are linear in the values, so the mean score of a group follows from the exact sums of its records
 * in each layer: no second look at a record, no rounding that depends on order. */

#define TABLES_BYTES ((uint64_t)48 << 20)
#define SMALLEST_STDDEV 1e-9 /* below it, values count as equal: the original scanner's rule */

struct coffer_mscan_scores {
    coffer_mscan_score *scores; /* ascending key, none empty */
    size_t count;
};

/* Records of one layer and one group. */
typedef struct cell {
    uint64_t count;
    uint64_t sum[2]; /* by coffer_mscan_metric */
} cell;

typedef struct scoring {
    const coffer_mscan_stats_opts *query;
    coffer__mscan_layers *layers;
    coffer_mscan_group *totals; /* by layer */
    double (*stddev)[2];        /* by layer */
} scoring;

/* Sum of the z-scores of a cell's records: (Σx − n·mean) / stddev, its numerator exact. */
static double sum_of_z(const scoring *work, uint32_t layer, const cell *part, int metric)
{
    const coffer_mscan_group *total = &work->totals[layer];
    double stddev = work->stddev[layer][metric];
    if (!(stddev > SMALLEST_STDDEV))
        return 0;
    coffer__wide numerator = (coffer__wide)part->sum[metric] * total->count -
                             (coffer__wide)total->column[metric].sum * part->count;
    return (double)numerator / ((double)total->count * stddev);
}

static void add_to_score(coffer_mscan_score *score, const scoring *work, uint32_t layer, const cell *part)
{
    score->count += part->count;
    score->z_activation += sum_of_z(work, layer, part, COFFER_MSCAN_ACTIVATION);
    score->z_grad_norm += sum_of_z(work, layer, part, COFFER_MSCAN_GRAD_NORM);
}

/* From sums of z-scores to means. */
static void finish_score(coffer_mscan_score *score)
{
    double n = (double)score->count;
    score->integral_sps = score->z_activation - score->z_grad_norm;
    score->z_activation /= n;
    score->z_grad_norm /= n;
    score->sps = score->integral_sps / n;
}

static coffer_status add_score(coffer_mscan_scores *scores, size_t *capacity, coffer_mscan_score *score,
                               coffer_error *err)
{
    if (score->count == 0)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&scores->scores, capacity, scores->count, sizeof *scores->scores, err);
    if (status)
        return status;
    finish_score(score);
    scores->scores[scores->count++] = *score;
    return COFFER_OK;
}

/* ---- By parameter, its blocks or its layer, or all in one ---- */

static cell cell_of_group(const coffer_mscan_group *group)
{
    return (cell){ group->count, { group->column[0].sum, group->column[1].sum } };
}

/* groups : by parameter, or by parameter and block. */
static coffer_status score_groups(coffer_mscan_scores *out, const scoring *work,
                                  const coffer_mscan_stats *groups, unsigned param_shift, coffer_error *err)
{
    size_t capacity = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < groups->count; i++) {
        const coffer_mscan_group *group = &groups->groups[i];
        uint32_t layer = work->layers->of_param[group->key >> param_shift];
        cell part = cell_of_group(group);
        coffer_mscan_score score = { .key = group->key };
        if (layer == 0)
            continue;
        add_to_score(&score, work, layer - 1, &part);
        status = add_score(out, &capacity, &score, err);
    }
    return status;
}

/* Scores that are sums over parameters: of the layer of each, or of all. */
static coffer_status score_sums(coffer_mscan_scores *out, const scoring *work, const coffer_mscan *scan,
                                const coffer_mscan_stats *by_param, coffer_error *err)
{
    bool all = work->query->by == COFFER_MSCAN_BY_ALL;
    size_t count = all ? 1 : coffer_mscan_layer_count(scan), capacity = 0;
    coffer_mscan_score *sums = coffer__calloc(count, sizeof *sums);
    if (!sums)
        return coffer__fail_no_memory(err, count * sizeof *sums);
    for (size_t i = 0; i < by_param->count; i++) {
        const coffer_mscan_group *group = &by_param->groups[i];
        uint32_t layer = work->layers->of_param[group->key];
        size_t key = all ? 0 : coffer_mscan_layer_of_param(scan, (uint16_t)group->key);
        cell part = cell_of_group(group);
        if (layer > 0)
            add_to_score(&sums[key], work, layer - 1, &part);
    }
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < count; i++) {
        sums[i].key = i;
        status = add_score(out, &capacity, &sums[i], err);
    }
    coffer__free(sums);
    return status;
}

static coffer_status score_blocks(coffer_mscan_scores *out, const scoring *work,
                                  coffer__mscan_selection *selection, coffer_error *err)
{
    coffer_mscan_stats *by_block = NULL;
    coffer_status status = coffer__mscan_stats_of(&by_block, selection, work->query, err);
    if (!status)
        status = score_groups(out, work, by_block, 16, err);
    coffer_mscan_stats_free(by_block);
    return status;
}

/* ---- By block, token or sequence: sums by layer and key, as many keys at a time as memory allows ---- */

typedef struct window {
    const scoring *work;
    const coffer__mscan_keys *keys;
    uint64_t first_key, key_count;
    cell *cells; /* for each thread, key and layer */
} window;

static size_t cells_per_thread(const window *part)
{
    return (size_t)part->key_count * part->work->layers->count;
}

static void add_record(cell *cells, const coffer__mscan_layers *layers, uint64_t key, const uint8_t *record)
{
    uint32_t layer = layers->of_param[coffer__mscan_load_param(record)];
    if (layer == 0)
        return;
    cell *sums = &cells[key * layers->count + layer - 1];
    sums->count++;
    sums->sum[0] += coffer__load_u16(record + COFFER__MSCAN_ACTIVATION_AT);
    sums->sum[1] += coffer__load_u16(record + COFFER__MSCAN_GRAD_NORM_AT);
}

static void visit_blocks(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    const window *part = context;
    cell *cells = part->cells + worker * cells_per_thread(part);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint64_t key = coffer__load_u16(record + COFFER__MSCAN_BLOCK_AT) - part->first_key;
        if (key < part->key_count)
            add_record(cells, part->work->layers, key, record);
    }
}

static void visit_tokens(void *context, uint32_t worker, const uint8_t *records, size_t count)
{
    const window *part = context;
    cell *cells = part->cells + worker * cells_per_thread(part);
    coffer__mscan_key_span span = { 0, 0, 0 };
    bool has_key = false;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        uint32_t token = coffer__mscan_load_token(record);
        if (token < span.begin || token >= span.end)
            has_key = coffer__mscan_key_of(&span, part->keys, token);
        if (has_key && span.key - part->first_key < part->key_count)
            add_record(cells, part->work->layers, span.key - part->first_key, record);
    }
}

/* Narrows the selection to the tokens of a window's keys. */
static coffer_status select_window(coffer__mscan_selection *out, const coffer__mscan_selection *all,
                                   const window *part, coffer_error *err)
{
    const coffer_mscan_stats_opts *query = part->work->query;
    const coffer_mscan_sequence *sequences = all->scan->metadata.sequences;
    uint64_t begin = part->first_key, end = begin + part->key_count;
    if (query->by == COFFER_MSCAN_BY_BLOCK) {
        *out = *all;
        return COFFER_OK;
    }
    if (query->by == COFFER_MSCAN_BY_SEQUENCE) {
        const coffer_mscan_sequence *last = &sequences[end - 1];
        begin = sequences[begin].first_token;
        end = last->first_token + last->num_tokens;
    }
    begin = begin > all->token_begin ? begin : all->token_begin;
    end = end < all->token_end ? end : all->token_end;
    return coffer__mscan_select(out, all->scan, query->param_glob, begin, end, COFFER_INDEX_NONE, err);
}

static coffer_status score_window(coffer_mscan_scores *out, size_t *capacity, window *part, uint32_t threads,
                                  const coffer__mscan_selection *all, coffer_error *err)
{
    const scoring *work = part->work;
    coffer__mscan_selection selection;
    coffer__mscan_pass pass = { .selection = &selection, .progress = work->query->progress, .context = part };
    coffer_status status = select_window(&selection, all, part, err);

    pass.threads = threads;
    pass.visit = work->query->by == COFFER_MSCAN_BY_BLOCK ? visit_blocks : visit_tokens;
    if (!status)
        status = coffer__mscan_pass_run(&pass, err);
    if (status)
        return status;
    for (uint64_t key = 0; !status && key < part->key_count; key++) {
        coffer_mscan_score score = { .key = part->first_key + key };
        for (uint32_t layer = 0; layer < work->layers->count; layer++) {
            cell sum = { 0 };
            for (uint32_t thread = 0; thread < threads; thread++) {
                const cell *from =
                    &part->cells[thread * cells_per_thread(part) + key * work->layers->count + layer];
                sum.count += from->count;
                sum.sum[0] += from->sum[0];
                sum.sum[1] += from->sum[1];
            }
            if (sum.count > 0)
                add_to_score(&score, work, layer, &sum);
        }
        status = add_score(out, capacity, &score, err);
    }
    return status;
}

static coffer_status score_keys(coffer_mscan_scores *out, const scoring *work,
                                const coffer__mscan_selection *selection, const coffer__mscan_keys *keys,
                                coffer_error *err)
{
    coffer_limits limits = coffer__limits(work->query->limits);
    uint64_t budget = limits.memory_bytes < TABLES_BYTES ? limits.memory_bytes : TABLES_BYTES;
    uint64_t key_bytes = (uint64_t)work->layers->count * sizeof(cell);
    uint32_t threads =
        coffer__mscan_pass_threads(selection, work->query->threads, key_bytes ? budget / key_bytes : 1);
    uint64_t at_once = key_bytes ? budget / (key_bytes * threads) : 0;
    window part = { .work = work, .keys = keys };
    size_t capacity = 0, table_cells;
    coffer_status status = COFFER_OK;

    if (keys->count == 0 || work->layers->count == 0)
        return COFFER_OK;
    if (keys->count > limits.memory_bytes / sizeof(coffer_mscan_score))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "scores of %llu groups need %llu bytes each, the limit is %llu in all: choose a "
                            "smaller range of tokens",
                            (unsigned long long)keys->count, (unsigned long long)sizeof(coffer_mscan_score),
                            (unsigned long long)limits.memory_bytes);
    if (at_once == 0)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "scores of %u layers need %llu bytes, the limit is %llu", work->layers->count,
                            (unsigned long long)key_bytes, (unsigned long long)limits.memory_bytes);
    at_once = at_once < keys->count ? at_once : keys->count;
    table_cells = (size_t)at_once * work->layers->count * threads;
    part.cells = coffer__alloc_array(table_cells, sizeof(cell));
    if (!part.cells)
        return coffer__fail_no_memory(err, table_cells * sizeof(cell));
    for (uint64_t key = 0; !status && key < keys->count; key += part.key_count) {
        part.first_key = keys->base + key;
        part.key_count = keys->count - key < at_once ? keys->count - key : at_once;
        memset(part.cells, 0, table_cells * sizeof(cell));
        status = score_window(out, &capacity, &part, threads, selection, err);
    }
    coffer__free(part.cells);
    return status;
}

/* Blocks are numbered from 0 and usually few; which is the last one only the records say. */
static coffer_status count_blocks(uint64_t *out, coffer__mscan_selection *selection,
                                  const coffer_mscan_stats_opts *query, coffer_error *err)
{
    coffer_mscan_stats *by_block = NULL;
    coffer_status status = coffer__mscan_stats_of(&by_block, selection, query, err);
    if (!status)
        *out = by_block->count ? by_block->groups[by_block->count - 1].key + 1 : 0;
    coffer_mscan_stats_free(by_block);
    return status;
}

static coffer_status score_others(coffer_mscan_scores *out, const scoring *work,
                                  coffer__mscan_selection *selection, coffer_error *err)
{
    coffer__mscan_keys keys;
    coffer_status status = coffer__mscan_keys_find(&keys, selection, work->query, err);
    if (!status && work->query->by == COFFER_MSCAN_BY_BLOCK)
        status = count_blocks(&keys.count, selection, work->query, err);
    return status ? status : score_keys(out, work, selection, &keys, err);
}

/* ---- Public functions ---- */

static coffer_status prepare(scoring *work, const coffer_mscan_stats *by_param, const coffer_mscan *scan,
                             coffer_mscan_scope scope, coffer_error *err)
{
    coffer_status status = coffer__mscan_layers_new(&work->layers, scan, scope, err);
    if (status)
        return status;
    size_t count = work->layers->count ? work->layers->count : 1;
    work->totals = coffer__calloc(count, sizeof *work->totals);
    work->stddev = coffer__calloc(count, sizeof *work->stddev);
    if (!work->totals || !work->stddev)
        return coffer__fail_no_memory(err, count * (sizeof *work->totals + sizeof *work->stddev));
    for (size_t i = 0; i < by_param->count; i++) {
        uint32_t layer = work->layers->of_param[by_param->groups[i].key];
        if (layer > 0)
            coffer__mscan_add_group(&work->totals[layer - 1], &by_param->groups[i]);
    }
    for (size_t i = 0; i < 2 * count; i++)
        work->stddev[i / 2][i % 2] = coffer_mscan_stddev(&work->totals[i / 2], (coffer_mscan_metric)(i % 2));
    return COFFER_OK;
}

coffer_status coffer_mscan_scores_new(coffer_mscan_scores **out, const coffer_mscan *scan,
                                      const coffer_mscan_stats_opts *opts, coffer_error *err)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    coffer__mscan_selection selection;
    coffer_mscan_stats *by_param = NULL;
    coffer_mscan_scores *scores = NULL;
    scoring work = { .query = &query };
    coffer_status status = coffer__take_options(&query, sizeof query, opts, err);
    if (status)
        return status;
    coffer_mscan_stats_opts by_param_query = query;
    by_param_query.by = COFFER_MSCAN_BY_PARAM;
    status = coffer__mscan_select_query(&selection, scan, &query, err);
    if (!status)
        status = coffer__mscan_stats_of(&by_param, &selection, &by_param_query, err);
    if (!status)
        status = prepare(&work, by_param, scan, query.scope, err);
    if (status)
        goto out;
    scores = coffer__calloc(1, sizeof *scores);
    if (!scores) {
        status = coffer__fail_no_memory(err, sizeof *scores);
        goto out;
    }
    if (query.by == COFFER_MSCAN_BY_PARAM)
        status = score_groups(scores, &work, by_param, 0, err);
    else if (query.by == COFFER_MSCAN_BY_PARAM_BLOCK)
        status = score_blocks(scores, &work, &selection, err);
    else if (query.by == COFFER_MSCAN_BY_ALL || query.by == COFFER_MSCAN_BY_LAYER)
        status = score_sums(scores, &work, scan, by_param, err);
    else
        status = score_others(scores, &work, &selection, err);
    if (status)
        goto out;
    *out = scores;
    scores = NULL;
out:
    coffer_mscan_scores_free(scores);
    coffer_mscan_stats_free(by_param);
    coffer__free(work.layers);
    coffer__free(work.totals);
    coffer__free(work.stddev);
    return status;
}

void coffer_mscan_scores_free(coffer_mscan_scores *scores)
{
    if (!scores)
        return;
    coffer__free(scores->scores);
    coffer__free(scores);
}

size_t coffer_mscan_scores_count(const coffer_mscan_scores *scores)
{
    return scores->count;
}

const coffer_mscan_score *coffer_mscan_scores_at(const coffer_mscan_scores *scores, size_t index)
{
    return index < scores->count ? &scores->scores[index] : NULL;
}
