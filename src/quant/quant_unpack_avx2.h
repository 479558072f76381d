/* Converts codes to numbers with AVX2, eight at a time (quant_unpack_avx512.h: sixteen). Codes of up to
 * three bits are looked up in a register; wider ones are shifted to the top of their lanes, which extends
 * the sign. */
#ifndef COFFER_QUANT_UNPACK_AVX2_H
#define COFFER_QUANT_UNPACK_AVX2_H

#include "base/bytes.h"
#include "quant/quant.h"

#include <immintrin.h>

#define LANES 8
#define HERE static inline __attribute__((always_inline))

/* Where each lane's code begins, for codes `bits` apart. */
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

/* Bit offset of each lane's code in its lowest byte. */
HERE __m256i places(unsigned bits)
{
    return _mm256_and_si256(bit_numbers(bits), _mm256_set1_epi32(7));
}

HERE __m256 eight_numbers(const uint8_t *codes, unsigned quarter, unsigned bits)
{
    if (bits == 8) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(codes + (size_t)8 * quarter));
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    }
    /* 24 bytes of six-bit codes do not fit into 16: the second half begins at byte 12. */
    const uint8_t *from = bits == 6 ? codes + (size_t)12 * (quarter / 2) : codes;
    unsigned first = bits == 6 ? 6 * (quarter % 2) : bits * quarter;
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

/* Codes of a quarter of a block. table : the numbers of codes of up to three bits, from
 * numbers_of_codes or the caller. */
HERE __m256 quarter_block(const uint8_t *codes, unsigned quarter, unsigned bits, __m256 table)
{
    if (bits > 3)
        return eight_numbers(codes, quarter, bits);
    __m256i index = _mm256_srlv_epi32(spread(codes, bits * quarter, bits), places(bits));
    return _mm256_permutevar8x32_ps(table, index);
}

#endif
