/* The table of the module coffer-cuda, and the payloads that its functions take. The rest of the library sees
 * CUDA through this header alone. */
#ifndef COFFER_GPU_GPU_H
#define COFFER_GPU_GPU_H

#include "base/module.h"
#include "quant/quant.h"

/* A payload in memory of the GPU. */
typedef struct coffer__gpu_payload {
    const uint8_t *parts[COFFER__QUANT_PART_COUNT]; /* NULL for an empty one */
    uint64_t rows, cols;
    uint64_t blocks_per_row, supers_per_row; /* 0 for types without them */
    int type;                                /* COFFER__QUANT_Q8 … */
} coffer__gpu_payload;

/* Where products go: y[row · row_stride + vector · vector_stride]. */
typedef struct coffer__gpu_products {
    float *y;
    uint64_t row_stride, vector_stride;
} coffer__gpu_products;

typedef struct coffer__gpu_module {
    coffer__module common;
    coffer_status (*device_count)(uint32_t *out, coffer_error *err);
    /* Rows [first, first + count), which are not empty, as F32, F16 or BF16. */
    coffer_status (*decode)(void *out, coffer_dtype as, const coffer__gpu_payload *payload, uint64_t first,
                            uint64_t count, void *stream, coffer_error *err);
    /* x : `columns` vectors of cols numbers, one after the other. rows, cols and columns are not 0. */
    coffer_status (*product)(const coffer__gpu_products *out, const coffer__gpu_payload *payload,
                             const float *x, uint32_t columns, void *stream, coffer_error *err);
    /* Memory that the GPU copies from without the processor's help. */
    coffer_status (*host_alloc)(void **out, size_t size, coffer_error *err);
    void (*host_free)(void *memory, size_t size); /* may keep it for the next call */
    /* Copies such memory to the GPU and waits until it may be written again. */
    coffer_status (*upload)(void *out, const void *from, size_t size, void *stream, coffer_error *err);
} coffer__gpu_module;

#endif
