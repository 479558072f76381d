/* The importance matrices of llama.cpp, in the layout of their first years: no magic, little-endian.
 *
 *   i32 entries | for each: i32 length, name | i32 calls | i32 values | f32 × values, calls times the mean
 *   and behind them, where the file is whole: i32 calls of all | i32 length, name of the data set
 *
 * Newer ones are GGUF files with two tensors for each name: NAME.in_sum2, the sums of squares, and
 * NAME.counts, what to divide them by. */
#ifndef COFFER_CONVERT_IMATRIX_H
#define COFFER_CONVERT_IMATRIX_H

#include "convert/tensors/tensors.h"

#define COFFER__IMATRIX_SUMS ".in_sum2"
#define COFFER__IMATRIX_COUNTS ".counts"

/* The old layout as a set of vectors. */
extern const coffer__tensor_reader coffer__tensors_imatrix;
/* The divisor of the vector; 0 when nothing was counted. */
uint32_t coffer__imatrix_calls(const coffer_tensors *set, size_t tensor);

#endif
