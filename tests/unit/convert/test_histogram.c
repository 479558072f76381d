#include "convert/tensors/histogram.h"

#include "base/cpu.h"
#include "base/elements.h"
#include "support/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK COFFER__HISTOGRAM_BLOCK

static void fill(float *values, uint32_t seed)
{
    for (size_t i = 0; i < BLOCK; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 8) / (float)(1 << 24) - 0.5f) * 3.0f;
    }
    values[3] = NAN;
    values[77] = INFINITY;
    values[78] = -INFINITY;
    values[200] = 3e38f;
    values[201] = -3e38f;
}

static void kernels_agree(const coffer__histogram_kernels *kernels)
{
    float values[BLOCK];
    double wide[BLOCK];
    coffer__histogram_ruler rulers[] = { coffer__histogram_rule(-1.5, 1.5, -1.0, 1.0),
                                         coffer__histogram_rule(-3e38, 3e38, -1e38, 1e38),
                                         coffer__histogram_rule(2, 2, 2, 2) };
    for (size_t r = 0; r < sizeof rulers / sizeof *rulers; r++) {
        for (uint32_t seed = 0; seed < 50; seed++) {
            uint8_t expected[BLOCK], got[BLOCK];
            fill(values, seed);
            for (size_t i = 0; i < BLOCK; i++)
                wide[i] = (double)values[i] * 1.1;
            assert_int_equal(coffer__histogram_generic.place_f32(expected, values, &rulers[r]),
                             kernels->place_f32(got, values, &rulers[r]));
            assert_memory_equal(expected, got, BLOCK);
            assert_int_equal(coffer__histogram_generic.place_f64(expected, wide, &rulers[r]),
                             kernels->place_f64(got, wide, &rulers[r]));
            assert_memory_equal(expected, got, BLOCK);
        }
    }
}

static void every_instruction_set_gives_the_same_bins(void **state)
{
    (void)state;
#if defined(__x86_64__)
    if (coffer__cpu_best() >= COFFER__CPU_AVX2)
        kernels_agree(&coffer__histogram_avx2);
    if (coffer__cpu_best() >= COFFER__CPU_AVX512)
        kernels_agree(&coffer__histogram_avx512);
#endif
    kernels_agree(&coffer__histogram_generic);
}

static void types_of_any_width_fill_the_same_bins(void **state)
{
    float values[1000];
    uint8_t converted[1000 * 16];
    coffer__histogram_ruler ruler = coffer__histogram_rule(-31, 32, -20, 20);
    coffer__histogram expected = { { 0 }, 0 };
    static const coffer_dtype types[] = { COFFER_DTYPE_I8,  COFFER_DTYPE_I16, COFFER_DTYPE_I32,
                                          COFFER_DTYPE_I64, COFFER_DTYPE_F16, COFFER_DTYPE_BF16,
                                          COFFER_DTYPE_F64 };
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        values[i] = (float)((int)(i * 37 % 64) - 31);
    coffer__histogram_add(&expected, &ruler, values, COFFER_DTYPE_F32, 1000);
    assert_int_equal(expected.bins[0], 16);
    assert_true(expected.outside > 0);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        coffer__histogram got = { { 0 }, 0 };
        coffer__elements_convert(converted, types[t], values, COFFER_DTYPE_F32, 1000);
        coffer__histogram_add(&got, &ruler, converted, types[t], 1000);
        assert_memory_equal(&got, &expected, sizeof got);
    }
}

static void complex_numbers_count_by_their_magnitude(void **state)
{
    float pairs[] = { 3, 4, 0, 0, NAN, 1 };
    coffer__histogram_ruler ruler = coffer__histogram_rule(0, 5, -9, 9);
    coffer__histogram got = { { 0 }, 0 };
    (void)state;
    coffer__histogram_add(&got, &ruler, pairs, COFFER_DTYPE_C64, 3);
    assert_int_equal(got.bins[0], 1);
    assert_int_equal(got.bins[63], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_gives_the_same_bins),
        cmocka_unit_test(types_of_any_width_fill_the_same_bins),
        cmocka_unit_test(complex_numbers_count_by_their_magnitude),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
