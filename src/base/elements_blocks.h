/* A row of numbers of any plain type as blocks of doubles. */
#ifndef COFFER_BASE_ELEMENTS_BLOCKS_H
#define COFFER_BASE_ELEMENTS_BLOCKS_H

#include "base/elements.h"
#include "base/elements_kernels.h"

#include <math.h>

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
