/* The list of tensors of a new model: names, shapes and records. */
#include "formats/mcf/mcf_writer.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/options.h"
#include "base/utf8.h"

#include <inttypes.h>

COFFER__INIT_FUNCTION(coffer_mcf_new_tensor, COFFER_MCF_NEW_TENSOR_INIT)

const char *coffer__mcf_new_name(const coffer_mcf_writer *writer, const coffer__mcf_new *tensor)
{
    return (const char *)writer->names.data + tensor->name_at;
}

static coffer_status check_name(const coffer_mcf_writer *writer, const char *name, size_t name_len,
                                coffer_error *err)
{
    coffer__table_probe probe =
        coffer__table_begin(&writer->by_name, coffer__table_hash(&writer->by_name, name, name_len));
    uint32_t item;
    if (name_len > UINT32_MAX || writer->names.len > UINT32_MAX - name_len)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "names of %zu and %zu bytes: an index has room for 4 GiB", writer->names.len,
                            name_len);
    while ((item = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        const coffer__mcf_new *other = &writer->tensors[item];
        if (coffer__mcf_compare_names(coffer__mcf_new_name(writer, other), other->name_len, name, name_len) ==
            0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE,
                                "tensor \"%.*s\" was already added", (int)(name_len < 64 ? name_len : 64),
                                name);
    }
    return COFFER_OK;
}

static coffer_status check_room(const coffer_mcf_writer *writer, uint32_t rank, coffer_error *err)
{
    uint64_t dims = writer->dims.len / sizeof(uint64_t);
    if (writer->in_tensor)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the previous tensor was not ended");
    if (writer->tensor_count >= UINT32_MAX - 1 || rank > UINT32_MAX - dims)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%zu tensors with %" PRIu64 " dims: an index has no room for more",
                            writer->tensor_count, dims);
    return COFFER_OK;
}

static coffer_status begin_area(coffer_mcf_writer *writer, coffer_error *err)
{
    coffer_status status;
    if (writer->area_begun)
        return COFFER_OK;
    status = coffer__mcf_write_files(writer, err);
    if (!status)
        status = coffer__mcf_writer_align(writer, writer->opts.align, err);
    if (!status) {
        writer->area = coffer__sink_position(writer->sink);
        writer->area_begun = true;
    }
    return status;
}

/* Adds a tensor to the list; its payload is at tensor->offset. */
static coffer_status add_tensor(coffer_mcf_writer *writer, coffer__mcf_new *tensor, const char *name,
                                size_t name_len, const uint64_t *dims, coffer_error *err)
{
    coffer_status status = check_name(writer, name, name_len, err);
    if (!status)
        status = coffer__array_reserve_one(&writer->tensors, &writer->tensor_capacity, writer->tensor_count,
                                           sizeof *tensor, err);
    if (status)
        return status;
    tensor->name_at = writer->names.len;
    tensor->name_len = (uint32_t)name_len;
    tensor->dim_at = (uint32_t)(writer->dims.len / sizeof(uint64_t));
    coffer__buffer_append(&writer->names, name, name_len);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint8_t dim[sizeof(uint64_t)];
        coffer__store_u64(dim, dims[i]);
        coffer__buffer_append(&writer->dims, dim, sizeof dim);
    }
    if (writer->names.failed || writer->dims.failed)
        return coffer__fail_no_memory(err, name_len);
    writer->foreign_names = writer->foreign_names || !coffer__utf8_valid(name, name_len);
    status = coffer__table_add(&writer->by_name, coffer__table_hash(&writer->by_name, name, name_len),
                               writer->tensor_count, err);
    if (!status)
        writer->tensors[writer->tensor_count++] = *tensor;
    return status;
}

coffer_status coffer__mcf_begin_raw(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, uint64_t size,
                                    const coffer__mcf_quant_record *quant, coffer_error *err)
{
    coffer__mcf_new tensor = { .dtype = dtype, .rank = rank, .size = size, .quantized = quant != NULL };
    coffer_status status;
    if (quant)
        tensor.quant = *quant;
    status = check_room(writer, rank, err);
    if (!status)
        status = begin_area(writer, err);
    if (status)
        return status;
    writer->payload_end = coffer__sink_position(writer->sink);
    tensor.offset = writer->area; /* of a tensor without bytes: inside TensorData, and aligned */
    if (size > 0) {
        status = coffer__mcf_writer_align(writer, writer->opts.align, err);
        if (status)
            return status;
        tensor.offset = coffer__sink_position(writer->sink);
    }
    status = add_tensor(writer, &tensor, name, name_len, dims, err);
    if (!status) {
        writer->in_tensor = true;
        writer->written = 0;
    }
    return status;
}

coffer_status coffer__mcf_add_alias(coffer_mcf_writer *writer, const char *name, size_t name_len,
                                    uint32_t dtype, uint32_t rank, const uint64_t *dims, size_t original,
                                    const coffer__mcf_quant_record *quant, coffer_error *err)
{
    coffer__mcf_new tensor = { .dtype = dtype,
                               .rank = rank,
                               .offset = writer->tensors[original].offset,
                               .size = writer->tensors[original].size,
                               .quantized = quant != NULL };
    coffer_status status = check_room(writer, rank, err);
    if (quant)
        tensor.quant = *quant;
    return status ? status : add_tensor(writer, &tensor, name, name_len, dims, err);
}

/* quant : of the caller, or NULL. */
static coffer_status make_record(coffer__mcf_quant_record *out, const coffer_mcf_new_tensor *tensor,
                                 const coffer_mcf_quant *quant, coffer_error *err)
{
    coffer_mcf_quant implied = coffer__mcf_implied_quant(tensor->dtype);
    if (quant && quant->method != tensor->dtype && quant->method != COFFER_DTYPE_NONE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor of type %s has a quantization record of type %s",
                            coffer_dtype_name(tensor->dtype), coffer_dtype_name(quant->method));
    *out = (coffer__mcf_quant_record){ .method = (uint8_t)coffer_mcf_dtype_code(tensor->dtype),
                                       .block_size = implied.block_size,
                                       .super_size = implied.super_size };
    if (quant) {
        out->domain = quant->activations ? COFFER__MCF_DOMAIN_ACTIVATIONS : COFFER__MCF_DOMAIN_WEIGHTS;
        out->min_clip = quant->min_clip;
        out->max_clip = quant->max_clip;
    }
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_begin_tensor(coffer_mcf_writer *writer, const coffer_mcf_new_tensor *tensor,
                                             coffer_error *err)
{
    coffer_mcf_new_tensor known = COFFER_MCF_NEW_TENSOR_INIT;
    coffer_mcf_quant quant = COFFER_MCF_QUANT_INIT;
    coffer__mcf_quant_record record = { 0 };
    uint64_t size;
    coffer_status status = coffer__take_options(&known, sizeof known, tensor, err);
    if (!status && known.quant)
        status = coffer__take_options(&quant, sizeof quant, known.quant, err);
    if (status)
        return status;
    bool quantized = coffer_dtype_is_quantized(known.dtype);
    if (!coffer__utf8_valid(known.name, known.name_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "a tensor's name is not UTF-8");
    if (known.quant && !quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor of type %s has no quantization record", coffer_dtype_name(known.dtype));
    status = coffer_mcf_payload_size(&size, known.dtype, known.rank, known.dims, quant.activations, err);
    if (!status && quantized)
        status = make_record(&record, &known, known.quant ? &quant : NULL, err);
    if (status)
        return status;
    return coffer__mcf_begin_raw(writer, known.name, known.name_len, coffer_mcf_dtype_code(known.dtype),
                                 known.rank, known.dims, size, quantized ? &record : NULL, err);
}
