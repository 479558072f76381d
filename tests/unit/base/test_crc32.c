#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32.h"

#include <string.h>

/* Bit by bit, from the polynomial. */
static uint32_t slow_crc(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

static void the_check_value_is_that_of_zlib(void **state)
{
    (void)state;
    assert_int_equal(coffer__crc32(0, "123456789", 9), 0xCBF43926);
    assert_int_equal(coffer__crc32(0, "", 0), 0);
    assert_int_equal(coffer__crc32(0, "a", 1), 0xE8B7BE43);
}

static void the_check_value_of_crc32c_is_that_of_iscsi(void **state)
{
    (void)state;
    assert_int_equal(coffer__crc32c("123456789", 9), 0xE3069283);
    assert_int_equal(coffer__crc32c("", 0), 0);
}

static void every_length_and_alignment_agrees_with_the_definition(void **state)
{
    (void)state;
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 7);
    for (size_t from = 0; from < 17; from++) {
        for (size_t len = 0; len < 600; len += 1 + len / 16)
            assert_int_equal(coffer__crc32(0, bytes + from, len), slow_crc(bytes + from, len));
    }
}

static void pieces_give_what_the_whole_gives(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    memset(bytes, 0x5A, sizeof bytes);
    uint32_t whole = coffer__crc32(0, bytes, sizeof bytes), crc = 0;
    for (size_t at = 0, step = 1; at < sizeof bytes; at += step, step = step % 37 + 1) {
        if (step > sizeof bytes - at)
            step = sizeof bytes - at;
        crc = coffer__crc32(crc, bytes + at, step);
    }
    assert_int_equal(crc, whole);
}

static void the_sums_of_two_pieces_give_that_of_both(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 89 + i / 5);
    uint32_t whole = coffer__crc32(0, bytes, sizeof bytes);
    for (size_t at = 0; at <= sizeof bytes; at++) {
        uint32_t first = coffer__crc32(0, bytes, at);
        uint32_t second = coffer__crc32(0, bytes + at, sizeof bytes - at);
        assert_int_equal(coffer__crc32_combine(first, second, sizeof bytes - at), whole);
    }
}

static void the_library_names_itself(void **state)
{
    (void)state;
#ifdef COFFER__PORTABLE
    assert_string_equal(coffer__crc32_library(), "crc32 by table");
#else
    assert_int_equal(strncmp(coffer__crc32_library(), "isa-l ", 6), 0);
    assert_non_null(strchr(coffer__crc32_library(), '.'));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value_is_that_of_zlib),
        cmocka_unit_test(the_check_value_of_crc32c_is_that_of_iscsi),
        cmocka_unit_test(every_length_and_alignment_agrees_with_the_definition),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(the_sums_of_two_pieces_give_that_of_both),
        cmocka_unit_test(the_library_names_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
