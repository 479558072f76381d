/* Products of rows with a vector, the same for every set of vector instructions. The including file has
 * included its factors and defined a register of LANES floats, `lanes`, with load, add, add_product, no_sum,
 * everywhere and total, reaches_past_block(bits): whether more bytes are loaded than a block of such codes
 * has, and block_codes(codes, bits, x, zero): a whole block of codes, less `zero` where that is
 * not NULL, times x. */
#include "base/cpu.h"
#include "quant/quant_product.h"

#define SUMS 4 /* so that one product need not wait for the other */

HERE lanes dot_block(lanes sum, const uint8_t *codes, const float *x, float factor, unsigned bits)
{
    return add_product(sum, block_codes(codes, bits, x, NULL), everywhere(factor));
}

/* Loads may reach past a block, and its row may end inside it: the last one goes through copies. */
typedef struct last_block {
    uint8_t codes[COFFER__QUANT_BLOCK + 16];
    float x[COFFER__QUANT_BLOCK];
} last_block;

HERE last_block copy_last(const uint8_t *codes, const float *x, size_t code_bytes, size_t elements)
{
    last_block last = { { 0 }, { 0 } };
    memcpy(last.codes, codes, code_bytes);
    memcpy(last.x, x, elements * sizeof *x);
    return last;
}

HERE lanes sum_of_sums(const lanes sums[SUMS])
{
    return add(add(sums[0], sums[1]), add(sums[2], sums[3]));
}

/* Makes the compiler load each factor, which spreads it over a register for free; taking it out of the
 * register that they were made in needs what widens the codes. */
HERE void keep_in_memory(float factors[8]) /* NOLINT(readability-non-const-parameter) */
{
    __asm__("" : "+m"(*(float(*)[8])factors));
}

/* Whether the last block of a row must be copied before it is loaded. */
HERE bool must_copy_last(const coffer__quant_run *run, unsigned bits)
{
    return reaches_past_block(bits) || run->elements % COFFER__QUANT_BLOCK != 0;
}

/* The blocks that are left of a row: at most eight. */
HERE lanes dot_rest(size_t block, const coffer__quant_run *run, const float *x, unsigned bits, bool supers)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8, last = (run->elements - 1) / COFFER__QUANT_BLOCK;
    lanes sum = no_sum();
    float factors[8];
    if (block + 7 == last) {
        eight_factors(factors, run, block, supers);
    } else {
        for (size_t i = 0; block + i <= last; i++)
            factors[i] = coffer__quant_block_scale(run, block + i, supers);
    }
    for (size_t i = 0; block + i < last; i++)
        sum = dot_block(sum, codes + (block + i) * size, x + (block + i) * COFFER__QUANT_BLOCK, factors[i],
                        bits);
    last_block copy = copy_last(codes + last * size, x + last * COFFER__QUANT_BLOCK, size,
                                run->elements - last * COFFER__QUANT_BLOCK);
    return dot_block(sum, copy.codes, copy.x, factors[last - block], bits);
}

/* Blocks from `block`, a multiple of eight, to the end of the row. */
HERE lanes dot_blocks_from(size_t block, const coffer__quant_run *run, const float *x, unsigned bits,
                           bool supers)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8, blocks = (run->elements + 31) / COFFER__QUANT_BLOCK;
    const size_t end = must_copy_last(run, bits) ? blocks - 1 : blocks;
    lanes sums[SUMS] = { no_sum(), no_sum(), no_sum(), no_sum() };
    float factors[8];
    for (; block + 8 <= end; block += 8) {
        eight_factors(factors, run, block, supers);
        keep_in_memory(factors);
        COFFER__UNROLL(8)
        for (size_t i = 0; i < 8; i++)
            sums[i % SUMS] = dot_block(sums[i % SUMS], codes + (block + i) * size,
                                       x + (block + i) * COFFER__QUANT_BLOCK, factors[i], bits);
    }
    if (block < blocks)
        sums[0] = add(sums[0], dot_rest(block, run, x, bits, supers));
    return sum_of_sums(sums);
}

/* int8 and int4 from a whole byte on: the zero point is subtracted from each code, which keeps
 * the sums small; one scale applies to all of them. */
HERE float dot_whole(const coffer__quant_run *run, const float *x, unsigned bits)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8, end = (run->elements - 1) / COFFER__QUANT_BLOCK;
    const float zero = coffer__quant_zero_point(run);
    lanes sums[SUMS] = { no_sum(), no_sum(), no_sum(), no_sum() };
    size_t block = 0;
    for (; block + SUMS <= end; block += SUMS) {
        COFFER__UNROLL(4)
        for (size_t i = 0; i < SUMS; i++)
            sums[i] = add(sums[i], block_codes(codes + (block + i) * size, bits,
                                               x + (block + i) * COFFER__QUANT_BLOCK, &zero));
    }
    for (; block < end; block++)
        sums[0] =
            add(sums[0], block_codes(codes + block * size, bits, x + block * COFFER__QUANT_BLOCK, &zero));
    size_t left = run->elements - end * COFFER__QUANT_BLOCK;
    last_block last =
        copy_last(codes + end * size, x + end * COFFER__QUANT_BLOCK, (left * bits + 7) / 8, left);
    sums[1] = add(sums[1], block_codes(last.codes, bits, last.x, &zero));
    return total(sum_of_sums(sums)) * coffer__quant_whole_scale(run);
}

static float dot_int8(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_whole(run, x->numbers, 8);
}

static float dot_int4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    coffer__quant_run rest = *run;
    float first = 0.0f;
    if (run->skip) {
        rest.elements = 1;
        coffer__quant_reference.decode_f32[COFFER__QUANT_INT4](&first, &rest);
        first *= x->numbers[0];
        rest.elements = run->elements - 1;
        rest.parts[COFFER__QUANT_CODES]++;
        rest.skip = 0;
    }
    return rest.elements ? first + dot_whole(&rest, x->numbers + run->skip, 4) : first;
}

static float dot_q8(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 8, false));
}

#ifndef FOLDED_TYPES /* the including file has kernels of its own for these */
static float dot_k6(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 6, true));
}

static float dot_k3(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 3, true));
}

static float dot_q4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 4, false));
}

static float dot_k4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 4, true));
}

static float dot_k2(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return total(dot_blocks_from(0, run, x->numbers, 2, true));
}
#endif

static void tile(float out[COFFER__QUANT_ROWS][COFFER__QUANT_VECTORS],
                 const float *const rows[COFFER__QUANT_ROWS], const float *const x[COFFER__QUANT_VECTORS],
                 size_t count)
{
    lanes sums[COFFER__QUANT_ROWS][COFFER__QUANT_VECTORS];
    size_t at = 0;
    for (size_t row = 0; row < COFFER__QUANT_ROWS; row++) {
        for (size_t i = 0; i < COFFER__QUANT_VECTORS; i++)
            sums[row][i] = no_sum();
    }
    for (; at + LANES <= count; at += LANES) {
        lanes first = load(rows[0] + at), second = load(rows[1] + at);
        COFFER__UNROLL(4)
        for (size_t i = 0; i < COFFER__QUANT_VECTORS; i++) {
            lanes numbers = load(x[i] + at);
            sums[0][i] = add_product(sums[0][i], first, numbers);
            sums[1][i] = add_product(sums[1][i], second, numbers);
        }
    }
    for (size_t row = 0; row < COFFER__QUANT_ROWS; row++) {
        for (size_t i = 0; i < COFFER__QUANT_VECTORS; i++) {
            out[row][i] = total(sums[row][i]);
            for (size_t rest = at; rest < count; rest++)
                out[row][i] += rows[row][rest] * x[i][rest];
        }
    }
}

#define ALL_DOTS                                                           \
    {                                                                      \
        dot_q8, dot_q4, dot_k6, dot_k4, dot_k3, dot_k2, dot_int8, dot_int4 \
    }
