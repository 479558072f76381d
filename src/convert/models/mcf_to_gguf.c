/* MCF models as GGUF files. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/convert.h"
#include "convert/models/gguf_model_info.h"
#include "convert/tensors/mcf_tensors.h"
#include "convert/tensors/tensor_settings.h"
#include "convert/tensors/tensor_stream.h"
#include "io/os.h"
#include "io/sink.h"
#include "quant/quant.h"

#include <inttypes.h>
#include <string.h>

const coffer_convert_option coffer__to_gguf_options[] = {
    COFFER__TENSOR_OPTIONS,
    { NULL, NULL, NULL },
};

typedef struct export_tensor {
    const coffer__gguf_type *type;
    uint64_t offset; /* from the start of the payloads */
    uint64_t size;
    bool repacked; /* q8 and q4 as blocks of the same codes and scales */
} export_tensor;

typedef struct gguf_job {
    const coffer__convert_job *job;
    coffer__tensor_settings settings;
    coffer_tensors *set;
    coffer__selection selection;
    export_tensor *tensors; /* one for each of the selection */
    bool quantized;
    coffer__tensor_stream *stream;
    coffer__sink *sink;
} gguf_job;

/* ---- The plan ---- */

/* GGUF has no unsigned integers: the next larger type holds them all. */
static coffer_dtype widened(coffer_dtype dtype)
{
    switch (dtype) {
    case COFFER_DTYPE_U8:
        return COFFER_DTYPE_I16;
    case COFFER_DTYPE_U16:
        return COFFER_DTYPE_I32;
    case COFFER_DTYPE_U32:
        return COFFER_DTYPE_I64;
    default:
        return dtype;
    }
}

/* The GGUF block type with the same codes and scales; 0 when GGUF has none. */
static uint32_t block_type_of(const coffer_tensor *tensor, coffer_dtype cast)
{
    if (cast != COFFER_DTYPE_NONE || tensor->rank != 2 || tensor->dims[1] % COFFER__QUANT_BLOCK != 0)
        return 0;
    return tensor->dtype == COFFER_DTYPE_Q8   ? COFFER__GGUF_Q8_0
           : tensor->dtype == COFFER_DTYPE_Q4 ? COFFER__GGUF_Q4_0
                                              : 0;
}

static coffer_status plan_tensor(export_tensor *out, coffer__chosen_tensor *chosen, coffer_dtype cast,
                                 coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    uint32_t blocks = block_type_of(tensor, cast);
    if (tensor->rank > COFFER__GGUF_MAX_RANK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu32
                            " dimensions, GGUF allows at most %d: leave it out with --exclude",
                            tensor->name, tensor->rank, COFFER__GGUF_MAX_RANK);
    if (blocks) {
        out->type = coffer__gguf_find_type(blocks);
        out->repacked = true;
        out->size = tensor->elements / out->type->elements * out->type->bytes; /* less than the elements' */
        return COFFER_OK;
    }
    coffer_dtype dtype = widened(chosen->dtype);
    if (dtype != chosen->dtype) {
        chosen->dtype = dtype;
        chosen->as_is = false;
    }
    out->type = coffer__gguf_type_for(dtype);
    if (!out->type)
        return coffer__fail(
            err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
            "\"%s\" is %s, which GGUF does not support: cast it, or leave it out with --exclude",
            tensor->name, tensor->type_name);
    if (!coffer__mul_u64(&out->size, tensor->elements, out->type->bytes))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "\"%s\" has %" PRIu64 " elements, too many", tensor->name, tensor->elements);
    return COFFER_OK;
}

static coffer_status plan(gguf_job *of, coffer_error *err)
{
    uint64_t end = 0;
    coffer_status status = COFFER_OK;
    of->tensors = coffer__calloc(of->selection.count, sizeof *of->tensors);
    if (!of->tensors)
        return coffer__fail_no_memory(err, of->selection.count * sizeof *of->tensors);
    for (size_t i = 0; !status && i < of->selection.count; i++) {
        export_tensor *tensor = &of->tensors[i];
        status = plan_tensor(tensor, &of->selection.items[i], of->settings.selection.cast, err);
        if (status)
            break;
        tensor->offset = end;
        of->quantized |= tensor->repacked;
        if (!coffer__add_u64(&end, end, tensor->size) || !coffer__align_up(&end, end, COFFER__GGUF_ALIGNMENT))
            status = coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                  "the size of the tensors does not fit into 64 bits");
    }
    return status;
}

static coffer_status check_output(const gguf_job *of, coffer_error *err)
{
    struct stat in, out;
    const char *in_path = coffer_source_name(of->job->in);
    if (coffer__os_stat(in_path, &in) == 0 && coffer__os_stat(of->job->out_path, &out) == 0 &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "input and output are the same file: %s", in_path);
    return COFFER_OK;
}

/* ---- Blocks ---- */

#define BLOCKS_AT_ONCE ((uint64_t)4096)
#define Q8_CODES 32
#define Q4_CODES 16

/* Codes of elements 2i and 2i + 1 share a byte there, those of i and i + 16 here; and 8 is added. */
static void put_q4_codes(uint8_t out[Q4_CODES], const uint8_t codes[Q4_CODES])
{
    uint8_t values[32];
    for (size_t i = 0; i < Q4_CODES; i++) {
        values[2 * i] = codes[i] & 15;
        values[2 * i + 1] = codes[i] >> 4;
    }
    for (size_t i = 0; i < Q4_CODES; i++)
        out[i] = (uint8_t)((values[i] ^ 8) | (values[i + 16] ^ 8) << 4);
}

static void put_blocks(uint8_t *out, const uint8_t *scales, const uint8_t *codes, size_t count, bool q4)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(out, scales + 2 * i, 2);
        if (q4)
            put_q4_codes(out + 2, codes + Q4_CODES * i);
        else
            memcpy(out + 2, codes + Q8_CODES * i, Q8_CODES);
        out += 2 + (q4 ? Q4_CODES : Q8_CODES);
    }
}

/* Through three buffers in a row: scales, codes, blocks. */
static coffer_status repack(gguf_job *of, const coffer__chosen_tensor *chosen, uint8_t *memory,
                            coffer_error *err)
{
    const coffer_tensor *tensor = chosen->tensor;
    bool q4 = tensor->dtype == COFFER_DTYPE_Q4;
    uint64_t code_bytes = q4 ? Q4_CODES : Q8_CODES;
    uint8_t *scales = memory, *codes = scales + 2 * BLOCKS_AT_ONCE,
            *blocks = codes + Q8_CODES * BLOCKS_AT_ONCE;
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_plan(&layout, tensor->dtype, tensor->rank, tensor->dims, false, err);
    uint64_t total = tensor->elements / COFFER__QUANT_BLOCK;
    for (uint64_t done = 0; !status && done < total;) {
        uint64_t now = total - done < BLOCKS_AT_ONCE ? total - done : BLOCKS_AT_ONCE;
        status = coffer_tensors_read(scales, chosen->set, chosen->index,
                                     layout.regions[COFFER__QUANT_SCALES].offset + 2 * done,
                                     (size_t)(2 * now), err);
        if (!status)
            status = coffer_tensors_read(codes, chosen->set, chosen->index,
                                         layout.regions[COFFER__QUANT_CODES].offset + code_bytes * done,
                                         (size_t)(code_bytes * now), err);
        if (status)
            break;
        put_blocks(blocks, scales, codes, (size_t)now, q4);
        status = coffer__sink_write(of->sink, blocks, (size_t)((2 + code_bytes) * now), err);
        if (!status)
            status = coffer__tensor_stream_count(of->stream, (2 + code_bytes) * now, err);
        done += now;
    }
    return status;
}

static coffer_status write_blocks(gguf_job *of, const coffer__chosen_tensor *chosen, coffer_error *err)
{
    size_t size = BLOCKS_AT_ONCE * (2 + Q8_CODES) * 2;
    uint8_t *memory = coffer__malloc(size);
    coffer_status status = memory ? repack(of, chosen, memory, err) : coffer__fail_no_memory(err, size);
    coffer__free(memory);
    return status;
}

/* ---- Writing ---- */

static coffer_status write_header(const gguf_job *of, coffer_error *err)
{
    const coffer_mcf *model = coffer__mcf_model_of(of->set);
    coffer__buffer header = COFFER__BUFFER_INIT, keys = COFFER__BUFFER_INIT;
    uint64_t key_count = 0;
    coffer_status status =
        coffer__gguf_put_model(&keys, &key_count, model, of->quantized, &of->job->limits, err);
    coffer__gguf_put_header(&header, of->selection.count, key_count);
    coffer__buffer_append(&header, keys.data, keys.len);
    for (size_t i = 0; i < of->selection.count; i++) {
        const coffer_tensor *tensor = of->selection.items[i].tensor;
        coffer__gguf_put_tensor(&header, tensor->name, strlen(tensor->name), tensor->rank, tensor->dims,
                                of->tensors[i].type, of->tensors[i].offset);
    }
    coffer__buffer_fill(&header, 0, (0 - header.len) % COFFER__GGUF_ALIGNMENT);
    if (!status && header.failed)
        status = coffer__fail_no_memory(err, header.len);
    if (!status)
        status = coffer__sink_write(of->sink, header.data, header.len, err);
    coffer__buffer_free(&keys);
    coffer__buffer_free(&header);
    return status;
}

static coffer_status put(void *context, const void *bytes, size_t len, coffer_error *err)
{
    return coffer__sink_write(context, bytes, len, err);
}

static coffer_status write_tensors(gguf_job *of, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < of->selection.count; i++) {
        const coffer__chosen_tensor *chosen = &of->selection.items[i];
        status = of->tensors[i].repacked ? write_blocks(of, chosen, err)
                                         : coffer__tensor_stream_run(of->stream, chosen, put, of->sink, err);
        if (!status)
            status = coffer__sink_fill(of->sink, 0,
                                       (0 - coffer__sink_position(of->sink)) % COFFER__GGUF_ALIGNMENT, err);
    }
    return status;
}

static coffer_status prepare(gguf_job *of, coffer_error *err)
{
    coffer_status status = check_output(of, err);
    if (!status)
        status = coffer__tensor_settings_read(&of->settings, of->job, err);
    if (!status)
        status = coffer__tensor_settings_open(&of->set, of->job, err);
    if (!status)
        status = coffer__selection_add(&of->selection, of->set, &of->settings.selection, err);
    if (!status)
        status = coffer__selection_finish(&of->selection, (const coffer_tensors *const *)&of->set, 1,
                                          &of->settings.selection, err);
    if (!status)
        status = plan(of, err);
    if (!status)
        status = coffer__tensor_stream_new(&of->stream, 0, &of->job->limits, of->job->progress,
                                           of->selection.bytes, err);
    return status;
}

coffer_status coffer__to_gguf(const coffer__convert_job *job, coffer_error *err)
{
    coffer__sink_opts opts = { .exclusive = !job->overwrite };
    gguf_job of = { .job = job };
    coffer_status status = prepare(&of, err);
    if (!status)
        status = coffer__sink_create(&of.sink, job->out_path, &opts, err);
    if (!status)
        status = write_header(&of, err);
    if (!status)
        status = write_tensors(&of, err);
    if (status)
        coffer__sink_discard(of.sink);
    else
        status = coffer__sink_commit(of.sink, err);
    coffer__tensor_stream_free(of.stream);
    coffer__free(of.tensors);
    coffer__selection_free(&of.selection);
    coffer__tensor_settings_free(&of.settings);
    coffer_tensors_close(of.set);
    return status;
}
