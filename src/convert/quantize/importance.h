/* The importance of the columns of tensors: vectors from a file, found by tensor name. */
#ifndef COFFER_CONVERT_IMPORTANCE_H
#define COFFER_CONVERT_IMPORTANCE_H

#include "convert/tensors/tensors.h"

typedef struct coffer__importance coffer__importance;

/* A NumPy array (for all tensors), .npz, safetensors or another set of vectors, or an importance matrix of
 * llama.cpp, old or new. */
coffer_status coffer__importance_open(coffer__importance **out, const char *path, const coffer_limits *limits,
                                      coffer_error *err);
void coffer__importance_close(coffer__importance *importance);
/* The file's name without its folder. */
const char *coffer__importance_source(const coffer__importance *importance);

/* True when the file has a vector for the tensor, by its name or its name without ".weight". */
bool coffer__importance_has(const coffer__importance *importance, const char *name);
/* The vector, a number for each column (coffer__free); NULL when the file has none, or nothing was
 * counted. COFFER_E_SIZE_MISMATCH when it has another length, COFFER_E_BAD_VALUE for numbers below 0 or
 * not finite. */
coffer_status coffer__importance_read(float **out, const coffer__importance *importance, const char *name,
                                      uint64_t columns, coffer_error *err);

/* The tensor "blk.0.up.weight", then "blk.0.up", each followed by `end`. SIZE_MAX when neither exists, or
 * without memory. */
size_t coffer__importance_find(const coffer_tensors *set, const char *name, const char *end);

/* ---- Importance matrices of llama.cpp in their first layout: no magic, little-endian ----
 *
 *   i32 entries | for each: i32 length, name | i32 calls | i32 values | f32 × values, calls times the mean
 *   at the end of a complete file: i32 calls of all | i32 length, name of the data set
 *
 * Newer matrices are GGUF files with two tensors for each name: NAME.in_sum2, the sums of squares, and
 * NAME.counts, their divisors. */

#define COFFER__IMATRIX_SUMS ".in_sum2"
#define COFFER__IMATRIX_COUNTS ".counts"

/* Reads the first layout as a set of vectors. */
extern const coffer__tensors_reader coffer__tensors_imatrix;
/* The divisor of the vector; 0 when nothing was counted. */
uint32_t coffer__imatrix_calls(const coffer_tensors *set, size_t tensor);

#endif
