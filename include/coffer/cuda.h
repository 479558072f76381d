#ifndef COFFER_CUDA_H
#define COFFER_CUDA_H

#include "coffer/progress.h"
#include "coffer/quant.h"
#include "coffer/tensors.h"

COFFER_BEGIN_DECLS

/* Quantized payloads on NVIDIA GPUs. The functions need the module coffer-cuda, which docs/gpu.md describes:
 * without it, or when its driver is too old, they return COFFER_E_UNSUPPORTED and say what to install.
 *
 * Memory of a GPU comes from cudaMalloc or from a framework. The payload of a coffer_quant_tensor and the
 * vectors are on the same GPU as the output; addresses aligned to 16 bytes are fastest, others work. A stream
 * is a cudaStream_t; NULL is the default stream. Functions that take one start the work and return; what
 * fails on the GPU afterwards is reported by the next call of CUDA.
 * Thread safety: all functions may run concurrently. */

/* GPUs that CUDA can use; 0 is not an error. */
COFFER_API_STATUS coffer_cuda_device_count(uint32_t *out, coffer_error *err);

/* Decodes rows [first, first + count) to F32, F16 or BF16, with the bits of coffer_quant_decode; a NaN may
 * have other bits. out, tensor->payload : on the GPU. */
COFFER_API_STATUS coffer_cuda_decode(void *out, coffer_dtype as, const coffer_quant_tensor *tensor,
                                     uint64_t first, uint64_t count, void *stream, coffer_error *err);

/* y = W·x for `columns` vectors, stored one after the other in x. by_vector : y[column · rows + row] instead
 * of y[row · columns + column]. y, x, tensor->payload : on the GPU. Up to 16 vectors share a pass over the
 * weights. The same input has the same result, bit for bit, on every run of one kind of GPU.
 *
 * The error of a product of n columns is at most (n / 8 + 32) · 2^-24 · Σ|w·x| + 2^-50 · X · Σ|w|, where X
 * is the largest |x| among the 256 columns around each w.
 *
 * Weights may be read before the product ahead in the stream has ended: y of one product is not the payload
 * of the next. */
COFFER_API_STATUS coffer_cuda_matmul(float *y, const coffer_quant_tensor *tensor, const float *x,
                                     uint32_t columns, bool by_vector, void *stream, coffer_error *err);
/* The same for one vector. */
COFFER_API_STATUS coffer_cuda_matvec(float *y, const coffer_quant_tensor *tensor, const float *x,
                                     void *stream, coffer_error *err);

typedef struct coffer_cuda_load_opts {
    uint32_t struct_size;
    void *stream;     /* the copies are a part of it */
    uint32_t threads; /* that read and compare checksums; 0 = one per core */
    const coffer_progress *progress;
} coffer_cuda_load_opts;

#define COFFER_CUDA_LOAD_OPTS_INIT                   \
    {                                                \
        sizeof(coffer_cuda_load_opts), NULL, 0, NULL \
    }

COFFER_API void coffer_cuda_load_opts_init(coffer_cuda_load_opts *out, uint32_t struct_size);

/* Loads the payload of a tensor, as it is stored, to the GPU. Reading, comparing checksums and copying
 * overlap, through 32 MiB of pinned memory. Waits for the last copy. out : on the GPU. size : of `out`; at
 * least the tensor's. opts : NULL for defaults. On failure the content of `out` is undefined. */
COFFER_API_STATUS coffer_cuda_load(void *out, size_t size, const coffer_tensors *set, size_t tensor,
                                   const coffer_cuda_load_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
