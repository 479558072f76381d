/* Decoders for AVX2: as for AVX-512, eight codes at a time. A register holds the products of codes of up to
 * three bits; wider ones are shifted to the top of their lanes, which extends the sign, and multiplied. */
#if defined(__x86_64__)
#include "quant/quant.h"

#include "base/bytes.h"

#include <immintrin.h>

#define LANES 8
#define HERE static inline __attribute__((always_inline))

HERE void put(float *to, __m256 values, bool stream)
{
    if (stream)
        _mm256_stream_ps(to, values);
    else
        _mm256_storeu_ps(to, values);
}

/* Where each lane's code begins, for codes that lie `bits` apart. */
HERE __m256i bit_numbers(unsigned bits)
{
    return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)bits));
}

/* The bytes of each lane's code at the bottom of the lane, from byte `first` of `codes` on. Shuffles stay
 * within 16 bytes, so each half of the register gets all of them. */
HERE __m256i spread(const uint8_t *codes, unsigned first, unsigned bits)
{
    __m256i byte = _mm256_add_epi32(_mm256_srli_epi32(bit_numbers(bits), 3), _mm256_set1_epi32((int)first));
    __m256i next = _mm256_add_epi32(byte, _mm256_set1_epi32(1));
    __m256i pick = _mm256_or_si256(_mm256_or_si256(byte, _mm256_slli_epi32(next, 8)),
                                   _mm256_set1_epi32((int)0x80800000));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pick);
}

/* How far each lane's code lies above the bottom of its lowest byte. */
HERE __m256i places(unsigned bits)
{
    return _mm256_and_si256(bit_numbers(bits), _mm256_set1_epi32(7));
}

HERE __m256 eight_numbers(const uint8_t *codes, unsigned eighth, unsigned bits)
{
    if (bits == 8) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(codes + (size_t)8 * eighth));
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    }
    /* 24 bytes of six-bit codes do not fit into 16: the second half begins at byte 12. */
    const uint8_t *from = bits == 6 ? codes + (size_t)12 * (eighth / 2) : codes;
    unsigned first = bits == 6 ? 6 * (eighth % 2) : bits * eighth;
    __m256i up = _mm256_sub_epi32(_mm256_set1_epi32(32 - (int)bits), places(bits));
    __m256i at_top = _mm256_sllv_epi32(spread(from, first, bits), up);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(at_top, 32 - (int)bits));
}

/* Every code of two or three bits as a number; bits of the index above the code do not matter. */
HERE __m256 numbers_of_codes(unsigned bits)
{
    __m256i code = _mm256_slli_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), 32 - (int)bits);
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(code, 32 - (int)bits));
}

HERE void decode_block(float *out, const uint8_t *codes, float factor, unsigned bits, bool stream)
{
    __m256 scale = _mm256_set1_ps(factor), products = scale;
    if (bits <= 3)
        products = _mm256_mul_ps(scale, numbers_of_codes(bits));
    for (unsigned eighth = 0; eighth < COFFER__QUANT_BLOCK / LANES; eighth++) {
        __m256 values;
        if (bits <= 3) {
            __m256i index = _mm256_srlv_epi32(spread(codes, bits * eighth, bits), places(bits));
            values = _mm256_permutevar8x32_ps(products, index);
        } else {
            values = _mm256_mul_ps(scale, eight_numbers(codes, eighth, bits));
        }
        put(out + (size_t)LANES * eighth, values, stream);
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

#include "quant/quant_decode_x86.h"

const coffer__quant_kernels coffer__quant_avx2 = { ALL_DECODERS, finish_stream };
#endif
