/* The tensors of one or more sets that are written to a new file, and their new types. */
#ifndef COFFER_CONVERT_TENSOR_SELECTION_H
#define COFFER_CONVERT_TENSOR_SELECTION_H

#include "convert/tensors/tensors.h"

typedef struct coffer__chosen_tensor {
    const coffer_tensors *set;
    size_t index; /* in the set */
    const coffer_tensor *tensor;
    coffer_dtype dtype; /* what it becomes; that of the tensor, COFFER_DTYPE_NONE included, when it stays */
    bool as_is;         /* copy the bytes of the payload */
    bool quantize;      /* dtype is a quantized one, and the tensor has to become it */
    bool activations;   /* with a zero point */
    uint64_t size;      /* bytes of the new payload */
} coffer__chosen_tensor;

typedef struct coffer__selection {
    coffer__chosen_tensor *items; /* by name, once finished */
    size_t count, capacity;
    uint64_t bytes; /* of all new payloads */
} coffer__selection;

typedef struct coffer__selection_opts {
    coffer_dtype cast; /* real floats of other types become this; COFFER_DTYPE_NONE = keep */
    const char *const *include, *const *exclude;
    size_t include_count, exclude_count;
    bool keep_quantized; /* the new file has the quantized types of ours */
} coffer__selection_opts;

/* Chooses from a set, which must outlive the selection. */
coffer_status coffer__selection_add(coffer__selection *selection, const coffer_tensors *set,
                                    const coffer__selection_opts *opts, coffer_error *err);
/* Sorts. COFFER_E_DUPLICATE when two sets have a tensor of the same name, COFFER_E_INVALID_ARGUMENT when an
 * `include` matches nothing in any of the sets, or nothing is left. */
coffer_status coffer__selection_finish(coffer__selection *selection, const coffer_tensors *const *sets,
                                       size_t set_count, const coffer__selection_opts *opts,
                                       coffer_error *err);
void coffer__selection_free(coffer__selection *selection); /* its items, not itself */

/* "f16", "bf16", "keep". */
coffer_status coffer__selection_cast(coffer_dtype *out, const char *text, coffer_error *err);

#endif
