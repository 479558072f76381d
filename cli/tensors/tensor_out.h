/* One tensor, or some of its rows, as a file for other programs. */
#ifndef COFFER_CLI_TENSOR_OUT_H
#define COFFER_CLI_TENSOR_OUT_H

#include "cli.h"

typedef enum tensor_as { TENSOR_NPY, TENSOR_SAFETENSORS, TENSOR_CSV, TENSOR_RAW, TENSOR_AS_COUNT } tensor_as;

typedef struct tensor_out {
    const coffer_tensors *set;
    size_t index;
    tensor_as as;
    coffer_dtype dtype;        /* of the elements that are written; COFFER_DTYPE_NONE: the payload as it is */
    uint64_t first, row_count; /* along the first dimension; all of it for a scalar */
    const char *path;          /* "-" = standard output */
    bool replace;
} tensor_out;

/* The type that elements of `dtype` have in such a file: NumPy has no bfloat16, but float32 holds it exactly.
 * COFFER_DTYPE_NONE when they can only be had as they are. */
coffer_dtype tensor_written_as(tensor_as as, coffer_dtype dtype);
uint64_t tensor_rows(const coffer_tensor *tensor); /* the first dimension; 1 for a scalar */
coffer_status tensor_write(const tensor_out *job, const coffer_progress *progress, coffer_error *err);

#endif
