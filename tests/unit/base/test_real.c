#include "base/real.h"
#include "base/text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(double value)
{
    static char text[COFFER__REAL_TEXT + 1];
    *coffer__put_f64(text, value) = '\0';
    return text;
}

static void numbers_have_the_fewest_digits(void **state)
{
    (void)state;
    assert_string_equal(text_of(0.1), "0.1");
    assert_string_equal(text_of(1), "1.0");
    assert_string_equal(text_of(-0.0), "-0.0");
    assert_string_equal(text_of(100000), "100000.0");
    assert_string_equal(text_of(1e14), "100000000000000.0");
    assert_string_equal(text_of(1e15), "1e+15");
    assert_string_equal(text_of(1234567890123456), "1234567890123456.0");
    assert_string_equal(text_of(12345.678), "12345.678");
    assert_string_equal(text_of(0.0001), "0.0001");
    assert_string_equal(text_of(0.00001), "1e-05");
    assert_string_equal(text_of(-2.5e-300), "-2.5e-300");
    assert_string_equal(text_of(1e23), "1e+23");
    assert_string_equal(text_of(5e-324), "5e-324");
    assert_string_equal(text_of(1.7976931348623157e308), "1.7976931348623157e+308");
    assert_string_equal(text_of(0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(text_of((double)NAN), "nan");
    assert_string_equal(text_of(-(double)INFINITY), "-inf");
}

static void a_float_has_the_digits_of_a_float(void **state)
{
    (void)state;
    char text[COFFER__REAL_TEXT + 1];
    *coffer__put_f32(text, 0.1f) = '\0';
    assert_string_equal(text, "0.1");
    *coffer__put_f32(text, 16777216.0f) = '\0';
    assert_string_equal(text, "16777216.0");
}

static void every_number_reads_back_as_itself(void **state)
{
    (void)state;
    uint64_t bits = 1;
    for (int i = 0; i < 200000; i++) {
        double value, back;
        char expected[64], text[COFFER__REAL_TEXT + 1];
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char *end = coffer__put_f64(text, value);
        assert_true(end - text < COFFER__REAL_TEXT);
        assert_true(coffer__parse_f64(&back, text, (size_t)(end - text)));
        assert_memory_equal(&back, &value, sizeof value);
        if (fabs(value) < 2.3e-308) /* which needs fewer than 15 digits */
            continue;
        /* The digits are those that printf gives, when it is asked for as many as are needed. */
        *end = '\0';
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(expected, sizeof expected, "%.*g", digits, value);
            if (strtod(expected, NULL) == value)
                break;
        }
        if (!strpbrk(expected, ".e"))
            strcat(expected, ".0");
        assert_string_equal(text, expected);
    }
}

/* The neighbors of a power of two are not equally far away, and the largest and least are edges of the
 * tables. */
static void every_power_of_two_and_its_neighbors_read_back_with_the_digits_of_printf(void **state)
{
    (void)state;
    for (uint64_t exponent = 1; exponent < 2047; exponent++) {
        for (uint64_t step = 0; step < 3; step++) {
            uint64_t bits = (exponent << 52) + step - 1;
            double value;
            char expected[64];
            memcpy(&value, &bits, sizeof value);
            for (int digits = 15; digits <= 17; digits++) {
                snprintf(expected, sizeof expected, "%.*g", digits, value);
                if (strtod(expected, NULL) == value)
                    break;
            }
            assert_true(strtod(text_of(value), NULL) == value);
            assert_true(strlen(text_of(value)) <= strlen(expected) + 2);
        }
    }
}

static void a_list_has_the_text_of_its_numbers(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    uint64_t doubles[COUNT];
    uint32_t floats[COUNT];
    char lists[2][COUNT * (COFFER__REAL_TEXT + 1)], text[COFFER__REAL_TEXT], *at[2] = { lists[0], lists[1] };
    for (uint64_t i = 0; i < COUNT; i++) {
        doubles[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ i << 60;
        floats[i] = (uint32_t)(doubles[i] >> 21);
    }
    doubles[50] = UINT64_C(0x7ff8000000000000);
    doubles[51] = UINT64_C(0x8000000000000000);
    doubles[52] = UINT64_C(0xfff0000000000000);
    char *ends[2] = { coffer__put_f64_list(lists[0], doubles, COUNT, ';'),
                      coffer__put_f32_list(lists[1], floats, COUNT, '\n') };
    for (size_t i = 0; i < COUNT; i++) {
        double wide;
        float narrow;
        memcpy(&wide, &doubles[i], sizeof wide);
        memcpy(&narrow, &floats[i], sizeof narrow);
        for (size_t list = 0; list < 2; list++) {
            char *end = list ? coffer__put_f32(text, narrow) : coffer__put_f64(text, wide);
            assert_memory_equal(at[list], text, (size_t)(end - text));
            at[list] += end - text;
            assert_int_equal(*at[list]++, list ? '\n' : ';');
        }
    }
    assert_ptr_equal(at[0], ends[0]);
    assert_ptr_equal(at[1], ends[1]);
}

/* Up to 19 digits are multiplied with a power of ten, more are left to the C++ library; a product may be too
 * near the middle between two doubles. */
static void digits_of_any_number_and_power_read_as_strtod_reads_them(void **state)
{
    (void)state;
    uint64_t bits = 1;
    for (int i = 0; i < 100000; i++) {
        char text[64];
        double value;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned long long digits = bits >> (bits >> 58);
        int len = i % 2 ? snprintf(text, sizeof text, "%llue%d", digits, (int)(bits >> 20) % 340)
                        : snprintf(text, sizeof text, "-%llu.%llu", digits, (unsigned long long)(bits >> 44));
        assert_true(coffer__parse_f64(&value, text, (size_t)len));
        double expected = strtod(text, NULL);
        if (memcmp(&value, &expected, sizeof value))
            fail_msg("%s is %a, not %a", text, expected, value);
    }
    static const char *const texts[] = { "9007199254740993",
                                         "9007199254740992.5",
                                         "9007199254740995e0",
                                         "4503599627370496.5",
                                         "0.000000000000000000000000000000123456789",
                                         "00000000000000000000000000000000012.5",
                                         "2.2250738585072014e-308",
                                         "2.2250738585072011e-308",
                                         "179769313486231580793e289",
                                         "-0",
                                         "0e99",
                                         "1448997445238699e0",
                                         "8.5e-322" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value, expected = strtod(texts[i], NULL);
        assert_true(coffer__parse_f64(&value, texts[i], strlen(texts[i])));
        assert_memory_equal(&value, &expected, sizeof value);
    }
}

static bool parses(const char *text, double expected)
{
    double value = -1;
    return coffer__parse_f64(&value, text, strlen(text)) &&
           (value == expected || (value != value && expected != expected));
}

static void text_is_a_number_as_a_whole_or_not_at_all(void **state)
{
    (void)state;
    double value;
    assert_true(parses("1e400", (double)INFINITY));
    assert_true(parses("-1e400", -(double)INFINITY));
    assert_true(parses("1e-400", 0));
    assert_true(parses("+1.5", 1.5));
    assert_true(parses(".5", 0.5));
    assert_true(parses("5.", 5));
    assert_true(parses("inf", (double)INFINITY));
    assert_true(parses("NaN", (double)NAN));
    static const char *const bad[] = { "",   "+",   "-",  "+-1",   "++1",   "1 ",  " 1", "0x10",
                                       "1e", "1,5", "e5", "1.5.2", "1e+-5", "1e+", ".",  "-.e1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (coffer__parse_f64(&value, bad[i], strlen(bad[i])))
            fail_msg("\"%s\" is taken for %g", bad[i], value);
    }
}

static void a_near_decimal_has_no_digits_of_rounding_errors(void **state)
{
    (void)state;
    assert_true(coffer__nearest_decimal(1.1620000000000001, 1e-12) == 1.162);
    assert_true(coffer__nearest_decimal(-3 * 0.1, 1e-10) == -0.3);
    assert_true(coffer__nearest_decimal(0, 0) == 0);
    assert_true(coffer__nearest_decimal(1.0 / 3, 0) == 1.0 / 3);
    assert_true(isnan(coffer__nearest_decimal((double)NAN, 1)));
}

static void numbers_in_names_are_ordered_by_value(void **state)
{
    (void)state;
    assert_true(coffer__natural_compare("layer.2.w", "layer.10.w") < 0);
    assert_true(coffer__natural_compare("layer.10", "layer.2") > 0);
    assert_true(coffer__natural_compare("a", "a") == 0);
    assert_true(coffer__natural_compare("a", "a1") < 0);
    assert_true(coffer__natural_compare("a01", "a1") != 0);
    assert_true(coffer__natural_compare("99999999999999999999999", "100000000000000000000000") < 0);
    assert_true(coffer__natural_compare("b", "a10") > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_the_fewest_digits),
        cmocka_unit_test(a_float_has_the_digits_of_a_float),
        cmocka_unit_test(every_number_reads_back_as_itself),
        cmocka_unit_test(every_power_of_two_and_its_neighbors_read_back_with_the_digits_of_printf),
        cmocka_unit_test(a_list_has_the_text_of_its_numbers),
        cmocka_unit_test(digits_of_any_number_and_power_read_as_strtod_reads_them),
        cmocka_unit_test(text_is_a_number_as_a_whole_or_not_at_all),
        cmocka_unit_test(a_near_decimal_has_no_digits_of_rounding_errors),
        cmocka_unit_test(numbers_in_names_are_ordered_by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
