/* Products of rows with a vector, the same for every set of vector instructions. The including file has
 * included its factors and defined a register of LANES floats, `lanes`, with load, add, add_product, no_sum
 * and total, and dot_block(sum, codes, x, factor, bits): what a whole block adds to a sum. */
#include "base/unroll.h"
#include "quant/quant_product.h"

#define SUMS 4 /* so that one product need not wait for the other */

/* Loads may reach past a block, and its row may end inside it: the last one goes through copies. */
HERE lanes dot_last(lanes sum, const uint8_t *codes, const float *x, float factor, unsigned bits,
                    size_t elements)
{
    uint8_t padded[COFFER__QUANT_BLOCK + 16] = { 0 };
    float padded_x[COFFER__QUANT_BLOCK] = { 0 };
    memcpy(padded, codes, bits * COFFER__QUANT_BLOCK / 8);
    memcpy(padded_x, x, elements * sizeof *x);
    return dot_block(sum, padded, padded_x, factor, bits);
}

HERE float dot_blocks(const coffer__quant_run *run, const float *x, unsigned bits, bool supers)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8, last = (run->elements - 1) / COFFER__QUANT_BLOCK;
    lanes sums[SUMS] = { no_sum(), no_sum(), no_sum(), no_sum() };
    float factors[8];
    size_t block = 0;
    for (; block + 8 <= last; block += 8) {
        eight_factors(factors, run, block, supers);
        COFFER__UNROLL(8)
        for (size_t i = 0; i < 8; i++)
            sums[i % SUMS] = dot_block(sums[i % SUMS], codes + (block + i) * size,
                                       x + (block + i) * COFFER__QUANT_BLOCK, factors[i], bits);
    }
    for (; block < last; block++)
        sums[0] = dot_block(sums[0], codes + block * size, x + block * COFFER__QUANT_BLOCK,
                            coffer__quant_block_scale(run, block, supers), bits);
    sums[1] = dot_last(sums[1], codes + last * size, x + last * COFFER__QUANT_BLOCK,
                       coffer__quant_block_scale(run, last, supers), bits,
                       run->elements - last * COFFER__QUANT_BLOCK);
    return total(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

static float dot_q8(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 8, false);
}

static float dot_q4(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 4, false);
}

static float dot_k6(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 6, true);
}

static float dot_k4(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 4, true);
}

static float dot_k3(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 3, true);
}

static float dot_k2(const coffer__quant_run *run, const float *x)
{
    return dot_blocks(run, x, 2, true);
}

static void four(float out[COFFER__QUANT_TOGETHER], const float *row,
                 const float *const x[COFFER__QUANT_TOGETHER], size_t count)
{
    lanes sums[COFFER__QUANT_TOGETHER] = { no_sum(), no_sum(), no_sum(), no_sum() };
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        lanes numbers = load(row + at);
        COFFER__UNROLL(4)
        for (size_t i = 0; i < COFFER__QUANT_TOGETHER; i++)
            sums[i] = add_product(sums[i], numbers, load(x[i] + at));
    }
    for (size_t i = 0; i < COFFER__QUANT_TOGETHER; i++) {
        out[i] = total(sums[i]);
        for (size_t rest = at; rest < count; rest++)
            out[i] += row[rest] * x[i][rest];
    }
}

#define ALL_DOTS { dot_q8, dot_q4, dot_k6, dot_k4, dot_k3, dot_k2 }, four
