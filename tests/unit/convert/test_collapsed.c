#include "support/profile.h"

#include <stdlib.h>
#include <string.h>

static void each_line_is_a_stack_from_the_outside_in(void **state)
{
    (void)state;
    profile_write("a.collapsed", "main;work;grab 100\nmain;grab 7\n# a comment\n\nmain;work;grab; 23\n");
    profile_must("a.collapsed", "a.mlyze", NULL);
    profile_expect("a.mlyze", 3, 130, 130, 130);
    assert_int_equal(profile_bytes("a.mlyze", "main;work;grab", "peak"), 123);
    assert_int_equal(profile_bytes("a.mlyze", "main;grab", "leaks"), 7);
}

static void names_with_spaces_lines_and_odd_bytes_come_through(void **state)
{
    (void)state;
    profile_write("odd.folded",
                  "operator new(unsigned long);std::vector<int, a>::grow (v.h:12) 5\r\nb\xff;c 6\n");
    profile_must("odd.folded", "odd.mlyze", NULL);
    profile_must("odd.mlyze", "back.collapsed", "lines", NULL, NULL);
    char *text = profile_text("back.collapsed");
    assert_string_equal(text,
                        "operator new(unsigned long);std::vector<int, a>::grow (v.h:12) 5\nb\\xff;c 6\n");
    free(text);
}

static void lines_without_a_number_are_refused_with_their_place(void **state)
{
    (void)state;
    static const char *const bad[] = { "a;b 1\nmain\n",
                                       "a;b 1\nmain -5\n",
                                       "a;b 1\n 5\n",
                                       "a;b 1\nmain 1.5\n",
                                       "a;b 1\nmain 99999999999999999999\n",
                                       "a;b 1\nmain 9223372036854775808\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        profile_refuses_text("bad.collapsed", bad[i], COFFER_E_BAD_VALUE, "line 2: expected frames");
}

static void sums_past_64_bits_are_refused(void **state)
{
    (void)state;
    profile_refuses_text("huge.collapsed",
                         "a 9223372036854775807\nb 9223372036854775807\nc 9223372036854775807\n",
                         COFFER_E_OUT_OF_BOUNDS, "do not fit into 64 bits");
}

static void frames_past_the_limit_are_refused(void **state)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    limits.entries = 5;
    profile_write("deep.collapsed", "a;b;c 1\nd;e;f 1\n");
    assert_int_equal(profile_convert(&err, &limits, "deep.collapsed", "deep.mlyze", NULL), COFFER_E_LIMIT);
    assert_non_null(strstr(err.text, "more than 5 frames"));
    assert_false(temp_exists(temp_path(temp_folder, "deep.mlyze")));
}

static void a_sample_keeps_the_sums_of_its_stacks(void **state)
{
    (void)state;
    profile_sample("s.mlyze", 3000);
    static const char *const what[] = { "peak", "leaks", "total", "temporaries" };
    for (size_t i = 0; i < 4; i++) {
        profile_must("s.mlyze", "s.collapsed", "what", what[i], "lines", NULL, NULL);
        char *before = profile_text("s.collapsed");
        profile_must("s.collapsed", "again.mlyze", NULL);
        profile_must("again.mlyze", "again.collapsed", "lines", NULL, NULL);
        char *after = profile_text("again.collapsed");
        assert_string_equal(before, after);
        free(before);
        free(after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_stack_from_the_outside_in),
        cmocka_unit_test(names_with_spaces_lines_and_odd_bytes_come_through),
        cmocka_unit_test(lines_without_a_number_are_refused_with_their_place),
        cmocka_unit_test(sums_past_64_bits_are_refused),
        cmocka_unit_test(frames_past_the_limit_are_refused),
        cmocka_unit_test(a_sample_keeps_the_sums_of_its_stacks),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
