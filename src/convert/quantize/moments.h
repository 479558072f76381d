/* Second moments of the inputs of layers, found by tensor name: a file with two tensors for each layer,
 * NAME.moments, the sum of xᵀx over all samples (columns × columns), and NAME.count, their number. */
#ifndef COFFER_CONVERT_MOMENTS_H
#define COFFER_CONVERT_MOMENTS_H

#include "coffer/report.h"
#include "convert/tensors/tensors.h"
#include "quant/quant_calibrate.h"

#define COFFER__MOMENTS_SUMS ".moments"
#define COFFER__MOMENTS_COUNT ".count"

typedef struct coffer__moments coffer__moments;

/* Any file of tensors. COFFER_E_MISSING when it contains no moments. */
coffer_status coffer__moments_open(coffer__moments **out, const char *path, const coffer_limits *limits,
                                   coffer_error *err);
void coffer__moments_close(coffer__moments *moments);
/* The file's name without its folder. */
const char *coffer__moments_source(const coffer__moments *moments);

/* True when the file has moments for the tensor, by its name or its name without ".weight", from at least one
 * sample. */
coffer_status coffer__moments_has(bool *out, const coffer__moments *moments, const char *name,
                                  coffer_error *err);
/* The mean square of each column's input (coffer__free); NULL when the file has none. */
coffer_status coffer__moments_read_diagonal(float **out, const coffer__moments *moments, const char *name,
                                            uint64_t columns, coffer_error *err);
/* Reads, checks and factors; .columns is 0 when the file has none. COFFER_E_SIZE_MISMATCH for another number
 * of columns, COFFER_E_BAD_VALUE for a matrix that is not finite, symmetric and positive semidefinite,
 * COFFER_E_LIMIT when 8·columns² bytes are more than limits.memory_bytes. damping : as in the options. */
coffer_status coffer__moments_read(coffer__quant_moments *out, coffer__moments *moments, const char *name,
                                   uint64_t columns, double damping, coffer__work *work, coffer_error *err);
/* Adds a list of the layers that no tensor has used. */
void coffer__moments_describe_unused(coffer_node *out, const char *key, const coffer__moments *moments);

#endif
