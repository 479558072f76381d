/* Codes as numbers for AVX-512, sixteen at a time: the bytes that hold them are spread over sixteen lanes and
 * shifted into place. */
#ifndef COFFER_QUANT_UNPACK_AVX512_H
#define COFFER_QUANT_UNPACK_AVX512_H

#include "base/bytes.h"
#include "quant/quant.h"

#include <immintrin.h>

#define LANES 16
#define HERE static inline __attribute__((always_inline))

HERE __m512i lane_numbers(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* The bytes of each lane's code at the bottom of the lane, for codes `bits` apart from byte `first`
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

/* Bit offset of each lane's code in its lowest byte. */
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

HERE __m512i load_pairs(const uint8_t *codes, unsigned half)
{
    __m512i bits = _mm512_set1_epi32((int)coffer__load_u32(codes + 4 * half));
    return _mm512_srlv_epi32(bits, _mm512_slli_epi32(lane_numbers(), 1));
}

/* Codes of half a block. table : the numbers of codes of up to four bits, from
 * numbers_of_codes or the caller. */
HERE __m512 half_block(const uint8_t *codes, unsigned half, unsigned bits, __m512 table)
{
    if (bits == 8) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(codes + 16 * half));
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
    }
    if (bits == 6) {
        __m512i up = _mm512_sub_epi32(_mm512_set1_epi32(26), places(6));
        __m512i at_top = _mm512_sllv_epi32(spread(codes + 12 * half, 0, 6), up);
        return _mm512_cvtepi32_ps(_mm512_srai_epi32(at_top, 26));
    }
    if (bits == 2)
        return _mm512_permutexvar_ps(load_pairs(codes, half), table);
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(spread(codes, 2 * bits * half, bits), places(bits)),
                                 table);
}

/* The six bytes from `first` on. */
#define SIX_BYTES(first) (first), (first) + 1, (first) + 2, (first) + 3, (first) + 4, (first) + 5, 0, 0
#define QWORD_BYTES(bits)                                                                                   \
    {                                                                                                       \
        SIX_BYTES(0), SIX_BYTES(bits), SIX_BYTES(2 * (bits)), SIX_BYTES(3 * (bits)), SIX_BYTES(4 * (bits)), \
            SIX_BYTES(5 * (bits)), SIX_BYTES(6 * (bits)), SIX_BYTES(7 * (bits))                             \
    }

/* Sixty-four codes of fewer than eight bits, eight at the bottom of each qword. last : nothing past them may
 * be loaded. */
HERE __m512i load_qwords(const uint8_t *codes, unsigned bits, bool last)
{
    static const uint8_t tables[][64] = {
        QWORD_BYTES(2), QWORD_BYTES(3), QWORD_BYTES(4), { 0 }, QWORD_BYTES(6)
    };
    const __mmask64 present = (UINT64_C(1) << (8 * bits)) - 1;
    __m512i bytes = last ? _mm512_maskz_loadu_epi8(present, codes) : _mm512_loadu_si512(codes);
    return _mm512_permutexvar_epi8(_mm512_loadu_si512(tables[bits - 2]), bytes);
}

#endif
