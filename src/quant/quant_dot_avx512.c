/* Products for AVX-512. */
#if defined(__x86_64__)
#include "quant/quant_factors_x86.h"
#include "quant/quant_product.h"
#include "quant/quant_unpack_avx512.h"

typedef __m512 lanes;

HERE lanes no_sum(void)
{
    return _mm512_setzero_ps();
}

HERE lanes load(const float *from)
{
    return _mm512_loadu_ps(from);
}

HERE lanes add_product(lanes sum, lanes a, lanes b)
{
    return _mm512_fmadd_ps(a, b, sum);
}

HERE lanes add(lanes a, lanes b)
{
    return _mm512_add_ps(a, b);
}

HERE float total(lanes sum)
{
    return _mm512_reduce_add_ps(sum);
}

HERE lanes everywhere(float number)
{
    return _mm512_set1_ps(number);
}

HERE bool reaches_past_block(unsigned bits)
{
    return bits == 6 || bits == 3;
}

HERE lanes block_codes(const uint8_t *codes, unsigned bits, const float *x, const float *zero)
{
    lanes table = bits <= 4 ? numbers_of_codes(bits) : no_sum();
    lanes low = half_block(codes, 0, bits, table), high = half_block(codes, 1, bits, table);
    if (zero) {
        low = _mm512_sub_ps(low, everywhere(*zero));
        high = _mm512_sub_ps(high, everywhere(*zero));
    }
    return add_product(_mm512_mul_ps(low, load(x)), high, load(x + LANES));
}

#define FOLDED_TYPES
#include "quant/quant_dot_loops.h"

/* ---- Folded vectors: codes at the same place of all lanes ---- */

/* A register holds the codes of several blocks, 32 / bits in each lane, and register k of the folded x has
 * the numbers that the codes at place k of all lanes are multiplied with. So codes of two and four bits come
 * to the bottom of their lanes by one shift, and none need be spread. Of codes of three and six bits a lane
 * has four, once eight of them are in each qword. */
HERE size_t codes_in_lane(unsigned bits)
{
    return bits == 3 || bits == 6 ? 4 : 32 / bits;
}

HERE size_t folded_blocks(unsigned bits)
{
    return codes_in_lane(bits) * LANES / COFFER__QUANT_BLOCK;
}

HERE void fold(float *out, const float *numbers, size_t count, unsigned bits)
{
    const size_t deep = codes_in_lane(bits);
    for (size_t at = 0; at + deep * LANES <= count; at += deep * LANES) {
        for (size_t i = 0; i < deep * LANES; i++)
            out[at + i % deep * LANES + i / deep] = numbers[at + i];
    }
}

static void fold_fours(float *out, const float *numbers, size_t count)
{
    fold(out, numbers, count, 4);
}

static void fold_threes_and_sixes(float *out, const float *numbers, size_t count)
{
    fold(out, numbers, count, 6);
}

static void fold_twos(float *out, const float *numbers, size_t count)
{
    fold(out, numbers, count, 2);
}

/* Code number `place` of each lane, divided by 2^bits: the code becomes the upper bits of the mantissa of a
 * number from 1 to 2, where 1.5 means 0. */
HERE lanes fraction_of_code(__m512i qwords, unsigned place, unsigned bits)
{
    const uint64_t first = (uint64_t)(bits * place + bits - 7) & 63, second = (first + 4 * bits) & 63;
    const uint32_t mantissa = ((1u << bits) - 1) << (23 - bits), one_and_half = 0x3FC00000;
    const __m512i windows = _mm512_set1_epi64((long long)(first << 16 | second << 48));
    __m512i number = _mm512_ternarylogic_epi32(_mm512_multishift_epi64_epi8(windows, qwords),
                                               _mm512_set1_epi32((int)mantissa),
                                               _mm512_set1_epi32((int)one_and_half), 0x6A); /* (a & b) ^ c */
    return _mm512_sub_ps(_mm512_castsi512_ps(number), everywhere(1.5f));
}

/* Products with codes of three or six bits, divided by 2^bits. */
HERE lanes dot_qwords(const uint8_t *codes, const float *folded, unsigned bits)
{
    __m512i qwords = load_qwords(codes, bits, true);
    lanes sum = _mm512_mul_ps(fraction_of_code(qwords, 0, bits), load(folded));
    COFFER__UNROLL(3)
    for (unsigned place = 1; place < 4; place++)
        sum = add_product(sum, fraction_of_code(qwords, place, bits), load(folded + (size_t)LANES * place));
    return sum;
}

HERE lanes dot_register(const uint8_t *codes, const float *folded, unsigned bits)
{
    if (bits == 3 || bits == 6)
        return dot_qwords(codes, folded, bits);
    const lanes table = numbers_of_codes(bits);
    __m512i all = _mm512_loadu_si512(codes);
    lanes even = no_sum(), odd = no_sum();
    COFFER__UNROLL(8)
    for (unsigned k = 0; k < codes_in_lane(bits); k += 2) {
        lanes low = _mm512_permutexvar_ps(_mm512_srli_epi32(all, bits * k), table);
        lanes high = _mm512_permutexvar_ps(_mm512_srli_epi32(all, bits * (k + 1)), table);
        even = add_product(even, low, load(folded + (size_t)LANES * k));
        odd = add_product(odd, high, load(folded + (size_t)LANES * (k + 1)));
    }
    return add(even, odd);
}

HERE float dot_folded(const coffer__quant_run *run, const coffer__quant_vector *x, unsigned bits, bool supers)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8, blocks = run->elements / COFFER__QUANT_BLOCK;
    const bool qwords = bits == 3 || bits == 6;
    const __m512i block_of_lane =
        _mm512_srlv_epi32(lane_numbers(), _mm512_set1_epi32(qwords ? 3 : (int)bits / 2));
    const lanes divided_by = everywhere(qwords ? (float)(1u << bits) : 1.0f);
    lanes sums[2] = { no_sum(), no_sum() };
    size_t block = 0;
    for (; x->folded && block + 8 <= blocks; block += 8) {
        float factors[8];
        eight_factors(factors, run, block, supers);
        lanes all = _mm512_mul_ps(_mm512_castps256_ps512(_mm256_loadu_ps(factors)), divided_by);
        COFFER__UNROLL(2)
        for (size_t i = 0; i < 8; i += folded_blocks(bits)) {
            __m512i which = _mm512_add_epi32(block_of_lane, _mm512_set1_epi32((int)i));
            lanes products =
                dot_register(codes + (block + i) * size, x->folded + (block + i) * COFFER__QUANT_BLOCK, bits);
            sums[i > 0] = add_product(sums[i > 0], products, _mm512_permutexvar_ps(which, all));
        }
    }
    lanes rest = dot_blocks_from(block, run, x->numbers, bits, supers);
    return total(add(add(sums[0], sums[1]), rest));
}

static float dot_k6(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_folded(run, x, 6, true);
}

static float dot_k3(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_folded(run, x, 3, true);
}

static float dot_q4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_folded(run, x, 4, false);
}

static float dot_k4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_folded(run, x, 4, true);
}

static float dot_k2(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_folded(run, x, 2, true);
}

const coffer__quant_dots coffer__quant_dots_avx512 = {
    ALL_DOTS,
    { [COFFER__QUANT_Q4] = fold_fours,
      [COFFER__QUANT_K6] = fold_threes_and_sixes,
      [COFFER__QUANT_K4] = fold_fours,
      [COFFER__QUANT_K3] = fold_threes_and_sixes,
      [COFFER__QUANT_K2] = fold_twos },
    tile,
};
#endif
