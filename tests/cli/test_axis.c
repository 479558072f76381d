/* Round numbers on axes, and colors for values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "draw/axis.h"

#include <math.h>

static void assert_near(double actual, double expected, double tolerance)
{
    if (!(fabs(actual - expected) <= tolerance))
        fail_msg("%.17g is not %.17g", actual, expected);
}

static void assert_ticks(const axis_ticks *ticks, const double *expected, size_t count)
{
    assert_int_equal(ticks->count, count);
    for (size_t i = 0; i < count; i++)
        assert_near(ticks->at[i], expected[i], 1e-9);
}

static void ticks_are_round_numbers_inside_the_range(void **state)
{
    (void)state;
    axis_ticks ticks;
    axis_find_ticks(&ticks, 0.7, 4.6, 4, false);
    assert_ticks(&ticks, (const double[]){ 1, 2, 3, 4 }, 4);
    axis_find_ticks(&ticks, -0.21, 0.25, 5, false);
    assert_ticks(&ticks, (const double[]){ -0.2, -0.1, 0, 0.1, 0.2 }, 5);
    axis_find_ticks(&ticks, 100, 133, 2, true);
    assert_ticks(&ticks, (const double[]){ 100, 120 }, 2);
}

static void whole_ticks_are_never_closer_than_one(void **state)
{
    (void)state;
    axis_ticks ticks;
    axis_find_ticks(&ticks, 0, 3, 20, true);
    assert_ticks(&ticks, (const double[]){ 0, 1, 2, 3 }, 4);
}

static void an_empty_range_has_one_tick(void **state)
{
    (void)state;
    axis_ticks ticks;
    axis_find_ticks(&ticks, 5, 5, 10, false);
    assert_ticks(&ticks, (const double[]){ 5 }, 1);
    axis_find_ticks(&ticks, 0, INFINITY, 10, false);
    assert_int_equal(ticks.count, 1);
}

static void no_range_overflows_the_ticks(void **state)
{
    (void)state;
    axis_ticks ticks;
    static const double ends[] = { 1e-300, 1e-9, 0.3, 7, 65535, 4294967296.0, 1e18, 1e300 };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (size_t wanted = 0; wanted < 200; wanted += 7) {
            axis_find_ticks(&ticks, -ends[i], ends[i], wanted, false);
            assert_in_range(ticks.count, 1, AXIS_MOST_TICKS);
            for (size_t tick = 0; tick < ticks.count; tick++)
                assert_true(fabs(ticks.at[tick]) <= ends[i] * 1.001);
            axis_find_log_ticks(&ticks, 1e-300, ends[i]);
            assert_true(ticks.count <= AXIS_MOST_TICKS);
        }
}

static void logarithmic_ticks_are_powers_of_ten_with_2_and_5_while_they_are_few(void **state)
{
    (void)state;
    axis_ticks ticks;
    axis_find_log_ticks(&ticks, 3, 120);
    assert_ticks(&ticks, (const double[]){ 5, 10, 20, 50, 100 }, 5);
    axis_find_log_ticks(&ticks, 1, 1e6);
    assert_ticks(&ticks, (const double[]){ 1, 10, 100, 1e3, 1e4, 1e5, 1e6 }, 7);
}

static void labels_have_the_decimals_that_the_step_needs(void **state)
{
    (void)state;
    axis_label label;
    assert_string_equal(axis_format(label, 40000, 5000), "40,000");
    assert_string_equal(axis_format(label, -1234567, 1), "-1,234,567");
    assert_string_equal(axis_format(label, 0.5, 0.25), "0.5");
    assert_string_equal(axis_format(label, 0.75, 0.05), "0.75");
    assert_string_equal(axis_format(label, 0, 0.1), "0");
    assert_string_equal(axis_format(label, 2e-9, 1e-9), "2e-09");
    assert_string_equal(axis_format(label, 100, 100), "100");
}

static double lightness(rgb color)
{
    return 0.2126 * pow(color.red / 255.0, 2.2) + 0.7152 * pow(color.green / 255.0, 2.2) +
           0.0722 * pow(color.blue / 255.0, 2.2);
}

static void one_sided_palettes_grow_lighter_all_the_way(void **state)
{
    (void)state;
    static const colormap maps[] = { COLORMAP_VIRIDIS, COLORMAP_MAGMA, COLORMAP_GRAY };
    for (size_t i = 0; i < 3; i++)
        for (int step = 1; step <= 64; step++)
            assert_true(lightness(colormap_at(maps[i], step / 64.0)) >
                        lightness(colormap_at(maps[i], (step - 1) / 64.0)));
}

static void the_two_sided_palette_is_lightest_in_the_middle(void **state)
{
    (void)state;
    for (int step = 0; step < 32; step++) {
        assert_true(lightness(colormap_at(COLORMAP_COOLWARM, step / 64.0)) <
                    lightness(colormap_at(COLORMAP_COOLWARM, 0.5)));
        assert_true(lightness(colormap_at(COLORMAP_COOLWARM, 1 - step / 64.0)) <
                    lightness(colormap_at(COLORMAP_COOLWARM, 0.5)));
    }
}

static void values_outside_a_scale_take_the_nearest_end(void **state)
{
    (void)state;
    const color_scale linear = { 10, 20, 0 }, logarithmic = { 1, 100, 1 }, flat = { 3, 3, 0 };
    assert_near(color_scale_position(&linear, 12.5), 0.25, 1e-12);
    assert_near(color_scale_position(&linear, -5), 0, 0);
    assert_near(color_scale_position(&linear, 500), 1, 0);
    assert_near(color_scale_position(&logarithmic, 10), 0.5, 1e-12);
    assert_near(color_scale_position(&logarithmic, 0), 0, 0);
    assert_near(color_scale_position(&flat, 3), 0.5, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_numbers_inside_the_range),
        cmocka_unit_test(whole_ticks_are_never_closer_than_one),
        cmocka_unit_test(an_empty_range_has_one_tick),
        cmocka_unit_test(no_range_overflows_the_ticks),
        cmocka_unit_test(logarithmic_ticks_are_powers_of_ten_with_2_and_5_while_they_are_few),
        cmocka_unit_test(labels_have_the_decimals_that_the_step_needs),
        cmocka_unit_test(one_sided_palettes_grow_lighter_all_the_way),
        cmocka_unit_test(the_two_sided_palette_is_lightest_in_the_middle),
        cmocka_unit_test(values_outside_a_scale_take_the_nearest_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
