#include "support/trace_model.h"

#define BLOCKS (COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS)

static void hold_kind(const model_kind *kind, uint64_t seed, const coffer_mlyze_stats_opts *query)
{
    model_trace trace;
    model_trace_new(&trace, kind, seed);
    model_hold(&trace, query);
    model_trace_free(&trace);
}

static void a_random_trace_is_what_a_plain_array_says(void **state)
{
    (void)state;
    static const model_kind kinds[] = {
        { 3000, 50, 7, 3, 0, 0, false },
        { 20000, 3000, 5, 1, BLOCKS, 700, true },
        { 20000, 9000, 6, 5, BLOCKS, 64, false },
        { 500, 3, 8, 250, BLOCKS, 7, false },
        { 1, 1, 0, 1, 0, 0, true },
        { 60000, 60000, 2, 2, BLOCKS, 3000, true },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
            query.reuse = seed % 2;
            hold_kind(&kinds[i], seed * 100 + i, &query);
        }
    }
}

static void windows_count_the_events_inside(void **state)
{
    (void)state;
    static const model_kind kind = { 5000, 300, 7, 4, BLOCKS, 97, false };
    static const uint64_t windows[][2] = {
        { 0, 0 },       { 1, 2 },       { 96, 97 },     { 97, 194 },
        { 2500, 2500 }, { 4999, 5000 }, { 100, 4000 },  { 4000, UINT64_MAX },
        { 9000, 9999 }, { 0, 1 },       { 3000, 3500 }, { 10, 9 }
    };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
        query.begin = windows[i][0];
        query.end = windows[i][1];
        query.min_age_us = i % 3 * 500;
        query.min_size = i % 2 * 4000;
        hold_kind(&kind, 17 + i, &query);
    }
}

static void temporary_allocations_are_reported_in_each_way(void **state)
{
    (void)state;
    static const model_kind kind = { 8000, 40, 8, 6, BLOCKS, 131, false };
    static const uint64_t ways[][2] = { { 1, 0 }, { 5, 0 }, { 0, 10 }, { 0, 300 }, { 3, 50 }, { 0, 0 } };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
        query.temporary_allocs = ways[i][0];
        query.temporary_us = ways[i][1];
        hold_kind(&kind, 40 + i, &query);
        query.begin = 3333;
        hold_kind(&kind, 50 + i, &query);
    }
}

static void damaged_blocks_are_passed_over(void **state)
{
    (void)state;
    static const model_kind kind = { 4000, 200, 7, 3, BLOCKS, 100, false };
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    model_trace trace;
    model_trace_new(&trace, &kind, 5);
    coffer_source *src = trace_source(&trace.built);
    coffer_mlyze *opened = trace_open(src, NULL);
    size_t blocks;
    assert_int_equal(coffer_mlyze_block_count(&blocks, opened, NULL), COFFER_OK);
    for (size_t i = 0; i < blocks; i += 7) {
        coffer_mlyze_block block = trace_block(opened, i);
        trace.built.file.data[block.offset + COFFER__MLYZE_BLOCK_HEADER + 3] ^= 0x55;
        for (uint32_t k = 0; k < block.event_count; k++)
            trace.events[block.first_event + k].lost = true;
    }
    coffer_mlyze_close(opened);
    coffer_source_close(src);
    model_hold(&trace, &query);
    query.begin = 150;
    query.end = 3777;
    model_hold(&trace, &query);
    model_trace_free(&trace);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return 1;
}

static void an_analysis_can_be_cancelled(void **state)
{
    (void)state;
    trace_builder built;
    coffer_progress progress = { sizeof progress, stop_at_once, NULL };
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    trace_sample(&built, BLOCKS, 2000, 100);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    query.progress = &progress;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, NULL), COFFER_E_CANCELLED);
    assert_null(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

static void too_many_unlisted_stacks_are_a_limit(void **state)
{
    (void)state;
    trace_builder built;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    trace_begin(&built, 0, NULL);
    for (uint64_t i = 0; i < 100; i++)
        trace_alloc(&built, 1, 16 * (i + 1), 8, (UINT64_C(1) << 60) + i, 1);
    trace_finish(&built);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    query.limits = &limits;
    limits.entries = 100;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, &err), COFFER_OK);
    assert_int_equal(coffer_mlyze_stats_stack_count(stats), 100);
    coffer_mlyze_stats_free(stats);
    stats = NULL;
    limits.entries = 99;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, &err), COFFER_E_LIMIT);
    assert_null(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

static coffer_mlyze_totals totals_of(trace_builder *built, uint64_t *index_high)
{
    coffer_mlyze_stats *stats = NULL;
    size_t count = 0;
    trace_finish(built);
    coffer_source *src = trace_source(built);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_load_index(&count, trace, NULL, NULL), COFFER_OK);
    assert_int_equal(count, 1);
    coffer_mlyze_totals totals = *coffer_mlyze_stats_totals(stats);
    *index_high = coffer_mlyze_index_at(trace, 0)->high_bytes;
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(built);
    return totals;
}

static void the_largest_size_there_is_counts_as_what_it_is(void **state)
{
    (void)state;
    trace_builder built;
    uint64_t high = 0;
    trace_begin(&built, BLOCKS, NULL);
    trace_alloc(&built, 0, 16, UINT64_MAX, 0, 0);
    trace_free(&built, 1, 16);
    trace_alloc(&built, 0, 32, 5, 0, 0);
    coffer_mlyze_totals totals = totals_of(&built, &high);
    assert_true(totals.peak_bytes == UINT64_MAX && high == UINT64_MAX);
    assert_int_equal(totals.peak_event, 0);
    assert_int_equal(totals.live_bytes_at_end, 5);
}

/* Sums that pass 64 bits stop there, and come back when blocks are freed or replaced. */
static void sums_past_64_bits_stop_there_and_come_back(void **state)
{
    (void)state;
    trace_builder built;
    uint64_t high = 0;
    trace_begin(&built, BLOCKS, NULL);
    trace_alloc(&built, 0, 16, UINT64_MAX, 0, 0);
    trace_alloc(&built, 0, 32, UINT64_MAX, 0, 0);
    trace_alloc(&built, 0, 48, UINT64_MAX - 1, 1, 0);
    trace_alloc(&built, 0, 48, 7, 1, 0);
    trace_free(&built, 0, 16);
    trace_free(&built, 0, 32);
    coffer_mlyze_totals totals = totals_of(&built, &high);
    assert_true(totals.peak_bytes == UINT64_MAX && high == UINT64_MAX);
    assert_true(totals.total_allocated_bytes == UINT64_MAX);
    assert_int_equal(totals.peak_event, 2);
    assert_int_equal(totals.live_bytes_at_end, 7);
}

/* Its second block begins before its first ends. */
static void no_block_lives_shorter_than_no_time(void **state)
{
    (void)state;
    trace_builder built;
    coffer_mlyze_stats *stats = NULL;
    trace_begin(&built, BLOCKS, NULL);
    for (uint64_t i = 1; i <= 100; i++)
        trace_alloc(&built, 1000, 16 * i, 5, 0, 0);
    trace_end_block(&built, true);
    built.time = built.block_time = 7;
    for (uint64_t i = 1; i < 100; i++)
        trace_free(&built, 1, 16 * i);
    trace_finish(&built);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_stats_lifetimes(stats)->count[0], 99);
    assert_int_equal(coffer_mlyze_stats_stack_at(stats, 0)->lifetime_us, 0);
    assert_int_equal(coffer_mlyze_stats_stack_at(stats, 0)->oldest_us, 0);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_trace_is_what_a_plain_array_says),
        cmocka_unit_test(windows_count_the_events_inside),
        cmocka_unit_test(temporary_allocations_are_reported_in_each_way),
        cmocka_unit_test(damaged_blocks_are_passed_over),
        cmocka_unit_test(an_analysis_can_be_cancelled),
        cmocka_unit_test(too_many_unlisted_stacks_are_a_limit),
        cmocka_unit_test(the_largest_size_there_is_counts_as_what_it_is),
        cmocka_unit_test(sums_past_64_bits_stop_there_and_come_back),
        cmocka_unit_test(no_block_lives_shorter_than_no_time),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
