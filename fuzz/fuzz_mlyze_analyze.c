/* Analyzing accepts any trace and gives the same results on one thread and on two; positions, timelines and
 * comparisons are consistent. */
#include "mlyze_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const coffer_mlyze *trace, const coffer_mlyze_stats *stats)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(stats);
    for (int by = COFFER_MLYZE_BY_STACK; by <= COFFER_MLYZE_BY_FILE; by++) {
        coffer_mlyze_places *places = NULL;
        uint64_t allocs = 0;
        if (coffer_mlyze_places_new(&places, trace, stats, (coffer_mlyze_by)by, NULL))
            continue;
        for (size_t i = 0; i < coffer_mlyze_places_count(places); i++)
            allocs += coffer_mlyze_places_at(places, i)->allocs;
        MUST(allocs == totals->allocs);
        coffer_mlyze_places_free(places);
    }
}

static void check_same(const coffer_mlyze_stats *a, const coffer_mlyze_stats *b)
{
    size_t stacks = coffer_mlyze_stats_stack_count(a), threads = coffer_mlyze_stats_thread_count(a);
    MUST(!memcmp(coffer_mlyze_stats_totals(a), coffer_mlyze_stats_totals(b), sizeof(coffer_mlyze_totals)));
    MUST(stacks == coffer_mlyze_stats_stack_count(b));
    for (size_t i = 0; i < stacks; i++)
        MUST(!memcmp(coffer_mlyze_stats_stack_at(a, i), coffer_mlyze_stats_stack_at(b, i),
                     sizeof(coffer_mlyze_stack_row)));
    MUST(threads == coffer_mlyze_stats_thread_count(b));
    MUST(coffer_mlyze_stats_mark_count(a) == coffer_mlyze_stats_mark_count(b));
    MUST(coffer_mlyze_stats_phase_count(a) == coffer_mlyze_stats_phase_count(b));
}

/* The window and the rest come from the bytes. */
static coffer_mlyze_stats_opts query_of(const uint8_t *data, size_t size, const coffer_limits *limits)
{
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    query.limits = limits;
    if (size > 4 && data[size - 2] % 2) {
        query.begin = data[size - 3] % 16;
        query.end = data[size - 4];
        query.temporary_allocs = data[size - 3] / 64;
        query.growth_windows = data[size - 4] % 4;
        query.reuse = data[size - 3] & 32;
    }
    return query;
}

static void draw_and_compare(const coffer_mlyze *trace, const coffer_limits *limits)
{
    coffer_mlyze_timeline_opts line = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    coffer_mlyze_diff_opts diff = COFFER_MLYZE_DIFF_OPTS_INIT;
    coffer_node *node = NULL;
    line.limits = diff.limits = limits;
    line.width = 16;
    line.threads = diff.threads = 1;
    if (!coffer_mlyze_timeline_new(&timeline, trace, &line, NULL))
        MUST(coffer_mlyze_timeline_count(timeline) <= 16);
    coffer_mlyze_timeline_free(timeline);
    MUST(coffer_node_new(&node, NULL) == COFFER_OK);
    if (!coffer_mlyze_diff(node, trace, trace, &diff, NULL))
        MUST(coffer_node_get_bool(coffer_node_find(node, "equal")));
    coffer_node_free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_mlyze_stats *found[2] = { NULL, NULL };
    if (!fuzz_input_open(&input, data, size))
        return 0;
    opts.limits = &input.limits;
    if (!coffer_mlyze_open(&trace, input.source, &opts, NULL)) {
        coffer_mlyze_stats_opts query = query_of(data, size, &input.limits);
        for (uint32_t i = 0; i < 2; i++) {
            coffer_error err = COFFER_ERROR_INIT;
            query.threads = i + 1;
            coffer_status status = coffer_mlyze_stats_new(&found[i], trace, &query, &err);
            MUST(status == COFFER_OK ? found[i] != NULL : err.text[0] != '\0');
        }
        if (found[0] && found[1]) {
            check_same(found[0], found[1]);
            check_places(trace, found[0]);
        }
        draw_and_compare(trace, &input.limits);
    }
    coffer_mlyze_stats_free(found[0]);
    coffer_mlyze_stats_free(found[1]);
    coffer_mlyze_close(trace);
    fuzz_input_close(&input);
    return 0;
}
