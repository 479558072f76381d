#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"

static void a_sum_that_fits_is_given(void **state)
{
    (void)state;
    uint64_t sum;
    size_t size;
    assert_true(coffer__add_u64(&sum, UINT64_MAX - 1, 1));
    assert_true(sum == UINT64_MAX);
    assert_true(coffer__add_size(&size, 2, 3));
    assert_int_equal(size, 5);
}

static void a_sum_that_overflows_is_refused(void **state)
{
    (void)state;
    uint64_t sum;
    size_t size;
    assert_false(coffer__add_u64(&sum, UINT64_MAX, 1));
    assert_false(coffer__add_size(&size, SIZE_MAX, 1));
}

static void a_product_is_checked_too(void **state)
{
    (void)state;
    uint64_t product;
    size_t size;
    assert_true(coffer__mul_u64(&product, UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1));
    assert_true(product == UINT64_C(0xFFFFFFFF00000000));
    assert_false(coffer__mul_u64(&product, UINT64_C(1) << 32, UINT64_C(1) << 32));
    assert_true(coffer__mul_size(&size, SIZE_MAX, 1));
    assert_false(coffer__mul_size(&size, SIZE_MAX, 2));
}

static void aligning_up_stops_at_the_top(void **state)
{
    (void)state;
    uint64_t aligned;
    assert_true(coffer__align_up(&aligned, 0, 64) && aligned == 0);
    assert_true(coffer__align_up(&aligned, 1, 64) && aligned == 64);
    assert_true(coffer__align_up(&aligned, 64, 64) && aligned == 64);
    assert_true(coffer__align_up(&aligned, 65, 64) && aligned == 128);
    assert_true(coffer__align_up(&aligned, 7, 1) && aligned == 7);
    assert_true(coffer__align_up(&aligned, UINT64_MAX - 63, 64) && aligned == UINT64_MAX - 63);
    assert_false(coffer__align_up(&aligned, UINT64_MAX - 62, 64));
}

static void a_size_takes_what_memory_can_hold(void **state)
{
    (void)state;
    size_t size;
    assert_true(coffer__to_size(&size, SIZE_MAX));
    assert_true(size == SIZE_MAX);
}

static void a_range_fits_only_when_both_ends_do(void **state)
{
    (void)state;
    assert_true(coffer__range_fits(0, 0, 0));
    assert_true(coffer__range_fits(10, 0, 10));
    assert_true(coffer__range_fits(3, 7, 10));
    assert_false(coffer__range_fits(3, 8, 10));
    assert_false(coffer__range_fits(11, 0, 10));
    assert_false(coffer__range_fits(UINT64_MAX, 2, 10));
    assert_false(coffer__range_fits(2, UINT64_MAX, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_that_fits_is_given),
        cmocka_unit_test(a_sum_that_overflows_is_refused),
        cmocka_unit_test(a_product_is_checked_too),
        cmocka_unit_test(aligning_up_stops_at_the_top),
        cmocka_unit_test(a_size_takes_what_memory_can_hold),
        cmocka_unit_test(a_range_fits_only_when_both_ends_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
