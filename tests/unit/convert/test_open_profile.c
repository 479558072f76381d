/* Files of other profilers opened as traces, without a file of ours. */
#include "coffer/mlyze.h"
#include "support/profile.h"

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TOOLS COFFER_SOURCE_ROOT "/tests/compat/mlyze-tools/"

static coffer_mlyze *open_file(const char *path, const coffer_mlyze_profile_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mlyze *trace = NULL;
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_mlyze_open_profile(&trace, src, opts, &err))
        fail_msg("%s: %s", path, err.text);
    coffer_source_close(src); /* the handle does not need it */
    return trace;
}

static void each_kind_is_opened_and_says_what_it_knows(void **state)
{
    static const struct {
        const char *name, *format, *unit;
        uint64_t peak;
        bool synthetic, total, peak_known, leaks, order;
    } files[] = {
        { "grow.heaptrack.zst", "heaptrack", NULL, 182704, false, true, true, true, true },
        { "grow.massif", "massif", "instructions", 110200, true, false, true, false, false },
        { "grow.dhat", "dhat", "instructions", 110000, true, true, true, true, false },
        { "grow.pb.gz", "pprof", NULL, 11648, true, true, false, true, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        coffer_mlyze_source_info info = COFFER_MLYZE_SOURCE_INFO_INIT;
        coffer_mlyze_stats *stats = NULL;
        snprintf(path, sizeof path, TOOLS "%s", files[i].name);
        coffer_mlyze *trace = open_file(path, NULL);
        assert_int_equal(coffer_mlyze_source_of(&info, trace, NULL), COFFER_OK);
        assert_string_equal(info.format, files[i].format);
        assert_int_equal(info.synthetic, files[i].synthetic);
        assert_int_equal(info.has_total, files[i].total);
        assert_int_equal(info.has_peak, files[i].peak_known);
        assert_int_equal(info.has_leaks, files[i].leaks);
        assert_int_equal(info.has_order, files[i].order);
        assert_int_equal(info.blocks_per_event, 1);
        if (files[i].unit)
            assert_string_equal(info.time_unit, files[i].unit);
        else
            assert_null(info.time_unit);
        assert_int_equal(coffer_mlyze_stats_new(&stats, trace, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_stats_totals(stats)->peak_bytes, files[i].peak);
        coffer_mlyze_stats_free(stats);
        coffer_mlyze_close(trace);
    }
}

static void values_of_the_metadata_are_found_by_path(void **state)
{
    static const struct {
        const char *path, *json;
    } values[] = {
        { "source.format", "\"massif\"" },
        { "source", "{\"format\":\"massif\",\"synthetic\":true,\"time_unit\":\"instructions\"}" },
        { "stack_traces.3.0.line", "37" },
        { "command", "\"./grow\"" },
    };
    coffer_mlyze *trace = open_file(TOOLS "grow.massif", NULL);
    char *json = NULL;
    size_t len = 0;
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(coffer_mlyze_metadata_json(&json, &len, trace, values[i].path, NULL), COFFER_OK);
        assert_string_equal(json, values[i].json);
        assert_int_equal(len, strlen(json));
        coffer_free(json);
    }
    assert_int_equal(coffer_mlyze_metadata_json(&json, &len, trace, "", NULL), COFFER_OK);
    assert_int_equal(json[0], '{');
    coffer_free(json);
    assert_int_equal(coffer_mlyze_metadata_json(&json, &len, trace, "source.none", NULL), COFFER_E_NOT_FOUND);
    assert_int_equal(coffer_mlyze_metadata_json(&json, &len, trace, "command.x", NULL), COFFER_E_NOT_FOUND);
    coffer_mlyze_close(trace);
}

static void other_files_and_truncated_ones_are_refused(void **state)
{
    coffer_mlyze_profile_opts opts = COFFER_MLYZE_PROFILE_OPTS_INIT;
    coffer_mlyze *trace = NULL;
    coffer_source *src = NULL;
    (void)state;
    profile_write("a.csv", "a,b\n1,2\n");
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "a.csv"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_open_profile(&trace, src, NULL, NULL), COFFER_E_UNSUPPORTED);
    coffer_source_close(src);
    profile_write("cut.heaptrack", "v 10500 3\nX app\nI 1000 100\ns 4 main\ni 10 0 1\nt 1 0\na 5 1\n+ 0\n+ ");
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "cut.heaptrack"), NULL, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mlyze_open_profile(&trace, src, NULL, NULL), COFFER_E_TRUNCATED);
    assert_null(trace);
    opts.partial = true;
    assert_int_equal(coffer_mlyze_open_profile(&trace, src, &opts, NULL), COFFER_OK);
    uint64_t events = 0;
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(events, 1);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_opened_and_says_what_it_knows),
        cmocka_unit_test(values_of_the_metadata_are_found_by_path),
        cmocka_unit_test(other_files_and_truncated_ones_are_refused),
    };
    return cmocka_run_group_tests_name("open_profile", tests, temp_setup, temp_teardown);
}
