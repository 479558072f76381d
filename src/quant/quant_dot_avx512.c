/* Products for AVX-512. */
#if defined(__x86_64__)
#include "quant/quant_factors_x86.h"
#include "quant/quant_product.h"
#include "quant/quant_unpack_avx512.h"

typedef __m512 lanes;

HERE lanes no_sum(void)
{
    return _mm512_setzero_ps();
}

HERE lanes load(const float *from)
{
    return _mm512_loadu_ps(from);
}

HERE lanes add_product(lanes sum, lanes a, lanes b)
{
    return _mm512_fmadd_ps(a, b, sum);
}

HERE lanes add(lanes a, lanes b)
{
    return _mm512_add_ps(a, b);
}

HERE float total(lanes sum)
{
    return _mm512_reduce_add_ps(sum);
}

HERE lanes dot_block(lanes sum, const uint8_t *codes, const float *x, float factor, unsigned bits)
{
    lanes table = bits <= 4 ? numbers_of_codes(bits) : no_sum();
    lanes block = _mm512_mul_ps(half_block(codes, 0, bits, table), load(x));
    block = _mm512_fmadd_ps(half_block(codes, 1, bits, table), load(x + LANES), block);
    return _mm512_fmadd_ps(block, _mm512_set1_ps(factor), sum);
}

#include "quant/quant_dot_loops.h"

const coffer__quant_dots coffer__quant_dots_avx512 = { ALL_DOTS };
#endif
