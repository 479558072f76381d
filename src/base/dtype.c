#include "coffer/dtype.h"

#include "base/dtype.h"
#include "base/elements.h"

#include <math.h>
#include <string.h>

enum { FLOAT = 1, INTEGER = 2, COMPLEX = 4, QUANTIZED = 8 };

static const struct type_facts {
    const char *name;
    uint8_t size, kind;
} types[COFFER_DTYPE_COUNT] = {
    [COFFER_DTYPE_NONE] = { "none", 0, 0 },           [COFFER_DTYPE_BOOL] = { "bool", 1, 0 },
    [COFFER_DTYPE_I8] = { "i8", 1, INTEGER },         [COFFER_DTYPE_U8] = { "u8", 1, INTEGER },
    [COFFER_DTYPE_I16] = { "i16", 2, INTEGER },       [COFFER_DTYPE_U16] = { "u16", 2, INTEGER },
    [COFFER_DTYPE_I32] = { "i32", 4, INTEGER },       [COFFER_DTYPE_U32] = { "u32", 4, INTEGER },
    [COFFER_DTYPE_I64] = { "i64", 8, INTEGER },       [COFFER_DTYPE_U64] = { "u64", 8, INTEGER },
    [COFFER_DTYPE_F16] = { "f16", 2, FLOAT },         [COFFER_DTYPE_BF16] = { "bf16", 2, FLOAT },
    [COFFER_DTYPE_F32] = { "f32", 4, FLOAT },         [COFFER_DTYPE_F64] = { "f64", 8, FLOAT },
    [COFFER_DTYPE_C32] = { "c32", 4, COMPLEX },       [COFFER_DTYPE_C64] = { "c64", 8, COMPLEX },
    [COFFER_DTYPE_C128] = { "c128", 16, COMPLEX },    [COFFER_DTYPE_F8_E4M3] = { "f8_e4m3", 1, FLOAT },
    [COFFER_DTYPE_F8_E5M2] = { "f8_e5m2", 1, FLOAT }, [COFFER_DTYPE_BIT] = { "bit", 0, 0 },
    [COFFER_DTYPE_INT8] = { "int8", 0, QUANTIZED },   [COFFER_DTYPE_INT4] = { "int4", 0, QUANTIZED },
    [COFFER_DTYPE_Q8] = { "q8", 0, QUANTIZED },       [COFFER_DTYPE_Q4] = { "q4", 0, QUANTIZED },
    [COFFER_DTYPE_K6] = { "k6", 0, QUANTIZED },       [COFFER_DTYPE_K4] = { "k4", 0, QUANTIZED },
    [COFFER_DTYPE_K3] = { "k3", 0, QUANTIZED },       [COFFER_DTYPE_K2] = { "k2", 0, QUANTIZED },
};

static const struct type_facts *facts_of(coffer_dtype dtype)
{
    return &types[(unsigned)dtype < COFFER_DTYPE_COUNT ? dtype : COFFER_DTYPE_NONE];
}

const char *coffer_dtype_name(coffer_dtype dtype)
{
    return facts_of(dtype)->name;
}

coffer_dtype coffer_dtype_by_name(const char *name)
{
    for (int i = 0; i < COFFER_DTYPE_COUNT; i++) {
        if (strcmp(types[i].name, name) == 0)
            return (coffer_dtype)i;
    }
    return COFFER_DTYPE_NONE;
}

size_t coffer_dtype_size(coffer_dtype dtype)
{
    return facts_of(dtype)->size;
}

bool coffer_dtype_is_complex(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == COMPLEX;
}

bool coffer_dtype_is_float(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == FLOAT;
}

bool coffer_dtype_is_integer(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == INTEGER;
}

bool coffer_dtype_is_quantized(coffer_dtype dtype)
{
    return facts_of(dtype)->kind == QUANTIZED;
}

static const struct dtype_code {
    coffer_dtype dtype;
    uint8_t code;
} dtype_codes[] = {
    { COFFER_DTYPE_F32, 1 },     { COFFER_DTYPE_F16, 2 },     { COFFER_DTYPE_BF16, 3 },
    { COFFER_DTYPE_F64, 4 },     { COFFER_DTYPE_I8, 5 },      { COFFER_DTYPE_U8, 6 },
    { COFFER_DTYPE_I16, 7 },     { COFFER_DTYPE_U16, 8 },     { COFFER_DTYPE_I32, 9 },
    { COFFER_DTYPE_U32, 10 },    { COFFER_DTYPE_I64, 11 },    { COFFER_DTYPE_U64, 12 },
    { COFFER_DTYPE_INT8, 0x10 }, { COFFER_DTYPE_INT4, 0x11 }, { COFFER_DTYPE_Q8, 0x20 },
    { COFFER_DTYPE_Q4, 0x21 },   { COFFER_DTYPE_K6, 0x30 },   { COFFER_DTYPE_K4, 0x31 },
    { COFFER_DTYPE_K3, 0x32 },   { COFFER_DTYPE_K2, 0x33 },
};

uint8_t coffer__dtype_code(coffer_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].dtype == dtype)
            return dtype_codes[i].code;
    }
    return 0;
}

coffer_dtype coffer__dtype_of_code(uint32_t code)
{
    for (size_t i = 0; i < sizeof dtype_codes / sizeof dtype_codes[0]; i++) {
        if (dtype_codes[i].code == code)
            return dtype_codes[i].dtype;
    }
    return COFFER_DTYPE_NONE;
}

/* Floating-point types below 32 bits, one number at a time. */

float coffer__f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31)
        return coffer__float_from_bits(sign | 0x7F800000 | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent == 0) { /* a multiple of 2^-24, exact in a float */
        float magnitude = (float)fraction * 0x1p-24F;
        return coffer__float_from_bits(sign | coffer__float_bits(magnitude));
    }
    return coffer__float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Shifts right, rounding to nearest, ties to even. */
static uint32_t shift_rounded(uint32_t value, unsigned shift)
{
    if (shift > 31)
        return 0;
    uint32_t half = UINT32_C(1) << (shift - 1), rest = value & (2 * half - 1), kept = value >> shift;
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* Rounds a finite float to a type with `fraction_bits` and an exponent of that bias, sign left out. The
 * result may have run over into the exponents above those of the type. */
static uint32_t narrow(uint32_t magnitude, unsigned fraction_bits, int bias)
{
    int exponent = (int)(magnitude >> 23) - 127 + bias;
    uint32_t fraction = magnitude & 0x7FFFFF;
    if (exponent > 0)
        return shift_rounded((uint32_t)exponent << 23 | fraction, 23 - fraction_bits);
    if (magnitude < 0x800000) /* below every type's smallest number but that of the float */
        return 0;
    return shift_rounded(fraction | 0x800000, 24 - fraction_bits - (unsigned)exponent);
}

uint16_t coffer__f16_from_f32(float value)
{
    uint32_t bits = coffer__float_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000)
        return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x47800000) /* 2^16 */
        return sign | 0x7C00;
    return (uint16_t)(sign | narrow(magnitude, 10, 15));
}

float coffer__float_odd(double value)
{
    float rounded = (float)value;
    if (isnan(value) || (double)rounded == value)
        return rounded;
    uint32_t bits = coffer__float_bits(rounded);
    if (fabs((double)rounded) > fabs(value))
        bits--;
    return coffer__float_from_bits(bits | 1);
}

uint16_t coffer__f16_from_f64(double value)
{
    return coffer__f16_from_f32(coffer__float_odd(value));
}

float coffer__bf16_to_f32(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    return coffer__float_from_bits((wide & 0x7FFFFFFF) > 0x7F800000 ? wide | 0x400000 : wide);
}

uint16_t coffer__bf16_from_f32(float value)
{
    uint32_t bits = coffer__float_bits(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float coffer__f8_e5m2_to_f32(uint8_t bits)
{
    return coffer__f16_to_f32((uint16_t)(bits << 8)); /* the upper half of an F16 */
}

uint8_t coffer__f8_e5m2_from_f32(float value)
{
    uint32_t bits = coffer__float_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    if (magnitude > 0x7F800000)
        return sign | 0x7E;
    if (magnitude >= 0x47800000)
        return sign | 0x7C;
    return (uint8_t)(sign | narrow(magnitude, 2, 15));
}

float coffer__f8_e4m3_to_f32(uint8_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x80) << 24, exponent = bits >> 3 & 15, fraction = bits & 7;
    if ((bits & 0x7F) == 0x7F)
        return coffer__float_from_bits(sign | 0x7FC00000);
    if (exponent == 0)
        return coffer__float_from_bits(sign | coffer__float_bits((float)fraction * 0x1p-9F));
    return coffer__float_from_bits(sign | (exponent + 120) << 23 | fraction << 20);
}

uint8_t coffer__f8_e4m3_from_f32(float value)
{
    uint32_t bits = coffer__float_bits(value), magnitude = bits & 0x7FFFFFFF;
    uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    if (magnitude >= 0x44000000) /* 512, infinity, NaN */
        return sign | 0x7F;
    uint32_t rounded = narrow(magnitude, 3, 7);
    return (uint8_t)(sign | (rounded < 0x7F ? rounded : 0x7F));
}
