/* A few rows of a tensor: read as float32, looked over, encoded, and decoded again to see what was lost. */
#include "base/bytes.h"
#include "base/fail.h"
#include "convert/quantize/quantize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BAND_ELEMENTS ((uint64_t)1 << 16)

uint64_t coffer__quantize_band_rows(const coffer__quantize_task *task)
{
    const coffer_tensor *tensor = task->chosen->tensor;
    uint64_t cols = tensor->dims[1], rows = cols < BAND_ELEMENTS ? BAND_ELEMENTS / cols : 1;
    /* Two codes of int4 share a byte: a band of an odd number of them would end within one. */
    if (task->type->family == COFFER__QUANT_WHOLE && rows % 2)
        rows++;
    return rows < tensor->dims[0] ? rows : tensor->dims[0];
}

void coffer__quantize_result_init(coffer__quantize_result *result)
{
    *result = (coffer__quantize_result){ .known = true };
    coffer__comparison_init(&result->error);
}

void coffer__quantize_result_merge(coffer__quantize_result *into, const coffer__quantize_result *from)
{
    coffer__comparison_merge(&into->error, &from->error);
    into->weighted += from->weighted;
    into->small_scales += from->small_scales;
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
            codes[i] = (uint8_t)whole_code(band->values[i], whole, largest);
        return;
    }
    for (uint64_t i = 0; i < count; i += 2) {
        int low = whole_code(band->values[i], whole, largest);
        int high = i + 1 < count ? whole_code(band->values[i + 1], whole, largest) : 0;
        codes[i / 2] = (uint8_t)((low & 15) | (high & 15) << 4);
    }
}

static void encode(coffer__quantize_band *band, const coffer__quantize_task *task, uint64_t cols)
{
    coffer__quant_rows rows = { task->type, band->values, task->weights, band->rows, cols };
    coffer__quant_output out;
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = band->payload + band->layout.regions[i].offset;
    if (task->type->family == COFFER__QUANT_WHOLE)
        encode_whole(band, task, band->rows * cols);
    else
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
    coffer__quantize_result_init(&band->result);
    coffer_status status = coffer_tensors_read_as(band->values, COFFER_DTYPE_F32, chosen->set, chosen->index,
                                                  band->first * cols, count, err);
    if (!status)
        status = clean(band, task, count, err);
    if (!status)
        status = coffer__quant_plan(&band->layout, task->type->dtype, 2, dims, task->activations, err);
    if (status)
        return status;
    encode(band, task, cols);
    coffer__quantize_treat_scales(band, task);
    coffer__quant_decode_rows(band->decoded, &band->layout, band->payload, 0, band->rows);
    coffer__comparison_add(&band->result.error, band->first * cols, band->values, COFFER_DTYPE_F32,
                           band->decoded, COFFER_DTYPE_F32, (size_t)count, 0.0);
    band->result.weighted =
        task->weights ? weighted_error(band, task->weights, cols) : band->result.error.squares;
    return COFFER_OK;
}
