/* Calibrated encoding: codes are chosen for the least error of a layer's output, not of its weights.
 *
 * With the second moments H = XᵀX of the layer's inputs, the output error of a row of weights with errors e
 * is eHeᵀ. H is factored into L·D·Lᵀ, L a unit lower triangle, so that the error is the sum of Dₚ(tₚ − ŵₚ)²
 * over the columns p, where tₚ = wₚ + Σ eⱼLⱼₚ over the columns j after p. Columns are encoded from the last
 * to the first, each rounded to what is nearest to tₚ: it makes up for the errors of those before it. Then,
 * for types with few bits, each code is chosen again with all others held fixed. */
#ifndef COFFER_QUANT_CALIBRATE_H
#define COFFER_QUANT_CALIBRATE_H

#include "base/work.h"
#include "quant/quant_encode.h"

/* ---- The moments of one layer, factored ---- */

typedef struct coffer__quant_moments {
    size_t columns;
    uint32_t *order; /* the column at each position: supers, blocks and columns that count more come later */
    double *matrix;  /* columns × columns, by position, before it is factored */
    float *factored; /* L below the diagonal, H on it and above, in the memory of the matrix */
    float *pivots;   /* D, by position */
    double damping;  /* is part of H's diagonal */
} coffer__quant_moments;

/* Memory for the moments, and the order of the columns. diagonal : of H, finite and not negative. The caller
 * fills .matrix by position, then factors it. 8·columns² bytes. */
coffer_status coffer__quant_moments_new(coffer__quant_moments *out, const double *diagonal, size_t columns,
                                        coffer_error *err);
/* damping : share of the diagonal's mean that is added to the diagonal, above 0. COFFER_E_BAD_VALUE when the
 * matrix is not positive definite all the same. The result is the same for any number of threads. */
coffer_status coffer__quant_moments_factor(coffer__quant_moments *moments, double damping, coffer__work *work,
                                           coffer_error *err);
void coffer__quant_moments_free(coffer__quant_moments *moments); /* its members, not itself */

/* ---- Encoding ---- */

typedef struct coffer__quant_calibrated {
    const coffer__quant_moments *moments;
    const coffer__quant_output *out; /* of q* and k* */
    int8_t *codes;                   /* of int8 and int4: rows × cols */
    float whole_scale;               /* of int8 and int4 */
    void *scratch;                   /* coffer__quant_calibrate_scratch bytes, aligned as a float is */
} coffer__quant_calibrated;

/* Output errors and outputs of all rows, squared, without damping. */
typedef struct coffer__quant_output_error {
    double error, signal;
} coffer__quant_output_error;

/* UINT64_MAX when the number does not fit. */
uint64_t coffer__quant_calibrate_scratch(uint64_t rows, uint64_t cols);
/* Encodes all rows; .weights are ignored. The same bytes on every processor. */
coffer__quant_output_error coffer__quant_calibrate_rows(const coffer__quant_calibrated *job,
                                                        const coffer__quant_rows *rows);

/* ---- Kernels: one file for each instruction set; lanes are rows ---- */

#define COFFER__QUANT_TRIALS 9

/* Encoding a block. */
typedef struct coffer__quant_trial {
    const float *targets;                                    /* count × 16, by position */
    const float *values;                                     /* count × 16: the weights themselves */
    const float *factor;                                     /* at the first position, in both directions */
    const float *pivots;                                     /* count */
    size_t stride, count;                                    /* of the factor's rows; positions, up to 32 */
    float scales[COFFER__QUANT_TRIALS][COFFER__QUANT_LANES]; /* that may be used */
    size_t scale_count;
    float largest; /* code */
    /* Results, for the scale with the least error in each lane. */
    uint8_t best[COFFER__QUANT_LANES];
    float *errors; /* count × 16 */
    int8_t *codes; /* count × 16 */
} coffer__quant_trial;

/* Choosing the codes of a block again. */
typedef struct coffer__quant_refinement {
    const float *slopes;  /* count × 16: eH, without the block's own part */
    const float *moments; /* H, at the first position */
    size_t stride, count;
    const float *scale; /* 16 */
    float largest;
    float *errors; /* changed */
    int8_t *codes; /* changed */
} coffer__quant_refinement;

/* A matrix that is read by rows, or by columns. */
typedef struct coffer__quant_factors {
    const float *at;
    size_t down, across; /* to the next row; to the next column */
} coffer__quant_factors;

typedef struct coffer__quant_calibrate_kernels {
    void (*encode_block)(coffer__quant_trial *trial);
    void (*refine_block)(const coffer__quant_refinement *block);
    /* sums += Σ errors × factors : width × 16 sums, count × 16 errors, factors count × width. */
    void (*add_products)(float *sums, size_t width, const float *errors, size_t count,
                         const coffer__quant_factors *factors);
    /* out[i·stride + j] −= Σ a[i·stride + k]·b[j·stride + k], count products : four rows of a, two of b. */
    void (*subtract_products)(double *out, const double *a, const double *b, size_t stride, size_t count);
} coffer__quant_calibrate_kernels;

extern const coffer__quant_calibrate_kernels coffer__quant_calibrate_generic;
extern const coffer__quant_calibrate_kernels coffer__quant_calibrate_avx2;
extern const coffer__quant_calibrate_kernels coffer__quant_calibrate_avx512;
const coffer__quant_calibrate_kernels *coffer__quant_calibrate_in_use(void);

#endif
