/* Every function that reads accepts any file. */
#include "mscan_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen; /* keeps what is read from being optimized away */

static void walk_metadata(const coffer_mscan *scan)
{
    size_t len;
    uint64_t tokens = 0;
    const char *text = coffer_mscan_metadata(scan, &len);
    MUST(strlen(text) <= len);
    seen += strlen(coffer_mscan_model_name(scan));
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        MUST(param->name && strlen(param->name) <= param->name_len);
        if (param->id <= UINT16_MAX)
            MUST(coffer_mscan_param_name(scan, (uint16_t)param->id) == param->name);
    }
    for (size_t i = 0; i < coffer_mscan_sequence_count(scan); i++) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(scan, i);
        MUST(sequence->first_token == tokens);
        if (sequence->num_tokens) {
            MUST(coffer_mscan_sequence_of_token(scan, tokens) == i);
            MUST(coffer_mscan_sequence_of_token(scan, tokens + sequence->num_tokens - 1) == i);
        }
        tokens += sequence->num_tokens;
        seen += sequence->source ? strlen(sequence->source) : 0;
    }
    MUST(tokens == coffer_mscan_total_tokens(scan));
    MUST(coffer_mscan_sequence_of_token(scan, tokens) == COFFER_INDEX_NONE);
}

static void walk_records(const coffer_mscan *scan)
{
    uint64_t count = coffer_mscan_record_count(scan), first, found;
    coffer_mscan_record record;
    bool sorted;
    for (uint64_t i = 0; i < count; i++) {
        MUST(coffer_mscan_read(&record, scan, i, 1, NULL) == COFFER_OK);
        size_t sequence = coffer_mscan_sequence_of_token(scan, record.token_idx);
        seen +=
            coffer_mscan_quantization_of(scan, COFFER_MSCAN_ACTIVATION, record.param_id, sequence) != NULL;
    }
    MUST(coffer_mscan_read(&record, scan, count, 1, NULL) != COFFER_OK);
    MUST(coffer_mscan_is_sorted(&sorted, scan, NULL) == COFFER_OK);
    if (coffer_mscan_find_tokens(&first, &found, scan, 1, 3, NULL) == COFFER_OK)
        MUST(sorted && first <= count && found <= count - first);
}

static void walk_replay(const coffer_mscan *scan)
{
    coffer_mscan_replay *replay = NULL;
    coffer_mscan_step step = COFFER_MSCAN_STEP_INIT;
    uint64_t total = coffer_mscan_total_tokens(scan);
    bool more = true;
    if (coffer_mscan_replay_new(&replay, scan, NULL, NULL) != COFFER_OK)
        return;
    for (int i = 0; more && i < 64; i++)
        if (coffer_mscan_replay_next(&more, &step, replay, NULL) == COFFER_OK && more)
            MUST(step.token == (uint64_t)i && (step.records || !step.record_count));
    MUST(coffer_mscan_replay_seek(replay, total, NULL) == COFFER_OK);
    more = true;
    for (int i = 0; more && i < 64; i++)
        if (coffer_mscan_replay_prev(&more, &step, replay, NULL) == COFFER_OK && more)
            MUST(step.token == total - 1 - (uint64_t)i);
    coffer_mscan_replay_free(replay);
}

/* However the records are grouped, the groups add up to the whole. */
static void walk_statistics(const coffer_mscan *scan, const coffer_mscan_stats_opts *query)
{
    coffer_mscan_stats *stats = NULL;
    uint64_t count = 0, sum = 0;
    if (coffer_mscan_stats_new(&stats, scan, query, NULL) != COFFER_OK)
        return;
    const coffer_mscan_group *total = coffer_mscan_stats_total(stats);
    for (size_t i = 0; i < coffer_mscan_stats_count(stats); i++) {
        const coffer_mscan_group *group = coffer_mscan_stats_at(stats, i);
        count += group->count;
        sum += group->column[COFFER_MSCAN_ACTIVATION].sum;
    }
    MUST(count == total->count && sum == total->column[COFFER_MSCAN_ACTIVATION].sum);
    coffer_mscan_stats_free(stats);
}

static void walk_scores(const coffer_mscan *scan, const coffer_mscan_stats_opts *query)
{
    coffer_mscan_scores *scores = NULL;
    if (coffer_mscan_scores_new(&scores, scan, query, NULL) != COFFER_OK)
        return;
    for (size_t i = 0; i < coffer_mscan_scores_count(scores); i++)
        MUST(coffer_mscan_scores_at(scores, i)->count > 0);
    coffer_mscan_scores_free(scores);
}

static void walk_grid(const coffer_mscan *scan, coffer_mscan_rows rows, const coffer_limits *limits)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_mscan_grid *grid = NULL;
    opts.rows = rows;
    opts.width = 16;
    opts.height = 8;
    opts.threads = 1;
    opts.limits = limits;
    if (coffer_mscan_grid_new(&grid, scan, &opts, NULL) == COFFER_OK)
        MUST(grid->width <= 16 && grid->height <= 8);
    coffer_mscan_grid_free(grid);
}

/* These have tables of 65536 rows: one of them for every fourth input keeps the fuzzer fast. */
static void walk_analysis(const coffer_mscan *scan, unsigned choice, const coffer_limits *limits)
{
    coffer_mscan_stats_opts query = COFFER_MSCAN_STATS_OPTS_INIT;
    query.by = (coffer_mscan_by)(choice / 16 % 5);
    query.threads = 1;
    query.limits = limits;
    query.scope = query.by % 2 ? COFFER_MSCAN_SCOPE_LAYER : COFFER_MSCAN_SCOPE_GLOBAL;
    switch (choice % 16) {
    case 0:
        walk_statistics(scan, &query);
        break;
    case 1:
        walk_scores(scan, &query);
        break;
    case 2:
        walk_grid(scan, COFFER_MSCAN_ROWS_PARAM, limits);
        break;
    case 3:
        walk_grid(scan, COFFER_MSCAN_ROWS_BLOCK, limits);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mscan *scan = NULL;
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.lenient = size && data[size - 1] & 4;
    opts.limits = &input.limits;
    if (coffer_mscan_open(&scan, input.source, &opts, NULL) == COFFER_OK) {
        walk_metadata(scan);
        walk_records(scan);
        walk_replay(scan);
        walk_analysis(scan, data[size - 1] / 8u + 3u * data[size / 2], &input.limits);
    }
    coffer_mscan_close(scan);
    fuzz_input_close(&input);
    return 0;
}
