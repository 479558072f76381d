/* Rounded products for NEON, with the dot product of bytes where the including file is compiled for it. */
#include "quant/quant_rounded.h"
#include "quant/quant_unpack_neon.h"

#define PANEL 4
#define TILE_ROWS 8

typedef struct sums16 {
    int32x4_t quarters[4];
} sums16;

typedef struct floats16 {
    float32x4_t quarters[4];
} floats16;

typedef int32x4_t ints;
typedef float32x4_t floats;

/* Four products are added to each lane. */
HERE int32x4_t dot_bytes(int32x4_t sums, int8x16_t codes, int8x16_t x)
{
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sums, codes, x);
#else
    /* Two products, each at most 128 · 127, fit into 16 bits. */
    int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(x)), high = vmull_high_s8(codes, x);
    return vpadalq_s16(sums, vpaddq_s16(low, high));
#endif
}

/* ---- Codes ---- */

/* Two bytes that may hold a code are brought into its lane and shifted to the top, then down, which extends
 * the sign. */
HERE int8x8_t eight_codes(const uint8_t *codes, unsigned bits)
{
    uint8x16_t bytes = vcombine_u8(vcreate_u8(coffer__quant_load_eight(codes, bits)), vdup_n_u8(0));
    uint16x8_t first = vshrq_n_u16(bit_numbers(bits), 3);
    uint16x8_t pick = vorrq_u16(first, vshlq_n_u16(vaddq_u16(first, vdupq_n_u16(1)), 8));
    int16x8_t place = vreinterpretq_s16_u16(vandq_u16(bit_numbers(bits), vdupq_n_u16(7)));
    int16x8_t spread = vreinterpretq_s16_u8(vqtbl1q_u8(bytes, vreinterpretq_u8_u16(pick)));
    int16x8_t at_top = vshlq_s16(spread, vsubq_s16(vdupq_n_s16((int16_t)(16 - bits)), place));
    return vmovn_s16(vshlq_s16(at_top, vdupq_n_s16((int16_t)(bits - 16))));
}

/* A block of codes as bytes with a sign. */
HERE int8x16x2_t unpack_block(const uint8_t *codes, unsigned bits)
{
    if (bits == 8)
        return (int8x16x2_t){ { vreinterpretq_s8_u8(vld1q_u8(codes)),
                                vreinterpretq_s8_u8(vld1q_u8(codes + 16)) } };
    if (bits == 4) {
        int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(codes));
        int8x16_t even = vshrq_n_s8(vshlq_n_s8(bytes, 4), 4), odd = vshrq_n_s8(bytes, 4);
        return (int8x16x2_t){ { vzip1q_s8(even, odd), vzip2q_s8(even, odd) } };
    }
    int8x8_t eights[4];
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        eights[i] = eight_codes(codes + i * bits, bits);
    return (int8x16x2_t){ { vcombine_s8(eights[0], eights[1]), vcombine_s8(eights[2], eights[3]) } };
}

HERE void unpack_part(uint8_t *out, const uint8_t *codes, unsigned bits)
{
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++) {
        int8x16x2_t block = unpack_block(codes + i * bits * COFFER__QUANT_BLOCK / 8, bits);
        vst1q_u8(out + COFFER__QUANT_BLOCK * i, vreinterpretq_u8_s8(block.val[0]));
        vst1q_u8(out + COFFER__QUANT_BLOCK * i + 16, vreinterpretq_u8_s8(block.val[1]));
    }
}

/* ---- One vector ---- */

HERE int32x4_t dot_block_bytes(const uint8_t *codes, const int8_t *x, unsigned bits)
{
    int8x16x2_t block = unpack_block(codes, bits);
    return dot_bytes(dot_bytes(vdupq_n_s32(0), block.val[0], vld1q_s8(x)), block.val[1], vld1q_s8(x + 16));
}

HERE sums16 part_sums(const uint8_t *codes, const int8_t *x, const int32_t *x_sums, unsigned bits)
{
    const size_t size = bits * COFFER__QUANT_BLOCK / 8;
    sums16 sums;
    (void)x_sums;
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++) {
        int32x4_t blocks[4];
        COFFER__UNROLL(4)
        for (size_t j = 0; j < 4; j++)
            blocks[j] =
                dot_block_bytes(codes + (4 * i + j) * size, x + (4 * i + j) * COFFER__QUANT_BLOCK, bits);
        sums.quarters[i] = vpaddq_s32(vpaddq_s32(blocks[0], blocks[1]), vpaddq_s32(blocks[2], blocks[3]));
    }
    return sums;
}

HERE floats16 load16(const float *from)
{
    return (floats16){ { vld1q_f32(from), vld1q_f32(from + 4), vld1q_f32(from + 8), vld1q_f32(from + 12) } };
}

HERE void store16(float *out, floats16 numbers)
{
    for (size_t i = 0; i < 4; i++)
        vst1q_f32(out + 4 * i, numbers.quarters[i]);
}

HERE floats16 part_factors(const coffer__quant_run *run, size_t block, coffer__quant_family family)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    float factors[COFFER__QUANT_PART_BLOCKS];
    if (family == COFFER__QUANT_WHOLE)
        return (floats16){ { one, one, one, one } };
    eight_factors(factors, run, block, family == COFFER__QUANT_SUPERS);
    eight_factors(factors + 8, run, block + 8, family == COFFER__QUANT_SUPERS);
    return load16(factors);
}

HERE floats16 no_sum16(void)
{
    const float32x4_t zero = vdupq_n_f32(0.0f);
    return (floats16){ { zero, zero, zero, zero } };
}

HERE floats16 to_floats16(sums16 sums)
{
    floats16 out;
    for (size_t i = 0; i < 4; i++)
        out.quarters[i] = vcvtq_f32_s32(sums.quarters[i]);
    return out;
}

HERE floats16 add16(floats16 a, floats16 b)
{
    for (size_t i = 0; i < 4; i++)
        a.quarters[i] = vaddq_f32(a.quarters[i], b.quarters[i]);
    return a;
}

HERE floats16 multiply16(floats16 a, floats16 b)
{
    for (size_t i = 0; i < 4; i++)
        a.quarters[i] = vmulq_f32(a.quarters[i], b.quarters[i]);
    return a;
}

HERE float total16(floats16 sum)
{
    float32x4_t four =
        vaddq_f32(vaddq_f32(sum.quarters[0], sum.quarters[2]), vaddq_f32(sum.quarters[1], sum.quarters[3]));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* ---- Many vectors ---- */

HERE floats load_floats(const float *from)
{
    return vld1q_f32(from);
}

HERE void store_floats(float *out, floats numbers)
{
    vst1q_f32(out, numbers);
}

HERE floats everywhere(float number)
{
    return vdupq_n_f32(number);
}

HERE floats add(floats a, floats b)
{
    return vaddq_f32(a, b);
}

HERE floats multiply(floats a, floats b)
{
    return vmulq_f32(a, b);
}

HERE floats to_floats(ints sums)
{
    return vcvtq_f32_s32(sums);
}

HERE ints first_sums(const int32_t *x_sums)
{
    (void)x_sums;
    return vdupq_n_s32(0);
}

HERE ints load_fours(const int8_t *from)
{
    return vreinterpretq_s32_s8(vld1q_s8(from));
}

HERE ints dot_four(ints sums, const uint8_t *codes, ints fours)
{
    int8x16_t everywhere_codes = vreinterpretq_s8_u32(vdupq_n_u32(coffer__load_u32(codes)));
    return dot_bytes(sums, everywhere_codes, vreinterpretq_s8_s32(fours));
}

#include "quant/quant_rounded_loops.h"
