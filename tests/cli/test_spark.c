#include "tensors/tensors_verbs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void heights_follow_the_fullest_column(void **state)
{
    uint64_t histogram[SPARK_BINS] = { 0 };
    spark_text text;
    (void)state;
    histogram[0] = 1;
    histogram[1] = 1; /* the same column */
    histogram[7] = 4;
    histogram[63] = 1000;
    assert_string_equal(spark_draw(text, histogram), "▁▁             █");
}

static void nothing_counted_is_nothing_drawn(void **state)
{
    uint64_t histogram[SPARK_BINS] = { 0 };
    spark_text text;
    (void)state;
    assert_string_equal(spark_draw(text, histogram), "");
}

static void every_column_full_fills_the_text(void **state)
{
    uint64_t histogram[SPARK_BINS];
    spark_text text;
    (void)state;
    for (int i = 0; i < SPARK_BINS; i++)
        histogram[i] = UINT64_MAX;
    assert_string_equal(spark_draw(text, histogram), "████████████████");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heights_follow_the_fullest_column),
        cmocka_unit_test(nothing_counted_is_nothing_drawn),
        cmocka_unit_test(every_column_full_fills_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
