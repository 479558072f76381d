/* Rounded products for AVX2. The dot product of bytes wants one side without sign and saturates at 16 bits:
 * magnitudes of codes, at most 128, times numbers with the codes' signs, at most 127, stay below that. */
#if defined(__x86_64__)
#include "base/bytes.h"
#include "base/cpu.h"
#include "quant/quant_factors_x86.h"
#include "quant/quant_rounded.h"

#define HERE static inline __attribute__((always_inline))
#define PANEL 8
#define TILE_ROWS 4

typedef struct sums16 {
    __m256i low, high;
} sums16;

typedef struct floats16 {
    __m256 low, high;
} floats16;

typedef __m256i ints;
typedef __m256 floats;

HERE __m256i load_bytes(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

/* ---- Codes ---- */

HERE long long eight_codes(const uint8_t *codes, unsigned bits)
{
    const uint64_t bytes = UINT64_C(0x0101010101010101) * ((1u << bits) - 1);
    return (long long)_pdep_u64(coffer__quant_load_eight(codes, bits), bytes);
}

/* A block of codes as bytes with a sign. */
HERE __m256i unpack_block(const uint8_t *codes, unsigned bits)
{
    const __m256i half = _mm256_set1_epi8((char)(128u >> (8 - bits)));
    __m256i all;
    if (bits == 8)
        return load_bytes(codes);
    if (bits == 4) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes), mask = _mm_set1_epi8(0xF);
        __m128i even = _mm_and_si128(bytes, mask), odd = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
        all = _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
    } else {
        all = _mm256_setr_epi64x(eight_codes(codes, bits), eight_codes(codes + bits, bits),
                                 eight_codes(codes + 2 * (size_t)bits, bits),
                                 eight_codes(codes + 3 * (size_t)bits, bits));
    }
    return _mm256_sub_epi8(_mm256_xor_si256(all, half), half);
}

HERE void unpack_part(uint8_t *out, const uint8_t *codes, unsigned bits)
{
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++)
        _mm256_storeu_si256((__m256i *)(void *)(out + COFFER__QUANT_BLOCK * i),
                            unpack_block(codes + i * bits * COFFER__QUANT_BLOCK / 8, bits));
}

HERE __m256i dot_bytes(__m256i codes, __m256i x)
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* ---- One vector ---- */

HERE __m256i four_blocks(const uint8_t *codes, const int8_t *x, unsigned bits)
{
    __m256i sums[4];
    COFFER__UNROLL(4)
    for (size_t i = 0; i < 4; i++)
        sums[i] = dot_bytes(unpack_block(codes + i * bits * COFFER__QUANT_BLOCK / 8, bits),
                            load_bytes(x + i * COFFER__QUANT_BLOCK));
    return _mm256_hadd_epi32(_mm256_hadd_epi32(sums[0], sums[1]), _mm256_hadd_epi32(sums[2], sums[3]));
}

HERE __m256i eight_blocks(const uint8_t *codes, const int8_t *x, unsigned bits)
{
    __m256i first = four_blocks(codes, x, bits);
    __m256i second = four_blocks(codes + bits * COFFER__QUANT_BLOCK / 2, x + 4 * COFFER__QUANT_BLOCK, bits);
    return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20),
                            _mm256_permute2x128_si256(first, second, 0x31));
}

HERE sums16 part_sums(const uint8_t *codes, const int8_t *x, const int32_t *x_sums, unsigned bits)
{
    (void)x_sums;
    return (sums16){ eight_blocks(codes, x, bits),
                     eight_blocks(codes + bits * COFFER__QUANT_BLOCK, x + 8 * COFFER__QUANT_BLOCK, bits) };
}

HERE floats16 load16(const float *from)
{
    return (floats16){ _mm256_loadu_ps(from), _mm256_loadu_ps(from + 8) };
}

HERE floats16 part_factors(const coffer__quant_run *run, size_t block, coffer__quant_family family)
{
    float factors[COFFER__QUANT_PART_BLOCKS];
    if (family == COFFER__QUANT_WHOLE)
        return (floats16){ _mm256_set1_ps(1.0f), _mm256_set1_ps(1.0f) };
    eight_factors(factors, run, block, family == COFFER__QUANT_SUPERS);
    eight_factors(factors + 8, run, block + 8, family == COFFER__QUANT_SUPERS);
    return load16(factors);
}

HERE floats16 no_sum16(void)
{
    return (floats16){ _mm256_setzero_ps(), _mm256_setzero_ps() };
}

HERE void store16(float *out, floats16 numbers)
{
    _mm256_storeu_ps(out, numbers.low);
    _mm256_storeu_ps(out + 8, numbers.high);
}

HERE floats16 to_floats16(sums16 sums)
{
    return (floats16){ _mm256_cvtepi32_ps(sums.low), _mm256_cvtepi32_ps(sums.high) };
}

HERE floats16 add16(floats16 a, floats16 b)
{
    return (floats16){ _mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high) };
}

HERE floats16 multiply16(floats16 a, floats16 b)
{
    return (floats16){ _mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high) };
}

HERE float total16(floats16 sum)
{
    __m256 eight = _mm256_add_ps(sum.low, sum.high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* ---- Many vectors ---- */

HERE floats load_floats(const float *from)
{
    return _mm256_loadu_ps(from);
}

HERE void store_floats(float *out, floats numbers)
{
    _mm256_storeu_ps(out, numbers);
}

HERE floats everywhere(float number)
{
    return _mm256_set1_ps(number);
}

HERE floats add(floats a, floats b)
{
    return _mm256_add_ps(a, b);
}

HERE floats multiply(floats a, floats b)
{
    return _mm256_mul_ps(a, b);
}

HERE floats to_floats(ints sums)
{
    return _mm256_cvtepi32_ps(sums);
}

HERE ints first_sums(const int32_t *x_sums)
{
    (void)x_sums;
    return _mm256_setzero_si256();
}

HERE ints load_fours(const int8_t *from)
{
    return load_bytes(from);
}

HERE ints dot_four(ints sums, const uint8_t *codes, ints fours)
{
    return _mm256_add_epi32(sums, dot_bytes(_mm256_set1_epi32((int)coffer__load_u32(codes)), fours));
}

#include "quant/quant_rounded_loops.h"

const coffer__quant_rounded coffer__quant_rounded_avx2 = ALL_ROUNDED;
#endif
