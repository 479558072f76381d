/* One tensor, or some of its rows, as a file for other programs. */
#ifndef COFFER_CONVERT_TENSOR_OUT_H
#define COFFER_CONVERT_TENSOR_OUT_H

#include "convert/tensors/tensors.h"

typedef enum coffer__tensors_as {
    COFFER__TENSOR_NPY,
    COFFER__TENSOR_SAFETENSORS,
    COFFER__TENSOR_CSV,
    COFFER__TENSOR_RAW,
    COFFER__TENSOR_AS_COUNT
} coffer__tensors_as;

typedef struct coffer__tensors_out {
    const coffer_tensors *set;
    size_t index;
    coffer__tensors_as as;
    coffer_dtype dtype; /* of the elements that are written; COFFER_DTYPE_NONE: the payload unchanged */
    uint64_t first, row_count; /* along the first dimension; all of it for a scalar */
    const char *path;          /* "-" = standard output */
    bool replace;
} coffer__tensors_out;

/* The type that elements of `dtype` have in such a file: NumPy has no bfloat16, but float32 holds it exactly.
 * COFFER_DTYPE_NONE when they can only be had as they are. */
coffer_dtype coffer__tensors_written_as(coffer__tensors_as as, coffer_dtype dtype);
uint64_t coffer__tensors_rows(const coffer_tensor *tensor); /* the first dimension; 1 for a scalar */
/* progress : may be NULL. */
coffer_status coffer__tensors_write(const coffer__tensors_out *job, const coffer_progress *progress,
                                    coffer_error *err);

#endif
