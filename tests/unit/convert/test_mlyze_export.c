#include "support/profile.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *collapsed(const char *name, const char *setting, const char *value)
{
    profile_must(name, "out.collapsed", setting, value, NULL);
    return profile_text("out.collapsed");
}

/* 100 and 20 bytes at work, 7 at main; the 100 are freed at the marker. */
static void make_three(const char *name)
{
    trace_builder made;
    trace_begin(&made, 0, NULL);
    trace_alloc(&made, 10, 0x10, 100, 1, 0);
    trace_alloc(&made, 10, 0x20, 20, 1, 3);
    trace_marker(&made, 10, 2);
    trace_free(&made, 10, 0x10);
    trace_alloc(&made, 10, 0x30, 7, 0, 0);
    trace_finish(&made);
    temp_write(temp_path(temp_folder, name), made.file.data, made.file.len);
    trace_dispose(&made);
}

static void the_sum_that_is_asked_for_is_written(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *value, *expected;
    } cases[] = {
        { "what", "peak", "work 120\n" },
        { "what", "leaks", "main;work 7\nwork 20\n" },
        { "what", "total", "main;work 7\nwork 120\n" },
        { "at", "phase two", "work 120\n" },
        { "at", "45us", "work 20\n" },
        { "at", "1", "work 100\n" },
        { "window", "2..", "work 120\n" },
        { "lines", NULL, "work (work.c:7) 120\n" },
    };
    make_three("t.mlyze");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = collapsed("t.mlyze", cases[i].setting, cases[i].value);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *value;
        coffer_status status;
    } cases[] = {
        { "what", "leak", COFFER_E_INVALID_ARGUMENT },   { "window", "5", COFFER_E_INVALID_ARGUMENT },
        { "window", "4..2", COFFER_E_INVALID_ARGUMENT }, { "at", "nowhere", COFFER_E_NOT_FOUND },
        { "depth", "3", COFFER_E_INVALID_ARGUMENT },
    };
    make_three("t.mlyze");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_equal(profile_convert(&err, NULL, "t.mlyze", "no.collapsed", cases[i].setting,
                                         cases[i].value, NULL),
                         cases[i].status);
        assert_true(err.text[0] != 0);
        assert_false(temp_exists(temp_path(temp_folder, "no.collapsed")));
    }
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(profile_convert(&err, NULL, "t.mlyze", "no.massif", "threshold", "101", NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(profile_convert(&err, NULL, "t.mlyze", "no.massif", "depth", "201", NULL),
                     COFFER_E_INVALID_ARGUMENT);
}

static void csv_has_every_event_with_its_names(void **state)
{
    (void)state;
    make_three("t.mlyze");
    profile_must("t.mlyze", "t.csv", "stacks", NULL, NULL);
    char *text = profile_text("t.csv");
    assert_string_equal(text, "event,time_us,type,address,size,id,thread,name,stack\n"
                              "0,10,alloc,16,100,1,0,work,work\n1,20,alloc,32,20,1,3,work,work\n"
                              "2,30,marker,0,0,2,0,phase two,\n3,40,free,16,0,0,0,,\n"
                              "4,50,alloc,48,7,0,0,work,main;work\n");
    free(text);
    profile_must("t.mlyze", "t.csv", "window", "2..4", NULL);
    text = profile_text("t.csv");
    assert_string_equal(text, "event,time_us,type,address,size,id,thread,name\n"
                              "2,30,marker,0,0,2,0,phase two\n3,40,free,16,0,0,0,\n");
    free(text);
}

static void names_that_are_not_known_are_question_marks(void **state)
{
    (void)state;
    static const char *const outs[] = { "m.csv",    "m.collapsed",       "m.pb.gz",      "m.dhat",
                                        "m.massif", "m.speedscope.json", "m.trace.json", "m.heaptrack" };
    const char *memlyze = COFFER_TEST_DATA "/compat/mlyze/memlyze-0.1.mlyze";
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        profile_must(memlyze, outs[i], NULL);
    char *text = collapsed(memlyze, "what", "total");
    assert_memory_equal(text, "? ", 2);
    free(text);
    profile_must("m.heaptrack", "m.mlyze", NULL);
    assert_int_equal(profile_totals("m.mlyze").allocs, profile_totals(memlyze).allocs);
}

static void a_damaged_trace_is_exported_only_when_asked_for(void **state)
{
    (void)state;
    static const char *const outs[] = { "d.collapsed", "d.csv", "d.massif", "d.heaptrack", "d.trace.json" };
    size_t len;
    profile_sample("s.mlyze", 2000);
    uint8_t *bytes = temp_read(temp_path(temp_folder, "s.mlyze"), &len);
    temp_write(temp_path(temp_folder, "cut.mlyze"), bytes, len - 5);
    bytes[len / 2] ^= 0x40;
    temp_write(temp_path(temp_folder, "hurt.mlyze"), bytes, len);
    free(bytes);
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++) {
        static const char *const ins[] = { "cut.mlyze", "hurt.mlyze" };
        for (size_t j = 0; j < 2; j++) {
            coffer_error err = COFFER_ERROR_INIT;
            if (profile_convert(&err, NULL, ins[j], outs[i], NULL) == COFFER_OK)
                fail_msg("%s to %s says nothing of the damage", ins[j], outs[i]);
            assert_false(temp_exists(temp_path(temp_folder, outs[i])));
            profile_must(ins[j], outs[i], "partial", NULL, NULL);
            remove(temp_path(temp_folder, outs[i]));
        }
    }
}

static void reused_addresses_leave_no_live_block(void **state)
{
    trace_builder made;
    (void)state;
    trace_begin(&made, 0, NULL);
    trace_alloc(&made, 1, 0x10, 100, 1, 0);
    trace_alloc(&made, 1, 0x10, 30, 1, 0);
    trace_free(&made, 1, 0x999);
    trace_alloc(&made, 1, 0, 5, 0, 0);
    trace_free(&made, 1, 0);
    trace_finish(&made);
    temp_write(temp_path(temp_folder, "again.mlyze"), made.file.data, made.file.len);
    trace_dispose(&made);
    profile_must("again.mlyze", "again.heaptrack", NULL);
    profile_must("again.heaptrack", "back.mlyze", NULL);
    coffer_mlyze_totals before = profile_totals("again.mlyze");
    profile_expect("back.mlyze", 3, 135, (int64_t)before.peak_bytes, (int64_t)before.live_bytes_at_end);
}

static void texts_with_control_characters_stay_on_their_line(void **state)
{
    static const char tables[] =
        "{\"stack_traces\": {\"0\": [{\"file_id\": 0, \"line\": 1, \"func_id\": 0}]}, "
        "\"files\": {\"0\": \"a\\nb;c\"}, \"functions\": {\"0\": \"f\\r\\n;g \\\"h\"}}";
    trace_builder made;
    (void)state;
    trace_begin(&made, 0, tables);
    trace_alloc(&made, 1, 0x10, 100, 0, 0);
    trace_finish(&made);
    temp_write(temp_path(temp_folder, "odd.mlyze"), made.file.data, made.file.len);
    trace_dispose(&made);
    char *text = collapsed("odd.mlyze", "lines", NULL);
    assert_string_equal(text, "f   g \"h (a b c:1) 100\n");
    free(text);
    static const char *const outs[] = { "odd.massif", "odd.dhat", "odd.heaptrack", "odd.pb.gz" };
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++) {
        profile_must("odd.mlyze", outs[i], NULL);
        profile_must(outs[i], "odd-back.mlyze", NULL);
        profile_expect("odd-back.mlyze", 1, 100, 100, 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_that_is_asked_for_is_written),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
        cmocka_unit_test(csv_has_every_event_with_its_names),
        cmocka_unit_test(names_that_are_not_known_are_question_marks),
        cmocka_unit_test(a_damaged_trace_is_exported_only_when_asked_for),
        cmocka_unit_test(reused_addresses_leave_no_live_block),
        cmocka_unit_test(texts_with_control_characters_stay_on_their_line),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
