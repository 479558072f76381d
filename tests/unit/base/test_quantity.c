#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

static void sizes_have_units_of_both_kinds(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = { { "0", 0 },
                  { "4096", 4096 },
                  { "7b", 7 },
                  { "5GB", 5000000000 },
                  { "64K", 65536 },
                  { "2MiB", 2 << 20 },
                  { "1.5kib", 1536 },
                  { "0.25MB", 250000 },
                  { "16t", UINT64_C(16) << 40 },
                  { "18446744073709551615", UINT64_MAX } };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t bytes = 1;
        assert_true(coffer__parse_size(&bytes, sizes[i].text));
        assert_int_equal(bytes, sizes[i].bytes);
    }
}

static void durations_need_their_unit(void **state)
{
    uint64_t microseconds;
    (void)state;
    assert_true(coffer__parse_duration(&microseconds, "300us"));
    assert_int_equal(microseconds, 300);
    assert_true(coffer__parse_duration(&microseconds, "1.5s"));
    assert_int_equal(microseconds, 1500000);
    assert_true(coffer__parse_duration(&microseconds, "0.3ms"));
    assert_int_equal(microseconds, 300);
    assert_true(coffer__parse_duration(&microseconds, "2min"));
    assert_int_equal(microseconds, 120000000);
    assert_false(coffer__parse_duration(&microseconds, "12"));
}

static void an_invalid_quantity_is_refused(void **state)
{
    static const char *const wrong[] = {
        "", "-1", "+1", " 1", "1 ", "K", "1.", ".5K", "1x", "1e3", "18446744073709551616", "99999999T"
    };
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(coffer__parse_size(&bytes, wrong[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_have_units_of_both_kinds),
        cmocka_unit_test(durations_need_their_unit),
        cmocka_unit_test(an_invalid_quantity_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
