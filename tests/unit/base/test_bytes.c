#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static const uint8_t eight[] = { 0, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF };

static void loads_are_little_endian_at_any_address(void **state)
{
    (void)state;
    assert_int_equal(coffer__load_u16(eight + 1), 0x2301);
    assert_int_equal(coffer__load_u32(eight + 1), 0x67452301);
    assert_true(coffer__load_u64(eight + 1) == UINT64_C(0xEFCDAB8967452301));
}

static void stores_write_what_loads_read(void **state)
{
    (void)state;
    uint8_t bytes[9] = { 0 };
    coffer__store_u64(bytes + 1, UINT64_C(0xEFCDAB8967452301));
    assert_memory_equal(bytes, eight, 9);
    coffer__store_u32(bytes + 1, 0xDDCCBBAA);
    assert_memory_equal(bytes + 1, "\xAA\xBB\xCC\xDD\x89", 5);
    coffer__store_u16(bytes + 1, 0x1122);
    assert_memory_equal(bytes + 1, "\x22\x11\xCC", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_are_little_endian_at_any_address),
        cmocka_unit_test(stores_write_what_loads_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
