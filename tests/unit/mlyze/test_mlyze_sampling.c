/* The stated error of a sampled trace covers the truth as often as it says. */
#include "support/trace.h"

#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

enum { INTERVAL = 4096, BLOCKS = 600, TRIALS = 1000 };

static uint64_t random_state = 1;

static double random_unit(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) / 9007199254740992.0;
}

/* Small and large blocks, the same in every trial. */
static double size_of(int block)
{
    return block % 50 == 0 ? 20000 + block : block % 7 == 0 ? 3000 : 16 + block % 200;
}

static void the_interval_covers_the_truth_in_95_of_100_samples(void **state)
{
    trace_builder made;
    double truth = 0;
    int covered = 0, tight = 0;
    (void)state;
    trace_begin(&made, 0, "{\"sampling_bytes\":4096}");
    trace_finish(&made);
    coffer_source *src = trace_source(&made);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_sampling_bytes(trace), INTERVAL);
    assert_int_equal(coffer_mlyze_sampling_error(trace, 100), 80282);
    assert_int_equal(coffer_mlyze_sampling_error(trace, 0), 0);
    for (int i = 0; i < BLOCKS; i++)
        truth += size_of(i);
    for (int trial = 0; trial < TRIALS; trial++) {
        double sum = 0;
        uint64_t hits = 0;
        for (int i = 0; i < BLOCKS; i++) {
            double chance = -expm1(-size_of(i) / INTERVAL);
            bool hit = random_unit() < chance;
            sum += hit ? size_of(i) / chance : 0;
            hits += hit;
        }
        double error = (double)coffer_mlyze_sampling_error(trace, hits);
        covered += fabs(sum - truth) <= error;
        tight += fabs(sum - truth) <= error / 4;
    }
    assert_true(covered >= TRIALS * 95 / 100);
    assert_true(tight <= TRIALS * 60 / 100); /* not because it is far too wide */
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&made);
}

static void a_trace_of_every_block_has_no_error(void **state)
{
    trace_builder made;
    (void)state;
    trace_sample(&made, 0, 100, 0);
    coffer_source *src = trace_source(&made);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_sampling_bytes(trace), 0);
    assert_int_equal(coffer_mlyze_sampling_error(trace, 100), 0);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_interval_covers_the_truth_in_95_of_100_samples),
        cmocka_unit_test(a_trace_of_every_block_has_no_error),
    };
    return cmocka_run_group_tests_name("mlyze_sampling", tests, temp_setup, temp_teardown);
}
