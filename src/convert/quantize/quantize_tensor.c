/* Quantizes the rows of a tensor. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/models/gguf_repack.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Scales below the normal range of float16. They are valid, and exact where the weights are that small, but
 * the first program reads them as 0. */

/* The smallest normal number. */
#define LEAST_SCALE 0x1p-14f
#define LEAST_SCALE_BITS 0x0400
#define SUB_SCALE_ONE 32.0f
#define SUB_SCALE_MAX 63.0f

/* Codes of up to 32 numbers for a scale; past the end of the row they are 0. */
static void encode_block(uint8_t *out, const float *values, size_t count, float scale,
                         const coffer__quant_type *type)
{
    int8_t codes[COFFER__QUANT_BLOCK] = { 0 };
    float largest = (float)coffer__quant_largest_code(type);
    for (size_t i = 0; i < count && scale > 0.0f; i++)
        codes[i] = (int8_t)fmaxf(fminf(rintf(values[i] / scale), largest), -largest);
    coffer__repack_pack_codes(out, codes, type->bits, COFFER__QUANT_BLOCK);
}

/* A place in the band: a unit of one block, or of the eight of a super. */
typedef struct scale_unit {
    coffer__quantize_band *band;
    const coffer__quant_type *type;
    uint64_t row, first; /* the row, and the number of its first block */
    uint64_t blocks;
} scale_unit;

/* Gives a unit the smallest normal scale; the sub-scales of a k type take over the rest. */
static void raise_scale(const scale_unit *unit, uint8_t *scale)
{
    const coffer__quant_layout *layout = &unit->band->layout;
    bool supers = unit->type->family == COFFER__QUANT_SUPERS;
    float old = coffer__f16_to_f32(coffer__load_u16(scale));
    size_t block_bytes = (size_t)unit->type->bits * COFFER__QUANT_BLOCK / 8;
    for (uint64_t i = unit->first; i < unit->first + unit->blocks; i++) {
        uint64_t place = unit->row * layout->blocks_per_row + i, column = i * COFFER__QUANT_BLOCK;
        uint64_t left = layout->cols - column;
        uint8_t *sub = unit->band->payload + layout->regions[COFFER__QUANT_SUBS].offset + place;
        float block_scale = LEAST_SCALE;
        if (supers) {
            float wanted = rintf(old * (float)*sub / LEAST_SCALE);
            *sub = (uint8_t)fminf(wanted, SUB_SCALE_MAX);
            block_scale = LEAST_SCALE * ((float)*sub / SUB_SCALE_ONE);
        }
        encode_block(unit->band->payload + layout->regions[COFFER__QUANT_CODES].offset + place * block_bytes,
                     unit->band->values + unit->row * layout->cols + column,
                     left < COFFER__QUANT_BLOCK ? (size_t)left : COFFER__QUANT_BLOCK, block_scale,
                     unit->type);
    }
    coffer__store_u16(scale, LEAST_SCALE_BITS);
}

/* Counts them in an encoded band, or replaces them if the task says so. */
static void quantize_treat_scales(coffer__quantize_band *band, const coffer__quantize_task *task)
{
    const coffer__quant_layout *layout = &band->layout;
    bool supers = task->type->family == COFFER__QUANT_SUPERS;
    uint64_t units = supers ? layout->supers_per_row : layout->blocks_per_row;
    uint64_t blocks = supers ? COFFER__QUANT_SUPER_BLOCKS : 1;
    for (uint64_t i = 0; task->type->family != COFFER__QUANT_WHOLE && i < band->rows * units; i++) {
        uint8_t *scale = band->payload + layout->regions[COFFER__QUANT_SCALES].offset + 2 * i;
        scale_unit unit = { band, task->type, i / units, i % units * blocks, blocks };
        if (!coffer__repack_scale_is_small(coffer__load_u16(scale)))
            continue;
        if (unit.blocks > layout->blocks_per_row - unit.first)
            unit.blocks = layout->blocks_per_row - unit.first;
        if (task->portable_scales)
            raise_scale(&unit, scale);
        else
            band->result.small_scales++;
    }
}

/* A few rows of a tensor: read as float32, looked over, encoded, and decoded again to see what was lost. */

#define BAND_ELEMENTS ((uint64_t)1 << 16)
#define CALIBRATED_ROWS 128

/* Rows that are quantized together: a number that depends on the shape alone. */
static uint64_t quantize_band_rows(const coffer__quantize_task *task)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    uint64_t cols = tensor->dims[1], rows = cols < BAND_ELEMENTS ? BAND_ELEMENTS / cols : 1;
    /* More rows at once: each band reads all of the moments. */
    if (task->moments && rows < CALIBRATED_ROWS)
        rows = CALIBRATED_ROWS;
    /* Two codes of int4 share a byte: a band of an odd number of them would end within one. */
    if (task->type->family == COFFER__QUANT_WHOLE && rows % 2)
        rows++;
    return rows < tensor->dims[0] ? rows : tensor->dims[0];
}

static void quantize_result_init(coffer__quantize_result *result)
{
    *result = (coffer__quantize_result){ .known = true };
    coffer__comparison_init(&result->error);
}

static void quantize_result_merge(coffer__quantize_result *into, const coffer__quantize_result *from)
{
    coffer__comparison_merge(&into->error, &from->error);
    into->weighted += from->weighted;
    into->small_scales += from->small_scales;
    into->calibrated = into->calibrated || from->calibrated;
    into->output.error += from->output.error;
    into->output.signal += from->output.signal;
    if (from->largest > into->largest)
        into->largest = from->largest;
}

/* ---- In ---- */

static uint32_t magnitude_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & UINT32_C(0x7FFFFFFF);
}

/* Magnitudes compare as their bits do, and those that are not finite are above all others. */
static uint32_t largest_bits(const float *values, uint64_t count)
{
    uint32_t largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = magnitude_bits(values[i]);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

static coffer_status clean(coffer__quantize_band *band, const coffer__quantize_task *task, uint64_t count,
                           coffer_error *err)
{
    static const uint32_t infinite = UINT32_C(0x7F800000);
    uint32_t largest = largest_bits(band->values, count);
    const coffer_tensor *tensor = task->chosen->tensor;
    for (uint64_t i = 0; largest >= infinite && i < count; i++) {
        if (isfinite(band->values[i]))
            continue;
        if (!task->nan_to_zero)
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                "\"%s\" is %s at row %" PRIu64 ", column %" PRIu64, tensor->name,
                                isnan(band->values[i]) ? "NaN" : "infinite",
                                band->first + i / tensor->dims[1], i % tensor->dims[1]);
        band->values[i] = 0.0f;
    }
    if (largest >= infinite)
        largest = largest_bits(band->values, count);
    memcpy(&band->result.largest, &largest, sizeof largest);
    return COFFER_OK;
}

/* ---- Out ---- */

static int whole_code(float value, const coffer__quantize_whole *whole, int largest)
{
    float code = whole->scale > 0.0f ? rintf(value / whole->scale) + whole->zero : 0.0f;
    if (code > (float)largest)
        return largest;
    return code < (float)-largest ? -largest : (int)code;
}

/* With moments the codes are chosen already. */
static int take_code(const coffer__quantize_band *band, const coffer__quantize_task *task, uint64_t index,
                     int largest)
{
    return task->moments ? band->codes[index] : whole_code(band->values[index], &task->whole, largest);
}

static void encode_whole(coffer__quantize_band *band, const coffer__quantize_task *task, uint64_t count)
{
    const coffer__quantize_whole *whole = &task->whole;
    const coffer__quant_region *regions = band->layout.regions;
    uint8_t *codes = band->payload + regions[COFFER__QUANT_CODES].offset;
    int largest = coffer__quant_largest_code(task->type);
    coffer__store_f32(band->payload + regions[COFFER__QUANT_SCALES].offset, whole->scale);
    if (task->activations)
        coffer__store_f32(band->payload + regions[COFFER__QUANT_SUBS].offset, whole->zero);
    if (task->type->bits == 8) {
        for (uint64_t i = 0; i < count; i++)
            codes[i] = (uint8_t)take_code(band, task, i, largest);
        return;
    }
    for (uint64_t i = 0; i < count; i += 2) {
        int low = take_code(band, task, i, largest);
        int high = i + 1 < count ? take_code(band, task, i + 1, largest) : 0;
        codes[i / 2] = (uint8_t)((low & 15) | (high & 15) << 4);
    }
}

static void encode(coffer__quantize_band *band, const coffer__quantize_task *task, uint64_t cols)
{
    coffer__quant_rows rows = { task->type, band->values, task->weights, band->rows, cols };
    coffer__quant_output out;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = band->payload + band->layout.regions[i].offset;
    if (task->moments) {
        coffer__quant_calibrated job = { task->moments, &out, band->codes, task->whole.scale, band->scratch };
        band->result.calibrated = true;
        band->result.output = coffer__quant_calibrate_rows(&job, &rows);
    }
    if (task->type->family == COFFER__QUANT_WHOLE)
        encode_whole(band, task, band->rows * cols);
    else if (!task->moments)
        coffer__quant_encode_rows(&out, &rows, task->method);
}

static double weighted_error(const coffer__quantize_band *band, const float *weights, uint64_t cols)
{
    double sum = 0;
    for (uint64_t row = 0; row < band->rows; row++) {
        for (uint64_t i = 0; i < cols; i++) {
            double off = (double)band->values[row * cols + i] - (double)band->decoded[row * cols + i];
            sum += (double)weights[i] * off * off;
        }
    }
    return sum;
}

coffer_status coffer__quantize_band_run(coffer__quantize_band *band, const coffer__quantize_task *task,
                                        coffer_error *err)
{
    const coffer__chosen_tensor *chosen = task->chosen;
    uint64_t cols = chosen->tensor->dims[1], dims[2] = { band->rows, cols }, count = band->rows * cols;
    quantize_result_init(&band->result);
    coffer_status status = coffer_tensors_read_as(band->values, COFFER_DTYPE_F32, chosen->set, chosen->index,
                                                  band->first * cols, count, err);
    if (!status)
        status = clean(band, task, count, err);
    if (!status)
        status = coffer__quant_plan(&band->layout, task->type->dtype, 2, dims, task->activations, err);
    if (status)
        return status;
    encode(band, task, cols);
    quantize_treat_scales(band, task);
    coffer__quant_decode_rows(band->decoded, &band->layout, band->payload, 0, band->rows);
    coffer__comparison_add(&band->result.error, band->first * cols, band->values, COFFER_DTYPE_F32,
                           band->decoded, COFFER_DTYPE_F32, (size_t)count, 0.0);
    band->result.weighted =
        task->weights ? weighted_error(band, task->weights, cols) : band->result.error.squares;
    return COFFER_OK;
}

/* Quantizes all rows of a tensor in bands, on all threads; a batch of bands is written while the next one is
 * computed. */

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

/* The parts of a band's memory. */
typedef struct band_sizes {
    uint64_t numbers, payload, scratch, codes; /* each from a boundary on */
    uint64_t all;                              /* numbers twice */
} band_sizes;

static bool align_part(uint64_t *part, uint64_t size, uint64_t *all)
{
    return coffer__align_up(part, size, COFFER__QUANT_REGION_ALIGN) && coffer__add_u64(all, *all, *part);
}

static bool band_size(band_sizes *out, const passage *pass, coffer_error *err)
{
    uint64_t cols = pass->layout.cols, dims[2] = { pass->band_rows, cols }, count, scratch = 0, codes = 0;
    coffer__quant_layout layout;
    out->all = 0;
    if (!coffer__mul_u64(&count, pass->band_rows, cols) || count > UINT64_MAX / sizeof(float) ||
        coffer__quant_plan(&layout, pass->task->type->dtype, 2, dims, pass->task->activations, err))
        return false;
    if (pass->task->moments) {
        scratch = coffer__quant_calibrate_scratch(pass->band_rows, cols);
        codes = pass->task->type->family == COFFER__QUANT_WHOLE ? count : 0;
    }
    return align_part(&out->numbers, count * sizeof(float), &out->all) &&
           align_part(&out->numbers, count * sizeof(float), &out->all) &&
           align_part(&out->payload, layout.size, &out->all) &&
           align_part(&out->scratch, scratch, &out->all) && align_part(&out->codes, codes, &out->all);
}

static void give_band(coffer__quantize_band *band, uint8_t *memory, const band_sizes *sizes)
{
    band->values = (float *)(void *)memory;
    band->decoded = (float *)(void *)(memory + sizes->numbers);
    band->payload = memory + 2 * sizes->numbers;
    band->scratch = band->payload + sizes->payload;
    band->codes = (int8_t *)band->scratch + sizes->scratch;
}

static coffer_status reserve(passage *pass, coffer__tensors_stream *stream, coffer_error *err)
{
    const coffer_tensor *tensor = pass->task->chosen->tensor;
    uint64_t limit = coffer__tensors_stream_memory(stream);
    band_sizes sizes;
    size_t size = 0;
    bool fits = band_size(&sizes, pass, err);
    while (fits && pass->task->moments && sizes.all > limit / 2 && pass->band_rows > COFFER__QUANT_LANES) {
        pass->band_rows = COFFER__QUANT_LANES;
        fits = band_size(&sizes, pass, err);
    }
    fits = fits && sizes.all <= limit / 2;
    pass->at_once = coffer__tensors_stream_pieces(stream);
    if (pass->at_once > MAX_BANDS)
        pass->at_once = MAX_BANDS;
    while (fits && pass->at_once > 1 && sizes.all > limit / 2 / pass->at_once)
        pass->at_once /= 2;
    if (!fits || !coffer__to_size(&size, 2 * sizes.all * pass->at_once))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" has %" PRIu64 " elements, more than fit into memory",
                            tensor->name, pass->layout.cols);
    uint8_t *memory = pass->memory = coffer__calloc(1, size);
    if (!memory)
        return coffer__fail_no_memory(err, size);
    for (size_t turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < pass->at_once; i++, memory += sizes.all)
            give_band(&pass->bands[turn][i], memory, &sizes);
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
        quantize_result_merge(pass->result, &band->result);
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
    quantize_result_init(out);
    coffer_status status =
        coffer__quant_plan(&pass.layout, task->type->dtype, 2, tensor->dims, task->activations, err);
    pass.work = coffer__tensors_stream_work(stream);
    pass.band_rows = quantize_band_rows(task);
    if (!status)
        status = reserve(&pass, stream, err);
    if (!status && writer)
        status = coffer_mcf_writer_skip(writer, pass.layout.regions[COFFER__QUANT_CODES].offset, err);
    if (!status)
        status = coffer__work_run_pipeline(pass.work, &pipeline, &pass, err);
    coffer__free(pass.memory);
    return status;
}
