#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cursor.h"

static void numbers_come_in_the_stored_order(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 0x7F, 1, 2, 1,    2,    3, 4, 1, 2, 3, 4, 5,    6,   7,
                                     8,    0, 0, 0x20, 0x40, 0, 0, 0, 0, 0, 0, 0xF8, 0xBF };
    coffer__cursor cursor = coffer__cursor_over(bytes, sizeof bytes, 1000);
    assert_int_equal(coffer__cursor_u8(&cursor), 0x7F);
    assert_int_equal(coffer__cursor_u16(&cursor), 0x0201);
    assert_int_equal(coffer__cursor_u32(&cursor), 0x04030201);
    assert_true(coffer__cursor_u64(&cursor) == UINT64_C(0x0807060504030201));
    assert_true(coffer__cursor_f32(&cursor) == 2.5f);
    assert_true(coffer__cursor_f64(&cursor) == -1.5);
    assert_false(cursor.failed);
    assert_int_equal(coffer__cursor_left(&cursor), 0);
    assert_int_equal(coffer__cursor_offset(&cursor), 1000 + sizeof bytes);
}

static void a_read_past_the_end_gives_zero_and_the_failure_stays(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 1, 2, 3 };
    coffer__cursor cursor = coffer__cursor_over(bytes, sizeof bytes, 0);
    assert_int_equal(coffer__cursor_u32(&cursor), 0);
    assert_true(cursor.failed);
    assert_int_equal(coffer__cursor_u8(&cursor), 0);
    assert_int_equal(coffer__cursor_u16(&cursor), 0);
    assert_true(coffer__cursor_u64(&cursor) == 0);
    assert_true(coffer__cursor_f32(&cursor) == 0);
    assert_true(coffer__cursor_f64(&cursor) == 0);
    assert_true(cursor.failed);
    assert_int_equal(coffer__cursor_offset(&cursor), 0);
}

static void bytes_are_borrowed_and_bounded(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 1, 2, 3 };
    coffer__cursor cursor = coffer__cursor_over(bytes, sizeof bytes, 5);
    coffer__cursor_skip(&cursor, 1);
    assert_ptr_equal(coffer__cursor_bytes(&cursor, 2), bytes + 1);
    assert_ptr_equal(coffer__cursor_bytes(&cursor, 0), bytes + 3);
    assert_int_equal(coffer__cursor_offset(&cursor), 8);
    assert_null(coffer__cursor_bytes(&cursor, SIZE_MAX));
    assert_true(cursor.failed);
    assert_null(coffer__cursor_bytes(&cursor, 0));
}

static void skipping_past_the_end_fails(void **state)
{
    (void)state;
    coffer__cursor cursor = coffer__cursor_over("ab", 2, 0);
    coffer__cursor_skip(&cursor, 3);
    assert_true(cursor.failed);
    assert_int_equal(coffer__cursor_left(&cursor), 2);
}

static void a_cursor_over_nothing_is_at_its_end(void **state)
{
    (void)state;
    coffer__cursor cursor = coffer__cursor_over(NULL, 0, 42);
    assert_int_equal(coffer__cursor_left(&cursor), 0);
    assert_int_equal(coffer__cursor_offset(&cursor), 42);
    assert_int_equal(coffer__cursor_u8(&cursor), 0);
    assert_true(cursor.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_in_the_stored_order),
        cmocka_unit_test(a_read_past_the_end_gives_zero_and_the_failure_stays),
        cmocka_unit_test(bytes_are_borrowed_and_bounded),
        cmocka_unit_test(skipping_past_the_end_fails),
        cmocka_unit_test(a_cursor_over_nothing_is_at_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
