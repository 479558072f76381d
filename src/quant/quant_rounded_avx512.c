/* Rounded products for AVX-512 with VNNI and VBMI. The dot product of bytes wants one side without sign:
 * codes get an offset, and what that adds, the offset times the sum of the vector's numbers, is taken away.
 */
#if defined(__x86_64__)
#include "base/cpu.h"
#include "quant/quant_rounded.h"
#include "quant/quant_unpack_avx512.h"

#include <string.h>

#define PANEL 16
#define TILE_ROWS 8

typedef __m512i sums16;
typedef __m512 floats16;
typedef __m512i ints;
typedef __m512 floats;

/* ---- Codes ---- */

#define LOG_OFFSET 7 /* of unpacked codes, as a power of two */

/* The code at the bottom of each byte, plus 2^(bits − 1). */
HERE __m512i low_codes(__m512i bytes, unsigned bits)
{
    return _mm512_ternarylogic_epi32(bytes, _mm512_set1_epi8((char)((1 << bits) - 1)),
                                     _mm512_set1_epi8((char)(1 << (bits - 1))), 0x6A); /* (a & b) ^ c */
}

/* Sixty-four codes as bytes, each plus 2^(bits − 1): eight at a time they are brought into a qword, and each
 * byte takes the eight bits that begin with its code. */
HERE __m512i unpack_codes(const uint8_t *codes, unsigned bits, bool last)
{
    if (bits == 8)
        return _mm512_xor_si512(_mm512_loadu_si512(codes), _mm512_set1_epi8(-128));
    const uint64_t places = UINT64_C(0x0706050403020100) * bits;
    __m512i shifted =
        _mm512_multishift_epi64_epi8(_mm512_set1_epi64((long long)places), load_qwords(codes, bits, last));
    return low_codes(shifted, bits);
}

HERE void unpack_part(uint8_t *out, const uint8_t *codes, unsigned bits)
{
    const __m512i more = _mm512_set1_epi8((char)((1 << LOG_OFFSET) - (1 << (bits - 1))));
    for (size_t i = 0; i < COFFER__QUANT_PART / 64; i++)
        _mm512_storeu_si512(out + 64 * i,
                            _mm512_add_epi8(unpack_codes(codes + 8 * bits * i, bits, true), more));
}

/* ---- One vector ---- */

/* The numbers of a single vector are reordered within a part, so that a register of codes needs little work:
 * codes at the same place of all bytes (q4, k4, int4, k2), or eight codes of each sixteen (k3). The products
 * of a block then add up in few lanes. Types of six and eight bits keep their order. */
HERE size_t folded_place(size_t i, unsigned bits)
{
    if (bits == 4)
        return i / 128 * 128 + i % 2 * 64 + i % 128 / 2;
    if (bits == 2)
        return i / 256 * 256 + i % 4 * 64 + i % 256 / 4;
    return i / 128 * 128 + i / 8 % 2 * 64 + i % 128 / 16 * 8 + i % 8;
}

HERE void fold_part(int8_t *part, unsigned bits)
{
    int8_t folded[COFFER__QUANT_PART];
    for (size_t i = 0; i < COFFER__QUANT_PART; i++)
        folded[folded_place(i, bits)] = part[i];
    memcpy(part, folded, sizeof folded);
}

HERE __m512i add_products(__m512i sums, __m512i bytes, unsigned bits, const int8_t *x)
{
    return _mm512_dpbusd_epi32(sums, low_codes(bytes, bits), _mm512_loadu_si512(x));
}

/* Eight codes of three bits fill half of the six bytes in each qword. */
HERE __m512i sums_of_threes(const uint8_t *codes, const int8_t *x, bool last)
{
    const __m512i low = _mm512_set1_epi64(0x15120F0C09060300), high = _mm512_set1_epi64(0x2D2A2724211E1B18);
    __m512i all = load_qwords(codes, 6, last);
    __m512i sums = _mm512_setzero_si512();
    sums = add_products(sums, _mm512_multishift_epi64_epi8(low, all), 3, x);
    return add_products(sums, _mm512_multishift_epi64_epi8(high, all), 3, x + 64);
}

/* Four blocks, each in four lanes. */
HERE __m512i sums_of_four(const uint8_t *codes, const int8_t *x, unsigned bits, bool last)
{
    if (bits == 3)
        return sums_of_threes(codes, x, last);
    __m512i bytes = _mm512_loadu_si512(codes), sums = add_products(_mm512_setzero_si512(), bytes, 4, x);
    return add_products(sums, _mm512_srli_epi16(bytes, 4), 4, x + 64);
}

/* Eight blocks of two bits, each in two lanes. */
HERE __m512i sums_of_eight(const uint8_t *codes, const int8_t *x)
{
    __m512i bytes = _mm512_loadu_si512(codes), sums = add_products(_mm512_setzero_si512(), bytes, 2, x);
    sums = add_products(sums, _mm512_srli_epi16(bytes, 2), 2, x + 64);
    sums = add_products(sums, _mm512_srli_epi16(bytes, 4), 2, x + 128);
    return add_products(sums, _mm512_srli_epi16(bytes, 6), 2, x + 192);
}

/* Two blocks, each in eight lanes. */
HERE __m512i sums_of_two(const uint8_t *codes, const int8_t *x, unsigned bits, bool last)
{
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), unpack_codes(codes, bits, last),
                               _mm512_loadu_si512(x));
}

/* The sums of 128 bits at a time, of four registers. */
HERE __m512i add_lanes(__m512i a, __m512i b, __m512i c, __m512i d)
{
    __m512i first = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i second = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second));
}

/* The same for numbers that fit into 16 bits: sums of four products with codes of up to six bits. */
HERE __m512i add_narrow_lanes(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i ones = _mm512_set1_epi16(1);
    __m512 first = _mm512_castsi512_ps(_mm512_madd_epi16(_mm512_packs_epi32(a, b), ones));
    __m512 second = _mm512_castsi512_ps(_mm512_madd_epi16(_mm512_packs_epi32(c, d), ones));
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(first, second, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(first, second, 0xDD)));
}

HERE __m512i add_eight_blocks(const uint8_t *codes, const int8_t *x, unsigned bits, bool last)
{
    const size_t size = (size_t)8 * bits;
    __m512i sums[4];
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        sums[i] = sums_of_two(codes + i * size, x + 64 * i, bits, last && i == 3);
    return bits == 6 ? add_narrow_lanes(sums[0], sums[1], sums[2], sums[3])
                     : add_lanes(sums[0], sums[1], sums[2], sums[3]);
}

/* The sum of each block, in some order; `order` says where each is. */
HERE __m512i unordered_sums(__m512i *order, const uint8_t *codes, const int8_t *x, unsigned bits)
{
    if (bits >= 6) {
        __m512i low = add_eight_blocks(codes, x, bits, false);
        __m512i high = add_eight_blocks(codes + (size_t)32 * bits, x + 256, bits, true);
        *order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
        return _mm512_add_epi32(_mm512_shuffle_i32x4(low, high, 0x88), _mm512_shuffle_i32x4(low, high, 0xDD));
    }
    if (bits == 2) {
        __m512 low = _mm512_castsi512_ps(sums_of_eight(codes, x));
        __m512 high = _mm512_castsi512_ps(sums_of_eight(codes + 64, x + 256));
        *order = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
        return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(low, high, 0x88)),
                                _mm512_castps_si512(_mm512_shuffle_ps(low, high, 0xDD)));
    }
    const size_t size = (size_t)16 * bits;
    *order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return add_lanes(sums_of_four(codes, x, bits, false), sums_of_four(codes + size, x + 128, bits, false),
                     sums_of_four(codes + 2 * size, x + 256, bits, false),
                     sums_of_four(codes + 3 * size, x + 384, bits, true));
}

HERE sums16 part_sums(const uint8_t *codes, const int8_t *x, const int32_t *x_sums, unsigned bits)
{
    __m512i order, sums = unordered_sums(&order, codes, x, bits);
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

static void fold_fours(int8_t *codes, size_t parts)
{
    for (size_t part = 0; part < parts; part++)
        fold_part(codes + part * COFFER__QUANT_PART, 4);
}

static void fold_threes(int8_t *codes, size_t parts)
{
    for (size_t part = 0; part < parts; part++)
        fold_part(codes + part * COFFER__QUANT_PART, 3);
}

static void fold_twos(int8_t *codes, size_t parts)
{
    for (size_t part = 0; part < parts; part++)
        fold_part(codes + part * COFFER__QUANT_PART, 2);
}

#define FOLDS                                                                                                \
    {                                                                                                        \
        [COFFER__QUANT_Q4] = fold_fours, [COFFER__QUANT_K4] = fold_fours, [COFFER__QUANT_INT4] = fold_fours, \
        [COFFER__QUANT_K3] = fold_threes, [COFFER__QUANT_K2] = fold_twos                                     \
    }
#include "quant/quant_rounded_loops.h"

const coffer__quant_rounded coffer__quant_rounded_avx512 = ALL_ROUNDED;
#endif
