#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

#include <string.h>
#include <time.h>

static bool matches(const char *pattern, const char *text)
{
    return coffer__glob_match(pattern, text, strlen(text));
}

static void a_plain_pattern_is_the_text_itself(void **state)
{
    (void)state;
    assert_true(matches("", ""));
    assert_true(matches("wq.weight", "wq.weight"));
    assert_false(matches("wq", "wq.weight"));
    assert_false(matches("wq.weight", "wq"));
    assert_false(matches("", "a"));
    assert_false(matches("a", ""));
}

static void a_star_takes_anything_across_dots_and_slashes(void **state)
{
    (void)state;
    assert_true(matches("*", ""));
    assert_true(matches("**", "a/b.c"));
    assert_true(matches("layers.*.wq", "layers.3.attention.wq"));
    assert_true(matches("*.wq.*", "a.wq.wq.b"));
    assert_true(matches("*abc", "ababcabc"));
    assert_true(matches("a*b*c", "a1b2b3c"));
    assert_false(matches("a*b*c", "a1b2b3"));
    assert_false(matches("*a", "b"));
    assert_true(matches("a*", "a"));
}

static void a_question_mark_takes_one_character(void **state)
{
    (void)state;
    assert_true(matches("layer?", "layer7"));
    assert_false(matches("layer?", "layer"));
    assert_false(matches("layer?", "layer17"));
    assert_true(matches("?", "é"));
    assert_true(matches("?", "日"));
    assert_false(matches("*??", "日"));
    assert_true(matches("*??", "日本"));
    assert_true(matches("??", "\xFF\xFE"));
}

static void a_set_takes_one_of_its_members(void **state)
{
    (void)state;
    assert_true(matches("l[0-4]", "l3"));
    assert_false(matches("l[0-4]", "l5"));
    assert_true(matches("[abc]x", "bx"));
    assert_false(matches("[abc]x", "dx"));
    assert_true(matches("[!abc]x", "dx"));
    assert_false(matches("[!a-c]x", "bx"));
    assert_true(matches("[]]", "]"));
    assert_true(matches("[!]]", "x"));
    assert_false(matches("[!]]", "]"));
    assert_true(matches("[a-]", "-"));
    assert_true(matches("[-a]", "-"));
    assert_true(matches("[α-ω]", "λ"));
    assert_false(matches("[α-ω]", "l"));
    assert_false(matches("[ab]", ""));
}

static void a_set_that_never_closes_is_plain_text(void **state)
{
    (void)state;
    assert_true(matches("a[b", "a[b"));
    assert_true(matches("[", "["));
    assert_true(matches("[!", "[!"));
    assert_true(matches("[]", "[]"));
    assert_false(matches("[b", "b"));
}

static void a_backslash_takes_the_meaning_away(void **state)
{
    (void)state;
    assert_true(matches("\\*", "*"));
    assert_false(matches("\\*", "x"));
    assert_true(matches("a\\[1]", "a[1]"));
    assert_true(matches("\\\\", "\\"));
    assert_true(matches("\\a", "a"));
    assert_true(matches("\\", "\\"));
}

static void only_len_bytes_of_the_text_count(void **state)
{
    (void)state;
    assert_true(coffer__glob_match("ab", "abc", 2));
    assert_true(coffer__glob_match("a?b", "a\0b", 3));
}

static void a_hundred_stars_match_in_reasonable_time(void **state)
{
    (void)state;
    char pattern[301], text[20001];
    for (size_t i = 0; i < 100; i++)
        memcpy(pattern + 3 * i, "*aa", 3);
    pattern[300] = '\0';
    memset(text, 'a', sizeof text);
    text[20000] = 'b';
    clock_t begin = clock();
    assert_false(coffer__glob_match(pattern, text, sizeof text));
    assert_true(coffer__glob_match(pattern, text, 20000));
    assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_pattern_is_the_text_itself),
        cmocka_unit_test(a_star_takes_anything_across_dots_and_slashes),
        cmocka_unit_test(a_question_mark_takes_one_character),
        cmocka_unit_test(a_set_takes_one_of_its_members),
        cmocka_unit_test(a_set_that_never_closes_is_plain_text),
        cmocka_unit_test(a_backslash_takes_the_meaning_away),
        cmocka_unit_test(only_len_bytes_of_the_text_count),
        cmocka_unit_test(a_hundred_stars_match_in_reasonable_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
