/* The trace that the Python program memlyze wrote. */
#include "support/trace.h"

#include <stdio.h>
#include <string.h>

static coffer_source *open_as(coffer_access access)
{
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    coffer_source *src = NULL;
    opts.access = access;
    assert_int_equal(
        coffer_source_open(&src, COFFER_TEST_DATA "/compat/mlyze/memlyze-0.1.mlyze", &opts, NULL), COFFER_OK);
    return src;
}

static void its_events_and_markers_are_read(void **state)
{
    (void)state;
    for (coffer_access access = COFFER_ACCESS_AUTO; access <= COFFER_ACCESS_READ; access++) {
        coffer_source *src = open_as(access);
        coffer_mlyze *trace = trace_open(src, NULL);
        coffer_mlyze_events all = trace_read_all(trace);
        uint64_t markers = 0;
        for (size_t i = 0; i < all.count; i++)
            markers += all.type[i] == COFFER_MLYZE_MARKER;
        assert_int_equal(all.count, 101);
        assert_int_equal(markers, 3);
        assert_string_equal(coffer_mlyze_profile_name(trace), "memlyze");
        assert_int_equal(coffer_mlyze_damage(trace, NULL), COFFER_OK);
        trace_columns_free(&all);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
    }
}

static void check_says_why_it_cannot_be_resolved(void **state)
{
    coffer_report *report = NULL;
    coffer_source *src = open_as(COFFER_ACCESS_AUTO);
    (void)state;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 2); /* stacks, marker names */
    assert_int_equal(coffer_report_total(report, COFFER_WARNING), 2);
    assert_int_equal(coffer_report_at(report, 0)->code, COFFER_E_DANGLING_REFERENCE);
    assert_non_null(strstr(coffer_report_at(report, 0)->text, "memlyze writes its tables at the start"));
    coffer_report_free(report);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_events_and_markers_are_read),
        cmocka_unit_test(check_says_why_it_cannot_be_resolved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
