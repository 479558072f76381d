/* The loops of elements.h. They are written once, in elements_loops.h, with vectors of a fixed number of
 * lanes, and compiled for each instruction set: sums run over the same lanes in the same order everywhere, so
 * every path gives the same bits. */
#ifndef COFFER_BASE_ELEMENTS_KERNELS_H
#define COFFER_BASE_ELEMENTS_KERNELS_H

#include "base/cpu.h"
#include "base/elements.h"
#include "coffer/dtype.h"

#include <math.h>

/* Elements are summed in blocks of this many, each about its own mean. */
#define COFFER__ELEMENTS_BLOCK 512
/* A block is padded with NaN to a multiple of this. */
#define COFFER__ELEMENTS_STEP 8

typedef struct coffer__moments {
    uint64_t finite, nans, zeros;
    double min, max;            /* of the finite ones; +inf and -inf without finite ones */
    double mean;                /* approximate, of the finite ones; 0 without finite ones */
    double deviations, squares; /* sums of (x - mean) and of (x - mean)^2 */
} coffer__moments;

typedef struct coffer__differences {
    uint64_t differing;
    double max_abs;
    double squares, a_squares, b_squares, products; /* the last three of pairs of finite numbers only */
} coffer__differences;

typedef void (*coffer__convert_kernel)(void *out, const void *in, size_t count);

typedef struct coffer__elements_kernels {
    /* [from][to]; NULL for pairs without their own loop. */
    coffer__convert_kernel convert[COFFER_DTYPE_F64 + 1][COFFER_DTYPE_F64 + 1];
    /* 0 for a byte that is 0, else the bit pattern `one`, of 1, 2, 4 or 8 bytes. */
    void (*select[4])(void *out, const void *in, size_t count, uint64_t one);
    /* count : a multiple of COFFER__ELEMENTS_STEP, at most a block. */
    void (*moments)(coffer__moments *out, const double *in, size_t count);
    void (*differences)(coffer__differences *out, const double *a, const double *b, size_t count,
                        double tolerance);
} coffer__elements_kernels;

extern const coffer__elements_kernels coffer__elements_generic;
#if defined(__x86_64__)
extern const coffer__elements_kernels coffer__elements_avx2, coffer__elements_avx512;
#endif

/* coffer__elements_convert with the given kernels. */
void coffer__elements_convert_by(const coffer__elements_kernels *kernels, void *out, coffer_dtype to,
                                 const void *in, coffer_dtype from, size_t count);

static inline const coffer__elements_kernels *coffer__elements_kernels_for(coffer__cpu_level level)
{
#if defined(__x86_64__)
    if (level == COFFER__CPU_AVX512)
        return &coffer__elements_avx512;
    if (level == COFFER__CPU_AVX2)
        return &coffer__elements_avx2;
#endif
    (void)level;
    return &coffer__elements_generic;
}

/* A row of numbers of any plain type as blocks of doubles. */

/* count rounded up to whole steps of the kernels. */
static inline size_t coffer__block_padded(size_t count)
{
    return (count + COFFER__ELEMENTS_STEP - 1) / COFFER__ELEMENTS_STEP * COFFER__ELEMENTS_STEP;
}

static inline void coffer__block_pad(double *block, size_t count)
{
    for (size_t i = count; i < coffer__block_padded(count); i++)
        block[i] = NAN;
}

/* Magnitude of a complex number; never overflows on the way. */
static inline double coffer__magnitude(double real, double imag)
{
    double square = real * real + imag * imag;
    return square > 0x1p-960 && square < 0x1p960 ? sqrt(square) : hypot(real, imag);
}

#endif
