/* Decoders for AVX-512. Up to four bits a code picks its product from a register of all sixteen, which are
 * made once a block: the same products that the reference makes, so the same bits. */
#if defined(__x86_64__)
#include "quant/quant_factors_x86.h"
#include "quant/quant_unpack_avx512.h"

HERE void put(float *out, __m512 values, bool stream)
{
    if (stream)
        _mm512_stream_ps(out, values);
    else
        _mm512_storeu_ps(out, values);
}

HERE void decode_block(float *out, const uint8_t *codes, float factor, unsigned bits, bool stream)
{
    __m512 scale = _mm512_set1_ps(factor), products = scale;
    if (bits <= 4)
        products = _mm512_mul_ps(scale, numbers_of_codes(bits));
    for (unsigned half = 0; half < 2; half++) {
        __m512 values = half_block(codes, half, bits, products);
        put(out + LANES * half, bits <= 4 ? values : _mm512_mul_ps(scale, values), stream);
    }
}

HERE void decode_int8_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    __m512 scale = _mm512_set1_ps(coffer__quant_whole_scale(run));
    __m512 zero = _mm512_set1_ps(coffer__quant_zero_point(run));
    for (size_t i = 0; i < count; i += LANES) {
        __m512 values = half_block(codes + i, 0, 8, zero);
        put(out + i, _mm512_mul_ps(scale, _mm512_sub_ps(values, zero)), stream);
    }
}

HERE void decode_int4_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    __m512 zero = _mm512_set1_ps(coffer__quant_zero_point(run));
    __m512 products = _mm512_mul_ps(_mm512_set1_ps(coffer__quant_whole_scale(run)),
                                    _mm512_sub_ps(numbers_of_codes(4), zero));
    for (size_t i = 0; i < count; i += 2 * LANES) {
        for (unsigned half = 0; half < 2; half++)
            put(out + i + LANES * half, half_block(codes + i / 2, half, 4, products), stream);
    }
}

#include "quant/quant_decode_loops.h"

const coffer__quant_kernels coffer__quant_avx512 = { ALL_DECODERS, finish_stream };
#endif
