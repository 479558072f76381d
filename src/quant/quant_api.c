/* The public calls on payloads in memory. */
#include "base/dtype.h"
#include "base/fail.h"
#include "base/options.h"
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

coffer_status coffer_quant_decode(void *out, coffer_dtype as, const coffer_quant_tensor *tensor,
                                  uint64_t first, uint64_t count, coffer_error *err)
{
    coffer__quant_layout layout;
    coffer_status status = coffer__quant_take_payload(&layout, tensor, err);
    if (status)
        return status;
    if (first > layout.rows || count > layout.rows - first)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " rows starting at %" PRIu64 " requested, the tensor has %" PRIu64,
                            count, first, layout.rows);
    switch (as) {
    case COFFER_DTYPE_F32:
        coffer__quant_decode_rows(out, &layout, tensor->payload, first, count);
        return COFFER_OK;
    case COFFER_DTYPE_F16:
    case COFFER_DTYPE_BF16:
        coffer__quant_decode_rows_as(out, as, &layout, tensor->payload, first, count);
        return COFFER_OK;
    default:
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "quantized tensors are decoded to f32, f16 or bf16, not %s",
                            coffer_dtype_name(as));
    }
}

#define EXPONENT_BITS 0x7F800000u

/* The first of `count` numbers that is not finite, or count. Pieces are searched without a branch for each
 * number. */
static uint64_t find_not_finite(const float *values, uint64_t count)
{
    enum { PIECE = 1024 };
    uint64_t at = 0;
    for (; at + PIECE <= count; at += PIECE) {
        uint32_t bad = 0;
        for (size_t i = 0; i < PIECE; i++)
            bad |= (coffer__float_bits(values[at + i]) & EXPONENT_BITS) == EXPONENT_BITS;
        if (bad)
            break;
    }
    while (at < count && isfinite(values[at]))
        at++;
    return at;
}

static coffer_status check_values(const float *values, const coffer__quant_layout *layout, coffer_error *err)
{
    uint64_t count = layout->rows * layout->cols, at = find_not_finite(values, count);
    if (at == count)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                        "row %" PRIu64 ", column %" PRIu64 " is %s", at / layout->cols, at % layout->cols,
                        isnan(values[at]) ? "NaN" : "infinite");
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
    if (options.method > COFFER_QUANT_EXACT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "unknown method %d",
                            (int)options.method);
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
