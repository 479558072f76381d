/* Rounding and products, the same for every instruction set. The including file has defined
 *
 *   PANEL, TILE_ROWS      vectors of a panel, rows of a tile
 *   sums16, floats16      a number for each block of a part, with add16, multiply16, to_floats16, load16,
 *                         no_sum16 and total16
 *   part_sums             codes of a part times numbers of a vector, as sums16
 *   part_factors          the factors of its blocks, as floats16
 *   unpack_part           its codes as bytes
 *   FOLDS                 functions that put a vector into the order that part_sums wants, if any
 *   ints, floats          a number for each vector of a panel, with load_floats, store_floats, add, multiply,
 *                         to_floats and everywhere
 *   first_sums, dot_four  where the sum of a block begins, and four codes of a row times four numbers of each
 *                         vector */
#include "base/bytes.h"
#include "base/cpu.h"
#include "base/dtype.h"
#include "quant/quant_rounded.h"

#include <math.h>
#include <string.h>

#ifndef FOLDS
#define FOLDS \
    {         \
        NULL  \
    }
#endif

#define FOUR 4 /* codes that dot_four takes */
#define BLOCK_FOURS (COFFER__QUANT_BLOCK / FOUR)

/* ---- Rounding ---- */

#define INFINITE_BITS 0x7F800000u
/* Scales below it would not be normal numbers. */
#define LEAST_MAGNITUDE 0x1p-119f
/* Numbers of up to 2^22 lose their fraction next to it, and its last byte then has their last byte. */
#define ROUND_NEXT_TO 12582912.0f /* 1.5 · 2^23 */

/* Writes the codes; gives the scale. */
HERE float round_block(int8_t codes[COFFER__QUANT_BLOCK], const float x[COFFER__QUANT_BLOCK])
{
    uint32_t most = 0;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++) {
        uint32_t magnitude = coffer__float_bits(x[i]) & 0x7FFFFFFFu;
        most = magnitude > most ? magnitude : most;
    }
    float largest = coffer__float_from_bits(most);
    if (most >= INFINITE_BITS || largest < LEAST_MAGNITUDE) {
        memset(codes, 0, COFFER__QUANT_BLOCK);
        return most >= INFINITE_BITS ? NAN : 0.0f;
    }
    float scale = largest / 127.0f, inverse = 1.0f / scale;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++)
        codes[i] = (int8_t)coffer__float_bits(x[i] * inverse + ROUND_NEXT_TO);
    return scale;
}

static void round_vector(const coffer__quant_panel *out, size_t vector, size_t vectors, const float *x,
                         size_t count)
{
    for (size_t at = 0, block = 0; at < count; at += COFFER__QUANT_BLOCK, block++) {
        float numbers[COFFER__QUANT_BLOCK] = { 0 };
        int8_t codes[COFFER__QUANT_BLOCK];
        size_t left = count - at;
        memcpy(numbers, x + at, (left < COFFER__QUANT_BLOCK ? left : COFFER__QUANT_BLOCK) * sizeof *x);
        out->scales[block * vectors + vector] = round_block(codes, numbers);
        int32_t sum = 0;
        for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++)
            sum += codes[i];
        out->sums[block * vectors + vector] = sum;
        for (size_t i = 0; i < BLOCK_FOURS; i++)
            memcpy(out->codes + FOUR * ((block * BLOCK_FOURS + i) * vectors + vector), codes + FOUR * i,
                   FOUR);
    }
}

/* ---- The parts of a row ---- */

/* A part that ends inside, or whose codes do not begin at a byte. What is missing is zeros. */
typedef struct copied_part {
    _Alignas(64) uint8_t codes[COFFER__QUANT_PART];
    _Alignas(64) float factors[COFFER__QUANT_PART_BLOCKS];
} copied_part;

HERE void copy_codes(uint8_t *out, const coffer__quant_run *run, size_t part, unsigned bits)
{
    const size_t at = part * COFFER__QUANT_PART, left = run->elements - at;
    const size_t elements = left < COFFER__QUANT_PART ? left : COFFER__QUANT_PART;
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES] + at * bits / 8;
    memset(out, 0, COFFER__QUANT_PART);
    if (!run->skip) {
        memcpy(out, codes, (elements * bits + 7) / 8);
        return;
    }
    for (size_t i = 0; i < elements; i++) { /* codes of four bits, of which the first is the upper one */
        unsigned code = codes[(i + 1) / 2] >> ((i + 1) % 2 * 4) & 0xF;
        out[i / 2] = (uint8_t)(out[i / 2] | code << (i % 2 * 4));
    }
}

HERE copied_part copy_part(const coffer__quant_run *run, size_t part, unsigned bits,
                           coffer__quant_family family)
{
    copied_part copy = { { 0 }, { 0 } };
    const size_t first = part * COFFER__QUANT_PART_BLOCKS;
    copy_codes(copy.codes, run, part, bits);
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++) {
        if ((first + i) * COFFER__QUANT_BLOCK >= run->elements)
            break;
        copy.factors[i] = family == COFFER__QUANT_WHOLE
                              ? 1.0f
                              : coffer__quant_block_scale(run, first + i, family == COFFER__QUANT_SUPERS);
    }
    return copy;
}

HERE size_t whole_parts(const coffer__quant_run *run)
{
    return run->skip ? 0 : run->elements / COFFER__QUANT_PART;
}

/* ---- One vector ---- */

HERE floats16 part_products(const uint8_t *codes, floats16 factors, const coffer__quant_panel *x, size_t part,
                            unsigned bits)
{
    const size_t block = part * COFFER__QUANT_PART_BLOCKS;
    sums16 sums = part_sums(codes, x->codes + part * COFFER__QUANT_PART, x->sums + block, bits);
    return multiply16(to_floats16(sums), multiply16(factors, load16(x->scales + block)));
}

#define PREFETCH_AHEAD 1024 /* bytes */

/* Codes come from memory; by itself the processor does not fetch past a page. */
HERE void prefetch(const uint8_t *codes, size_t size)
{
    for (size_t at = 0; at < size; at += 64)
        __builtin_prefetch(codes + PREFETCH_AHEAD + at, 0, 3);
}

HERE float dot_rounded(const coffer__quant_run *run, const coffer__quant_panel *x, unsigned bits,
                       coffer__quant_family family)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_PART / 8;
    floats16 sum = no_sum16();
    size_t part = 0;
    for (; part < whole_parts(run); part++) {
        prefetch(codes + part * size, size);
        sum = add16(sum, part_products(codes + part * size,
                                       part_factors(run, part * COFFER__QUANT_PART_BLOCKS, family), x, part,
                                       bits));
    }
    for (; part * COFFER__QUANT_PART < run->elements; part++) {
        copied_part copy = copy_part(run, part, bits, family);
        sum = add16(sum, part_products(copy.codes, load16(copy.factors), x, part, bits));
    }
    return total16(sum);
}

/* ---- Many vectors ---- */

HERE void unpack_rounded(uint8_t *codes, float *factors, const coffer__quant_run *run, size_t part,
                         unsigned bits, coffer__quant_family family)
{
    if (part < whole_parts(run)) {
        unpack_part(codes, run->parts[COFFER__QUANT_CODES] + part * (bits * COFFER__QUANT_PART / 8), bits);
        store16(factors, part_factors(run, part * COFFER__QUANT_PART_BLOCKS, family));
        return;
    }
    copied_part copy = copy_part(run, part, bits, family);
    unpack_part(codes, copy.codes, bits);
    memcpy(factors, copy.factors, sizeof copy.factors);
}

static void tile_part(float *sums, const uint8_t *codes, const float *factors, const coffer__quant_panel *x,
                      size_t part)
{
    const size_t first = part * COFFER__QUANT_PART_BLOCKS;
    floats totals[TILE_ROWS];
    COFFER__UNROLL(8)
    for (size_t row = 0; row < TILE_ROWS; row++)
        totals[row] = load_floats(sums + row * COFFER__QUANT_ROUNDED_VECTORS);
    for (size_t block = 0; block < COFFER__QUANT_PART_BLOCKS; block++) {
        const int8_t *numbers = x->codes + (first + block) * COFFER__QUANT_BLOCK * PANEL;
        const ints begin = first_sums(x->sums + (first + block) * PANEL);
        ints products[TILE_ROWS];
        COFFER__UNROLL(8)
        for (size_t row = 0; row < TILE_ROWS; row++)
            products[row] = begin;
        for (size_t four = 0; four < BLOCK_FOURS; four++) {
            const ints fours = load_fours(numbers + four * FOUR * PANEL);
            COFFER__UNROLL(8)
            for (size_t row = 0; row < TILE_ROWS; row++)
                products[row] =
                    dot_four(products[row],
                             codes + row * COFFER__QUANT_PART + block * COFFER__QUANT_BLOCK + four * FOUR,
                             fours);
        }
        const floats scales = load_floats(x->scales + (first + block) * PANEL);
        COFFER__UNROLL(8)
        for (size_t row = 0; row < TILE_ROWS; row++) {
            floats factor = multiply(everywhere(factors[row * COFFER__QUANT_PART_BLOCKS + block]), scales);
            totals[row] = add(totals[row], multiply(to_floats(products[row]), factor));
        }
    }
    COFFER__UNROLL(8)
    for (size_t row = 0; row < TILE_ROWS; row++)
        store_floats(sums + row * COFFER__QUANT_ROUNDED_VECTORS, totals[row]);
}

#define ROUNDED_KERNELS(name, bits, family)                                                              \
    static float dot_##name(const coffer__quant_run *run, const coffer__quant_panel *x)                  \
    {                                                                                                    \
        return dot_rounded(run, x, bits, family);                                                        \
    }                                                                                                    \
    static void unpack_##name(uint8_t *codes, float *factors, const coffer__quant_run *run, size_t part) \
    {                                                                                                    \
        unpack_rounded(codes, factors, run, part, bits, family);                                         \
    }

ROUNDED_KERNELS(q8, 8, COFFER__QUANT_BLOCKS)
ROUNDED_KERNELS(q4, 4, COFFER__QUANT_BLOCKS)
ROUNDED_KERNELS(k6, 6, COFFER__QUANT_SUPERS)
ROUNDED_KERNELS(k4, 4, COFFER__QUANT_SUPERS)
ROUNDED_KERNELS(k3, 3, COFFER__QUANT_SUPERS)
ROUNDED_KERNELS(k2, 2, COFFER__QUANT_SUPERS)
ROUNDED_KERNELS(int8, 8, COFFER__QUANT_WHOLE)
ROUNDED_KERNELS(int4, 4, COFFER__QUANT_WHOLE)

#define OF_ALL_TYPES(act)                                                                  \
    {                                                                                      \
        act##_q8, act##_q4, act##_k6, act##_k4, act##_k3, act##_k2, act##_int8, act##_int4 \
    }
#define ALL_ROUNDED                                                                               \
    {                                                                                             \
        PANEL, TILE_ROWS, round_vector, FOLDS, OF_ALL_TYPES(dot), OF_ALL_TYPES(unpack), tile_part \
    }
