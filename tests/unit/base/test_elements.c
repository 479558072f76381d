#include "base/cpu.h"
#include "base/dtype.h"
#include "base/elements.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const levels[] = { "generic", "avx2", "avx512", "neon" };
#define LEVEL_COUNT (sizeof levels / sizeof levels[0])

static const coffer_dtype plain[] = {
    COFFER_DTYPE_BOOL, COFFER_DTYPE_I8,      COFFER_DTYPE_U8,      COFFER_DTYPE_I16, COFFER_DTYPE_U16,
    COFFER_DTYPE_I32,  COFFER_DTYPE_U32,     COFFER_DTYPE_I64,     COFFER_DTYPE_U64, COFFER_DTYPE_F16,
    COFFER_DTYPE_BF16, COFFER_DTYPE_F32,     COFFER_DTYPE_F64,     COFFER_DTYPE_C32, COFFER_DTYPE_C64,
    COFFER_DTYPE_C128, COFFER_DTYPE_F8_E4M3, COFFER_DTYPE_F8_E5M2,
};
#define PLAIN_COUNT (sizeof plain / sizeof plain[0])

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state ^ *state >> 29;
    return x * UINT64_C(0xBF58476D1CE4E5B9) ^ x >> 32;
}

/* ---- The obvious way, to compare with: rounds to the nearest of all numbers of a small type ---- */

typedef struct small_type {
    coffer_dtype dtype;
    int fraction_bits, bias;
    bool has_infinity;
} small_type;

static const small_type small_types[] = {
    { COFFER_DTYPE_F16, 10, 15, true },
    { COFFER_DTYPE_BF16, 7, 127, true },
    { COFFER_DTYPE_F8_E4M3, 3, 7, false },
    { COFFER_DTYPE_F8_E5M2, 2, 15, true },
};

static unsigned top_code(const small_type *t) /* of NaN or infinity */
{
    unsigned exponents = t->dtype == COFFER_DTYPE_F16 || t->dtype == COFFER_DTYPE_F8_E5M2 ? 31
                         : t->dtype == COFFER_DTYPE_BF16                                  ? 255
                                                                                          : 15;
    return t->has_infinity ? exponents << t->fraction_bits : 0x7F;
}

static long double value_of(const small_type *t, unsigned code)
{
    int exponent = (int)(code >> t->fraction_bits), scale = -t->bias - t->fraction_bits;
    unsigned fraction = code & ((1u << t->fraction_bits) - 1);
    if (exponent == 0)
        return ldexpl((long double)fraction, scale + 1);
    return ldexpl((long double)(fraction | 1u << t->fraction_bits), scale + exponent);
}

static unsigned nearest_code(const small_type *t, long double magnitude)
{
    unsigned low = 0, high = top_code(t); /* value_of(high) is where the next power would be */
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (value_of(t, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    if (magnitude >= value_of(t, high))
        return high;
    long double below = magnitude - value_of(t, low), above = value_of(t, high) - magnitude;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

static unsigned code_at(const void *at, coffer_dtype dtype)
{
    uint16_t wide;
    if (coffer_dtype_size(dtype) == 1)
        return *(const uint8_t *)at;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void every_small_number_becomes_the_float_it_is(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof small_types / sizeof small_types[0]; k++) {
        const small_type *t = &small_types[k];
        size_t size = coffer_dtype_size(t->dtype);
        unsigned sign = size == 1 ? 0x80 : 0x8000;
        for (unsigned code = 0; code < sign; code++) {
            uint16_t bits[2] = { (uint16_t)code, (uint16_t)(code | sign) };
            for (int s = 0; s < 2; s++) {
                const uint8_t byte = (uint8_t)bits[s];
                const void *element = size == 1 ? (const void *)&byte : &bits[s];
                float f32;
                double f64;
                coffer__elements_convert(&f32, COFFER_DTYPE_F32, element, t->dtype, 1);
                coffer__elements_convert(&f64, COFFER_DTYPE_F64, element, t->dtype, 1);
                if (code > top_code(t) || (code == top_code(t) && !t->has_infinity)) {
                    assert_true(isnan(f32) && isnan(f64));
                    continue;
                }
                double expected = code == top_code(t) ? (double)INFINITY : (double)value_of(t, code);
                assert_true(fabs((double)f32) == expected && fabs(f64) == expected);
                assert_true(!!signbit(f32) == s && !!signbit(f64) == s);
            }
        }
    }
}

static double tricky_double(uint64_t *seed, const small_type *t)
{
    uint64_t r = random_bits(seed);
    unsigned code = (unsigned)(r % top_code(t));
    long double here = value_of(t, code), next = value_of(t, code + 1);
    double middle = (double)((here + next) / 2);
    switch (r >> 40 & 7) {
    case 0:
        return middle;
    case 1:
        return nextafter(middle, INFINITY);
    case 2:
        return nextafter(middle, 0);
    case 3:
        return (double)here;
    case 4:
        return (double)(float)middle;
    case 5: {
        double any;
        memcpy(&any, &r, sizeof any);
        return any;
    }
    default:
        return (double)(here + (next - here) * (long double)(r >> 44) / 1048576.0L);
    }
}

static void narrowing_rounds_once_to_the_nearest_and_ties_to_even(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (size_t k = 0; k < sizeof small_types / sizeof small_types[0]; k++) {
        const small_type *t = &small_types[k];
        unsigned sign = coffer_dtype_size(t->dtype) == 1 ? 0x80 : 0x8000;
        for (int i = 0; i < 40000; i++) {
            double f64 = tricky_double(&seed, t);
            if (isnan(f64))
                continue;
            uint16_t got = 0;
            float f32 = (float)f64;
            unsigned negative = signbit(f64) ? sign : 0;
            coffer__elements_convert(&got, t->dtype, &f64, COFFER_DTYPE_F64, 1);
            assert_int_equal(code_at(&got, t->dtype), negative | nearest_code(t, fabsl((long double)f64)));
            coffer__elements_convert(&got, t->dtype, &f32, COFFER_DTYPE_F32, 1);
            assert_int_equal(code_at(&got, t->dtype), negative | nearest_code(t, fabsl((long double)f32)));
        }
    }
}

static void long_integers_round_once_as_well(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (size_t k = 0; k < sizeof small_types / sizeof small_types[0]; k++) {
        const small_type *t = &small_types[k];
        unsigned sign = coffer_dtype_size(t->dtype) == 1 ? 0x80 : 0x8000;
        for (int i = 0; i < 20000; i++) {
            uint64_t r = random_bits(&seed), shift = random_bits(&seed) % 64;
            uint64_t wide =
                i % 2 ? r >> shift : (UINT64_C(0x8100000000000000) >> shift) + (r & 1) - (r >> 1 & 1);
            int64_t narrow = (int64_t)wide;
            uint16_t got = 0;
            coffer__elements_convert(&got, t->dtype, &wide, COFFER_DTYPE_U64, 1);
            assert_int_equal(code_at(&got, t->dtype), nearest_code(t, (long double)wide));
            coffer__elements_convert(&got, t->dtype, &narrow, COFFER_DTYPE_I64, 1);
            assert_int_equal(code_at(&got, t->dtype),
                             (narrow < 0 ? sign : 0) | nearest_code(t, fabsl((long double)narrow)));
        }
    }
}

/* ---- Integers ---- */

static long double as_long_double(const void *at, coffer_dtype dtype)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } v;
    memcpy(&v, at, coffer_dtype_size(dtype));
    switch (dtype) {
    case COFFER_DTYPE_I8:
        return v.i8;
    case COFFER_DTYPE_U8:
        return v.u8;
    case COFFER_DTYPE_I16:
        return v.i16;
    case COFFER_DTYPE_U16:
        return v.u16;
    case COFFER_DTYPE_I32:
        return v.i32;
    case COFFER_DTYPE_U32:
        return v.u32;
    case COFFER_DTYPE_I64:
        return v.i64;
    case COFFER_DTYPE_U64:
        return v.u64;
    case COFFER_DTYPE_F32:
        return (long double)v.f32;
    case COFFER_DTYPE_BOOL:
        return v.u8 != 0;
    default:
        return (long double)v.f64;
    }
}

static void range_of(coffer_dtype dtype, long double *low, long double *high)
{
    int bits = 8 * (int)coffer_dtype_size(dtype);
    bool is_signed = dtype == COFFER_DTYPE_I8 || dtype == COFFER_DTYPE_I16 || dtype == COFFER_DTYPE_I32 ||
                     dtype == COFFER_DTYPE_I64;
    *low = is_signed ? -ldexpl(1, bits - 1) : 0;
    *high = ldexpl(1, is_signed ? bits - 1 : bits) - 1;
}

static void numbers_out_of_an_integers_range_are_clamped(void **state)
{
    (void)state;
    static const double edges[] = { 0,
                                    -0.5,
                                    0.99,
                                    127,
                                    128,
                                    255.9,
                                    256,
                                    -128.9,
                                    -129,
                                    32768,
                                    65535.5,
                                    2147483647,
                                    2147483648.0,
                                    4294967295.0,
                                    4294967296.0,
                                    9223372036854774784.0,
                                    9223372036854775808.0,
                                    18446744073709549568.0,
                                    18446744073709551616.0,
                                    1e300,
                                    -1e300,
                                    INFINITY,
                                    -INFINITY,
                                    -9223372036854775808.0 };
    for (size_t k = 0; k < PLAIN_COUNT; k++) {
        coffer_dtype to = plain[k];
        if (!coffer_dtype_is_integer(to))
            continue;
        long double low, high;
        range_of(to, &low, &high);
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
            uint64_t got = 0;
            long double expected = truncl((long double)edges[i]);
            expected = expected < low ? low : expected > high ? high : expected;
            coffer__elements_convert(&got, to, &edges[i], COFFER_DTYPE_F64, 1);
            assert_true(as_long_double(&got, to) == expected);
        }
        uint64_t got = 7;
        double nan = NAN;
        coffer__elements_convert(&got, to, &nan, COFFER_DTYPE_F64, 1);
        assert_true(as_long_double(&got, to) == 0);
    }
}

static void integers_reach_every_other_type_with_their_value(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (size_t f = 0; f < PLAIN_COUNT; f++) {
        coffer_dtype from = plain[f];
        for (size_t t = 0; coffer_dtype_is_integer(from) && t < PLAIN_COUNT; t++) {
            coffer_dtype to = plain[t];
            for (int i = 0; i < 2000; i++) {
                uint64_t value = random_bits(&seed) >> random_bits(&seed) % 64, got[2] = { 0, 0 };
                if (i % 3 == 0)
                    value = ~value;
                long double x = as_long_double(&value, from), low, high;
                coffer__elements_convert(got, to, &value, from, 1);
                if (coffer_dtype_is_integer(to)) {
                    range_of(to, &low, &high);
                    assert_true(as_long_double(got, to) == (x < low ? low : x > high ? high : x));
                } else if (to == COFFER_DTYPE_F32) {
                    assert_true(as_long_double(got, to) == (long double)(float)x);
                } else if (to == COFFER_DTYPE_F64) {
                    assert_true(as_long_double(got, to) == (long double)(double)x);
                }
            }
        }
    }
}

static void anything_but_zero_is_true(void **state)
{
    (void)state;
    static const double values[] = { 0.0, -0.0, 1.0, -2.0, NAN, INFINITY };
    static const uint8_t expected[] = { 0, 0, 1, 1, 1, 1 };
    for (size_t k = 0; k < PLAIN_COUNT; k++) {
        if (!coffer_dtype_is_float(plain[k]))
            continue;
        uint8_t raw[6 * 8], got[6];
        coffer__elements_convert(raw, plain[k], values, COFFER_DTYPE_F64, 6);
        coffer__elements_convert(got, COFFER_DTYPE_BOOL, raw, plain[k], 6);
        assert_memory_equal(got, expected, sizeof got);
    }
    static const int32_t integers[] = { 0, 256, -1 };
    uint8_t got[3];
    coffer__elements_convert(got, COFFER_DTYPE_BOOL, integers, COFFER_DTYPE_I32, 3);
    assert_memory_equal(got, ((uint8_t[]){ 0, 1, 1 }), 3);
}

static void true_is_one_in_every_type(void **state)
{
    (void)state;
    static const uint8_t flags[] = { 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 7 };
    for (size_t k = 0; k < PLAIN_COUNT; k++) {
        uint8_t raw[11 * 16];
        double pairs[11][2] = { { 0 } };
        coffer__elements_convert(raw, plain[k], flags, COFFER_DTYPE_BOOL, 11);
        coffer__elements_convert(pairs, COFFER_DTYPE_C128, raw, plain[k], 11);
        for (int i = 0; i < 11; i++)
            assert_true(pairs[i][0] == (flags[i] != 0) && pairs[i][1] == 0);
    }
}

static void complex_numbers_stay_complex(void **state)
{
    (void)state;
    const double in[4] = { 1.5, -2.25, NAN, 3.0 };
    float narrow[4];
    double back[4];
    assert_true(coffer__elements_can_convert(COFFER_DTYPE_C64, COFFER_DTYPE_C128));
    assert_true(coffer__elements_can_convert(COFFER_DTYPE_C64, COFFER_DTYPE_I8));
    assert_false(coffer__elements_can_convert(COFFER_DTYPE_F64, COFFER_DTYPE_C32));
    assert_false(coffer__elements_can_convert(COFFER_DTYPE_F64, COFFER_DTYPE_BIT));
    coffer__elements_convert(narrow, COFFER_DTYPE_C64, in, COFFER_DTYPE_C128, 2);
    coffer__elements_convert(back, COFFER_DTYPE_C128, narrow, COFFER_DTYPE_C64, 2);
    assert_true(back[0] == 1.5 && back[1] == -2.25 && isnan(back[2]) && back[3] == 3.0);
}

/* ---- The same bits on every level ---- */

enum { ROW = 1203 };

static void fill_row(uint8_t *row, coffer_dtype dtype, uint64_t seed)
{
    for (size_t i = 0; i < ROW * 16; i++)
        row[i] = (uint8_t)(random_bits(&seed) >> 11);
    if (dtype == COFFER_DTYPE_BOOL) {
        for (size_t i = 0; i < ROW; i++)
            row[i] &= 1;
    }
}

static void every_level_converts_to_the_same_bits(void **state)
{
    (void)state;
    uint8_t *row = malloc(ROW * 16 + 1), *first = malloc(ROW * 16), *got = malloc(ROW * 16 + 1);
    for (size_t f = 0; f < PLAIN_COUNT; f++) {
        fill_row(row + 1, plain[f], f + 10);
        for (size_t t = 0; t < PLAIN_COUNT; t++) {
            size_t bytes = ROW * coffer_dtype_size(plain[t]);
            if (!coffer__elements_can_convert(plain[t], plain[f]))
                continue;
            for (size_t level = 0; level < LEVEL_COUNT; level++) {
                setenv("COFFER_CPU", levels[level], 1);
                coffer__elements_convert(got + 1, plain[t], row + 1, plain[f], ROW);
                if (level == 0)
                    memcpy(first, got + 1, bytes);
                assert_memory_equal(first, got + 1, bytes);
            }
            /* One by one it is the same as in a row. */
            for (size_t i = 0; i < ROW; i++)
                coffer__elements_convert(got + i * coffer_dtype_size(plain[t]), plain[t],
                                         row + 1 + i * coffer_dtype_size(plain[f]), plain[f], 1);
            assert_memory_equal(first, got, bytes);
        }
    }
    unsetenv("COFFER_CPU");
    free(row);
    free(first);
    free(got);
}

static void every_level_sums_and_compares_to_the_same_bits(void **state)
{
    (void)state;
    uint8_t *a = malloc(ROW * 16), *b = malloc(ROW * 16);
    for (size_t k = 0; k < PLAIN_COUNT; k++) {
        coffer__summary sums[LEVEL_COUNT];
        coffer__comparison comparisons[LEVEL_COUNT];
        fill_row(a, plain[k], k);
        fill_row(b, plain[k], k + 50);
        memcpy(b, a, ROW * coffer_dtype_size(plain[k]) / 3);
        for (size_t level = 0; level < LEVEL_COUNT; level++) {
            setenv("COFFER_CPU", levels[level], 1);
            coffer__summary_init(&sums[level]);
            coffer__summary_add(&sums[level], a, plain[k], ROW);
            coffer__comparison_init(&comparisons[level]);
            coffer__comparison_add(&comparisons[level], 5, a, plain[k], b, plain[k], ROW, 0.5);
            assert_memory_equal(&sums[0], &sums[level], sizeof sums[0]);
            assert_memory_equal(&comparisons[0], &comparisons[level], sizeof comparisons[0]);
        }
    }
    unsetenv("COFFER_CPU");
    free(a);
    free(b);
}

/* ---- Summaries ---- */

static void assert_close(double got, long double expected, double relative)
{
    if (!(fabsl((long double)got - expected) <= (long double)relative * fabsl(expected)))
        fail_msg("%.17g is not %.17Lg", got, expected);
}

static void a_summary_is_what_the_long_way_gives(void **state)
{
    (void)state;
    enum { COUNT = 30011 };
    double *values = malloc(COUNT * sizeof *values);
    uint64_t seed = 4, nans = 0, infinities = 0, zeros = 0, finite = 0;
    long double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
    for (int i = 0; i < COUNT; i++) {
        uint64_t r = random_bits(&seed);
        values[i] = r % 50 == 0   ? NAN
                    : r % 50 == 1 ? (r & 64 ? INFINITY : -INFINITY)
                    : r % 50 == 2 ? 0.0
                                  : ((double)(r >> 12) / 0x1p52 - 0.3) * 1000;
        nans += isnan(values[i]) ? 1 : 0;
        infinities += !!isinf(values[i]);
        zeros += values[i] == 0;
        if (!isfinite(values[i]))
            continue;
        finite++;
        sum += (long double)values[i];
        squares += (long double)values[i] * (long double)values[i];
        low = fminl(low, (long double)values[i]);
        high = fmaxl(high, (long double)values[i]);
    }
    coffer__summary s;
    coffer__summary_init(&s);
    coffer__summary_add(&s, values, COFFER_DTYPE_F64, COUNT);
    assert_int_equal(s.count, COUNT);
    assert_int_equal(s.nans, nans);
    assert_int_equal(s.infinities, infinities);
    assert_int_equal(s.zeros, zeros);
    assert_true((long double)s.min == low && (long double)s.max == high);
    assert_close(coffer__summary_mean(&s), sum / finite, 1e-15);
    assert_close(coffer__summary_norm(&s), sqrtl(squares), 1e-15);
    assert_close(coffer__summary_deviation(&s), sqrtl(squares / finite - sum * sum / finite / finite), 1e-13);
    free(values);
}

static void the_deviation_of_numbers_far_from_zero_keeps_its_digits(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double *values = malloc(COUNT * sizeof *values);
    for (int i = 0; i < COUNT; i++)
        values[i] = 1e12 + (i % 2 ? 1.0 : -1.0);
    coffer__summary s;
    coffer__summary_init(&s);
    coffer__summary_add(&s, values, COFFER_DTYPE_F64, COUNT);
    assert_close(coffer__summary_mean(&s), 1e12L, 0);
    assert_close(coffer__summary_deviation(&s), 1.0L, 1e-9);
    free(values);
}

static void cuts_at_multiples_of_4096_leave_the_summary_as_it_is(void **state)
{
    (void)state;
    enum { COUNT = 3 * 4096 + 77 };
    float *values = malloc(COUNT * sizeof *values);
    uint64_t seed = 5;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(int32_t)random_bits(&seed);
    coffer__summary whole, cut;
    coffer__summary_init(&whole);
    coffer__summary_init(&cut);
    coffer__summary_add(&whole, values, COFFER_DTYPE_F32, COUNT);
    for (size_t i = 0; i < COUNT; i += 4096)
        coffer__summary_add(&cut, values + i, COFFER_DTYPE_F32, COUNT - i < 4096 ? COUNT - i : 4096);
    assert_memory_equal(&whole, &cut, sizeof whole);
    free(values);
}

static void merged_summaries_are_the_summary_of_the_whole(void **state)
{
    (void)state;
    int16_t values[9000];
    uint64_t seed = 6;
    for (int i = 0; i < 9000; i++)
        values[i] = (int16_t)random_bits(&seed);
    coffer__summary whole, left, right, nothing;
    coffer__summary_init(&whole);
    coffer__summary_init(&left);
    coffer__summary_init(&right);
    coffer__summary_init(&nothing);
    coffer__summary_add(&whole, values, COFFER_DTYPE_I16, 9000);
    coffer__summary_add(&left, values, COFFER_DTYPE_I16, 4096);
    coffer__summary_add(&right, values + 4096, COFFER_DTYPE_I16, 9000 - 4096);
    coffer__summary_merge(&left, &nothing);
    coffer__summary_merge(&left, &right);
    assert_int_equal(left.count, 9000);
    assert_true(left.min == whole.min && left.max == whole.max && left.sum == whole.sum);
    assert_close(coffer__summary_deviation(&left), (long double)coffer__summary_deviation(&whole), 1e-15);
}

static void a_summary_of_nothing_has_no_mean(void **state)
{
    (void)state;
    coffer__summary s;
    double nan = NAN;
    coffer__summary_init(&s);
    assert_true(isnan(coffer__summary_mean(&s)) && isnan(s.min) && coffer__summary_norm(&s) == 0);
    coffer__summary_add(&s, &nan, COFFER_DTYPE_F64, 1);
    assert_true(isnan(coffer__summary_mean(&s)) && isnan(s.max) && isnan(coffer__summary_deviation(&s)));
    assert_int_equal(s.nans, 1);
}

static void huge_numbers_overflow_to_infinity_and_never_to_nan(void **state)
{
    (void)state;
    double values[4] = { 1.7e308, 1.7e308, 1.7e308, -1e308 };
    coffer__summary s;
    coffer__summary_init(&s);
    coffer__summary_add(&s, values, COFFER_DTYPE_F64, 4);
    coffer__summary_add(&s, values, COFFER_DTYPE_F64, 4);
    assert_true(s.max == 1.7e308 && s.min == -1e308);
    assert_true(isinf(coffer__summary_norm(&s)) && isinf(coffer__summary_deviation(&s)));
    assert_true(!isnan(coffer__summary_mean(&s)));
}

static void complex_numbers_count_by_their_magnitude(void **state)
{
    (void)state;
    float pairs[6] = { 3, 4, 0, 0, -6, 8 };
    coffer__summary s;
    coffer__summary_init(&s);
    coffer__summary_add(&s, pairs, COFFER_DTYPE_C64, 3);
    assert_true(s.max == 10 && s.min == 0 && coffer__summary_mean(&s) == 5 && s.zeros == 1);
    double huge[2] = { 3e200, 4e200 };
    coffer__summary_add(&s, huge, COFFER_DTYPE_C128, 1);
    assert_close(s.max, 5e200L, 1e-15);
}

/* ---- Comparisons ---- */

static coffer__comparison compare(const void *a, coffer_dtype a_type, const void *b, coffer_dtype b_type,
                                  size_t count, double tolerance)
{
    coffer__comparison c;
    coffer__comparison_init(&c);
    coffer__comparison_add(&c, 0, a, a_type, b, b_type, count, tolerance);
    return c;
}

static void a_comparison_finds_the_first_and_the_largest_difference(void **state)
{
    (void)state;
    double a[2000], b[2000];
    for (int i = 0; i < 2000; i++)
        a[i] = b[i] = i;
    b[700] += 0.25;
    b[1500] -= 3;
    coffer__comparison c = compare(a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 2000, 0);
    assert_int_equal(c.count, 2000);
    assert_int_equal(c.differing, 2);
    assert_int_equal(c.first, 700);
    assert_int_equal(c.max_at, 1500);
    assert_true(c.max_abs == 3);
    assert_close(coffer__comparison_rmse(&c), sqrtl(9.0625L / 2000), 1e-15);
    c = compare(a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 2000, 0.25);
    assert_int_equal(c.differing, 1);
    assert_int_equal(c.first, 1500);
}

static void nans_are_equal_to_each_other_and_to_nothing_else(void **state)
{
    (void)state;
    double a[5] = { NAN, NAN, 1, INFINITY, INFINITY }, b[5] = { NAN, 2, NAN, INFINITY, -INFINITY };
    coffer__comparison c = compare(a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 1, 0);
    assert_int_equal(c.differing, 0);
    assert_int_equal(c.first, UINT64_MAX);
    c = compare(a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 5, 1e300);
    assert_int_equal(c.differing, 3);
    assert_int_equal(c.first, 1);
    assert_true(isinf(c.max_abs));
    assert_int_equal(c.max_at, 1);
}

static void equal_rows_are_equal_in_every_measure(void **state)
{
    (void)state;
    float a[100];
    for (int i = 0; i < 100; i++)
        a[i] = (float)(i - 50);
    coffer__comparison c = compare(a, COFFER_DTYPE_F32, a, COFFER_DTYPE_F32, 100, 0);
    assert_true(c.differing == 0 && c.max_abs == 0 && coffer__comparison_rmse(&c) == 0);
    assert_true(isinf(coffer__comparison_snr(&c)));
    assert_close(coffer__comparison_cosine(&c), 1.0L, 1e-15);
    memset(a, 0, sizeof a);
    c = compare(a, COFFER_DTYPE_F32, a, COFFER_DTYPE_F32, 100, 0);
    assert_true(coffer__comparison_cosine(&c) == 1);
}

static void signal_and_direction_are_measured(void **state)
{
    (void)state;
    double a[2] = { 3, 4 }, b[2] = { 4, -3 };
    coffer__comparison c = compare(a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 2, 0);
    assert_true(coffer__comparison_cosine(&c) == 0);
    assert_close(coffer__comparison_snr(&c), 10 * log10l(25.0L / 50), 1e-14);
}

static void integers_past_the_digits_of_a_double_are_distinguished(void **state)
{
    (void)state;
    int64_t a[2] = { INT64_MAX, INT64_MIN }, b[2] = { INT64_MAX - 1, INT64_MIN };
    coffer__comparison c = compare(a, COFFER_DTYPE_I64, b, COFFER_DTYPE_I64, 2, 0);
    assert_int_equal(c.differing, 1);
    assert_true(c.max_abs == 1);
    uint64_t u = UINT64_MAX;
    int64_t minus = -1;
    c = compare(&u, COFFER_DTYPE_U64, &minus, COFFER_DTYPE_I64, 1, 0);
    assert_true(c.max_abs == 0x1p64);
}

static void types_may_differ(void **state)
{
    (void)state;
    int8_t a[3] = { 1, -2, 3 };
    float b[3] = { 1, -2, 3.5F };
    coffer__comparison c = compare(a, COFFER_DTYPE_I8, b, COFFER_DTYPE_F32, 3, 0);
    assert_true(c.differing == 1 && c.first == 2 && c.max_abs == 0.5);
    float z[2] = { 3, 4 };
    double zero = 0;
    c = compare(&zero, COFFER_DTYPE_F64, z, COFFER_DTYPE_C64, 1, 0);
    assert_true(c.max_abs == 5 && c.differing == 1);
}

static void merged_comparisons_are_the_comparison_of_the_whole(void **state)
{
    (void)state;
    double a[1024] = { 0 }, b[1024] = { 0 };
    b[100] = 1;
    b[900] = 2;
    coffer__comparison left, right;
    coffer__comparison_init(&left);
    coffer__comparison_init(&right);
    coffer__comparison_add(&left, 0, a, COFFER_DTYPE_F64, b, COFFER_DTYPE_F64, 512, 0);
    coffer__comparison_add(&right, 512, a + 512, COFFER_DTYPE_F64, b + 512, COFFER_DTYPE_F64, 512, 0);
    coffer__comparison_merge(&right, &left);
    assert_true(right.count == 1024 && right.differing == 2 && right.first == 100);
    assert_true(right.max_abs == 2 && right.max_at == 900);
}

static void types_have_names_and_sizes(void **state)
{
    (void)state;
    for (int i = 1; i < COFFER_DTYPE_COUNT; i++)
        assert_int_equal(coffer_dtype_by_name(coffer_dtype_name((coffer_dtype)i)), i);
    assert_int_equal(coffer_dtype_by_name("f33"), COFFER_DTYPE_NONE);
    assert_string_equal(coffer_dtype_name((coffer_dtype)99), "none");
    assert_int_equal(coffer_dtype_size(COFFER_DTYPE_C128), 16);
    assert_int_equal(coffer_dtype_size(COFFER_DTYPE_BIT), 0);
    assert_true(coffer_dtype_is_quantized(COFFER_DTYPE_K4) && !coffer_dtype_is_integer(COFFER_DTYPE_INT8));
    assert_true(coffer_dtype_is_float(COFFER_DTYPE_BF16) && !coffer_dtype_is_float(COFFER_DTYPE_C64));
}

static void callers_convert_elements_where_the_types_allow_it(void **state)
{
    (void)state;
    static const double in[] = { 1.5, -300.0, 7.0 };
    int8_t out[3] = { 0 };
    assert_true(coffer_dtype_convert(out, COFFER_DTYPE_I8, in, COFFER_DTYPE_F64, 3));
    assert_int_equal(out[1], -128);
    assert_int_equal(out[2], 7);
    assert_false(coffer_dtype_convert(out, COFFER_DTYPE_I8, in, COFFER_DTYPE_C128, 1));
    assert_false(coffer_dtype_can_convert(COFFER_DTYPE_Q8, COFFER_DTYPE_F32));
    assert_int_equal(out[2], 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_convert_elements_where_the_types_allow_it),
        cmocka_unit_test(types_have_names_and_sizes),
        cmocka_unit_test(every_small_number_becomes_the_float_it_is),
        cmocka_unit_test(narrowing_rounds_once_to_the_nearest_and_ties_to_even),
        cmocka_unit_test(long_integers_round_once_as_well),
        cmocka_unit_test(numbers_out_of_an_integers_range_are_clamped),
        cmocka_unit_test(integers_reach_every_other_type_with_their_value),
        cmocka_unit_test(anything_but_zero_is_true),
        cmocka_unit_test(true_is_one_in_every_type),
        cmocka_unit_test(complex_numbers_stay_complex),
        cmocka_unit_test(every_level_converts_to_the_same_bits),
        cmocka_unit_test(every_level_sums_and_compares_to_the_same_bits),
        cmocka_unit_test(a_summary_is_what_the_long_way_gives),
        cmocka_unit_test(the_deviation_of_numbers_far_from_zero_keeps_its_digits),
        cmocka_unit_test(cuts_at_multiples_of_4096_leave_the_summary_as_it_is),
        cmocka_unit_test(merged_summaries_are_the_summary_of_the_whole),
        cmocka_unit_test(a_summary_of_nothing_has_no_mean),
        cmocka_unit_test(huge_numbers_overflow_to_infinity_and_never_to_nan),
        cmocka_unit_test(complex_numbers_count_by_their_magnitude),
        cmocka_unit_test(a_comparison_finds_the_first_and_the_largest_difference),
        cmocka_unit_test(nans_are_equal_to_each_other_and_to_nothing_else),
        cmocka_unit_test(equal_rows_are_equal_in_every_measure),
        cmocka_unit_test(signal_and_direction_are_measured),
        cmocka_unit_test(integers_past_the_digits_of_a_double_are_distinguished),
        cmocka_unit_test(types_may_differ),
        cmocka_unit_test(merged_comparisons_are_the_comparison_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
