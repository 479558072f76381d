/* Products of quantised rows with vectors of float32, straight from the payload. Sums are float32, several
 * side by side: for n columns a product misses the true one by at most (n / 8 + 16) · 2^-24 · Σ|w·x|. */
#ifndef COFFER_QUANT_PRODUCT_H
#define COFFER_QUANT_PRODUCT_H

#include "quant/quant.h"

/* Vectors that one pass over the weights serves. */
#define COFFER__QUANT_MOST_COLUMNS 32

/* y[i] = row first + i times x, for count rows. x : cols numbers. */
void coffer__quant_matvec(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const float *x, uint64_t first, uint64_t count);
/* y[i · columns + j] = row first + i times vector j. x : columns vectors of cols numbers, one after the
 * other. row : room for cols numbers. */
void coffer__quant_matmul(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const float *x, uint32_t columns, uint64_t first, uint64_t count, float *row);

/* ---- Kernels ---- */

enum { COFFER__QUANT_DOT_COUNT = COFFER__QUANT_K2 + 1 }; /* q* and k* */
#define COFFER__QUANT_TOGETHER 4

typedef struct coffer__quant_dots {
    float (*dot[COFFER__QUANT_DOT_COUNT])(const coffer__quant_run *run, const float *x);
    /* A row of numbers with four vectors. */
    void (*four)(float out[COFFER__QUANT_TOGETHER], const float *row,
                 const float *const x[COFFER__QUANT_TOGETHER], size_t count);
} coffer__quant_dots;

extern const coffer__quant_dots coffer__quant_dots_generic;
extern const coffer__quant_dots coffer__quant_dots_avx2;
extern const coffer__quant_dots coffer__quant_dots_avx512;
extern const coffer__quant_dots coffer__quant_dots_neon;

#endif
