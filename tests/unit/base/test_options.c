#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/options.h"
#include "coffer/coffer.h"
#include "unit/mscan/mscan_sample.h"

#define PARAMS "{\"0\": \"a\", \"1\": \"b\"}"
#define SEQUENCES "[{\"sequence_id\": 0, \"num_tokens\": 1}]"

static void open_two_records(sample *scan)
{
    coffer_mscan_record *records = calloc(2, sizeof *records);
    records[1].param_id = 1;
    sample_open(scan, PARAMS, SEQUENCES, records, 2);
}

static void options_that_do_not_give_their_size_are_refused(void **state)
{
    (void)state;
    coffer_mscan_stats_opts query = { .by = COFFER_MSCAN_BY_PARAM };
    coffer_mscan_grid_opts grid_opts = { .width = 1 };
    coffer_check_opts check_opts = { .full = true };
    coffer_list_opts list_opts = { .what = "params" };
    coffer_diff_opts diff_opts = { .tolerance = 1 };
    coffer_repair_opts repair_opts = { .keep_tail = true };
    coffer_mscan_open_opts open_opts = { .lenient = true };
    coffer_mscan_replay_opts replay_opts = { 0 };
    coffer_mscan_writer_opts write_opts = { .overwrite = true };
    coffer_source_opts source_opts = { .access = COFFER_ACCESS_READ };
    coffer_source_ops ops = { 0 };
    sample scan;
    open_two_records(&scan);
    const coffer_status expected = COFFER_E_INVALID_ARGUMENT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mscan_stats_new(NULL, scan.scan, &query, &err), expected);
    assert_non_null(strstr(err.text, "struct_size is 0"));
    assert_int_equal(coffer_mscan_scores_new(NULL, scan.scan, &query, NULL), expected);
    assert_int_equal(coffer_mscan_grid_new(NULL, scan.scan, &grid_opts, NULL), expected);
    assert_int_equal(coffer_check(NULL, scan.source, &check_opts, NULL), expected);
    assert_int_equal(coffer_list(NULL, scan.source, &list_opts, NULL), expected);
    assert_int_equal(coffer_diff(NULL, scan.source, scan.source, &diff_opts, NULL), expected);
    assert_int_equal(coffer_repair(NULL, scan.source, "never", &repair_opts, NULL), expected);
#ifndef COFFER__PORTABLE
    coffer_convert_opts convert_opts = { .to = "csv" };
    assert_int_equal(coffer_convert(scan.source, "never", &convert_opts, NULL), expected);
#endif
    assert_int_equal(coffer_mscan_open(NULL, scan.source, &open_opts, NULL), expected);
    assert_int_equal(coffer_mscan_replay_new(NULL, scan.scan, &replay_opts, NULL), expected);
    assert_int_equal(coffer_mscan_writer_create(NULL, "never", &write_opts, NULL), expected);
    assert_int_equal(coffer_mscan_writer_append_to(NULL, "never", &write_opts, NULL), expected);
    assert_int_equal(coffer_source_open(NULL, "never", &source_opts, NULL), expected);
    assert_int_equal(coffer_source_new(NULL, &ops, NULL, 0, "none", NULL), expected);
    sample_close(&scan);
}

static void an_older_caller_gets_what_it_knows_and_the_defaults_of_the_rest(void **state)
{
    (void)state;
    coffer_mscan_stats_opts query;
    coffer_mscan_stats *stats = NULL;
    sample scan;
    memset(&query, 0xee, sizeof query);
    query.struct_size = offsetof(coffer_mscan_stats_opts, param_glob);
    query.by = COFFER_MSCAN_BY_PARAM;
    open_two_records(&scan);
    assert_int_equal(coffer_mscan_stats_new(&stats, scan.scan, &query, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_count(stats), 2);
    coffer_mscan_stats_free(stats);
    sample_close(&scan);
}

static void a_newer_caller_is_read_as_far_as_it_is_known(void **state)
{
    (void)state;
    struct {
        coffer_mscan_stats_opts known;
        const char *later;
    } query = { COFFER_MSCAN_STATS_OPTS_INIT, "later" };
    coffer_mscan_stats *stats = NULL;
    sample scan;
    query.known.struct_size = sizeof query;
    query.known.param_glob = "b";
    open_two_records(&scan);
    assert_int_equal(coffer_mscan_stats_new(&stats, scan.scan, &query.known, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_stats_total(stats)->count, 1);
    coffer_mscan_stats_free(stats);
    sample_close(&scan);
}

static void limits_without_a_size_are_the_defaults(void **state)
{
    (void)state;
    coffer_limits limits = COFFER_LIMITS_INIT;
    for (uint32_t size = 0; size < sizeof size; size++) {
        coffer_limits given = { .struct_size = size };
        coffer__copy_options(&limits, sizeof limits, &given);
        assert_int_equal(limits.struct_size, sizeof limits);
        assert_int_equal(limits.json_depth, 256);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_do_not_give_their_size_are_refused),
        cmocka_unit_test(an_older_caller_gets_what_it_knows_and_the_defaults_of_the_rest),
        cmocka_unit_test(a_newer_caller_is_read_as_far_as_it_is_known),
        cmocka_unit_test(limits_without_a_size_are_the_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
