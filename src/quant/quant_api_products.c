/* The public calls for products: checks, memory, and rows on several threads. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"
#include "coffer/quant.h"
#include "quant/quant_product.h"
#include "quant/quant_rounded.h"

#include <inttypes.h>
#include <string.h>

/* Rows that a thread takes at a time: long enough to be worth it, short enough to share. */
#define ROWS_AT_A_TIME COFFER__QUANT_ROUNDED_ROWS
/* Below this many rows, reordering x costs more than it saves. */
#define ROWS_WORTH_FOLDING 8
/* Fewer rounded vectors are faster one after the other. The same for all processors, because the two ways
 * differ in the order of sums. */
#define VECTORS_WORTH_A_PANEL 9

struct coffer_quant_workers {
    coffer__pool *pool;
};

COFFER__INIT_FUNCTION(coffer_quant_workers_opts, COFFER_QUANT_WORKERS_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_quant_product_opts, COFFER_QUANT_PRODUCT_OPTS_INIT)

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

/* ---- Tasks ---- */

typedef struct product {
    coffer__quant_products out; /* of the vectors at hand */
    const coffer__quant_layout *layout;
    const uint8_t *payload;
    uint32_t columns;
    coffer_quant_workers *workers;
    /* Vectors as they are. */
    coffer__quant_vector x;
    float *row_rooms; /* COFFER__QUANT_ROWS rows of numbers for each thread */
    /* Rounded vectors. */
    const float *numbers; /* what is rounded */
    const coffer__quant_rounded *kernels;
    coffer__quant_panel *panels;
    size_t panel_vectors;
    coffer__quant_room *rooms; /* one for each thread */
} product;

static uint32_t thread_count(const product *job)
{
    return job->workers ? coffer__pool_threads(job->workers->pool) : 1;
}

static coffer_status run_tasks(product *job, uint64_t count, coffer__pool_task task, coffer_error *err)
{
    if (job->workers)
        return coffer__pool_run(job->workers->pool, count, task, job, err);
    for (uint64_t i = 0; i < count; i++)
        task(job, i, 0, err);
    return COFFER_OK;
}

static coffer_status run_rows(product *job, coffer__pool_task task, coffer_error *err)
{
    return run_tasks(job, coffer__divide_up(job->layout->rows, ROWS_AT_A_TIME), task, err);
}

/* The rows of a task. */
typedef struct task_rows {
    uint64_t first, count;
    coffer__quant_products out;
} task_rows;

static task_rows rows_of_task(const product *job, uint64_t index)
{
    task_rows rows = { .first = index * ROWS_AT_A_TIME, .out = job->out };
    uint64_t left = job->layout->rows - rows.first;
    rows.count = left < ROWS_AT_A_TIME ? left : ROWS_AT_A_TIME;
    rows.out.y += rows.first * rows.out.row_stride;
    return rows;
}

static coffer_status multiply_vector(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const product *job = context;
    task_rows rows = rows_of_task(job, index);
    (void)worker;
    (void)err;
    coffer__quant_matvec(rows.out.y, job->layout, job->payload, &job->x, rows.first, rows.count);
    return COFFER_OK;
}

static coffer_status multiply_vectors(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const product *job = context;
    task_rows rows = rows_of_task(job, index);
    (void)err;
    coffer__quant_matmul(&rows.out, job->layout, job->payload, job->x.numbers, job->columns, rows.first,
                         rows.count, job->row_rooms + worker * COFFER__QUANT_ROWS * job->layout->cols);
    return COFFER_OK;
}

static coffer_status multiply_rounded(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const product *job = context;
    task_rows rows = rows_of_task(job, index);
    (void)err;
    coffer__quant_tile tile = { job->kernels, job->layout, job->payload, job->panels,
                                job->columns, rows.first,  rows.count };
    if (job->rooms)
        coffer__quant_matmul_rounded(&rows.out, &tile, &job->rooms[worker]);
    else
        coffer__quant_matvec_rounded(&rows.out, &tile);
    return COFFER_OK;
}

static coffer_status round_panel(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const product *job = context;
    (void)worker;
    (void)err;
    for (size_t i = 0; i < job->panel_vectors; i++) {
        uint64_t vector = index * job->panel_vectors + i;
        const float *x = vector < job->columns ? job->numbers + vector * job->layout->cols : NULL;
        coffer__quant_round(&job->panels[index], job->kernels, job->layout, i, job->panel_vectors, x);
    }
    return COFFER_OK;
}

/* ---- Memory ---- */

#define ALIGNMENT 64

/* Aligned memory: kernels take twice the time for unaligned numbers. */
typedef struct aligned_memory {
    void *memory, *start;
} aligned_memory;

/* COFFER_E_NO_MEMORY also for a product of count and size that does not fit. */
static coffer_status new_aligned(aligned_memory *out, uint64_t count, uint64_t size, coffer_error *err)
{
    uint64_t bytes = UINT64_MAX;
    out->memory = NULL;
    if (coffer__mul_u64(&bytes, count, size) && coffer__add_u64(&bytes, bytes, ALIGNMENT) &&
        bytes <= SIZE_MAX)
        out->memory = coffer__malloc((size_t)bytes);
    if (!out->memory)
        return coffer__fail_no_memory(err, bytes);
    uintptr_t start = (uintptr_t)out->memory;
    out->start = (uint8_t *)out->memory + (-start & (ALIGNMENT - 1));
    return COFFER_OK;
}

static uint64_t align_count(uint64_t count)
{
    const uint64_t together = ALIGNMENT / sizeof(float);
    return coffer__divide_up(count, together) * together;
}

/* ---- Passes ---- */

/* A vector as it is. */
static coffer_status run_vector(product *job, const float *x, coffer_error *err)
{
    const coffer__quant_layout *layout = job->layout;
    job->x.numbers = x;
    if (layout->rows < ROWS_WORTH_FOLDING || !layout->cols)
        return run_rows(job, multiply_vector, err);
    aligned_memory copy = { NULL, NULL };
    coffer_status status = new_aligned(&copy, 2 * align_count(layout->cols), sizeof *x, err);
    if (status)
        return status;
    float *numbers = copy.start, *folded = numbers + align_count(layout->cols);
    memcpy(numbers, x, (size_t)layout->cols * sizeof *x);
    job->x.numbers = numbers;
    if (coffer__quant_folds(layout)) {
        coffer__quant_fold(folded, layout, x);
        job->x.folded = folded;
    }
    status = run_rows(job, multiply_vector, err);
    coffer__free(copy.memory);
    return status;
}

/* Up to COFFER__QUANT_MOST_COLUMNS vectors as they are. */
static coffer_status run_vectors(product *job, const float *x, coffer_error *err)
{
    uint64_t cols = job->layout->cols, vectors = align_count(job->columns * cols);
    uint64_t rows = COFFER__QUANT_ROWS * (uint64_t)thread_count(job);
    aligned_memory copy = { NULL, NULL };
    coffer_status status = new_aligned(&copy, vectors + rows * cols, sizeof *x, err);
    if (status)
        return status;
    float *numbers = copy.start;
    memcpy(numbers, x, (size_t)(job->columns * cols) * sizeof *x);
    job->x.numbers = numbers;
    job->row_rooms = numbers + vectors;
    status = run_rows(job, multiply_vectors, err);
    coffer__free(copy.memory);
    return status;
}

/* Up to COFFER__QUANT_ROUNDED_VECTORS rounded vectors. */
static coffer_status run_rounded(product *job, const float *x, coffer_error *err)
{
    bool together = job->columns >= VECTORS_WORTH_A_PANEL;
    job->numbers = x;
    job->kernels = coffer__quant_rounded_in_use();
    job->panel_vectors = together ? job->kernels->panel : 1;
    size_t count = (size_t)coffer__divide_up(job->columns, job->panel_vectors);
    coffer__quant_panel panels[COFFER__QUANT_ROUNDED_VECTORS];
    uint64_t size = UINT64_MAX;
    aligned_memory memory = { NULL, NULL }, rooms = { NULL, NULL };
    if (!coffer__quant_panel_size(&size, job->layout, job->panel_vectors))
        return coffer__fail_no_memory(err, size);
    coffer_status status = new_aligned(&memory, count, size, err);
    if (!status && together)
        status = new_aligned(&rooms, thread_count(job), sizeof *job->rooms, err);
    if (status)
        goto out;
    for (size_t i = 0; i < count; i++)
        panels[i] =
            coffer__quant_panel_at((uint8_t *)memory.start + i * size, job->layout, job->panel_vectors);
    job->panels = panels;
    job->rooms = rooms.start;
    status = run_tasks(job, count, round_panel, err);
    if (!status)
        status = run_rows(job, multiply_rounded, err);
out:
    job->panels = NULL;
    coffer__free(memory.memory);
    coffer__free(rooms.memory);
    return status;
}

/* ---- The calls ---- */

static coffer_status take_product(product *out, coffer__quant_layout *layout, coffer_quant_inputs *inputs,
                                  const coffer_quant_tensor *tensor, uint32_t columns,
                                  const coffer_quant_product_opts *opts, coffer_error *err)
{
    coffer_quant_product_opts options = COFFER_QUANT_PRODUCT_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = coffer__quant_take_payload(layout, tensor, err);
    if (status)
        return status;
    if (options.inputs != COFFER_QUANT_INPUTS_F32 && options.inputs != COFFER_QUANT_INPUTS_INT8)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "inputs is %d, not COFFER_QUANT_INPUTS_F32 or COFFER_QUANT_INPUTS_INT8",
                            (int)options.inputs);
    *inputs = options.inputs;
    *out =
        (product){ .layout = layout, .payload = tensor->payload, .columns = 1, .workers = options.workers };
    out->out.row_stride = options.by_vector ? 1 : columns;
    out->out.vector_stride = options.by_vector ? (size_t)layout->rows : 1;
    return COFFER_OK;
}

coffer_status coffer_quant_matvec(float *y, const coffer_quant_tensor *tensor, const float *x,
                                  const coffer_quant_product_opts *opts, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_quant_inputs inputs;
    product job;
    coffer_status status = take_product(&job, &layout, &inputs, tensor, 1, opts, err);
    if (status || !layout.rows)
        return status;
    job.out.y = y;
    return inputs == COFFER_QUANT_INPUTS_INT8 ? run_rounded(&job, x, err) : run_vector(&job, x, err);
}

coffer_status coffer_quant_matmul(float *y, const coffer_quant_tensor *tensor, const float *x,
                                  uint32_t columns, const coffer_quant_product_opts *opts, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_quant_inputs inputs;
    product job;
    coffer_status status = take_product(&job, &layout, &inputs, tensor, columns, opts, err);
    if (status || !layout.rows)
        return status;
    bool rounded = inputs == COFFER_QUANT_INPUTS_INT8;
    uint32_t most = rounded ? COFFER__QUANT_ROUNDED_VECTORS : COFFER__QUANT_MOST_COLUMNS;
    for (uint32_t at = 0; at < columns && !status; at += job.columns) {
        job.columns = columns - at < most ? columns - at : most;
        job.out.y = y + at * job.out.vector_stride;
        status = rounded ? run_rounded(&job, x + at * layout.cols, err)
                         : run_vectors(&job, x + at * layout.cols, err);
    }
    return status;
}
