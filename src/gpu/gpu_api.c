/* The public calls for GPUs: they check what they are given and call the module coffer-cuda. */
#include "base/fail.h"
#include "base/options.h"
#include "base/work.h"
#include "coffer/cuda.h"
#include "gpu/gpu.h"
#include "quant/quant_product.h"

#include <inttypes.h>

/* Bytes that one thread reads at a time, and how many of them are copied at once. */
#define LOAD_PIECE ((uint64_t)2 << 20)
#define LOAD_PIECES 8

COFFER__INIT_FUNCTION(coffer_cuda_load_opts, COFFER_CUDA_LOAD_OPTS_INIT)

static const coffer__gpu_module *load_module(coffer_error *err)
{
    return coffer__module_load(COFFER__MODULE_CUDA, sizeof(coffer__gpu_module), err);
}

coffer_status coffer_cuda_device_count(uint32_t *out, coffer_error *err)
{
    const coffer__gpu_module *module = load_module(err);
    return module ? module->device_count(out, err) : COFFER_E_UNSUPPORTED;
}

/* ---- Payloads on the GPU ---- */

static coffer_status refuse_null(const char *what, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s is NULL", what);
}

/* The parts of a caller's payload. The addresses are the GPU's: nothing is read here. */
static coffer_status take_payload(coffer__gpu_payload *out, const coffer_quant_tensor *tensor,
                                  coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_take_payload(&layout, tensor, err);
    if (status)
        return status;
    if (layout.size && !tensor->payload)
        return refuse_null("the payload", err);
    coffer__gpu_payload payload = { .rows = layout.rows, .cols = layout.cols };
    const uint8_t *bytes = tensor->payload;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        payload.parts[i] = layout.regions[i].size ? bytes + layout.regions[i].offset : NULL;
    payload.blocks_per_row = layout.blocks_per_row;
    payload.supers_per_row = layout.supers_per_row;
    payload.type = layout.type->index;
    *out = payload;
    return COFFER_OK;
}

coffer_status coffer_cuda_decode(void *out, coffer_dtype as, const coffer_quant_tensor *tensor,
                                 uint64_t first, uint64_t count, void *stream, coffer_error *err)
{
    const coffer__gpu_module *module = load_module(err);
    coffer__gpu_payload payload;
    if (!module)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = take_payload(&payload, tensor, err);
    if (!status)
        status = coffer__quant_check_decode(as, payload.rows, first, count, err);
    if (status || !count || !payload.cols)
        return status;
    size_t width = coffer_dtype_size(as);
    if (!out || (uintptr_t)out % width != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the output is at %p, which is not aligned to %zu bytes", out, width);
    return module->decode(out, as, &payload, first, count, stream, err);
}

coffer_status coffer_cuda_matmul(float *y, const coffer_quant_tensor *tensor, const float *x,
                                 uint32_t columns, bool by_vector, void *stream, coffer_error *err)
{
    const coffer__gpu_module *module = load_module(err);
    coffer__gpu_payload payload;
    if (!module)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = take_payload(&payload, tensor, err);
    if (status)
        return status;
    if (!payload.cols)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the tensor has 0 columns: there is nothing to multiply");
    if (!payload.rows || !columns)
        return COFFER_OK;
    if (!y || !x)
        return refuse_null(y ? "x" : "y", err);
    coffer__gpu_products products = { .row_stride = columns, .vector_stride = 1 };
    products.y = y;
    if (by_vector) {
        products.row_stride = 1;
        products.vector_stride = payload.rows;
    }
    return module->product(&products, &payload, x, columns, stream, err);
}

coffer_status coffer_cuda_matvec(float *y, const coffer_quant_tensor *tensor, const float *x, void *stream,
                                 coffer_error *err)
{
    return coffer_cuda_matmul(y, tensor, x, 1, false, stream, err);
}

/* ---- Loading ---- */

/* While the bytes of one slot are copied to the GPU, threads read those of the other. */
typedef struct gpu_load {
    const coffer__gpu_module *module;
    const coffer_tensors *set;
    const coffer_progress *progress;
    size_t tensor;
    uint8_t *out;
    void *stream;
    uint64_t size, next; /* of the payload, and the first byte that no slot has */
    uint8_t *slots[2];   /* pinned */
    uint64_t begins[2], sizes[2];
} gpu_load;

static coffer_status prepare_slot(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    gpu_load *load = context;
    uint64_t left = load->size - load->next;
    (void)err;
    load->begins[slot] = load->next;
    load->sizes[slot] = left < LOAD_PIECE * LOAD_PIECES ? left : LOAD_PIECE * LOAD_PIECES;
    load->next += load->sizes[slot];
    *pieces = (load->sizes[slot] + LOAD_PIECE - 1) / LOAD_PIECE;
    return COFFER_OK;
}

static coffer_status read_piece(void *context, size_t slot, uint64_t piece, uint32_t worker,
                                coffer_error *err)
{
    const gpu_load *load = context;
    uint64_t begin = piece * LOAD_PIECE, left = load->sizes[slot] - begin;
    (void)worker;
    return coffer_tensors_read(load->slots[slot] + begin, load->set, load->tensor, load->begins[slot] + begin,
                               (size_t)(left < LOAD_PIECE ? left : LOAD_PIECE), err);
}

static coffer_status copy_slot(void *context, size_t slot, coffer_error *err)
{
    const gpu_load *load = context;
    return load->module->upload(load->out + load->begins[slot], load->slots[slot], (size_t)load->sizes[slot],
                                load->stream, err);
}

static coffer_status report_slot(void *context, size_t slot, coffer_error *err)
{
    const gpu_load *load = context;
    return coffer__progress_step(load->progress, load->begins[slot] + load->sizes[slot], load->size, err);
}

static coffer_status run_load(gpu_load *load, uint32_t threads, coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { prepare_slot, read_piece, copy_slot, report_slot };
    coffer__work_opts opts = { .threads = threads, .pieces = LOAD_PIECES + 1 };
    coffer__work *work = NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        void *memory = NULL;
        status = load->module->host_alloc(&memory, (size_t)(LOAD_PIECE * LOAD_PIECES), err);
        load->slots[i] = memory;
    }
    if (!status)
        status = coffer__work_new(&work, &opts, err);
    if (!status)
        status = coffer__work_run_pipeline(work, &pipeline, load, err);
    coffer__work_free(work);
    for (size_t i = 0; i < 2; i++) {
        if (load->slots[i])
            load->module->host_free(load->slots[i], (size_t)(LOAD_PIECE * LOAD_PIECES));
    }
    return status;
}

coffer_status coffer_cuda_load(void *out, size_t size, const coffer_tensors *set, size_t tensor,
                               const coffer_cuda_load_opts *opts, coffer_error *err)
{
    coffer_cuda_load_opts options = COFFER_CUDA_LOAD_OPTS_INIT;
    const coffer__gpu_module *module = load_module(err);
    if (!module)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    const coffer_tensor *found = coffer_tensors_at(set, tensor);
    if (!found)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "tensor %zu requested, the file has %zu", tensor, coffer_tensors_count(set));
    if (size < found->size || (found->size && !out))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the tensor has %" PRIu64 " bytes, the output has room for %zu", found->size,
                            out ? size : 0);
    if (!found->size)
        return COFFER_OK;
    gpu_load load = { .module = module, .set = set, .progress = options.progress, .tensor = tensor };
    load.out = out;
    load.stream = options.stream;
    load.size = found->size;
    return run_load(&load, options.threads, err);
}
