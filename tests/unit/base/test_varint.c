#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cursor.h"

#include <string.h>

static coffer__varint_result read_all(uint64_t *value, size_t *used, const char *bytes, size_t len)
{
    const uint8_t *start = (const uint8_t *)bytes, *at = start;
    *value = 12345;
    coffer__varint_result result = coffer__varint_read(value, &at, start + len);
    *used = (size_t)(at - start);
    return result;
}

static void every_power_of_two_reads_back(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        for (int delta = -1; delta <= 1; delta++) {
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)delta, read;
            uint8_t bytes[COFFER__VARINT_MAX];
            const uint8_t *at = bytes;
            size_t len = coffer__varint_write(bytes, value);
            assert_int_equal(coffer__varint_read(&read, &at, bytes + len), COFFER__VARINT_OK);
            assert_true(read == value);
            assert_ptr_equal(at, bytes + len);
        }
    }
}

static void the_bytes_are_leb128(void **state)
{
    (void)state;
    uint8_t bytes[COFFER__VARINT_MAX];
    assert_int_equal(coffer__varint_write(bytes, 0), 1);
    assert_memory_equal(bytes, "\x00", 1);
    assert_int_equal(coffer__varint_write(bytes, 300), 2);
    assert_memory_equal(bytes, "\xAC\x02", 2);
    assert_int_equal(coffer__varint_write(bytes, UINT64_MAX), 10);
    assert_memory_equal(bytes, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 10);
}

static void a_truncated_varint_is_reported_and_moves_nothing(void **state)
{
    (void)state;
    uint64_t value;
    size_t used;
    for (size_t len = 0; len <= 9; len++) {
        assert_int_equal(read_all(&value, &used, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", len),
                         COFFER__VARINT_TRUNCATED);
        assert_int_equal(used, 0);
        assert_int_equal(value, 12345);
    }
}

static void more_than_64_bits_is_an_overflow_and_moves_nothing(void **state)
{
    (void)state;
    uint64_t value;
    size_t used;
    assert_int_equal(read_all(&value, &used, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", 10),
                     COFFER__VARINT_OVERFLOW);
    assert_int_equal(used, 0);
    assert_int_equal(value, 12345);
}

static void an_eleventh_byte_is_an_overflow(void **state)
{
    (void)state;
    uint64_t value;
    size_t used;
    assert_int_equal(read_all(&value, &used, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11),
                     COFFER__VARINT_OVERFLOW);
    assert_int_equal(read_all(&value, &used, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00", 11),
                     COFFER__VARINT_OVERFLOW);
    assert_int_equal(used, 0);
}

static void an_overlong_form_gives_its_value(void **state)
{
    (void)state;
    uint64_t value;
    size_t used;
    assert_int_equal(read_all(&value, &used, "\x85\x80\x00\x77", 4), COFFER__VARINT_OVERLONG);
    assert_int_equal(value, 5);
    assert_int_equal(used, 3);
    assert_int_equal(read_all(&value, &used, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10),
                     COFFER__VARINT_OVERLONG);
    assert_int_equal(value, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_power_of_two_reads_back),
        cmocka_unit_test(the_bytes_are_leb128),
        cmocka_unit_test(a_truncated_varint_is_reported_and_moves_nothing),
        cmocka_unit_test(more_than_64_bits_is_an_overflow_and_moves_nothing),
        cmocka_unit_test(an_eleventh_byte_is_an_overflow),
        cmocka_unit_test(an_overlong_form_gives_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
