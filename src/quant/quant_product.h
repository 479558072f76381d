/* Products of quantized rows with vectors of float32, straight from the payload. Sums are float32, several
 * side by side: for n columns a product misses the true one by at most (n / 8 + 16) · 2^-24 · Σ|w·x|. */
#ifndef COFFER_QUANT_PRODUCT_H
#define COFFER_QUANT_PRODUCT_H

#include "coffer/quant.h"
#include "quant/quant.h"

/* Computes the layout of a caller's tensor and checks the size of its payload. */
coffer_status coffer__quant_take_payload(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                         coffer_error *err);

/* Vectors that one pass over the weights serves. */
#define COFFER__QUANT_MOST_COLUMNS 32

/* A vector as the kernels take it. */
typedef struct coffer__quant_vector {
    const float *numbers;
    const float *folded; /* the result of coffer__quant_fold; NULL for types without folding */
} coffer__quant_vector;

/* Whether the kernels of a type want the numbers of a vector in an order of their own as well. */
bool coffer__quant_folds(const coffer__quant_layout *layout);
/* Puts them into that order: once, for all rows. out : cols numbers. */
void coffer__quant_fold(float *out, const coffer__quant_layout *layout, const float *numbers);

/* y[i] = row first + i times x, for count rows. */
void coffer__quant_matvec(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const coffer__quant_vector *x, uint64_t first, uint64_t count);

/* Rows and vectors that are multiplied at a time. */
#define COFFER__QUANT_ROWS 2
#define COFFER__QUANT_VECTORS 4

/* Where the products of rows and vectors go: y[row · row_stride + vector · vector_stride]. */
typedef struct coffer__quant_products {
    float *y;
    size_t row_stride, vector_stride;
} coffer__quant_products;

/* Rows [first, first + count) times vectors, into the first `count` rows of out. x : columns vectors of cols
 * numbers, one after the other. room : for COFFER__QUANT_ROWS rows of cols numbers. */
void coffer__quant_matmul(const coffer__quant_products *out, const coffer__quant_layout *layout,
                          const uint8_t *payload, const float *x, uint32_t columns, uint64_t first,
                          uint64_t count, float *room);

/* ---- Kernels ---- */

typedef struct coffer__quant_dots {
    float (*dot[COFFER__QUANT_TYPE_COUNT])(const coffer__quant_run *run, const coffer__quant_vector *x);
    /* NULL for types without folding. */
    void (*fold[COFFER__QUANT_TYPE_COUNT])(float *out, const float *numbers, size_t count);
    /* Each row of numbers with each vector. */
    void (*tile)(float out[COFFER__QUANT_ROWS][COFFER__QUANT_VECTORS],
                 const float *const rows[COFFER__QUANT_ROWS], const float *const x[COFFER__QUANT_VECTORS],
                 size_t count);
} coffer__quant_dots;

extern const coffer__quant_dots coffer__quant_dots_generic;
extern const coffer__quant_dots coffer__quant_dots_avx2;
extern const coffer__quant_dots coffer__quant_dots_avx512;
extern const coffer__quant_dots coffer__quant_dots_neon;

#endif
