/* The loops of elements_kernels.h. The file that includes this one names its table and says whether the
 * instruction set converts halves by itself. */
#ifndef COFFER_BASE_ELEMENTS_LOOPS_H
#define COFFER_BASE_ELEMENTS_LOOPS_H

#include "base/dtype.h"
#include "base/elements.h"
#include "base/elements_kernels.h"

#include <math.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

typedef double f64x4 __attribute__((vector_size(32)));
typedef int64_t i64x4 __attribute__((vector_size(32)));

/* ---- Conversions that the compiler knows ---- */

#define DEFINE_CONVERT(name, to_type, from_type)                                           \
    static void name(void *out, const void *in, size_t count)                              \
    {                                                                                      \
        typedef from_type from_vector __attribute__((vector_size(8 * sizeof(from_type)))); \
        typedef to_type to_vector __attribute__((vector_size(8 * sizeof(to_type))));       \
        size_t i = 0;                                                                      \
        for (; i + 8 <= count; i += 8) {                                                   \
            from_vector from;                                                              \
            memcpy(&from, (const char *)in + i * sizeof(from_type), sizeof from);          \
            to_vector to = __builtin_convertvector(from, to_vector);                       \
            memcpy((char *)out + i * sizeof(to_type), &to, sizeof to);                     \
        }                                                                                  \
        for (; i < count; i++) {                                                           \
            from_type from;                                                                \
            memcpy(&from, (const char *)in + i * sizeof(from_type), sizeof from);          \
            to_type to = (to_type)from;                                                    \
            memcpy((char *)out + i * sizeof(to_type), &to, sizeof to);                     \
        }                                                                                  \
    }

DEFINE_CONVERT(f32_to_f64, double, float)
DEFINE_CONVERT(f64_to_f32, float, double)
DEFINE_CONVERT(i8_to_f64, double, int8_t)
DEFINE_CONVERT(u8_to_f64, double, uint8_t)
DEFINE_CONVERT(i16_to_f64, double, int16_t)
DEFINE_CONVERT(u16_to_f64, double, uint16_t)
DEFINE_CONVERT(i32_to_f64, double, int32_t)
DEFINE_CONVERT(u32_to_f64, double, uint32_t)
DEFINE_CONVERT(i64_to_f64, double, int64_t)
DEFINE_CONVERT(u64_to_f64, double, uint64_t)
DEFINE_CONVERT(i8_to_f32, float, int8_t)
DEFINE_CONVERT(u8_to_f32, float, uint8_t)
DEFINE_CONVERT(i16_to_f32, float, int16_t)
DEFINE_CONVERT(u16_to_f32, float, uint16_t)
DEFINE_CONVERT(i32_to_f32, float, int32_t)
DEFINE_CONVERT(u32_to_f32, float, uint32_t)
DEFINE_CONVERT(i64_to_f32, float, int64_t)
DEFINE_CONVERT(u64_to_f32, float, uint64_t)

#define DEFINE_SELECT(name, type, signed_type)                                             \
    static void name(void *out, const void *in, size_t count, uint64_t one)                \
    {                                                                                      \
        typedef int8_t byte_vector __attribute__((vector_size(8)));                        \
        typedef signed_type mask_vector __attribute__((vector_size(8 * sizeof(type))));    \
        const uint8_t *bytes = in;                                                         \
        size_t i = 0;                                                                      \
        for (; i + 8 <= count; i += 8) {                                                   \
            byte_vector flags;                                                             \
            memcpy(&flags, bytes + i, sizeof flags);                                       \
            byte_vector set = (byte_vector)(flags != 0);                                   \
            mask_vector to = __builtin_convertvector(set, mask_vector) & (signed_type)one; \
            memcpy((char *)out + i * sizeof(type), &to, sizeof to);                        \
        }                                                                                  \
        for (; i < count; i++) {                                                           \
            type to = bytes[i] ? (type)one : 0;                                            \
            memcpy((char *)out + i * sizeof(type), &to, sizeof to);                        \
        }                                                                                  \
    }

DEFINE_SELECT(select_1, uint8_t, int8_t)
DEFINE_SELECT(select_2, uint16_t, int16_t)
DEFINE_SELECT(select_4, uint32_t, int32_t)
DEFINE_SELECT(select_8, uint64_t, int64_t)

/* ---- Halves ---- */

static void f16_to_f32(void *out, const void *in, size_t count)
{
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        __m128i half = _mm_loadu_si128((const __m128i *)(const void *)((const char *)in + 2 * i));
        _mm256_storeu_ps((float *)(void *)((char *)out + 4 * i), _mm256_cvtph_ps(half));
    }
#endif
    for (; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)in + 2 * i, sizeof half);
        float value = coffer__f16_to_f32(half);
        memcpy((char *)out + 4 * i, &value, sizeof value);
    }
}

static void f32_to_f16(void *out, const void *in, size_t count)
{
    size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        __m256 value = _mm256_loadu_ps((const float *)(const void *)((const char *)in + 4 * i));
        __m128i half = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((__m128i *)(void *)((char *)out + 2 * i), half);
    }
#endif
    for (; i < count; i++) {
        float value;
        memcpy(&value, (const char *)in + 4 * i, sizeof value);
        uint16_t half = coffer__f16_from_f32(value);
        memcpy((char *)out + 2 * i, &half, sizeof half);
    }
}

typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

static void bf16_to_f32(void *out, const void *in, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        u16x8 half;
        memcpy(&half, (const char *)in + 2 * i, sizeof half);
        u32x8 wide = __builtin_convertvector(half, u32x8) << 16;
        i32x8 is_nan = (i32x8)(wide & 0x7FFFFFFF) > 0x7F800000;
        wide |= (u32x8)is_nan & 0x400000;
        memcpy((char *)out + 4 * i, &wide, sizeof wide);
    }
    for (; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)in + 2 * i, sizeof half);
        float value = coffer__bf16_to_f32(half);
        memcpy((char *)out + 4 * i, &value, sizeof value);
    }
}

static void f32_to_bf16(void *out, const void *in, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        u32x8 bits;
        memcpy(&bits, (const char *)in + 4 * i, sizeof bits);
        u32x8 is_nan = (u32x8)((i32x8)(bits & 0x7FFFFFFF) > 0x7F800000);
        u32x8 rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        u32x8 chosen = (is_nan & (bits >> 16 | 0x40)) | (~is_nan & rounded);
        u16x8 half = __builtin_convertvector(chosen, u16x8);
        memcpy((char *)out + 2 * i, &half, sizeof half);
    }
    for (; i < count; i++) {
        float value;
        memcpy(&value, (const char *)in + 4 * i, sizeof value);
        uint16_t half = coffer__bf16_from_f32(value);
        memcpy((char *)out + 2 * i, &half, sizeof half);
    }
}

/* ---- Sums ---- */

#define ALL(value) ((f64x4){ value, value, value, value })
/* mask ? yes : no, lane by lane */
#define CHOOSE(mask, yes, no) ((f64x4)(((mask) & (i64x4)(yes)) | (~(mask) & (i64x4)(no))))
#define ZERO_UNLESS(mask, value) ((f64x4)((mask) & (i64x4)(value)))
#define FINITE(value) ((value) - (value) == 0)
#define LOAD(vector, from) memcpy(&(vector), from, sizeof(vector))

static double add_lanes(const f64x4 *vector)
{
    double lanes[4];
    memcpy(lanes, vector, sizeof lanes);
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

static double least_lane(const f64x4 *vector)
{
    double lanes[4];
    memcpy(lanes, vector, sizeof lanes);
    for (int i = 1; i < 4; i++)
        lanes[0] = lanes[i] < lanes[0] ? lanes[i] : lanes[0];
    return lanes[0];
}

static double greatest_lane(const f64x4 *vector)
{
    double lanes[4];
    memcpy(lanes, vector, sizeof lanes);
    for (int i = 1; i < 4; i++)
        lanes[0] = lanes[i] > lanes[0] ? lanes[i] : lanes[0];
    return lanes[0];
}

static uint64_t count_lanes(const i64x4 *vector)
{
    int64_t lanes[4];
    memcpy(lanes, vector, sizeof lanes);
    return (uint64_t) - (lanes[0] + lanes[1] + lanes[2] + lanes[3]); /* a true comparison is −1 */
}

/* Right when all numbers are finite, which the sum then shows: a NaN or an infinity stays in it. */
static bool survey_finite(coffer__moments *out, const double *in, size_t count)
{
    f64x4 low0 = ALL(INFINITY), low1 = low0, high0 = ALL(-INFINITY), high1 = high0;
    f64x4 sum0 = ALL(0.0), sum1 = sum0;
    i64x4 zeros0 = { 0 }, zeros1 = { 0 };
    for (size_t i = 0; i < count; i += 8) {
        f64x4 a, b;
        LOAD(a, in + i);
        LOAD(b, in + i + 4);
        sum0 += a;
        sum1 += b;
        zeros0 += a == 0;
        zeros1 += b == 0;
        low0 = CHOOSE(a < low0, a, low0);
        low1 = CHOOSE(b < low1, b, low1);
        high0 = CHOOSE(a > high0, a, high0);
        high1 = CHOOSE(b > high1, b, high1);
    }
    sum0 += sum1;
    zeros0 += zeros1;
    low0 = CHOOSE(low1 < low0, low1, low0);
    high0 = CHOOSE(high1 > high0, high1, high0);
    double sum = add_lanes(&sum0);
    *out = (coffer__moments){
        .finite = count,
        .zeros = count_lanes(&zeros0),
        .min = least_lane(&low0),
        .max = greatest_lane(&high0),
        .mean = sum / (double)count,
    };
    return isfinite(sum);
}

static void survey_mixed(coffer__moments *out, const double *in, size_t count)
{
    f64x4 low = ALL(INFINITY), high = ALL(-INFINITY), sum = ALL(0.0);
    i64x4 finite = { 0 }, nans = { 0 }, zeros = { 0 };
    for (size_t i = 0; i < count; i += 4) {
        f64x4 a;
        LOAD(a, in + i);
        i64x4 is_finite = FINITE(a);
        finite += is_finite;
        nans += a != a;
        zeros += a == 0;
        sum += ZERO_UNLESS(is_finite, a);
        low = CHOOSE(is_finite & (a < low), a, low);
        high = CHOOSE(is_finite & (a > high), a, high);
    }
    *out = (coffer__moments){
        .finite = count_lanes(&finite),
        .nans = count_lanes(&nans),
        .zeros = count_lanes(&zeros),
        .min = least_lane(&low),
        .max = greatest_lane(&high),
    };
    double mean = out->finite ? add_lanes(&sum) / (double)out->finite : 0.0;
    /* Numbers so large that their sum overflows are taken about 0. */
    out->mean = isfinite(mean) ? mean : 0.0;
}

static void moments(coffer__moments *out, const double *in, size_t count)
{
    if (!survey_finite(out, in, count))
        survey_mixed(out, in, count);
    double mean = out->mean;
    f64x4 sum0 = ALL(0.0), sum1 = sum0, square0 = sum0, square1 = sum0;
    for (size_t i = 0; i < count; i += 8) {
        f64x4 a, b;
        LOAD(a, in + i);
        LOAD(b, in + i + 4);
        a = ZERO_UNLESS(FINITE(a), a - mean);
        b = ZERO_UNLESS(FINITE(b), b - mean);
        sum0 += a;
        sum1 += b;
        square0 += a * a;
        square1 += b * b;
    }
    sum0 += sum1;
    square0 += square1;
    out->deviations = add_lanes(&sum0);
    out->squares = add_lanes(&square0);
}

static void differences(coffer__differences *out, const double *a_in, const double *b_in, size_t count,
                        double tolerance)
{
    f64x4 largest = ALL(0.0), squares = largest, a_squares = largest, b_squares = largest, products = largest;
    i64x4 differing = { 0 };
    for (size_t i = 0; i < count; i += 4) {
        f64x4 a, b;
        LOAD(a, a_in + i);
        LOAD(b, b_in + i);
        i64x4 same = (a == b) | ((a != a) & (b != b));
        f64x4 apart = ZERO_UNLESS(~same & INT64_MAX, a - b);
        apart = CHOOSE(apart != apart, ALL(INFINITY), apart);
        differing += apart > tolerance;
        largest = CHOOSE(apart > largest, apart, largest);
        squares += apart * apart;
        i64x4 both_finite = FINITE(a) & FINITE(b);
        a = ZERO_UNLESS(both_finite, a);
        b = ZERO_UNLESS(both_finite, b);
        a_squares += a * a;
        b_squares += b * b;
        products += a * b;
    }
    *out = (coffer__differences){
        .differing = count_lanes(&differing),
        .max_abs = greatest_lane(&largest),
        .squares = add_lanes(&squares),
        .a_squares = add_lanes(&a_squares),
        .b_squares = add_lanes(&b_squares),
        .products = add_lanes(&products),
    };
}

#define FROM(type) [COFFER_DTYPE_##type]
#define TO(type, kernel) [COFFER_DTYPE_##type] = kernel

#define COFFER__ELEMENTS_TABLE                                                                         \
    {                                                                                                  \
        .convert = {                                                                                 \
            FROM(I8) = { TO(F32, i8_to_f32), TO(F64, i8_to_f64) },                                   \
            FROM(U8) = { TO(F32, u8_to_f32), TO(F64, u8_to_f64) },                                   \
            FROM(I16) = { TO(F32, i16_to_f32), TO(F64, i16_to_f64) },                                \
            FROM(U16) = { TO(F32, u16_to_f32), TO(F64, u16_to_f64) },                                \
            FROM(I32) = { TO(F32, i32_to_f32), TO(F64, i32_to_f64) },                                \
            FROM(U32) = { TO(F32, u32_to_f32), TO(F64, u32_to_f64) },                                \
            FROM(I64) = { TO(F32, i64_to_f32), TO(F64, i64_to_f64) },                                \
            FROM(U64) = { TO(F32, u64_to_f32), TO(F64, u64_to_f64) },                                \
            FROM(F16) = { TO(F32, f16_to_f32) },                                                     \
            FROM(BF16) = { TO(F32, bf16_to_f32) },                                                   \
            FROM(F32) = { TO(F16, f32_to_f16), TO(BF16, f32_to_bf16), TO(F64, f32_to_f64) },         \
            FROM(F64) = { TO(F32, f64_to_f32) },                                                     \
        },                                                                                           \
        .select = { select_1, select_2, select_4, select_8 },                                        \
        .moments = moments,                                                                          \
        .differences = differences, \
    }

#endif
