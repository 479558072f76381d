#include "support/trace_model.h"

#define BLOCKS COFFER__MLYZE_FLAG_BLOCKS

static void a_table_that_does_not_fit_gives_the_same_answers(void **state)
{
    (void)state;
    static const model_kind kinds[] = {
        { 30000, 30000, 3, 3, BLOCKS, 2500, false },
        { 45000, 20000, 7, 2, BLOCKS, 1000, true },
        { 25000, 25000, 1, 9, 0, 0, false },
    };
    static const uint64_t windows[][2] = { { 0, UINT64_MAX }, { 10000, 22000 } };
    coffer_limits limits = COFFER_LIMITS_INIT;
    limits.memory_bytes = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        model_trace trace;
        model_trace_new(&trace, &kinds[i], 3 + i);
        for (size_t k = 0; k < 4; k++) {
            coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
            query.begin = windows[k % 2][0];
            query.end = windows[k % 2][1];
            query.temporary_allocs = k == 3 ? 4 : 0;
            query.min_size = k * 100;
            query.reuse = k > 1;
            query.limits = &limits;
            model_hold(&trace, &query);
        }
        model_trace_free(&trace);
    }
}

typedef struct pass_counter {
    size_t passes;
    uint64_t last;
} pass_counter;

static int count_passes(void *context, uint64_t done, uint64_t total)
{
    pass_counter *counter = context;
    (void)total;
    counter->passes += done <= counter->last;
    counter->last = done;
    return 0;
}

static void a_tiny_limit_costs_few_passes(void **state)
{
    (void)state;
    static const model_kind kind = { 90000, 60000, 1, 1, BLOCKS, 2500, true };
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    pass_counter counter = { 1, 0 };
    coffer_progress progress = { sizeof progress, count_passes, &counter };
    model_trace trace;
    model_trace_new(&trace, &kind, 5);
    coffer_source *src = trace_source(&trace.built);
    coffer_mlyze *opened = trace_open(src, NULL);
    limits.memory_bytes = 1;
    query.limits = &limits;
    query.reuse = true;
    query.threads = 2;
    query.progress = &progress;
    assert_int_equal(coffer_mlyze_stats_new(&stats, opened, &query, NULL), COFFER_OK);
    assert_in_range(counter.passes, 2, 3);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(opened);
    coffer_source_close(src);
    model_trace_free(&trace);
}

static void without_a_place_to_spill_to_it_is_an_error(void **state)
{
    (void)state;
    static const model_kind kind = { 40000, 40000, 1, 1, BLOCKS, 2500, true };
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    model_trace trace;
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    model_trace_new(&trace, &kind, 1);
    coffer_source *src = trace_source(&trace.built);
    coffer_mlyze *opened = trace_open(src, NULL);
    query.limits = &limits;
    limits.memory_bytes = 1;
    setenv("TMPDIR", "/nowhere/to/be/found", 1);
    assert_int_equal(coffer_mlyze_stats_new(&stats, opened, &query, NULL), COFFER_E_IO);
    assert_null(stats);
    limits.memory_bytes = 64 << 20;
    assert_int_equal(coffer_mlyze_stats_new(&stats, opened, &query, NULL), COFFER_OK);
    coffer_mlyze_stats_free(stats);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
    coffer_mlyze_close(opened);
    coffer_source_close(src);
    model_trace_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_does_not_fit_gives_the_same_answers),
        cmocka_unit_test(a_tiny_limit_costs_few_passes),
        cmocka_unit_test(without_a_place_to_spill_to_it_is_an_error),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
