/* Rounded products for AVX-512 with VNNI and VBMI. The dot product of bytes wants one side without sign:
 * codes get an offset, and what that adds, the offset times the sum of the vector's numbers, is taken away.
 */
#if defined(__x86_64__)
#include "base/bytes.h"
#include "base/cpu.h"
#include "quant/quant_rounded.h"

#include <immintrin.h>

#define HERE static inline __attribute__((always_inline))
#define PANEL 16
#define TILE_ROWS 8

typedef __m512i sums16;
typedef __m512 floats16;
typedef __m512i ints;
typedef __m512 floats;

/* ---- Codes ---- */

#define LOG_OFFSET 7 /* of unpacked codes, as a power of two */

/* Byte `i` of a table with eight bytes for each qword: where the bytes of eight codes begin, or the codes. */
#define BYTES_OF(bits, q)                                                                                   \
    (q) * (bits), (q) * (bits) + 1, (q) * (bits) + 2, (q) * (bits) + 3, (q) * (bits) + 4, (q) * (bits) + 5, \
        0, 0
#define EIGHT_OF(bits)                                                                                 \
    {                                                                                                  \
        BYTES_OF(bits, 0), BYTES_OF(bits, 1), BYTES_OF(bits, 2), BYTES_OF(bits, 3), BYTES_OF(bits, 4), \
            BYTES_OF(bits, 5), BYTES_OF(bits, 6), BYTES_OF(bits, 7)                                    \
    }

static const uint8_t byte_tables[][64] = { EIGHT_OF(2), EIGHT_OF(3), EIGHT_OF(4), { 0 }, EIGHT_OF(6) };

/* Sixty-four codes as bytes, each plus 2^(bits − 1): eight at a time they are brought into a qword, and each
 * byte takes the eight bits that begin with its code. */
HERE __m512i unpack_codes(const uint8_t *codes, unsigned bits)
{
    if (bits == 8)
        return _mm512_xor_si512(_mm512_loadu_si512(codes), _mm512_set1_epi8(-128));
    const uint64_t places = UINT64_C(0x0706050403020100) * bits;
    const __mmask64 present = (UINT64_C(1) << (8 * bits)) - 1;
    __m512i bytes = _mm512_maskz_loadu_epi8(present, codes);
    __m512i spread = _mm512_permutexvar_epi8(_mm512_loadu_si512(byte_tables[bits - 2]), bytes);
    __m512i shifted = _mm512_multishift_epi64_epi8(_mm512_set1_epi64((long long)places), spread);
    return _mm512_ternarylogic_epi32(shifted, _mm512_set1_epi8((char)((1 << bits) - 1)),
                                     _mm512_set1_epi8((char)(1 << (bits - 1))), 0x6A); /* (a & b) ^ c */
}

HERE void unpack_part(uint8_t *out, const uint8_t *codes, unsigned bits)
{
    const __m512i more = _mm512_set1_epi8((char)((1 << LOG_OFFSET) - (1 << (bits - 1))));
    for (size_t i = 0; i < COFFER__QUANT_PART / 64; i++)
        _mm512_storeu_si512(out + 64 * i, _mm512_add_epi8(unpack_codes(codes + 8 * bits * i, bits), more));
}

/* ---- One vector ---- */

HERE __m512i add_lanes(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

HERE __m512i add_pairs(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

HERE __m512i four_sums(const uint8_t *codes, const int8_t *x, unsigned bits)
{
    __m512i sums[4];
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        sums[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), unpack_codes(codes + 8 * bits * i, bits),
                                      _mm512_loadu_si512(x + 64 * i));
    return add_pairs(add_lanes(sums[0], sums[1]), add_lanes(sums[2], sums[3]));
}

/* Each 128 bits of `low` and `high` have a quarter of four registers, and a block fills half a register. */
HERE sums16 part_sums(const uint8_t *codes, const int8_t *x, const int32_t *x_sums, unsigned bits)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    __m512i low = four_sums(codes, x, bits), high = four_sums(codes + 32 * bits, x + 256, bits);
    __m512i sums =
        _mm512_add_epi32(_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xDD));
    __m512i extra = _mm512_slli_epi32(_mm512_loadu_si512(x_sums), bits - 1);
    return _mm512_sub_epi32(_mm512_permutexvar_epi32(order, sums), extra);
}

HERE floats16 part_factors(const coffer__quant_run *run, size_t block, coffer__quant_family family)
{
    const uint8_t *scales = run->parts[COFFER__QUANT_SCALES];
    if (family == COFFER__QUANT_WHOLE)
        return _mm512_set1_ps(1.0f);
    if (family == COFFER__QUANT_BLOCKS)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(scales + 2 * block)));
    __m128i subs = _mm_loadu_si128((const __m128i *)(const void *)(run->parts[COFFER__QUANT_SUBS] + block));
    __m512 parts = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(subs)), _mm512_set1_ps(0.03125f));
    __m128i both = _mm_cvtsi32_si128((int)coffer__load_u32(scales + block / 8 * 2));
    __m512 supers = _mm512_castps128_ps512(_mm_cvtph_ps(both));
    const __m512i which = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    return _mm512_mul_ps(_mm512_permutexvar_ps(which, supers), parts);
}

HERE floats16 no_sum16(void)
{
    return _mm512_setzero_ps();
}

HERE floats16 load16(const float *from)
{
    return _mm512_loadu_ps(from);
}

HERE void store16(float *out, floats16 numbers)
{
    _mm512_storeu_ps(out, numbers);
}

HERE floats16 to_floats16(sums16 sums)
{
    return _mm512_cvtepi32_ps(sums);
}

HERE floats16 add16(floats16 a, floats16 b)
{
    return _mm512_add_ps(a, b);
}

HERE floats16 multiply16(floats16 a, floats16 b)
{
    return _mm512_mul_ps(a, b);
}

HERE float total16(floats16 sum)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* ---- Many vectors ---- */

HERE floats load_floats(const float *from)
{
    return _mm512_loadu_ps(from);
}

HERE void store_floats(float *out, floats numbers)
{
    _mm512_storeu_ps(out, numbers);
}

HERE floats everywhere(float number)
{
    return _mm512_set1_ps(number);
}

HERE floats add(floats a, floats b)
{
    return _mm512_add_ps(a, b);
}

HERE floats multiply(floats a, floats b)
{
    return _mm512_mul_ps(a, b);
}

HERE floats to_floats(ints sums)
{
    return _mm512_cvtepi32_ps(sums);
}

HERE ints first_sums(const int32_t *x_sums)
{
    return _mm512_sub_epi32(_mm512_setzero_si512(),
                            _mm512_slli_epi32(_mm512_loadu_si512(x_sums), LOG_OFFSET));
}

HERE ints load_fours(const int8_t *from)
{
    return _mm512_loadu_si512(from);
}

HERE ints dot_four(ints sums, const uint8_t *codes, ints fours)
{
    return _mm512_dpbusd_epi32(sums, _mm512_set1_epi32((int)coffer__load_u32(codes)), fours);
}

#include "quant/quant_rounded_loops.h"

const coffer__quant_rounded coffer__quant_rounded_avx512 = ALL_ROUNDED;
#endif
