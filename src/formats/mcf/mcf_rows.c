/* Reads rows of a tensor in the stored type or as float32. */
#include "formats/mcf/mcf_private.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant.h"

#include <inttypes.h>

#define SCRATCH_SIZE ((size_t)64 << 10) /* fits into the second-level cache together with the output */

static coffer_status check_rows(const coffer_mcf *model, size_t tensor, uint64_t first, uint64_t count,
                                coffer_error *err)
{
    coffer_status status = coffer__mcf_check_tensor(model, tensor, err);
    if (status)
        return status;
    uint64_t rows = coffer_mcf_row_count(coffer_mcf_tensor_at(model, tensor));
    if (coffer__range_fits(first, count, rows))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "%" PRIu64 " rows starting at %" PRIu64 " of tensor %s requested, it has %" PRIu64,
                        count, first, coffer__mcf_entry_name(&model->index, tensor).text, rows);
}

/* The rows are bytes [*begin, *begin + *len). The payload size was checked: nothing here overflows. */
static void bytes_of_rows(uint64_t *begin, uint64_t *len, const coffer_mcf_tensor *tensor, uint64_t first,
                          uint64_t count)
{
    uint64_t row = coffer_mcf_row_elements(tensor) * coffer_dtype_size(tensor->dtype);
    *begin = first * row;
    *len = count * row;
}

coffer_status coffer_mcf_read_rows(void *out, const coffer_mcf *model, size_t tensor, uint64_t first,
                                   uint64_t count, coffer_error *err)
{
    uint64_t begin, len;
    size_t size;
    coffer_status status = check_rows(model, tensor, first, count, err);
    if (status)
        return status;
    const coffer_mcf_tensor *info = coffer_mcf_tensor_at(model, tensor);
    if (coffer_dtype_is_quantized(info->dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, info->offset,
                            "tensor %s is quantized (%s): its rows are not contiguous",
                            coffer__mcf_entry_name(&model->index, tensor).text,
                            coffer_dtype_name(info->dtype));
    bytes_of_rows(&begin, &len, info, first, count);
    if (!coffer__to_size(&size, len))
        return coffer__fail_no_memory(err, len);
    return coffer_mcf_read(out, model, tensor, begin, size, err);
}

static coffer_status convert_plain(float *out, const coffer_mcf *model, size_t tensor,
                                   const coffer_mcf_tensor *info, uint64_t first, uint64_t count,
                                   coffer_error *err)
{
    size_t size = coffer_dtype_size(info->dtype), at_once = SCRATCH_SIZE / size;
    uint8_t *scratch = coffer__malloc(SCRATCH_SIZE);
    uint64_t begin, len;
    coffer_status status = COFFER_OK;
    if (!scratch)
        return coffer__fail_no_memory(err, SCRATCH_SIZE);
    bytes_of_rows(&begin, &len, info, first, count);
    for (uint64_t done = 0; !status && done < len / size;) {
        size_t n = len / size - done < at_once ? (size_t)(len / size - done) : at_once;
        status = coffer_mcf_read(scratch, model, tensor, begin + done * size, n * size, err);
        if (!status) {
            coffer__swap_numbers(scratch, size, n);
            coffer__elements_convert(out + done, COFFER_DTYPE_F32, scratch, info->dtype, n);
        }
        done += n;
    }
    coffer__free(scratch);
    return status;
}

typedef struct payload {
    const coffer_mcf *model;
    size_t tensor;
} payload;

static coffer_status read_payload(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const payload *from = context;
    return coffer_mcf_read(out, from->model, from->tensor, offset, len, err);
}

/* Decodes from the mapped file, after a look at the checksums of what is read. */
static coffer_status decode_view(float *out, const coffer_mcf *model, size_t tensor, const uint8_t *bytes,
                                 const coffer__quant_layout *layout, uint64_t first, uint64_t count,
                                 coffer_error *err)
{
    coffer__quant_region regions[COFFER__QUANT_PART_COUNT];
    coffer__quant_locate_rows(regions, layout, first, count);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++) {
        coffer_status status = regions[i].size
                                   ? coffer_mcf_verify(model, tensor, regions[i].offset, regions[i].size, err)
                                   : COFFER_OK;
        if (status)
            return status;
    }
    coffer__quant_decode_rows(out, layout, bytes, first, count);
    return coffer_source_intact(model->source, err);
}

static coffer_status decode_quantized(float *out, const coffer_mcf *model, size_t tensor,
                                      const coffer_mcf_tensor *info, uint64_t first, uint64_t count,
                                      coffer_error *err)
{
    payload context = { model, tensor };
    coffer__quant_layout layout;
    bool activations = !coffer__mcf_is_blocked(info->dtype) && coffer__mcf_has_activations(model, tensor);
    coffer_status status = coffer__quant_plan(&layout, info->dtype, info->rank, info->dims, activations, err);
    if (status || count == 0 || layout.cols == 0)
        return status;
    size_t size;
    const uint8_t *bytes =
        coffer__to_size(&size, info->size) ? coffer_source_view(model->source, info->offset, size) : NULL;
    return bytes ? decode_view(out, model, tensor, bytes, &layout, first, count, err)
                 : coffer__quant_read_rows(out, &layout, first, count, read_payload, &context, err);
}

coffer_status coffer_mcf_read_rows_f32(float *out, const coffer_mcf *model, size_t tensor, uint64_t first,
                                       uint64_t count, coffer_error *err)
{
    coffer_status status = check_rows(model, tensor, first, count, err);
    if (status)
        return status;
    const coffer_mcf_tensor *info = coffer_mcf_tensor_at(model, tensor);
    return coffer_dtype_is_quantized(info->dtype)
               ? decode_quantized(out, model, tensor, info, first, count, err)
               : convert_plain(out, model, tensor, info, first, count, err);
}
