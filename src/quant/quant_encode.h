/* Encoding: rows of numbers become scales and codes.
 *
 *   fit      looks for the scales with the least squared error: a grid of them for each block, then those
 * that the file can hold nearby absmax   what the format's first program does: the largest magnitude becomes
 * the largest code exact    the least error that the type allows, by trying everything; slow */
#ifndef COFFER_QUANT_ENCODE_H
#define COFFER_QUANT_ENCODE_H

#include "quant/quant.h"

typedef enum coffer__quant_method {
    COFFER__QUANT_FIT,
    COFFER__QUANT_ABSMAX,
    COFFER__QUANT_EXACT
} coffer__quant_method;

/* Rows of a q* or k* tensor. */
typedef struct coffer__quant_rows {
    const coffer__quant_type *type;
    const float *values;  /* rows × cols, finite */
    const float *weights; /* importance of each column, finite and not negative; NULL = all the same */
    uint64_t rows, cols;
} coffer__quant_rows;

/* Where the rows begin in each region of the payload. */
typedef struct coffer__quant_output {
    uint8_t *parts[COFFER__QUANT_PART_COUNT];
} coffer__quant_output;

/* Every byte that belongs to the rows is written, and the same ones on every processor. */
void coffer__quant_encode_rows(const coffer__quant_output *out, const coffer__quant_rows *rows,
                               coffer__quant_method method);

/* Largest code; −largest is the smallest that is written. */
static inline int coffer__quant_largest_code(const coffer__quant_type *type)
{
    return (1 << (type->bits - 1)) - 1;
}

/* ---- Between the files ---- */

#define COFFER__QUANT_SUPER_BLOCKS (COFFER__QUANT_SUPER / COFFER__QUANT_BLOCK)

/* The numbers of a block with their weights; past the end of the row both are 0. */
typedef struct coffer__quant_block {
    float values[COFFER__QUANT_BLOCK];
    float weights[COFFER__QUANT_BLOCK];
} coffer__quant_block;

/* A unit shares a scale: a block of a q* type, or the eight blocks of a super of a k* type. */
typedef struct coffer__quant_unit {
    uint16_t scale;                           /* f16 */
    uint8_t subs[COFFER__QUANT_SUPER_BLOCKS]; /* k* */
    int8_t codes[COFFER__QUANT_SUPER_BLOCKS][COFFER__QUANT_BLOCK];
} coffer__quant_unit;

/* Sixteen blocks interleaved, so that a vector has one element of each. */
#define COFFER__QUANT_LANES 16

typedef struct coffer__quant_lanes {
    _Alignas(64) float values[COFFER__QUANT_BLOCK][COFFER__QUANT_LANES];
    _Alignas(64) float weights[COFFER__QUANT_BLOCK][COFFER__QUANT_LANES];
    bool weighted;
} coffer__quant_lanes;

typedef struct coffer__quant_fitted {
    uint16_t scales[COFFER__QUANT_LANES]; /* of each block; of a super in its first lane */
    uint8_t subs[COFFER__QUANT_LANES];
    _Alignas(64) int8_t codes[COFFER__QUANT_BLOCK][COFFER__QUANT_LANES];
} coffer__quant_fitted;

static inline void coffer__quant_pack_codes(uint8_t *out, const int8_t codes[COFFER__QUANT_BLOCK],
                                            unsigned bits)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i += 8, out += bits) {
        uint64_t packed = 0;
        for (size_t j = 0; j < 8; j++)
            packed |= ((uint64_t)(uint8_t)codes[i + j] & mask) << (bits * j);
        for (unsigned byte = 0; byte < bits; byte++)
            out[byte] = (uint8_t)(packed >> (8 * byte));
    }
}

/* All the rows, by the method absmax. */
typedef void (*coffer__quant_absmax)(const coffer__quant_output *out, const coffer__quant_rows *rows);
void coffer__quant_absmax_generic(const coffer__quant_output *out, const coffer__quant_rows *rows);
void coffer__quant_absmax_avx2(const coffer__quant_output *out, const coffer__quant_rows *rows);
void coffer__quant_absmax_avx512(const coffer__quant_output *out, const coffer__quant_rows *rows);

typedef void (*coffer__quant_fitter)(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                                     const coffer__quant_type *type);
void coffer__quant_fit_generic(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                               const coffer__quant_type *type);
void coffer__quant_fit_avx2(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                            const coffer__quant_type *type);
void coffer__quant_fit_avx512(coffer__quant_fitted *out, const coffer__quant_lanes *lanes,
                              const coffer__quant_type *type);
/* The fitter of the processor. */
coffer__quant_fitter coffer__quant_fitter_in_use(void);
/* Packs a unit into the payload. column : its first. */
void coffer__quant_put_unit(const coffer__quant_output *out, const coffer__quant_rows *rows, uint64_t row,
                            uint64_t column, const coffer__quant_unit *unit);

#endif
