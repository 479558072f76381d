/* The method of the format's first program, to the bit: float32, scales cut to f16, halves rounded away from
 * zero. */
#include "base/dtype.h"
#include "quant/quant_encode.h"

#include <math.h>

/* The mantissa is cut off, not rounded; what is too small for a normal number becomes 0. Numbers that f16
 * does not reach become its largest. */
static uint16_t cut_to_half(float value)
{
    uint32_t bits = coffer__float_bits(value);
    int exponent = (int)(bits >> 23) - 112;
    if (exponent <= 0)
        return 0;
    if (exponent > 30)
        return 0x7BFF;
    return (uint16_t)((uint32_t)exponent << 10 | (bits >> 13 & 0x3FF));
}

static float largest_magnitude(const coffer__quant_block *block)
{
    float most = 0.0f;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++)
        most = fmaxf(most, fabsf(block->values[i]));
    return most;
}

static void put_codes(int8_t codes[COFFER__QUANT_BLOCK], const coffer__quant_block *block, float scale,
                      float largest)
{
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    if (isinf(inverse)) /* of a scale that the file holds as 0 */
        inverse = 0.0f;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++)
        codes[i] = (int8_t)fmaxf(-largest, fminf(largest, roundf(block->values[i] * inverse)));
}

static void absmax_super(coffer__quant_unit *out, const coffer__quant_block *blocks, float largest)
{
    float scales[COFFER__QUANT_SUPER_BLOCKS], super = 0.0f;
    for (size_t i = 0; i < COFFER__QUANT_SUPER_BLOCKS; i++) {
        scales[i] = largest_magnitude(&blocks[i]) / largest;
        super = fmaxf(super, scales[i]);
    }
    out->scale = cut_to_half(super);
    for (size_t i = 0; i < COFFER__QUANT_SUPER_BLOCKS; i++) {
        float sub = scales[i] > 0.0f ? fmaxf(1.0f, fminf(63.0f, roundf(32.0f * (scales[i] / super)))) : 0.0f;
        out->subs[i] = (uint8_t)sub;
        put_codes(out->codes[i], &blocks[i], super * (sub / 32.0f), largest);
    }
}

void coffer__quant_absmax(coffer__quant_unit *out, const coffer__quant_type *type,
                          const coffer__quant_block *blocks)
{
    float largest = (float)coffer__quant_largest_code(type);
    if (type->family == COFFER__QUANT_SUPERS) {
        absmax_super(out, blocks, largest);
        return;
    }
    float scale = largest_magnitude(blocks) / largest;
    out->scale = cut_to_half(scale);
    put_codes(out->codes[0], blocks, scale, largest);
}
