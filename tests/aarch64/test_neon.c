/* The NEON kernels of scans and bits against the plain ones. */
#include "base/bytes.h"
#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_layout.h"
#include "formats/pycauset/pycauset_payload.h"

#include <cmocka.h>

static uint64_t random_bits(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 16;
}

/* Few keys, and values that are 0 or saturated more often than by chance. */
static void fill(uint8_t *records, size_t count, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *record = records + i * COFFER__MSCAN_RECORD_SIZE;
        for (size_t k = 0; k < COFFER__MSCAN_RECORD_SIZE; k++)
            record[k] = (uint8_t)random_bits(seed);
        coffer__store_u16(record + COFFER__MSCAN_PARAM_AT, (uint16_t)(random_bits(seed) % 3));
        if (i % 3 == 0)
            coffer__store_u16(record + COFFER__MSCAN_ACTIVATION_AT, i % 2 ? 0 : UINT16_MAX);
        if (i % 5 == 0)
            coffer__store_u16(record + COFFER__MSCAN_GRAD_NORM_AT, i % 2 ? UINT16_MAX : 0);
    }
}

static void neon_adds_records_as_the_plain_kernel_does(void **state)
{
    enum { COUNT = 200000, ROWS = 8 };
    static uint8_t records[COUNT * COFFER__MSCAN_RECORD_SIZE];
    uint64_t seed = 5;
    (void)state;
    assert_true(coffer__mscan_kernel_for(COFFER__CPU_NEON) == coffer__mscan_kernel_neon);
    fill(records, COUNT, &seed);
    for (unsigned shift = 0; shift < 2; shift++) {
        for (size_t count = 0; count < 40 || count == COUNT; count = count == 39 ? COUNT : count + 1) {
            coffer__mscan_row expected[ROWS] = { 0 }, found[ROWS] = { 0 };
            const uint8_t *keys = records + COFFER__MSCAN_PARAM_AT;
            size_t taken = coffer__mscan_kernel_generic(expected, shift, records, count, keys,
                                                        COFFER__MSCAN_RECORD_SIZE);
            assert_int_equal(coffer__mscan_kernel_neon(found, shift, records, count, keys,
                                                       COFFER__MSCAN_RECORD_SIZE),
                             taken);
            assert_true(count < 40 || taken < count); /* a row was full */
            for (size_t i = 0; i < ROWS; i++) {
                assert_memory_equal(found[i].lane, expected[i].lane, sizeof found[i].lane);
                for (size_t k = 2; k < 8; k += k == 3 ? 3 : 1)
                    assert_int_equal(found[i].extreme[k], expected[i].extreme[k]);
            }
        }
    }
}

static void neon_expands_and_packs_bits_as_the_plain_kernels_do(void **state)
{
    enum { WORDS = 9 };
    uint8_t bits[8 * WORDS], back[2][8 * WORDS], bytes[2][64 * WORDS];
    uint64_t seed = 6;
    (void)state;
    for (size_t i = 0; i < sizeof bits; i++)
        bits[i] = (uint8_t)random_bits(&seed);
    coffer__pycauset_bits_generic.expand(bytes[0], bits, WORDS);
    coffer__pycauset_bits_neon.expand(bytes[1], bits, WORDS);
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
    for (size_t i = 0; i < sizeof bytes[0]; i++)
        bytes[0][i] = random_bits(&seed) % 2 ? (uint8_t)random_bits(&seed) : 0;
    coffer__pycauset_bits_generic.pack(back[0], bytes[0], WORDS);
    coffer__pycauset_bits_neon.pack(back[1], bytes[0], WORDS);
    assert_memory_equal(back[0], back[1], sizeof back[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neon_adds_records_as_the_plain_kernel_does),
        cmocka_unit_test(neon_expands_and_packs_bits_as_the_plain_kernels_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
