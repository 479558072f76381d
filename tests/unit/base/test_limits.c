#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/options.h"
#include "coffer/progress.h"
#include "coffer/source.h"

static void nothing_given_means_the_defaults(void **state)
{
    (void)state;
    coffer_limits defaults = COFFER_LIMITS_INIT, limits = coffer__limits(NULL);
    assert_int_equal(limits.struct_size, sizeof limits);
    assert_int_equal(limits.json_depth, 256);
    assert_true(limits.json_bytes == UINT64_C(1) << 30);
    assert_true(limits.entries == defaults.entries);
    assert_true(limits.string_bytes == defaults.string_bytes);
    assert_true(limits.memory_bytes == defaults.memory_bytes);
    assert_int_equal(limits.findings, 1000);
}

static void what_is_given_counts(void **state)
{
    (void)state;
    coffer_limits given = COFFER_LIMITS_INIT;
    given.json_depth = 3;
    given.findings = 7;
    coffer_limits limits = coffer__limits(&given);
    assert_int_equal(limits.json_depth, 3);
    assert_int_equal(limits.findings, 7);
}

static void an_older_and_shorter_struct_leaves_the_rest_at_the_defaults(void **state)
{
    (void)state;
    coffer_limits given = { 0 };
    given.struct_size = offsetof(coffer_limits, json_bytes);
    given.json_depth = 9;
    coffer_limits limits = coffer__limits(&given);
    assert_int_equal(limits.json_depth, 9);
    assert_true(limits.json_bytes == UINT64_C(1) << 30);
    assert_int_equal(limits.findings, 1000);
    assert_int_equal(limits.struct_size, sizeof limits);
}

static void a_newer_and_longer_struct_is_read_as_far_as_it_is_known(void **state)
{
    (void)state;
    struct {
        coffer_limits known;
        uint64_t later[4];
    } given = { COFFER_LIMITS_INIT, { 1, 2, 3, 4 } };
    given.known.struct_size = sizeof given;
    given.known.entries = 5;
    coffer_limits limits = coffer__limits(&given.known);
    assert_int_equal(limits.entries, 5);
    assert_int_equal(limits.struct_size, sizeof limits);
}

static void init_functions_give_the_values_of_the_macros(void **state)
{
    (void)state;
    coffer_limits limits, default_limits = COFFER_LIMITS_INIT;
    coffer_limits_init(&limits, sizeof limits);
    assert_int_equal(limits.struct_size, sizeof limits);
    assert_int_equal(limits.findings, default_limits.findings);
    assert_true(limits.memory_bytes == default_limits.memory_bytes);

    coffer_progress progress = { 1, NULL, &limits };
    coffer_progress_init(&progress, sizeof progress);
    assert_int_equal(progress.struct_size, sizeof progress);
    assert_null(progress.context);

    coffer_source_opts opts;
    coffer_source_opts_init(&opts, sizeof opts);
    assert_int_equal(opts.struct_size, sizeof opts);
    assert_false(opts.ignore_journal);

    coffer_source_ops ops;
    coffer_source_ops_init(&ops, sizeof ops);
    assert_int_equal(ops.struct_size, sizeof ops);
    assert_null(ops.close);
}

static void init_writes_no_more_than_the_callers_struct(void **state)
{
    (void)state;
    coffer_limits limits;
    memset(&limits, 0xAB, sizeof limits);
    coffer_limits_init(&limits, offsetof(coffer_limits, json_bytes));
    assert_int_equal(limits.struct_size, offsetof(coffer_limits, json_bytes));
    assert_int_equal(limits.json_depth, 256);
    assert_true(limits.json_bytes == UINT64_C(0xABABABABABABABAB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_means_the_defaults),
        cmocka_unit_test(what_is_given_counts),
        cmocka_unit_test(an_older_and_shorter_struct_leaves_the_rest_at_the_defaults),
        cmocka_unit_test(a_newer_and_longer_struct_is_read_as_far_as_it_is_known),
        cmocka_unit_test(init_functions_give_the_values_of_the_macros),
        cmocka_unit_test(init_writes_no_more_than_the_callers_struct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
