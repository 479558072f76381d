/* Decoders for AVX-512. Sixteen codes at a time: the bytes that hold them are spread over sixteen lanes and
 * shifted into place. Up to four bits a code picks its product from a register of all sixteen, which are made
 * once a block: the same products that the reference makes, so the same bits. */
#if defined(__x86_64__)
#include "quant/quant.h"

#include "base/bytes.h"

#include <immintrin.h>

#define LANES 16
#define HERE static inline __attribute__((always_inline))

HERE void put(float *to, __m512 values, bool stream)
{
    if (stream)
        _mm512_stream_ps(to, values);
    else
        _mm512_storeu_ps(to, values);
}

HERE __m512i lane_numbers(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* The bytes of each lane's code at the bottom of the lane, for codes that lie `bits` apart from byte `first`
 * of `codes` on. Shuffles stay within 16 bytes, so every quarter of the register gets all of them. */
HERE __m512i spread(const uint8_t *codes, unsigned first, unsigned bits)
{
    __m512i bit = _mm512_mullo_epi32(lane_numbers(), _mm512_set1_epi32((int)bits));
    __m512i byte = _mm512_add_epi32(_mm512_srli_epi32(bit, 3), _mm512_set1_epi32((int)first));
    __m512i two_bytes =
        _mm512_or_si512(byte, _mm512_slli_epi32(_mm512_add_epi32(byte, _mm512_set1_epi32(1)), 8));
    __m512i pick = _mm512_or_si512(two_bytes, _mm512_set1_epi32((int)0x80800000));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), pick);
}

/* How far each lane's code lies above the bottom of its lowest byte. */
HERE __m512i places(unsigned bits)
{
    __m512i bit = _mm512_mullo_epi32(lane_numbers(), _mm512_set1_epi32((int)bits));
    return _mm512_and_si512(bit, _mm512_set1_epi32(7));
}

/* Every code of up to four bits as a number, over and over: bits of the index above the code do not matter.
 */
HERE __m512 numbers_of_codes(unsigned bits)
{
    __m512i code = _mm512_slli_epi32(lane_numbers(), 32 - bits);
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(code, 32 - bits));
}

HERE __m512 sixteen(const uint8_t *codes, unsigned half, unsigned bits, __m512 scale, __m512 products)
{
    if (bits == 8) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(codes + 16 * half));
        return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
    }
    if (bits == 6) {
        __m512i up = _mm512_sub_epi32(_mm512_set1_epi32(26), places(6));
        __m512i at_top = _mm512_sllv_epi32(spread(codes + 12 * half, 0, 6), up);
        return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(_mm512_srai_epi32(at_top, 26)));
    }
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(spread(codes, 2 * bits * half, bits), places(bits)),
                                 products);
}

HERE __m512i load_pairs(const uint8_t *codes, unsigned half)
{
    __m512i bits = _mm512_set1_epi32((int)coffer__load_u32(codes + 4 * half));
    return _mm512_srlv_epi32(bits, _mm512_slli_epi32(lane_numbers(), 1));
}

HERE void decode_block(float *out, const uint8_t *codes, float factor, unsigned bits, bool stream)
{
    __m512 scale = _mm512_set1_ps(factor), products = scale;
    if (bits <= 4)
        products = _mm512_mul_ps(scale, numbers_of_codes(bits));
    for (unsigned half = 0; half < 2; half++) {
        __m512 values = bits == 2 ? _mm512_permutexvar_ps(load_pairs(codes, half), products)
                                  : sixteen(codes, half, bits, scale, products);
        put(out + LANES * half, values, stream);
    }
}

HERE void decode_int8_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    __m512 scale = _mm512_set1_ps(coffer__quant_whole_scale(run));
    __m512 zero = _mm512_set1_ps(coffer__quant_zero_point(run));
    for (size_t i = 0; i < count; i += LANES) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(codes + i));
        __m512 values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
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
            put(out + i + LANES * half, sixteen(codes + i / 2, half, 4, products, products), stream);
    }
}

#include "quant/quant_decode_x86.h"

const coffer__quant_kernels coffer__quant_avx512 = { ALL_DECODERS, finish_stream };
#endif
