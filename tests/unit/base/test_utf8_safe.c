#include "base/utf8.h"
#include "support/temp.h"

#include <string.h>

static void assert_safe(const char *text, const char *expected)
{
    coffer__buffer whole = COFFER__BUFFER_INIT;
    size_t len = strlen(text);
    assert_int_equal(coffer__utf8_make_safe(&whole, text, len, true), len);
    assert_string_equal(coffer__buffer_text(&whole), expected);
    coffer__buffer_free(&whole);
    /* The same in two pieces, cut anywhere. */
    for (size_t cut = 0; cut <= len; cut++) {
        coffer__buffer pieces = COFFER__BUFFER_INIT;
        size_t used = coffer__utf8_make_safe(&pieces, text, cut, false);
        assert_in_range(used, cut > 3 ? cut - 3 : 0, cut);
        coffer__utf8_make_safe(&pieces, text + used, len - used, true);
        assert_string_equal(coffer__buffer_text(&pieces), expected);
        coffer__buffer_free(&pieces);
    }
}

static void plain_text_stays(void **state)
{
    (void)state;
    assert_safe("", "");
    assert_safe("a b\n\tc", "a b\n\tc");
    assert_safe("größer … 語 😀", "größer … 語 😀");
}

static void harmful_characters_become_escapes(void **state)
{
    (void)state;
    assert_safe("a\x1b[2Jb\r\n", "a\\x1b[2Jb\\x0d\n");
    assert_safe("\x7f\xc2\x9b\u202e\u2066\ufeff", "\\u007f\\u009b\\u202e\\u2066\\ufeff");
}

static void bytes_that_are_not_text_are_shown(void **state)
{
    (void)state;
    assert_safe("a\x80\xff"
                "b",
                "a\\x80\\xffb");
    assert_safe("\xe2\x80", "\\xe2\\x80");
    assert_safe("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(harmful_characters_become_escapes),
        cmocka_unit_test(bytes_that_are_not_text_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
