/* Decoders for AVX2, as those for AVX-512. */
#if defined(__x86_64__)
#include "quant/quant_factors_x86.h"
#include "quant/quant_unpack_avx2.h"

HERE void put(float *out, __m256 values, bool stream)
{
    if (stream)
        _mm256_stream_ps(out, values);
    else
        _mm256_storeu_ps(out, values);
}

HERE void decode_block(float *out, const uint8_t *codes, float factor, unsigned bits, bool stream)
{
    __m256 scale = _mm256_set1_ps(factor), products = scale;
    if (bits <= 3)
        products = _mm256_mul_ps(scale, numbers_of_codes(bits));
    for (unsigned quarter = 0; quarter < COFFER__QUANT_BLOCK / LANES; quarter++) {
        __m256 values = quarter_block(codes, quarter, bits, products);
        put(out + (size_t)LANES * quarter, bits <= 3 ? values : _mm256_mul_ps(scale, values), stream);
    }
}

HERE void decode_int8_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    __m256 scale = _mm256_set1_ps(coffer__quant_whole_scale(run));
    __m256 zero = _mm256_set1_ps(coffer__quant_zero_point(run));
    for (size_t i = 0; i < count; i += LANES)
        put(out + i, _mm256_mul_ps(scale, _mm256_sub_ps(eight_numbers(codes + i, 0, 8), zero)), stream);
}

HERE void decode_int4_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    __m256 scale = _mm256_set1_ps(coffer__quant_whole_scale(run));
    __m256 zero = _mm256_set1_ps(coffer__quant_zero_point(run));
    __m256i places_of_codes = bit_numbers(4);
    for (size_t i = 0; i < count; i += LANES) {
        __m256i bits = _mm256_set1_epi32((int)coffer__load_u32(codes + i / 2));
        __m256i at_top = _mm256_sllv_epi32(bits, _mm256_sub_epi32(_mm256_set1_epi32(28), places_of_codes));
        __m256 values = _mm256_cvtepi32_ps(_mm256_srai_epi32(at_top, 28));
        put(out + i, _mm256_mul_ps(scale, _mm256_sub_ps(values, zero)), stream);
    }
}

#include "quant/quant_decode_loops.h"

const coffer__quant_kernels coffer__quant_avx2 = { ALL_DECODERS, finish_stream };
#endif
