#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const levels[] = { "generic", "avx2" };

/* Every length around the ends of blocks, added in two parts. */
static void a_hash_is_that_of_libsodium_however_it_is_added(void **state)
{
    (void)state;
    uint8_t bytes[300], expected[COFFER__SHA256_SIZE], found[COFFER__SHA256_SIZE];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + 7);
    for (size_t level = 0; level < 2; level++) {
        setenv("COFFER_CPU", levels[level], 1);
        for (size_t len = 0; len <= sizeof bytes; len++) {
            coffer__sha256 hash;
            size_t first = len * 2 / 3;
            coffer__sha256_begin(&hash);
            coffer__sha256_add(&hash, bytes, first);
            coffer__sha256_add(&hash, bytes + first, len - first);
            coffer__sha256_end(found, &hash);
            crypto_hash_sha256(expected, bytes, len);
            assert_memory_equal(found, expected, sizeof found);
        }
    }
    unsetenv("COFFER_CPU");
}

static void a_hash_of_the_standard_is_found(void **state)
{
    (void)state;
    static const uint8_t expected[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
                                        0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
                                        0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad };
    uint8_t found[COFFER__SHA256_SIZE];
    coffer__sha256_of(found, "abc", 3);
    assert_memory_equal(found, expected, sizeof found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hash_is_that_of_libsodium_however_it_is_added),
        cmocka_unit_test(a_hash_of_the_standard_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
