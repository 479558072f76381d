/* Products for NEON. */
#if defined(__aarch64__)
#include "quant/quant_product.h"
#include "quant/quant_unpack_neon.h"

HERE lanes no_sum(void)
{
    return (lanes){ { vdupq_n_f32(0.0f), vdupq_n_f32(0.0f) } };
}

HERE lanes load(const float *from)
{
    return (lanes){ { vld1q_f32(from), vld1q_f32(from + 4) } };
}

HERE lanes add_product(lanes sum, lanes a, lanes b)
{
    return (
        lanes){ { vfmaq_f32(sum.val[0], a.val[0], b.val[0]), vfmaq_f32(sum.val[1], a.val[1], b.val[1]) } };
}

HERE lanes add(lanes a, lanes b)
{
    return (lanes){ { vaddq_f32(a.val[0], b.val[0]), vaddq_f32(a.val[1], b.val[1]) } };
}

HERE float total(lanes sum)
{
    return vaddvq_f32(vaddq_f32(sum.val[0], sum.val[1]));
}

HERE lanes everywhere(float number)
{
    return (lanes){ { vdupq_n_f32(number), vdupq_n_f32(number) } };
}

HERE bool reaches_past_block(unsigned bits)
{
    return bits < 8;
}

HERE lanes block_codes(const uint8_t *codes, unsigned bits, const float *x, const float *zero)
{
    lanes sum = no_sum();
    COFFER__UNROLL(4)
    for (unsigned group = 0; group < COFFER__QUANT_BLOCK / LANES; group++) {
        lanes numbers = eight_numbers(codes, group, bits);
        if (zero)
            numbers = (lanes){ { vsubq_f32(numbers.val[0], vdupq_n_f32(*zero)),
                                 vsubq_f32(numbers.val[1], vdupq_n_f32(*zero)) } };
        sum = add_product(sum, numbers, load(x + (size_t)LANES * group));
    }
    return sum;
}

#include "quant/quant_dot_loops.h"

const coffer__quant_dots coffer__quant_dots_neon = { ALL_DOTS, { NULL }, tile };
#endif
