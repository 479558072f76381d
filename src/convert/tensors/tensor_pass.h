/* Work over all elements of a tensor, or of two of the same shape, on all threads. A tensor is cut into
 * pieces that depend on its shape alone, each piece has a result of its own, and the results are merged in
 * the order of the pieces: what comes out does not depend on the number of threads. Memory does not grow with
 * the tensor, but for quantized ones whose rows are longer than a step. */
#ifndef COFFER_CONVERT_TENSOR_PASS_H
#define COFFER_CONVERT_TENSOR_PASS_H

#include "convert/tensors/tensors.h"

/* Elements in hand: of the tensor's own type, or decoded to F32. */
typedef struct coffer__tensors_run {
    const void *elements;
    coffer_dtype dtype;
} coffer__tensors_run;

typedef struct coffer__tensors_pass {
    size_t result_size;
    void (*init)(void *result);
    /* Elements [first, first + count) of the one tensor, or the two. */
    void (*step)(void *result, const void *context, uint64_t first, const coffer__tensors_run *runs,
                 size_t count);
    void (*merge)(void *into, const void *from);
} coffer__tensors_pass;

typedef struct coffer__tensors_workers coffer__tensors_workers;

/* threads : 0 = one per core.     progress : may be NULL.     total : bytes that will be read, for it. */
coffer_status coffer__tensors_workers_new(coffer__tensors_workers **out, uint32_t threads,
                                          const coffer_progress *progress, uint64_t total, coffer_error *err);
void coffer__tensors_workers_free(coffer__tensors_workers *workers);

typedef struct coffer__tensors_place {
    const coffer_tensors *set;
    size_t tensor;
} coffer__tensors_place;

/* result : initialized and filled here. place_count : 1, or 2 tensors of the same number of elements. */
coffer_status coffer__tensors_pass_run(void *result, coffer__tensors_workers *workers,
                                       const coffer__tensors_pass *pass, const void *context,
                                       const coffer__tensors_place *places, size_t place_count,
                                       coffer_error *err);
/* True when the globs select a tensor; NULL : all, none. */
bool coffer__tensors_is_wanted(const coffer_tensor *tensor, const char *include, const char *exclude);
/* Whether two payloads of the same size are the same bytes. */
coffer_status coffer__tensors_same_bytes(bool *same, coffer__tensors_workers *workers,
                                         const coffer__tensors_place places[2], coffer_error *err);

#endif
