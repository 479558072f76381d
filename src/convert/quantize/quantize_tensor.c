/* All rows of a tensor, band by band on all threads; what one batch of bands has made is written while the
 * next is under way. */
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
    size_t filled; /* which of the two; the other is written */
    void *memory;
    coffer__quantize_result *result;
} passage;

/* ---- Memory ---- */

/* Bytes of a band: its numbers twice, and its payload. */
static bool band_size(uint64_t *numbers, uint64_t *payload, const passage *of, coffer_error *err)
{
    uint64_t cols = of->layout.cols, dims[2] = { of->band_rows, cols };
    coffer__quant_layout layout;
    if (!coffer__mul_u64(numbers, of->band_rows, cols) ||
        !coffer__mul_u64(numbers, *numbers, sizeof(float)) ||
        !coffer__align_up(numbers, *numbers, COFFER__QUANT_REGION_ALIGN) ||
        coffer__quant_plan(&layout, of->task->type->dtype, 2, dims, of->task->activations, err))
        return false;
    return coffer__align_up(payload, layout.size, COFFER__QUANT_REGION_ALIGN);
}

static coffer_status reserve(passage *of, coffer__tensor_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = of->task->chosen->tensor;
    uint64_t numbers, payload, band, limit = coffer__tensor_stream_memory(stream);
    size_t size = 0;
    bool fits = band_size(&numbers, &payload, of, err) && coffer__mul_u64(&band, numbers, 2) &&
                coffer__add_u64(&band, band, payload) && band <= limit / 2;
    of->at_once = coffer__tensor_stream_pieces(stream);
    if (of->at_once > MAX_BANDS)
        of->at_once = MAX_BANDS;
    while (fits && of->at_once > 1 && band > limit / 2 / of->at_once)
        of->at_once /= 2;
    if (!fits || !coffer__to_size(&size, 2 * band * of->at_once))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" has %" PRIu64 " elements, more than fit into memory",
                            tensor->name, of->layout.cols);
    uint8_t *at = of->memory = coffer__calloc(1, size);
    if (!at)
        return coffer__fail_no_memory(err, size);
    for (size_t turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < of->at_once; i++, at += band) {
            coffer__quantize_band *to = &of->bands[turn][i];
            to->values = (float *)(void *)at;
            to->decoded = (float *)(void *)(at + numbers);
            to->payload = at + 2 * numbers;
        }
    }
    return COFFER_OK;
}

/* ---- The work ---- */

/* The scales stand before all codes and are known with the codes of their band. */
static coffer_status write_band(const passage *of, const coffer__quantize_band *band, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const coffer__quant_region *codes = &band->layout.regions[COFFER__QUANT_CODES];
    for (size_t i = COFFER__QUANT_SCALES; !status && i < COFFER__QUANT_CODES; i++) {
        const coffer__quant_region *part = &band->layout.regions[i];
        bool whole = of->task->type->family == COFFER__QUANT_WHOLE;
        uint64_t before = whole ? 0 : band->first * (part->size / band->rows);
        if (part->size && !(whole && band->first))
            status = coffer_mcf_writer_write_at(of->writer, of->layout.regions[i].offset + before,
                                                band->payload + part->offset, (size_t)part->size, err);
    }
    return status
               ? status
               : coffer_mcf_writer_write(of->writer, band->payload + codes->offset, (size_t)codes->size, err);
}

/* The first task writes what the batch before has made, the others make the next. */
static coffer_status step(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    passage *of = context;
    size_t other = 1 - of->filled;
    coffer_status status = COFFER_OK;
    (void)worker;
    if (index > 0)
        return coffer__quantize_band_run(&of->bands[of->filled][index - 1], of->task, err);
    for (uint32_t i = 0; !status && i < of->counts[other]; i++) {
        const coffer__quantize_band *band = &of->bands[other][i];
        coffer__quantize_result_merge(of->result, &band->result);
        if (of->writer)
            status = write_band(of, band, err);
    }
    return status;
}

static void fill_batch(passage *of)
{
    uint32_t count = 0;
    for (; count < of->at_once && of->next < of->layout.rows; count++) {
        uint64_t left = of->layout.rows - of->next;
        coffer__quantize_band *band = &of->bands[of->filled][count];
        band->first = of->next;
        band->rows = left < of->band_rows ? left : of->band_rows;
        of->next += band->rows;
    }
    of->counts[of->filled] = count;
}

coffer_status coffer__quantize_tensor(coffer__quantize_result *out, const coffer__quantize_task *task,
                                      coffer__tensor_stream *stream, coffer_mcf_writer *writer,
                                      coffer_error *err)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    passage of = { .task = task, .writer = writer, .result = out };
    coffer__quantize_result_init(out);
    coffer_status status =
        coffer__quant_plan(&of.layout, task->type->dtype, 2, tensor->dims, task->activations, err);
    of.band_rows = coffer__quantize_band_rows(task);
    if (!status)
        status = reserve(&of, stream, err);
    if (!status && writer)
        status = coffer_mcf_writer_skip(writer, of.layout.regions[COFFER__QUANT_CODES].offset, err);
    uint64_t told = 0;
    do {
        if (status)
            break;
        fill_batch(&of);
        status = coffer__tensor_stream_together(stream, 1 + of.counts[of.filled], step, &of, err);
        /* What was told before is a share of the payload: its last byte is told with the last row. */
        uint64_t share = (uint64_t)((double)task->chosen->size * ((double)of.next / (double)of.layout.rows));
        if (!status)
            status = coffer__tensor_stream_count(stream, share - told, err);
        told = share;
        of.filled = 1 - of.filled;
    } while (of.counts[1 - of.filled]);
    coffer__free(of.memory);
    return status;
}
