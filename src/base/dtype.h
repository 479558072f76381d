/* Types of elements: their numbers in files, and the bits of the small floating-point types. */
#ifndef COFFER_BASE_DTYPE_H
#define COFFER_BASE_DTYPE_H

#include "coffer/dtype.h"

#include <stdint.h>
#include <string.h>

/* The numbers that model containers and training sets write for a type of element. */
uint8_t coffer__dtype_code(coffer_dtype dtype);    /* 0 when the type does not have one */
coffer_dtype coffer__dtype_of_code(uint32_t code); /* COFFER_DTYPE_NONE when no type has it */

/* Bits, for the kernels. A signalling NaN becomes a quiet one everywhere, as the processor's own conversions
 * have it. */

static inline uint32_t coffer__float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float coffer__float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Cuts the number to float and sets the last bit when something was cut off ("round to odd"): rounding the
 * result to a type that is at least two bits narrower is then the same as rounding the number itself. */
float coffer__float_odd(double value);

float coffer__f8_e4m3_to_f32(uint8_t bits);
float coffer__f8_e5m2_to_f32(uint8_t bits);
/* Values out of range become NaN in E4M3, which has no infinity, and infinity in E5M2. */
uint8_t coffer__f8_e4m3_from_f32(float value);
uint8_t coffer__f8_e5m2_from_f32(float value);

#endif
