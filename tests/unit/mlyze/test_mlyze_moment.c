/* Moments as people write them. */
#include "support/trace.h"

#include <string.h>

static coffer_mlyze *trace;

static void assert_moment(const char *text, uint64_t expected)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t event = UINT64_MAX;
    if (coffer_mlyze_find_moment(&event, trace, text, &err))
        fail_msg("%s: %s", text, err.text);
    assert_int_equal(event, expected);
}

static void assert_none(const char *text, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t event;
    assert_int_equal(coffer_mlyze_find_moment(&event, trace, text, &err), COFFER_E_NOT_FOUND);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

/* Events at 0, 10 ms, 10 ms, 1 s, 2 s: alloc, "main", "work", "main", free. */
static void moments_are_times_events_and_markers(uint32_t flags)
{
    trace_builder t;
    trace_begin(&t, flags,
                "{\"functions\": {\"0\": \"main\", \"1\": \"work\", \"2\": \"a@1\", \"3\": \"main\"}}");
    trace_alloc(&t, 0, 16, 1, 0, 0);
    trace_marker(&t, 10000, 0);
    trace_marker(&t, 0, 1);
    if (flags & COFFER__MLYZE_FLAG_BLOCKS)
        trace_end_block(&t, true);
    trace_marker(&t, 990000, 3);
    trace_marker(&t, 0, 2);
    trace_free(&t, 1000000, 16);
    trace_finish(&t);
    coffer_source *src = trace_source(&t);
    trace = trace_open(src, NULL);
    assert_moment("0", 0);
    assert_moment("4", 4);
    assert_moment("6", 6);
    assert_moment("99", 6);
    assert_moment("0s", 0);
    assert_moment("1us", 1);
    assert_moment("10ms", 1);
    assert_moment("11ms", 3);
    assert_moment("1s", 3);
    assert_moment("1.5s", 5);
    assert_moment("2s", 5);
    assert_moment("3s", 6);
    assert_moment("main", 1);
    assert_moment("main@1", 1);
    assert_moment("main@2", 3);
    assert_moment("work", 2);
    assert_moment("a@1", 4);
    assert_moment("a@1@1", 4);
    assert_none("main@3", "2 such markers");
    assert_none("nothing", "markers: main, work, main, a@1");
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void moments_of_a_plain_trace_are_found(void **state)
{
    (void)state;
    moments_are_times_events_and_markers(0);
}

static void moments_of_a_compressed_trace_are_found(void **state)
{
    (void)state;
    moments_are_times_events_and_markers(COFFER__MLYZE_FLAG_BLOCKS);
}

static void an_empty_trace_has_no_moments_but_its_end(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, "{}");
    coffer_source *src = trace_source(&t);
    trace = trace_open(src, NULL);
    assert_moment("0", 0);
    assert_moment("5s", 0);
    assert_none("x", "markers: none");
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_of_a_plain_trace_are_found),
        cmocka_unit_test(moments_of_a_compressed_trace_are_found),
        cmocka_unit_test(an_empty_trace_has_no_moments_but_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
