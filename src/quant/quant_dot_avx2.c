/* Products for AVX2. */
#if defined(__x86_64__)
#include "base/unroll.h"
#include "quant/quant_factors_x86.h"
#include "quant/quant_product.h"
#include "quant/quant_unpack_avx2.h"

typedef __m256 lanes;

HERE lanes no_sum(void)
{
    return _mm256_setzero_ps();
}

HERE lanes load(const float *from)
{
    return _mm256_loadu_ps(from);
}

HERE lanes add_product(lanes sum, lanes a, lanes b)
{
    return _mm256_fmadd_ps(a, b, sum);
}

HERE lanes add(lanes a, lanes b)
{
    return _mm256_add_ps(a, b);
}

HERE float total(lanes sum)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

HERE lanes dot_block(lanes sum, const uint8_t *codes, const float *x, float factor, unsigned bits)
{
    lanes table = bits <= 3 ? numbers_of_codes(bits) : no_sum();
    lanes block = _mm256_mul_ps(quarter_block(codes, 0, bits, table), load(x));
    COFFER__UNROLL(4)
    for (unsigned quarter = 1; quarter < COFFER__QUANT_BLOCK / LANES; quarter++)
        block = _mm256_fmadd_ps(quarter_block(codes, quarter, bits, table), load(x + (size_t)LANES * quarter),
                                block);
    return _mm256_fmadd_ps(block, _mm256_set1_ps(factor), sum);
}

#include "quant/quant_dot_loops.h"

const coffer__quant_dots coffer__quant_dots_avx2 = { ALL_DOTS };
#endif
