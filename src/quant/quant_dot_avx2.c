/* Products for AVX2. */
#if defined(__x86_64__)
#include "base/cpu.h"
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

HERE lanes everywhere(float number)
{
    return _mm256_set1_ps(number);
}

HERE bool reaches_past_block(unsigned bits)
{
    return bits == 6 || bits < 4;
}

HERE lanes block_codes(const uint8_t *codes, unsigned bits, const float *x, const float *zero)
{
    lanes table = bits <= 3 ? numbers_of_codes(bits) : no_sum(), sum = no_sum();
    COFFER__UNROLL(4)
    for (unsigned quarter = 0; quarter < COFFER__QUANT_BLOCK / LANES; quarter++) {
        lanes numbers = quarter_block(codes, quarter, bits, table);
        if (zero)
            numbers = _mm256_sub_ps(numbers, everywhere(*zero));
        sum = add_product(sum, numbers, load(x + (size_t)LANES * quarter));
    }
    return sum;
}

#include "quant/quant_dot_loops.h"

const coffer__quant_dots coffer__quant_dots_avx2 = { ALL_DOTS, { NULL }, tile };
#endif
