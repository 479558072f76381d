/* How many bytes a tensor takes, and what an entry of the index says about that. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "quant/quant.h"

bool coffer__mcf_elements(uint64_t *out, uint32_t rank, const uint64_t *dims)
{
    uint64_t elements = 1;
    bool fits = true;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0) { /* whatever the others are */
            *out = 0;
            return true;
        }
        fits = fits && coffer__mul_u64(&elements, elements, dims[i]);
    }
    if (fits)
        *out = elements;
    return fits;
}

bool coffer__mcf_is_blocked(coffer_dtype dtype)
{
    return coffer_dtype_is_quantized(dtype) && dtype != COFFER_DTYPE_INT8 && dtype != COFFER_DTYPE_INT4;
}

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

coffer_status coffer_mcf_payload_size(uint64_t *out, coffer_dtype dtype, uint32_t rank, const uint64_t *dims,
                                      bool activations, coffer_error *err)
{
    coffer__quant_layout layout;
    uint64_t elements, size;
    coffer_status status;
    if (coffer_mcf_dtype_code(dtype) == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "MCF has no type %s",
                            coffer_dtype_name(dtype));
    if (!coffer_dtype_is_quantized(dtype)) {
        if (!coffer__mcf_elements(&elements, rank, dims) ||
            !coffer__mul_u64(&size, elements, coffer_dtype_size(dtype)))
            return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                "the payload of that shape does not fit into 64 bits");
        *out = size;
        return COFFER_OK;
    }
    status = coffer__quant_plan(&layout, dtype, rank, dims, activations, err);
    if (status == COFFER_OK)
        *out = layout.size;
    return status;
}

/* ---- What an entry of the index says about its payload ---- */

coffer_status coffer__mcf_check_payload_range(const coffer__mcf_index *index, size_t position,
                                              uint64_t file_size, const coffer_mcf_section *data,
                                              coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    uint64_t place = coffer__mcf_entry_at(index, position) + COFFER__MCF_ENTRY_OFFSET_AT;
    if (!coffer__range_fits(entry.offset, entry.size, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s takes %llu bytes at %llu, file has %llu",
                            coffer__mcf_entry_name(index, position).text, (unsigned long long)entry.size,
                            (unsigned long long)entry.offset, (unsigned long long)file_size);
    if (data && entry.size > 0 &&
        (entry.offset < data->offset ||
         !coffer__range_fits(entry.offset - data->offset, entry.size, data->size)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s, %llu bytes at %llu, is not inside TensorData, %llu bytes at %llu",
                            coffer__mcf_entry_name(index, position).text, (unsigned long long)entry.size,
                            (unsigned long long)entry.offset, (unsigned long long)data->size,
                            (unsigned long long)data->offset);
    return COFFER_OK;
}

/* Codes alone, where a scale should stand before them. */
static bool lacks_scale(coffer_dtype dtype, uint64_t elements, uint64_t size)
{
    return (dtype == COFFER_DTYPE_INT8 && size == elements) ||
           (dtype == COFFER_DTYPE_INT4 && size == divide_up(elements, 2));
}

coffer_status coffer__mcf_check_payload_size(const coffer__mcf_index *index, size_t position,
                                             bool activations, coffer_error *err)
{
    coffer__mcf_entry entry = coffer__mcf_index_entry(index, position);
    coffer_dtype dtype = coffer_mcf_dtype_from_code(entry.dtype);
    uint64_t place = coffer__mcf_entry_at(index, position), implied, elements;
    coffer__mcf_name name = coffer__mcf_entry_name(index, position);
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_status status;
    if (dtype == COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place, "tensor %s has the unknown type 0x%lx", name.text,
                            (unsigned long)entry.dtype);
    if (!entry.dims)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, place,
                            "tensor %s has %lu dims starting at %lu, the index has %zu", name.text,
                            (unsigned long)entry.rank, (unsigned long)entry.dim_off, index->dim_count);
    status = coffer_mcf_payload_size(&implied, dtype, entry.rank, entry.dims, activations, &cause);
    if (status)
        return coffer__fail(err, status, place, "tensor %s: %s", name.text, cause.text);
    if (implied == entry.size)
        return COFFER_OK;
    if (coffer__mcf_elements(&elements, entry.rank, entry.dims) && lacks_scale(dtype, elements, entry.size))
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                            "tensor %s: %s payload has no scale region (written by mantle's --quant-embed?)",
                            name.text, coffer_dtype_name(dtype));
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, place,
                        "tensor %s has %llu bytes, its type and shape require %llu", name.text,
                        (unsigned long long)entry.size, (unsigned long long)implied);
}
