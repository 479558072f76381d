/* Floating-point types below 32 bits, one number at a time. */
#include "base/elements_half.h"

#include "base/elements.h"

#include <math.h>

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
