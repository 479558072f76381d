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

HERE lanes dot_block(lanes sum, const uint8_t *codes, const float *x, float factor, unsigned bits)
{
    lanes block = no_sum(), scale = { { vdupq_n_f32(factor), vdupq_n_f32(factor) } };
    COFFER__UNROLL(4)
    for (unsigned group = 0; group < COFFER__QUANT_BLOCK / LANES; group++)
        block = add_product(block, eight_numbers(codes, group, bits), load(x + (size_t)LANES * group));
    return add_product(sum, block, scale);
}

#include "quant/quant_dot_loops.h"

const coffer__quant_dots coffer__quant_dots_neon = { ALL_DOTS };
#endif
