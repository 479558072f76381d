#include "formats/pycauset/pycauset_payload.h"

#include <arm_neon.h>

static uint8x16_t bit_of_each_byte(void)
{
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    return vld1q_u8(bits);
}

static void expand(uint8_t *out, const uint8_t *bits, size_t words)
{
    const uint8x16_t select = bit_of_each_byte(), one = vdupq_n_u8(1);
    for (size_t i = 0; i < 8 * words; i += 2) {
        uint8x16_t copies = vcombine_u8(vdup_n_u8(bits[i]), vdup_n_u8(bits[i + 1]));
        vst1q_u8(out + 8 * i, vandq_u8(vtstq_u8(copies, select), one));
    }
}

static void pack(uint8_t *bits, const uint8_t *bytes, size_t words)
{
    const uint8x16_t select = bit_of_each_byte();
    for (size_t i = 0; i < 8 * words; i += 2) {
        uint8x16_t flags = vld1q_u8(bytes + 8 * i);
        uint8x16_t weights = vandq_u8(vtstq_u8(flags, flags), select);
        bits[i] = vaddv_u8(vget_low_u8(weights));
        bits[i + 1] = vaddv_u8(vget_high_u8(weights));
    }
}

const coffer__pycauset_bit_kernels coffer__pycauset_bits_neon = { expand, pack };
