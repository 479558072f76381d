#include "support/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* For a second: stack 0 leaks 1000 bytes every millisecond, stack 1 goes up and down, stack 2^50 holds still.
 */
static void put_events(trace_builder *to)
{
    uint64_t address = 0x1000;
    trace_begin(to, COFFER__MLYZE_FLAG_BLOCKS, NULL);
    trace_alloc(to, 0, 8, 12345, UINT64_C(1) << 50, 1);
    for (int i = 0; i < 1000; i++) {
        trace_alloc(to, 500, address, 1000, 0, 1);
        address += 16;
        if (i % 100 < 50)
            trace_alloc(to, 500, UINT64_C(0x900000) + (uint64_t)(i % 50) * 16, 500, 1, 2);
        else
            trace_free(to, 500, UINT64_C(0x900000) + (uint64_t)(i % 50) * 16);
        if (i % 30 == 0)
            trace_end_block(to, true);
    }
    trace_finish(to);
}

static const coffer_mlyze_stack_row *row_of(const coffer_mlyze_stats *stats, uint64_t id)
{
    for (size_t i = 0; i < coffer_mlyze_stats_stack_count(stats); i++) {
        if (coffer_mlyze_stats_stack_at(stats, i)->id == id)
            return coffer_mlyze_stats_stack_at(stats, i);
    }
    fail_msg("no row for %llu", (unsigned long long)id);
    return NULL;
}

static void a_growing_stack_is_distinguished_from_others(void **state)
{
    (void)state;
    static const uint64_t limits_of_memory[] = { UINT64_C(1) << 30, 1 };
    trace_builder built;
    put_events(&built);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        coffer_limits limits = COFFER_LIMITS_INIT;
        coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
        coffer_mlyze_stats *stats = NULL;
        limits.memory_bytes = limits_of_memory[threads % 2];
        query.threads = threads;
        query.growth_windows = 20;
        query.limits = &limits;
        assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, NULL), COFFER_OK);
        const coffer_mlyze_stack_row *leak = row_of(stats, 0);
        assert_true(fabs(leak->growth_bytes_per_s - 1e6) < 1e4);
        assert_true(leak->growth_fit > 0.999);
        const coffer_mlyze_stack_row *wave = row_of(stats, 1);
        assert_true(fabs(wave->growth_bytes_per_s) < 1e4);
        assert_true(wave->growth_fit < 0.2);
        const coffer_mlyze_stack_row *still = row_of(stats, UINT64_C(1) << 50);
        assert_true(still->growth_bytes_per_s == 0 && still->growth_fit == 0);
        coffer_mlyze_stats_free(stats);
    }
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

static void without_times_growth_is_measured_over_events(void **state)
{
    (void)state;
    trace_builder built;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze_stats *stats = NULL;
    trace_begin(&built, 0, NULL);
    for (uint64_t i = 1; i < 100; i++)
        trace_alloc(&built, 0, i * 16, 10, 0, 1);
    trace_finish(&built);
    coffer_source *src = trace_source(&built);
    coffer_mlyze *trace = trace_open(src, NULL);
    query.growth_windows = 5;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_stats_totals(stats)->growth_by_events, 1);
    assert_true(fabs(row_of(stats, 0)->growth_bytes_per_s - 10) < 0.2);
    assert_true(coffer_mlyze_stack_row_is_growing(row_of(stats, 0)));
    coffer_mlyze_stats_free(stats);
    stats = NULL;
    query.growth_windows = UINT32_MAX;
    assert_int_equal(coffer_mlyze_stats_new(&stats, trace, &query, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_null(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&built);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growing_stack_is_distinguished_from_others),
        cmocka_unit_test(without_times_growth_is_measured_over_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
