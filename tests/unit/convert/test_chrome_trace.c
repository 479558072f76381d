/* The events are those that the trace event format describes: an object for each, with name, ph, ts and pid.
 */
#include "base/json.h"
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct seen {
    uint64_t counters, markers, collections, begun, ended, highest, last_time;
} seen;

static const coffer__json_value *need(const coffer__json_value *object, const char *key,
                                      coffer__json_kind kind)
{
    const coffer__json_value *value = coffer__json_find(object, key);
    assert_non_null(value);
    assert_int_equal(value->kind, kind);
    return value;
}

static void look_at(seen *all, const coffer__json_value *event)
{
    const char *phase = need(event, "ph", COFFER__JSON_STRING)->as.string;
    const char *name = need(event, "name", COFFER__JSON_STRING)->as.string;
    uint64_t time = need(event, "ts", COFFER__JSON_U64)->as.u64;
    assert_int_equal(need(event, "pid", COFFER__JSON_U64)->as.u64, 1);
    if (strcmp(phase, "C") == 0) {
        const coffer__json_value *value = coffer__json_first(need(event, "args", COFFER__JSON_OBJECT));
        assert_int_equal(value->kind, COFFER__JSON_U64);
        if (strcmp(name, "live bytes") == 0) {
            all->counters++;
            all->highest = value->as.u64 > all->highest ? value->as.u64 : all->highest;
            assert_true(time >= all->last_time);
            all->last_time = time;
        }
    } else if (strcmp(phase, "i") == 0) {
        assert_string_equal(need(event, "s", COFFER__JSON_STRING)->as.string, "g");
        if (strcmp(name, "gc") == 0)
            all->collections++;
        else
            all->markers++;
    } else if (strcmp(phase, "b") == 0 || strcmp(phase, "e") == 0) {
        need(event, "id", COFFER__JSON_STRING);
        need(event, "cat", COFFER__JSON_STRING);
        all->begun += phase[0] == 'b';
        all->ended += phase[0] == 'e';
    } else {
        assert_string_equal(phase, "M");
    }
}

static seen look_through(const char *name)
{
    seen all = { 0 };
    coffer__json *json = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    char *text = profile_text(name);
    if (coffer__json_parse(&json, text, strlen(text), 0, &limits, &err))
        fail_msg("%s: %s", name, err.text);
    const coffer__json_value *events = need(coffer__json_root(json), "traceEvents", COFFER__JSON_ARRAY);
    for (const coffer__json_value *event = coffer__json_first(events); event;
         event = coffer__json_next(events, event))
        look_at(&all, event);
    coffer__json_free(json);
    free(text);
    return all;
}

static void counters_reach_the_peak_at_any_resolution(void **state)
{
    (void)state;
    static const char *const resolutions[] = { "0", "1", "1000", "9223372036854775807" };
    profile_sample("s.mlyze", 3000);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    for (size_t i = 0; i < sizeof resolutions / sizeof *resolutions; i++) {
        profile_must("s.mlyze", "s.trace.json", "resolution", resolutions[i], NULL);
        seen all = look_through("s.trace.json");
        assert_int_equal(all.highest, totals.peak_bytes);
        assert_int_equal(all.markers, totals.markers);
        assert_int_equal(all.collections, totals.collections);
        assert_int_equal(all.begun + all.ended, 0);
    }
}

static void every_allocation_is_a_span_when_asked_for(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 3000);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    profile_must("s.mlyze", "s.trace.json", "allocations", NULL, NULL);
    seen all = look_through("s.trace.json");
    assert_int_equal(all.begun, totals.allocs);
    assert_int_equal(all.ended, totals.frees);
}

static void a_window_knows_what_was_live_before_it(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 3000);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    char window[64];
    snprintf(window, sizeof window, "%u..%u", (unsigned)totals.peak_event, (unsigned)totals.peak_event + 1);
    profile_must("s.mlyze", "w.trace.json", "window", window, NULL);
    seen all = look_through("w.trace.json");
    assert_int_equal(all.counters, 1);
    assert_int_equal(all.highest, totals.peak_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_reach_the_peak_at_any_resolution),
        cmocka_unit_test(every_allocation_is_a_span_when_asked_for),
        cmocka_unit_test(a_window_knows_what_was_live_before_it),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
