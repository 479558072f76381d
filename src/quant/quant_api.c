/* The public calls on payloads in memory. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"
#include "coffer/quant.h"
#include "quant/quant.h"
#include "quant/quant_encode.h"
#include "quant/quant_product.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_quant_tensor, COFFER_QUANT_TENSOR_INIT)
COFFER__INIT_FUNCTION(coffer_quant_encode_opts, COFFER_QUANT_ENCODE_OPTS_INIT)

static coffer_status take_tensor(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                 coffer_error *err)
{
    coffer_quant_tensor given = COFFER_QUANT_TENSOR_INIT;
    coffer_status status = coffer__take_options(&given, sizeof given, tensor, err);
    if (status)
        return status;
    uint64_t dims[2] = { given.rows, given.cols };
    return coffer__quant_plan(out, given.dtype, 2, dims, given.activations, err);
}

coffer_status coffer__quant_take_payload(coffer__quant_layout *out, const coffer_quant_tensor *tensor,
                                         coffer_error *err)
{
    coffer_status status = take_tensor(out, tensor, err);
    if (status)
        return status;
    if (tensor->size < out->size)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a %s payload of %" PRIu64 " rows of %" PRIu64 " columns has %" PRIu64
                            " bytes, only %zu were given",
                            coffer_dtype_name(tensor->dtype), tensor->rows, tensor->cols, out->size,
                            tensor->size);
    return COFFER_OK;
}

coffer_status coffer_quant_size(uint64_t *out, const coffer_quant_tensor *tensor, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = take_tensor(&layout, tensor, err);
    if (!status)
        *out = layout.size;
    return status;
}

coffer_status coffer__quant_check_decode(coffer_dtype as, uint64_t rows, uint64_t first, uint64_t count,
                                         coffer_error *err)
{
    if (first > rows || count > rows - first)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " rows starting at %" PRIu64 " requested, the tensor has %" PRIu64,
                            count, first, rows);
    if (as != COFFER_DTYPE_F32 && as != COFFER_DTYPE_F16 && as != COFFER_DTYPE_BF16)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "quantized tensors are decoded to f32, f16 or bf16, not %s",
                            coffer_dtype_name(as));
    return COFFER_OK;
}

coffer_status coffer_quant_decode(void *out, coffer_dtype as, const coffer_quant_tensor *tensor,
                                  uint64_t first, uint64_t count, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_take_payload(&layout, tensor, err);
    if (!status)
        status = coffer__quant_check_decode(as, layout.rows, first, count, err);
    if (status)
        return status;
    if (as == COFFER_DTYPE_F32)
        coffer__quant_decode_rows(out, &layout, tensor->payload, first, count);
    else
        coffer__quant_decode_rows_as(out, as, &layout, tensor->payload, first, count);
    return COFFER_OK;
}

static coffer_status check_values(const float *values, const coffer__quant_layout *layout, coffer_error *err)
{
    for (uint64_t i = 0; i < layout->rows * layout->cols; i++) {
        if (!isfinite(values[i]))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "row %" PRIu64 ", column %" PRIu64 " is %s", i / layout->cols,
                                i % layout->cols, isnan(values[i]) ? "NaN" : "infinite");
    }
    return COFFER_OK;
}

static coffer_status check_weights(const float *weights, uint64_t cols, coffer_error *err)
{
    for (uint64_t i = 0; weights && i < cols; i++) {
        if (!(weights[i] >= 0.0f) || isinf(weights[i]))
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "the importance of column %" PRIu64 " is %g", i, (double)weights[i]);
    }
    return COFFER_OK;
}

coffer_status coffer_quant_encode(void *payload, const coffer_quant_tensor *tensor, const float *values,
                                  const coffer_quant_encode_opts *opts, coffer_error *err)
{
    coffer_quant_encode_opts options = COFFER_QUANT_ENCODE_OPTS_INIT;
    coffer__quant_layout layout;
    coffer__quant_output out;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = take_tensor(&layout, tensor, err);
    if (status)
        return status;
    if (layout.type->family == COFFER__QUANT_WHOLE)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s has a single scale per tensor and cannot be encoded by rows",
                            coffer_dtype_name(tensor->dtype));
    status = check_values(values, &layout, err);
    if (!status)
        status = check_weights(options.weights, layout.cols, err);
    if (status)
        return status;
    memset(payload, 0, (size_t)layout.size);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = (uint8_t *)payload + layout.regions[i].offset;
    coffer__quant_rows rows = { layout.type, values, options.weights, layout.rows, layout.cols };
    coffer__quant_encode_rows(&out, &rows, (coffer__quant_method)options.method);
    return COFFER_OK;
}

/* Products with quantized tensors on several threads. */

/* Rows that a thread takes at a time: long enough to be worth it, short enough to share. */
#define ROWS_AT_A_TIME 64
/* Below this many rows, reordering x costs more than it saves. */
#define ROWS_WORTH_FOLDING 8

struct coffer_quant_workers {
    coffer__pool *pool;
};

COFFER__INIT_FUNCTION(coffer_quant_workers_opts, COFFER_QUANT_WORKERS_OPTS_INIT)

coffer_status coffer_quant_workers_new(coffer_quant_workers **out, const coffer_quant_workers_opts *opts,
                                       coffer_error *err)
{
    coffer_quant_workers_opts options = COFFER_QUANT_WORKERS_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_quant_workers *workers = coffer__calloc(1, sizeof *workers);
    if (!workers)
        return coffer__fail_no_memory(err, sizeof *workers);
    status = coffer__pool_new(&workers->pool, options.threads, err);
    if (status) {
        coffer__free(workers);
        return status;
    }
    *out = workers;
    return COFFER_OK;
}

void coffer_quant_workers_free(coffer_quant_workers *workers)
{
    if (!workers)
        return;
    coffer__pool_free(workers->pool);
    coffer__free(workers);
}

typedef struct product {
    float *y;
    const coffer__quant_layout *layout;
    const uint8_t *payload;
    coffer__quant_vector x;
    uint32_t columns;
    float *rooms; /* of matmul: some rows for each thread */
} product;

static coffer_status multiply_rows(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const product *job = context;
    uint64_t first = index * ROWS_AT_A_TIME, left = job->layout->rows - first;
    uint64_t count = left < ROWS_AT_A_TIME ? left : ROWS_AT_A_TIME;
    (void)err;
    if (job->rooms)
        coffer__quant_matmul(job->y + first * job->columns, job->layout, job->payload, job->x.numbers,
                             job->columns, first, count,
                             job->rooms + worker * COFFER__QUANT_ROWS * job->layout->cols);
    else
        coffer__quant_matvec(job->y + first, job->layout, job->payload, &job->x, first, count);
    return COFFER_OK;
}

static coffer_status run_product(product *job, coffer_quant_workers *workers, coffer_error *err)
{
    uint64_t parts = coffer__divide_up(job->layout->rows, ROWS_AT_A_TIME);
    if (workers)
        return coffer__pool_run(workers->pool, parts, multiply_rows, job, err);
    for (uint64_t i = 0; i < parts; i++)
        multiply_rows(job, i, 0, err);
    return COFFER_OK;
}

/* Numbers aligned to 64 bytes: unaligned ones take the kernels twice the time. */
typedef struct aligned_numbers {
    void *memory;
    float *at;
} aligned_numbers;

#define ALIGNED_NUMBERS (64 / sizeof(float))

static uint64_t align_count(uint64_t count)
{
    return coffer__divide_up(count, ALIGNED_NUMBERS) * ALIGNED_NUMBERS;
}

/* count : a few times that of a row, which is in memory as a part of the payload, so it does not overflow. */
static coffer_status new_numbers(aligned_numbers *out, uint64_t count, coffer_error *err)
{
    out->memory = coffer__alloc_array((size_t)count + ALIGNED_NUMBERS, sizeof *out->at);
    if (!out->memory)
        return coffer__fail_no_memory(err, count * sizeof *out->at);
    uintptr_t start = (uintptr_t)out->memory;
    out->at = (float *)(void *)((uint8_t *)out->memory + (-start & 63));
    return COFFER_OK;
}

coffer_status coffer_quant_matvec(float *y, const coffer_quant_tensor *tensor, const float *x,
                                  coffer_quant_workers *workers, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_take_payload(&layout, tensor, err);
    if (status)
        return status;
    product job = { NULL, &layout, tensor->payload, { x, NULL }, 1, NULL };
    job.y = y;
    if (layout.rows < ROWS_WORTH_FOLDING || !layout.cols)
        return run_product(&job, workers, err);
    aligned_numbers copy = { NULL, NULL };
    status = new_numbers(&copy, 2 * align_count(layout.cols), err);
    if (status)
        return status;
    float *folded = copy.at + align_count(layout.cols);
    memcpy(copy.at, x, (size_t)layout.cols * sizeof *x);
    job.x.numbers = copy.at;
    if (coffer__quant_folds(&layout)) {
        coffer__quant_fold(folded, &layout, x);
        job.x.folded = folded;
    }
    status = run_product(&job, workers, err);
    coffer__free(copy.memory);
    return status;
}

coffer_status coffer_quant_matmul(float *y, const coffer_quant_tensor *tensor, const float *x,
                                  uint32_t columns, coffer_quant_workers *workers, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_take_payload(&layout, tensor, err);
    if (status)
        return status;
    if (columns < 1 || columns > COFFER__QUANT_MOST_COLUMNS)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu32 " vectors, matmul takes 1 to %d", columns, COFFER__QUANT_MOST_COLUMNS);
    if (!layout.rows)
        return COFFER_OK;
    uint64_t vectors = align_count(columns * layout.cols);
    uint64_t rows = COFFER__QUANT_ROWS * (workers ? coffer__pool_threads(workers->pool) : 1);
    aligned_numbers copy = { NULL, NULL };
    status = new_numbers(&copy, vectors + rows * layout.cols, err);
    if (status)
        return status;
    memcpy(copy.at, x, (size_t)(columns * layout.cols) * sizeof *x);
    product job = { NULL, &layout, tensor->payload, { copy.at, NULL }, columns, copy.at + vectors };
    job.y = y;
    status = run_product(&job, workers, err);
    coffer__free(copy.memory);
    return status;
}
