/* Codes as numbers for NEON, eight at a time. Every ARMv8 has these instructions. */
#ifndef COFFER_QUANT_UNPACK_NEON_H
#define COFFER_QUANT_UNPACK_NEON_H

#include "base/bytes.h"
#include "base/cpu.h"
#include "quant/quant.h"

#include <arm_neon.h>

#define LANES 8
#define HERE static inline __attribute__((always_inline))

typedef float32x4x2_t lanes;

HERE lanes lanes_from_codes(int16x8_t codes)
{
    return (lanes){ { vcvtq_f32_s32(vmovl_s16(vget_low_s16(codes))), vcvtq_f32_s32(vmovl_high_s16(codes)) } };
}

/* Where each of eight codes begins, for codes `bits` apart. */
HERE uint16x8_t bit_numbers(unsigned bits)
{
    static const uint16_t numbers[LANES] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return vmulq_n_u16(vld1q_u16(numbers), (uint16_t)bits);
}

/* Group `group` of eight codes, which fill as many bytes as a code has bits; eight bytes are loaded. Narrow
 * codes: the two bytes that may hold one are brought into its lane and shifted to the top, then down, which
 * extends the sign. */
HERE lanes eight_numbers(const uint8_t *codes, unsigned group, unsigned bits)
{
    uint8x8_t bytes = vld1_u8(codes + (size_t)group * bits);
    if (bits == 8)
        return lanes_from_codes(vmovl_s8(vreinterpret_s8_u8(bytes)));
    uint16x8_t first = vshrq_n_u16(bit_numbers(bits), 3);
    uint16x8_t pick = vorrq_u16(first, vshlq_n_u16(vaddq_u16(first, vdupq_n_u16(1)), 8));
    int16x8_t place = vreinterpretq_s16_u16(vandq_u16(bit_numbers(bits), vdupq_n_u16(7)));
    uint8x16_t spread = vqtbl1q_u8(vcombine_u8(bytes, vdup_n_u8(0)), vreinterpretq_u8_u16(pick));
    int16x8_t up = vsubq_s16(vdupq_n_s16((int16_t)(16 - bits)), place);
    int16x8_t at_top = vshlq_s16(vreinterpretq_s16_u8(spread), up);
    return lanes_from_codes(vshlq_s16(at_top, vdupq_n_s16((int16_t)(bits - 16))));
}

/* Scales of eight blocks from a multiple of eight on; all of them are there. */
HERE void eight_factors(float out[8], const coffer__quant_run *run, size_t block, bool supers)
{
    const uint8_t *scales = run->parts[COFFER__QUANT_SCALES];
    lanes factors;
    if (supers) {
        uint16x8_t subs = vmovl_u8(vld1_u8(run->parts[COFFER__QUANT_SUBS] + block));
        float16x4_t super = vreinterpret_f16_u16(vdup_n_u16(coffer__load_u16(scales + block / 8 * 2)));
        factors = lanes_from_codes(vreinterpretq_s16_u16(subs));
        for (size_t i = 0; i < 2; i++)
            factors.val[i] = vmulq_f32(vcvt_f32_f16(super), vmulq_n_f32(factors.val[i], 0.03125f));
    } else {
        float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8(scales + 2 * block));
        factors = (lanes){ { vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves) } };
    }
    vst1q_f32(out, factors.val[0]);
    vst1q_f32(out + 4, factors.val[1]);
}

#endif
