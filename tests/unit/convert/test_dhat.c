#include "convert/traces/mlyze_import.h"
#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_OF(version, mode, points, frames)                     \
    "{\"dhatFileVersion\":" version ",\"mode\":\"" mode            \
    "\",\"verb\":\"Allocated\",\"cmd\":\"./prog\",\"tu\":\"µs\"," \
    "\"te\":50,\"tg\":20,\"pps\":[" points "],\"ftbl\":[" frames "]}"
#define FRAMES "\"[root]\",\"0x10: grab (g.c:9)\",\"0x20: main (g.c:17)\""
#define GOOD(points) FILE_OF("2", "heap", points, FRAMES)

static void a_profile_keeps_total_peak_and_end_of_each_stack(void **state)
{
    (void)state;
    profile_write(
        "a.dhat",
        GOOD("{\"tb\":1000,\"tbk\":10,\"tl\":5,\"mb\":1,\"mbk\":1,\"gb\":300,\"gbk\":3,\"eb\":100,\"ebk\":1,"
             "\"fs\":[1,2]},{\"tb\":64,\"tbk\":2,\"gb\":0,\"gbk\":0,\"eb\":40,\"ebk\":1,\"fs\":[2]}"));
    profile_must("a.dhat", "a.mlyze", NULL);
    profile_expect("a.mlyze", 12, 1064, 300, 140);
    coffer_mlyze_totals totals = profile_totals("a.mlyze");
    assert_int_equal(totals.live_allocs_at_end, 2);
    assert_int_equal(totals.peak_allocs, 3);
    assert_int_equal(totals.peak_time_us, 20);
    assert_int_equal(totals.duration_us, 50);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "total"), 1000);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "peak"), 300);
    assert_int_equal(profile_bytes("a.mlyze", "main", "leaks"), 40);
}

/* The blocks live at the peak and those live at the end may be the same, distinct, or overlap. */
static void bytes_are_exact_whatever_the_sizes_say(void **state)
{
    (void)state;
    static const int64_t cases[][6] = { /* total, peak and end: bytes and blocks */
                                        { 110, 2, 100, 1, 10, 1 },   { 160, 3, 150, 2, 10, 1 },
                                        { 100, 1, 100, 1, 90, 1 },   { 100, 1, 100, 1, 100, 1 },
                                        { 500, 7, 0, 0, 0, 0 },      { 90, 3, 30, 1, 90, 3 },
                                        { 100, 10, 100, 10, 50, 2 }, { 7, 3, 7, 3, 5, 2 }
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *n = cases[i];
        char text[600];
        snprintf(text, sizeof text,
                 GOOD("{\"tb\":%ld,\"tbk\":%ld,\"gb\":%ld,\"gbk\":%ld,\"eb\":%ld,\"ebk\":%ld,\"fs\":[1]},"
                      "{\"tb\":1000,\"tbk\":1,\"gb\":1000,\"gbk\":1,\"eb\":0,\"ebk\":0,\"fs\":[2]}"),
                 (long)n[0], (long)n[1], (long)n[2], (long)n[3], (long)n[4], (long)n[5]);
        profile_write("c.dhat", text);
        profile_must("c.dhat", "c.mlyze", NULL);
        profile_expect("c.mlyze", -1, n[0] + 1000, n[2] + 1000, n[4]);
    }
}

static void more_blocks_than_the_limit_are_put_together(void **state)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    profile_write("many.dhat",
                  GOOD("{\"tb\":1152921504606846976,\"tbk\":1152921504606846,\"gb\":4096000,\"gbk\":1000000,"
                       "\"eb\":4096,\"ebk\":1000,\"fs\":[1,2]}"));
    assert_int_equal(profile_convert(&err, &limits, "many.dhat", "many.mlyze", NULL), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "\"max-events\" raises that, \"merge\" makes fewer"));
    /* Keeping the peak would take that number of events. */
    assert_int_equal(profile_convert(&err, &limits, "many.dhat", "many.mlyze", "merge", NULL, NULL),
                     COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, " times the bytes of its peak"));
    profile_write("many.dhat",
                  GOOD("{\"tb\":4096000000,\"tbk\":1152921504606846,\"gb\":4096000,\"gbk\":1000000,"
                       "\"eb\":4096,\"ebk\":1000,\"fs\":[1,2]}"));
    if (profile_convert(&err, &limits, "many.dhat", "many.mlyze", "merge", NULL, "max-events", "2000", NULL))
        fail_msg("%s", err.text);
    coffer_mlyze_totals totals = profile_totals("many.mlyze");
    assert_int_equal(totals.total_allocated_bytes, UINT64_C(4096000000));
    assert_int_equal(totals.peak_bytes, 4096000);
    assert_int_equal(totals.live_bytes_at_end, 4096);
    assert_true(totals.allocs < 5000);
}

static void other_profiles_are_refused(void **state)
{
    (void)state;
    profile_refuses_text("b.dhat", FILE_OF("3", "heap", "", FRAMES), COFFER_E_UNSUPPORTED_VERSION,
                         "dhatFileVersion 3");
    profile_refuses_text("b.dhat", FILE_OF("2", "copy", "", FRAMES), COFFER_E_UNSUPPORTED, "\"copy\"");
    profile_refuses_text("b.dhat", "{\"dhatFileVersion\":2,\"pps\":[]}", COFFER_E_MISSING, "ftbl");
    profile_refuses_text("b.dhat", "{\"dhatFileVersion\":2,\"ftbl\":[\"a\"]}", COFFER_E_MISSING, "pps");
    profile_refuses_text("b.dhat", GOOD("{\"tb\":1,\"fs\":[1]}"), COFFER_E_MISSING,
                         "program point 0 of \"pps\": no \"tbk\"");
    profile_refuses_text("b.dhat", GOOD("{\"tb\":-1,\"tbk\":1,\"fs\":[1]}"), COFFER_E_BAD_VALUE, "\"tb\"");
    profile_refuses_text("b.dhat", GOOD("{\"tb\":9223372036854775808,\"tbk\":1,\"fs\":[1]}"),
                         COFFER_E_BAD_VALUE, "\"tb\"");
    profile_refuses_text("b.dhat", GOOD("{\"tb\":1,\"tbk\":1,\"fs\":[3]}"), COFFER_E_DANGLING_REFERENCE,
                         "the 3 in \"ftbl\"");
    profile_refuses_text("b.dhat", GOOD("7"), COFFER_E_MISSING, "program point 0");
    profile_refuses_text("b.dhat", FILE_OF("2", "heap", "", "5"), COFFER_E_BAD_VALUE, "frame 0");
    profile_refuses_text("b.dhat", "{\"dhatFileVersion\":2,", COFFER_E_BAD_JSON, "");
}

static void a_sample_survives_the_way_there_and_back(void **state)
{
    (void)state;
    static const char *const what[] = { "peak", "leaks", "total" };
    profile_sample("s.mlyze", 6000);
    profile_must("s.mlyze", "s.dhat", NULL);
    profile_must("s.dhat", "back.mlyze", NULL);
    coffer_mlyze_totals totals = profile_totals("s.mlyze");
    profile_expect("back.mlyze", (int64_t)totals.allocs, (int64_t)totals.total_allocated_bytes,
                   (int64_t)totals.peak_bytes, (int64_t)totals.live_bytes_at_end);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        profile_same("s.mlyze", "back.mlyze", what[i]);
}

static void everything_that_the_viewer_asks_for_is_there(void **state)
{
    (void)state;
    static const char *const keys[] = { "dhatFileVersion",
                                        "mode",
                                        "verb",
                                        "bklt",
                                        "bkacc",
                                        "tu",
                                        "Mtu",
                                        "tuth",
                                        "cmd",
                                        "pid",
                                        "te",
                                        "tg",
                                        "pps",
                                        "ftbl",
                                        "tb",
                                        "tbk",
                                        "tl",
                                        "mb",
                                        "mbk",
                                        "gb",
                                        "gbk",
                                        "eb",
                                        "ebk",
                                        "fs" };
    profile_sample("s.mlyze", 100);
    profile_must("s.mlyze", "s.dhat", NULL);
    char *text = profile_text("s.dhat");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[32];
        snprintf(key, sizeof key, "\"%s\":", keys[i]);
        if (!strstr(text, key))
            fail_msg("no %s", key);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_keeps_total_peak_and_end_of_each_stack),
        cmocka_unit_test(bytes_are_exact_whatever_the_sizes_say),
        cmocka_unit_test(more_blocks_than_the_limit_are_put_together),
        cmocka_unit_test(other_profiles_are_refused),
        cmocka_unit_test(a_sample_survives_the_way_there_and_back),
        cmocka_unit_test(everything_that_the_viewer_asks_for_is_there),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
