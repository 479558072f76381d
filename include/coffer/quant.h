#ifndef COFFER_QUANT_H
#define COFFER_QUANT_H

#include "coffer/dtype.h"
#include "coffer/error.h"

COFFER_BEGIN_DECLS

/* Decodes, encodes and multiplies quantized payloads in memory. docs/formats/mcf.md describes their bytes.
 * coffer_mcf_quantize (quantize.h) quantizes whole files. */

/* A payload with its type and shape: q8 q4 k6 k4 k3 k2, or int8 int4. */
typedef struct coffer_quant_tensor {
    uint32_t struct_size;
    coffer_dtype dtype;
    uint64_t rows, cols;
    bool activations; /* int8 and int4 with a zero point */
    const void *payload;
    size_t size; /* of the payload in bytes: at least coffer_quant_size */
} coffer_quant_tensor;

#define COFFER_QUANT_TENSOR_INIT                                             \
    {                                                                        \
        sizeof(coffer_quant_tensor), COFFER_DTYPE_NONE, 0, 0, false, NULL, 0 \
    }

COFFER_API void coffer_quant_tensor_init(coffer_quant_tensor *out, uint32_t struct_size);

/* Payload size for the type and shape of a tensor; ignores its payload and size. COFFER_E_BAD_VALUE when the
 * type is not a quantized one, COFFER_E_SIZE_MISMATCH when the size does not fit into 64 bits. */
COFFER_API_STATUS coffer_quant_size(uint64_t *out, const coffer_quant_tensor *tensor, coffer_error *err);

/* Decodes rows [first, first + count) to F32, F16 or BF16; the same bits on every processor. */
COFFER_API_STATUS coffer_quant_decode(void *out, coffer_dtype as, const coffer_quant_tensor *tensor,
                                      uint64_t first, uint64_t count, coffer_error *err);

typedef enum coffer_quant_method {
    COFFER_QUANT_FIT = 0, /* small squared error, by search */
    COFFER_QUANT_ABSMAX,  /* bit for bit as the original program */
    COFFER_QUANT_EXACT,   /* the true optimum; very slow */
    /* Small error of a layer's output: of tensors that were quantized with second moments of their inputs.
     * Only recorded, not a method to ask for. */
    COFFER_QUANT_CALIBRATED
} coffer_quant_method;

typedef struct coffer_quant_encode_opts {
    uint32_t struct_size;
    coffer_quant_method method;
    const float *weights; /* importance of each column, finite and not negative; NULL = all equal */
} coffer_quant_encode_opts;

#define COFFER_QUANT_ENCODE_OPTS_INIT                            \
    {                                                            \
        sizeof(coffer_quant_encode_opts), COFFER_QUANT_FIT, NULL \
    }

COFFER_API void coffer_quant_encode_opts_init(coffer_quant_encode_opts *out, uint32_t struct_size);

/* Encodes rows × cols numbers into a payload of q8 q4 k6 k4 k3 or k2. payload : coffer_quant_size bytes, all
 * written. COFFER_E_BAD_VALUE, with row and column, for a number that is not finite. */
COFFER_API_STATUS coffer_quant_encode(void *payload, const coffer_quant_tensor *tensor, const float *values,
                                      const coffer_quant_encode_opts *opts, coffer_error *err);

/* ---- Products ---- */

/* A pool of threads. It runs one product at a time. */
typedef struct coffer_quant_workers coffer_quant_workers;

typedef struct coffer_quant_workers_opts {
    uint32_t struct_size;
    uint32_t threads; /* 0 = one per core */
} coffer_quant_workers_opts;

#define COFFER_QUANT_WORKERS_OPTS_INIT       \
    {                                        \
        sizeof(coffer_quant_workers_opts), 0 \
    }

COFFER_API void coffer_quant_workers_opts_init(coffer_quant_workers_opts *out, uint32_t struct_size);

/* opts : NULL for defaults. */
COFFER_API_STATUS coffer_quant_workers_new(coffer_quant_workers **out, const coffer_quant_workers_opts *opts,
                                           coffer_error *err);
COFFER_API void coffer_quant_workers_free(coffer_quant_workers *workers);

/* How the numbers of x enter a product. */
typedef enum coffer_quant_inputs {
    COFFER_QUANT_INPUTS_F32 = 0, /* as they are */
    COFFER_QUANT_INPUTS_INT8     /* rounded to 8 bits in blocks of 32: several times as fast */
} coffer_quant_inputs;

typedef struct coffer_quant_product_opts {
    uint32_t struct_size;
    coffer_quant_inputs inputs;
    coffer_quant_workers *workers; /* NULL = use only the calling thread */
    bool by_vector;                /* matmul: y[column · rows + row], one vector after the other as in x */
} coffer_quant_product_opts;

#define COFFER_QUANT_PRODUCT_OPTS_INIT                                          \
    {                                                                           \
        sizeof(coffer_quant_product_opts), COFFER_QUANT_INPUTS_F32, NULL, false \
    }

COFFER_API void coffer_quant_product_opts_init(coffer_quant_product_opts *out, uint32_t struct_size);

/* y = W·x, directly from the payload. y : rows numbers. x : cols numbers. opts : NULL for
 * defaults. The number of threads does not change the result.
 *
 * INPUTS_F32: sums are float32, their order depends on the processor. For n columns
 *   |error| <= (n / 8 + 16) · 2^-24 · Σ|w·x|
 *
 * INPUTS_INT8: each block of 32 numbers of x is replaced by s·q, with s = max|x| / 127 and whole numbers
 * q = x / s rounded to nearest. Codes times q are summed in integers, blocks in float32 in a fixed order: all
 * processors give the same bits. With s of the block that a column is in,
 *   |error| <= Σ|w|·s · 0.50002 + (n / 32 + 8) · 2^-24 · Σ|w|·(|x| + s)
 * where |w| of int8 and int4 with a zero point is scale · (|code| + |zero point|). A block whose numbers are
 * all below 2^-119 counts as zeros. A block with a number that is not finite makes its products NaN. */
COFFER_API_STATUS coffer_quant_matvec(float *y, const coffer_quant_tensor *tensor, const float *x,
                                      const coffer_quant_product_opts *opts, coffer_error *err);
/* The same for any number of vectors, stored one after the other in x; y[row · columns + column]. A product
 * may differ from that of coffer_quant_matvec, or with another number of vectors, within these bounds. */
COFFER_API_STATUS coffer_quant_matmul(float *y, const coffer_quant_tensor *tensor, const float *x,
                                      uint32_t columns, const coffer_quant_product_opts *opts,
                                      coffer_error *err);

COFFER_END_DECLS

#endif
