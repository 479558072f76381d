/* The tensors of one or more sets that are written to a new file, and their new types. */
#ifndef COFFER_CONVERT_TENSOR_SELECTION_H
#define COFFER_CONVERT_TENSOR_SELECTION_H

#include "coffer/report.h"
#include "convert/tensors/tensors.h"

typedef struct coffer__chosen_tensor {
    const coffer_tensors *set;
    size_t index; /* in the set */
    const coffer_tensor *tensor;
    coffer_dtype dtype; /* what it becomes; that of the tensor, COFFER_DTYPE_NONE included, when it stays */
    bool as_is;         /* copy the bytes of the payload */
    bool quantize;      /* dtype is a quantized one, and the tensor has to become it */
    bool decoded;       /* becomes F32 only because the new file does not have its type */
    bool repack;        /* dtype is a quantized one with the same codes and scales as the tensor's blocks */
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

/* Chooses a quantized type of ours for each decoded tensor whose blocks it holds exactly. Reads the payloads
 * of the types that may qualify. */
coffer_status coffer__selection_keep_blocks(coffer__selection *selection, coffer_error *err);

/* ---- tensor_notes.c: what the new file does not keep as it was ---- */

typedef struct coffer__type_change {
    const char *from, *to;
    const char *how; /* "decoded to" */
    uint64_t tensors, before, after;
} coffer__type_change;

/* Totals by types; what does not fit is added to the last one. */
typedef struct coffer__type_changes {
    coffer__type_change items[32];
    size_t count;
} coffer__type_changes;

void coffer__type_changes_add(coffer__type_changes *changes, const coffer_tensor *tensor, const char *how,
                              const char *to, uint64_t after);
/* A note for each. notes : may be NULL. */
void coffer__type_changes_note(coffer_report *notes, const coffer__type_changes *changes);
/* The same for the types of a selection. */
void coffer__selection_note(coffer_report *notes, const coffer__selection *selection);

/* "f16", "bf16", "f32", "keep". */
coffer_status coffer__selection_cast(coffer_dtype *out, const char *text, coffer_error *err);

#endif
