/* The method of the format's first program, to the bit: float32, scales cut to f16, halves rounded away from
 * zero. Plain loops over blocks, which the including file is compiled to vectors for. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "quant/quant_encode.h"

#include <math.h>
#include <string.h>

#define INLINED static inline __attribute__((always_inline))

/* The mantissa is cut off, not rounded; what is too small for a normal number becomes 0. Numbers that f16
 * does not reach become its largest. */
INLINED uint16_t cut_to_half(float value)
{
    uint32_t bits = coffer__float_bits(value);
    int exponent = (int)(bits >> 23) - 112;
    if (exponent <= 0)
        return 0;
    if (exponent > 30)
        return 0x7BFF;
    return (uint16_t)((uint32_t)exponent << 10 | (bits >> 13 & 0x3FF));
}

/* Magnitudes compare as their bits do. */
INLINED float largest_magnitude(const float *values)
{
    int32_t most = 0;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++) {
        int32_t bits = (int32_t)(coffer__float_bits(values[i]) & 0x7FFFFFFF);
        most = bits > most ? bits : most;
    }
    return coffer__float_from_bits((uint32_t)most);
}

/* Codes and their packed form. Quotients are at most twice the largest code. */
INLINED void put_absmax_codes(uint8_t *out, const float *values, float scale, int largest, unsigned bits)
{
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    int8_t codes[COFFER__QUANT_BLOCK];
    if (isinf(inverse)) /* of a scale that the file holds as 0 */
        inverse = 0.0f;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++) {
        float quotient = values[i] * inverse;
        int code = (int)quotient;
        float rest = quotient - (float)code;
        code += (rest >= 0.5f) - (rest <= -0.5f);
        code = code > largest ? largest : code;
        codes[i] = (int8_t)(code < -largest ? -largest : code);
    }
    if (bits == 8) {
        memcpy(out, codes, sizeof codes);
        return;
    }
    if (bits != 4) {
        coffer__quant_pack_codes(out, codes, bits);
        return;
    }
    for (size_t i = 0; i < COFFER__QUANT_BLOCK / 2; i++) {
        uint16_t pair = coffer__load_u16(codes + 2 * i);
        out[i] = (uint8_t)((pair & 0xF) | (pair >> 4 & 0xF0));
    }
}

/* Where a unit goes. */
typedef struct unit_output {
    uint8_t *scale, *subs, *codes;
} unit_output;

/* count : blocks of a super that the row has; the others are zeros. */
INLINED void absmax_super(const unit_output *out, const float *values, size_t count, unsigned bits)
{
    const int largest = (1 << (bits - 1)) - 1;
    float scales[COFFER__QUANT_SUPER_BLOCKS], super = 0.0f;
    for (size_t i = 0; i < count; i++) {
        scales[i] = largest_magnitude(values + i * COFFER__QUANT_BLOCK) / (float)largest;
        super = scales[i] > super ? scales[i] : super;
    }
    coffer__store_u16(out->scale, cut_to_half(super));
    for (size_t i = 0; i < count; i++) {
        float sub = scales[i] > 0.0f ? fmaxf(1.0f, fminf(63.0f, roundf(32.0f * (scales[i] / super)))) : 0.0f;
        out->subs[i] = (uint8_t)sub;
        put_absmax_codes(out->codes + i * (bits * COFFER__QUANT_BLOCK / 8), values + i * COFFER__QUANT_BLOCK,
                         super * (sub / 32.0f), largest, bits);
    }
}

INLINED void absmax_unit(const unit_output *out, const float *values, size_t count, unsigned bits,
                         bool supers)
{
    const int largest = (1 << (bits - 1)) - 1;
    if (supers) {
        absmax_super(out, values, count, bits);
        return;
    }
    float scale = largest_magnitude(values) / (float)largest;
    coffer__store_u16(out->scale, cut_to_half(scale));
    put_absmax_codes(out->codes, values, scale, largest, bits);
}

INLINED void absmax_type(const coffer__quant_output *out, const coffer__quant_rows *rows, unsigned bits,
                         bool supers)
{
    const size_t most = supers ? COFFER__QUANT_SUPER : COFFER__QUANT_BLOCK;
    const size_t block_size = bits * COFFER__QUANT_BLOCK / 8;
    unit_output at = { out->parts[COFFER__QUANT_SCALES], out->parts[COFFER__QUANT_SUBS],
                       out->parts[COFFER__QUANT_CODES] };
    for (uint64_t row = 0; row < rows->rows; row++) {
        const float *values = rows->values + row * rows->cols;
        for (uint64_t col = 0; col < rows->cols; col += most) {
            size_t here = rows->cols - col < most ? (size_t)(rows->cols - col) : most;
            size_t count = (size_t)coffer__divide_up(here, COFFER__QUANT_BLOCK);
            float padded[COFFER__QUANT_SUPER];
            if (here % COFFER__QUANT_BLOCK) {
                memset(padded, 0, sizeof padded);
                memcpy(padded, values + col, here * sizeof *padded);
            }
            absmax_unit(&at, here % COFFER__QUANT_BLOCK ? padded : values + col, count, bits, supers);
            at.scale += 2;
            at.subs += count;
            at.codes += count * block_size;
        }
    }
}

static void absmax(const coffer__quant_output *out, const coffer__quant_rows *rows)
{
    switch (rows->type->index) {
    case COFFER__QUANT_Q8:
        absmax_type(out, rows, 8, false);
        break;
    case COFFER__QUANT_Q4:
        absmax_type(out, rows, 4, false);
        break;
    case COFFER__QUANT_K6:
        absmax_type(out, rows, 6, true);
        break;
    case COFFER__QUANT_K4:
        absmax_type(out, rows, 4, true);
        break;
    case COFFER__QUANT_K3:
        absmax_type(out, rows, 3, true);
        break;
    default:
        absmax_type(out, rows, 2, true);
        break;
    }
}
