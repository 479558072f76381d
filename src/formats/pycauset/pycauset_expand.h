/* Rows of bits as rows of bytes and back, for each instruction set, and what is done to rows on their way
 * out. */
#ifndef COFFER_FORMATS_PYCAUSET_EXPAND_H
#define COFFER_FORMATS_PYCAUSET_EXPAND_H

#include "base/cpu.h"
#include "base/elements_kernels.h"

#include <stddef.h>
#include <stdint.h>

typedef struct coffer__pycauset_bit_kernels {
    /* One byte of 0 or 1 for each of `words` × 64 bits. */
    void (*expand)(uint8_t *out, const uint8_t *bits, size_t words);
    /* The other way: any byte but 0 is a 1. */
    void (*pack)(uint8_t *bits, const uint8_t *bytes, size_t words);
} coffer__pycauset_bit_kernels;

extern const coffer__pycauset_bit_kernels coffer__pycauset_bits_generic;
#if defined(__x86_64__)
extern const coffer__pycauset_bit_kernels coffer__pycauset_bits_avx2, coffer__pycauset_bits_avx512;
#endif

/* Bits [first, first + count) as bytes. Reads no byte of bits that none of them is in. */
void coffer__pycauset_expand_bits(uint8_t *out, const uint8_t *bits, size_t first, size_t count,
                                  coffer__cpu_level level);
/* count bytes into the first bits of `bits`; the rest of the last word becomes 0. Whole words are written. */
void coffer__pycauset_pack_bits(uint8_t *bits, const uint8_t *bytes, size_t count, coffer__cpu_level level);
/* How many of the bits [first, first + count) are set. */
uint64_t coffer__pycauset_count_bits(const uint8_t *bits, size_t first, size_t count);

/* How a stored row becomes a row of values. */
typedef struct coffer__pycauset_recipe {
    coffer_dtype stored; /* BIT, or a plain type; C32 comes in two planes */
    coffer_dtype to;
    bool negated; /* first of all: a mirror image */
    bool scaled, conjugated;
    double scalar_real, scalar_imag;
    coffer__cpu_level level;
    const coffer__elements_kernels *kernels;
} coffer__pycauset_recipe;

/* Where the elements of a stored row are. */
typedef struct coffer__pycauset_stored_row {
    const uint8_t *bytes, *imaginary; /* the second for C32 only */
    unsigned first_bit;               /* of BIT */
} coffer__pycauset_stored_row;

/* Writes count values to out, which does not overlap. */
void coffer__pycauset_expand_row(void *out, const coffer__pycauset_recipe *recipe,
                                 const coffer__pycauset_stored_row *row, size_t count);
/* out[j][i] = in[i][j] for elements of `size` bytes; strides in bytes. */
void coffer__pycauset_transpose(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride,
                                size_t rows, size_t cols, size_t size);

#endif
