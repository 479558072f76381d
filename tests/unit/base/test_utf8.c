#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

#include <string.h>

static size_t encode(uint8_t out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3F));
    static const uint8_t lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    out[0] = (uint8_t)(lead[len] | c);
    return len;
}

static void every_character_decodes_to_itself(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        uint8_t bytes[4];
        uint32_t decoded = UINT32_MAX;
        size_t len = encode(bytes, c);
        bool surrogate = c >= 0xD800 && c <= 0xDFFF;
        size_t got = coffer__utf8_decode(&decoded, bytes, bytes + len);
        if (got != (surrogate ? 0 : len) || (!surrogate && decoded != c))
            fail_msg("U+%04X", c);
        if (len > 1 && coffer__utf8_decode(&decoded, bytes, bytes + len - 1) != 0)
            fail_msg("U+%04X cut short", c);
    }
}

static void what_is_not_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",         "\xBF",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF",         "\xC3(",        "\xE2\x82(",        "\xF0\x9F\x98(",    "\xE2(\xAC"
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t len = strlen(bad[i]);
        assert_int_equal(coffer__utf8_valid_prefix(bad[i], len), 0);
        assert_false(coffer__utf8_valid(bad[i], len));
    }
    uint32_t code_point;
    assert_int_equal(coffer__utf8_decode(&code_point, NULL, NULL), 0);
}

static void the_valid_prefix_ends_before_the_first_bad_byte(void **state)
{
    (void)state;
    char text[64];
    for (size_t at = 0; at < 40; at++) {
        memset(text, 'a', sizeof text);
        text[at] = '\xFF';
        assert_int_equal(coffer__utf8_valid_prefix(text, sizeof text), at);
        assert_int_equal(coffer__utf8_valid_prefix(text, at), at);
    }
    static const char mixed[] = "naïve 日本語 😀 and the rest of it";
    assert_true(coffer__utf8_valid(mixed, sizeof mixed));
    assert_true(coffer__utf8_valid(NULL, 0));
}

static void width_counts_columns(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t width;
    } cases[] = { { "", 0 },
                  { "abc", 3 },
                  { "naïve", 5 },
                  { "nai\xCC\x88ve", 5 },
                  { "日本語", 6 },
                  { "한국어", 6 },
                  { "😀", 2 },
                  { "Ωμ→", 3 },
                  { "ｆｕｌｌ", 8 },
                  { "✅ ok", 5 },
                  { "…", 1 },
                  { "🚀🇦", 3 },
                  { "\xE2\x80\x8B", 0 },
                  { "𠀀", 2 },
                  { "─│", 2 },
                  { "a\xFF", 2 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(coffer__utf8_width(cases[i].text, strlen(cases[i].text)), cases[i].width);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_decodes_to_itself),
        cmocka_unit_test(what_is_not_utf8_is_refused),
        cmocka_unit_test(the_valid_prefix_ends_before_the_first_bad_byte),
        cmocka_unit_test(width_counts_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
