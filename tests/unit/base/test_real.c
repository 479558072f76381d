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
    static const char *const bad[] = { "",   "+",    "-",  "+-1", "++1", "1 ",
                                       " 1", "0x10", "1e", "1,5", "e5",  "1.5.2" };
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
        cmocka_unit_test(text_is_a_number_as_a_whole_or_not_at_all),
        cmocka_unit_test(a_near_decimal_has_no_digits_of_rounding_errors),
        cmocka_unit_test(numbers_in_names_are_ordered_by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
