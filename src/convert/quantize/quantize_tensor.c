/* Quantizes all rows of a tensor in bands, on all threads; a batch of bands is written while the next one is
 * computed. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>

#define MAX_BANDS 32 /* of a batch */

typedef struct passage {
    const coffer__quantize_task *task;
    coffer_mcf_writer *writer;
    coffer__quant_layout layout; /* of the whole tensor */
    uint64_t band_rows, next;    /* next : row */
    uint32_t at_once;
    coffer__quantize_band bands[2][MAX_BANDS];
    uint32_t counts[2];
    uint64_t counted; /* bytes that the progress has */
    void *memory;
    coffer__work *work;
    coffer__quantize_result *result;
} passage;

/* ---- Memory ---- */

/* Bytes of a band: its numbers twice, and its payload. */
static bool band_size(uint64_t *numbers, uint64_t *payload, const passage *pass, coffer_error *err)
{
    uint64_t cols = pass->layout.cols, dims[2] = { pass->band_rows, cols };
    coffer__quant_layout layout;
    if (!coffer__mul_u64(numbers, pass->band_rows, cols) ||
        !coffer__mul_u64(numbers, *numbers, sizeof(float)) ||
        !coffer__align_up(numbers, *numbers, COFFER__QUANT_REGION_ALIGN) ||
        coffer__quant_plan(&layout, pass->task->type->dtype, 2, dims, pass->task->activations, err))
        return false;
    return coffer__align_up(payload, layout.size, COFFER__QUANT_REGION_ALIGN);
}

static coffer_status reserve(passage *pass, coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = pass->task->chosen->tensor;
    uint64_t numbers, payload, band, limit = coffer__tensors_stream_memory(stream);
    size_t size = 0;
    bool fits = band_size(&numbers, &payload, pass, err) && coffer__mul_u64(&band, numbers, 2) &&
                coffer__add_u64(&band, band, payload) && band <= limit / 2;
    pass->at_once = coffer__tensors_stream_pieces(stream);
    if (pass->at_once > MAX_BANDS)
        pass->at_once = MAX_BANDS;
    while (fits && pass->at_once > 1 && band > limit / 2 / pass->at_once)
        pass->at_once /= 2;
    if (!fits || !coffer__to_size(&size, 2 * band * pass->at_once))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" has %" PRIu64 " elements, more than fit into memory",
                            tensor->name, pass->layout.cols);
    uint8_t *at = pass->memory = coffer__calloc(1, size);
    if (!at)
        return coffer__fail_no_memory(err, size);
    for (size_t turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < pass->at_once; i++, at += band) {
            coffer__quantize_band *slot = &pass->bands[turn][i];
            slot->values = (float *)(void *)at;
            slot->decoded = (float *)(void *)(at + numbers);
            slot->payload = at + 2 * numbers;
        }
    }
    return COFFER_OK;
}

/* ---- The work ---- */

/* The scales of all rows come before the codes, but are known only with the codes of their band. */
static coffer_status write_band(const passage *pass, const coffer__quantize_band *band, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const coffer__quant_region *codes = &band->layout.regions[COFFER__QUANT_CODES];
    for (size_t i = COFFER__QUANT_SCALES; !status && i < COFFER__QUANT_CODES; i++) {
        const coffer__quant_region *part = &band->layout.regions[i];
        bool whole = pass->task->type->family == COFFER__QUANT_WHOLE;
        uint64_t before = whole ? 0 : band->first * (part->size / band->rows);
        if (part->size && !(whole && band->first))
            status = coffer_mcf_writer_write_at(pass->writer, pass->layout.regions[i].offset + before,
                                                band->payload + part->offset, (size_t)part->size, err);
    }
    return status ? status
                  : coffer_mcf_writer_write(pass->writer, band->payload + codes->offset, (size_t)codes->size,
                                            err);
}

static coffer_status prepare_batch(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    passage *pass = context;
    uint32_t count = 0;
    (void)err;
    for (; count < pass->at_once && pass->next < pass->layout.rows; count++) {
        uint64_t left = pass->layout.rows - pass->next;
        coffer__quantize_band *band = &pass->bands[slot][count];
        band->first = pass->next;
        band->rows = left < pass->band_rows ? left : pass->band_rows;
        pass->next += band->rows;
    }
    *pieces = pass->counts[slot] = count;
    return COFFER_OK;
}

static coffer_status encode_band(void *context, size_t slot, uint64_t piece, uint32_t worker,
                                 coffer_error *err)
{
    passage *pass = context;
    (void)worker;
    return coffer__quantize_band_run(&pass->bands[slot][piece], pass->task, err);
}

static coffer_status write_batch(void *context, size_t slot, coffer_error *err)
{
    passage *pass = context;
    coffer_status status = COFFER_OK;
    for (uint32_t i = 0; !status && i < pass->counts[slot]; i++) {
        const coffer__quantize_band *band = &pass->bands[slot][i];
        coffer__quantize_result_merge(pass->result, &band->result);
        if (pass->writer)
            status = write_band(pass, band, err);
    }
    return status;
}

/* Progress is counted in bytes of the payload, in proportion to the rows. */
static coffer_status count_batch(void *context, size_t slot, coffer_error *err)
{
    passage *pass = context;
    double share = (double)pass->next / (double)pass->layout.rows;
    uint64_t done = (uint64_t)((double)pass->task->chosen->size * share), before = pass->counted;
    (void)slot;
    pass->counted = done;
    return coffer__work_advance(pass->work, done - before, err);
}

coffer_status coffer__quantize_tensor(coffer__quantize_result *out, const coffer__quantize_task *task,
                                      coffer__tensors_stream *stream, coffer_mcf_writer *writer,
                                      coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { prepare_batch, encode_band, write_batch, count_batch };
    const coffer_tensor *tensor = task->chosen->tensor;
    passage pass = { .task = task, .writer = writer, .result = out };
    coffer__quantize_result_init(out);
    coffer_status status =
        coffer__quant_plan(&pass.layout, task->type->dtype, 2, tensor->dims, task->activations, err);
    pass.work = coffer__tensors_stream_work(stream);
    pass.band_rows = coffer__quantize_band_rows(task);
    if (!status)
        status = reserve(&pass, stream, err);
    if (!status && writer)
        status = coffer_mcf_writer_skip(writer, pass.layout.regions[COFFER__QUANT_CODES].offset, err);
    if (!status)
        status = coffer__work_run_pipeline(pass.work, &pipeline, &pass, err);
    coffer__free(pass.memory);
    return status;
}
