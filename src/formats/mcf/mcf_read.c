/* Sections, tensors and their rows. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <inttypes.h>

/* ---- Sections ---- */

uint64_t coffer_mcf_flags(const coffer_mcf *model)
{
    return model->header.flags;
}

size_t coffer_mcf_section_count(const coffer_mcf *model)
{
    return model->section_count;
}

const coffer_mcf_section *coffer_mcf_section_at(const coffer_mcf *model, size_t index)
{
    return index < model->section_count ? &model->sections[index] : NULL;
}

const coffer_mcf_section *coffer_mcf_find_section(const coffer_mcf *model, uint32_t type)
{
    return coffer__mcf_first_section(model->sections, model->section_count, type);
}

coffer_status coffer_mcf_require(const coffer_mcf *model, const uint32_t *types, size_t count,
                                 coffer_error *err)
{
    coffer__buffer missing = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count; i++) {
        if (!coffer_mcf_find_section(model, types[i]))
            coffer__buffer_printf(&missing, "%s%s", missing.len > 0 ? ", " : "",
                                  coffer__mcf_section_label(types[i]).text);
    }
    if (missing.failed)
        status = coffer__fail_no_memory(err, count);
    else if (missing.len > 0)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "section missing: %s",
                              coffer__buffer_text(&missing));
    coffer__buffer_free(&missing);
    return status;
}

coffer_status coffer_mcf_read_section(uint8_t **out, size_t *len, const coffer_mcf *model, uint32_t type,
                                      coffer_error *err)
{
    coffer_status status = coffer_mcf_require(model, &type, 1, err);
    if (status)
        return status;
    const coffer_mcf_section *section = coffer_mcf_find_section(model, type);
    status = coffer__mcf_verify_section_read(model, section, err);
    return status ? status
                  : coffer__mcf_load_section(out, len, model->source, section, model->limits.json_bytes, err);
}

/* ---- Tensors ---- */

size_t coffer_mcf_tensor_count(const coffer_mcf *model)
{
    return model->index.count;
}

const coffer_mcf_tensor *coffer_mcf_tensor_at(const coffer_mcf *model, size_t index)
{
    return index < model->index.count ? &model->tensors[index] : NULL;
}

/* Built once; when two threads build it at the same time, one copy is dropped. */
static const uint32_t *order_of(const coffer_mcf *model)
{
    uint32_t *_Atomic *place = &((coffer_mcf *)(uintptr_t)model)->order;
    uint32_t *order = atomic_load(place), *nothing = NULL;
    if (order || coffer__mcf_index_order(&order, &model->index, NULL))
        return order;
    if (!atomic_compare_exchange_strong(place, &nothing, order)) {
        coffer__free(order);
        order = nothing;
    }
    return order;
}

/* Fallback without memory: compares every name. */
static size_t find_one_by_one(const coffer_mcf *model, const char *name, size_t name_len)
{
    for (size_t i = 0; i < model->index.count; i++) {
        if (coffer__mcf_index_compare(&model->index, i, name, name_len) == 0)
            return i;
    }
    return COFFER_INDEX_NONE;
}

size_t coffer_mcf_find_tensor(const coffer_mcf *model, const char *name, size_t name_len)
{
    const uint32_t *order = model->sorted ? NULL : order_of(model);
    if (!model->sorted && !order)
        return find_one_by_one(model, name, name_len);
    return coffer__mcf_index_find(&model->index, order, name, name_len);
}

uint64_t coffer_mcf_row_count(const coffer_mcf_tensor *tensor)
{
    return tensor->rank < 2 ? 1 : tensor->dims[0];
}

uint64_t coffer_mcf_row_elements(const coffer_mcf_tensor *tensor)
{
    uint64_t elements = 0;
    if (tensor->rank < 2)
        return tensor->elements;
    if (!coffer__mcf_elements(&elements, tensor->rank - 1, tensor->dims + 1))
        return 0;
    return elements;
}

/* ---- Payloads ---- */

static coffer_status check_position(const coffer_mcf *model, size_t tensor, coffer_error *err)
{
    if (tensor < model->index.count)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "tensor %zu requested, the model has %zu", tensor, model->index.count);
}

coffer_status coffer__mcf_check_range(const coffer_mcf *model, size_t tensor, coffer_error *err)
{
    coffer_status status = check_position(model, tensor, err);
    return status ? status
                  : coffer__mcf_check_payload_range(&model->index, tensor, coffer_source_size(model->source),
                                                    model->has_data ? &model->data : NULL, err);
}

coffer_status coffer__mcf_check_tensor(const coffer_mcf *model, size_t tensor, coffer_error *err)
{
    coffer_status status = coffer__mcf_check_range(model, tensor, err);
    if (status)
        return status;
    coffer_dtype dtype = coffer_mcf_dtype_from_code(coffer__mcf_index_entry(&model->index, tensor).dtype);
    /* Only int8 and int4 have a domain; in records of other types it is ignored. */
    bool activations = (dtype == COFFER_DTYPE_INT8 || dtype == COFFER_DTYPE_INT4) &&
                       coffer__mcf_has_activations(model, tensor);
    return coffer__mcf_check_payload_size(&model->index, tensor, activations, err);
}

/* Finds a part of a tensor and fails where it is known to be damaged. */
static coffer_status find_part(uint64_t *offset, const coffer_mcf *model, size_t tensor, uint64_t begin,
                               size_t len, coffer_error *err)
{
    coffer_status status = coffer__mcf_check_range(model, tensor, err);
    if (status)
        return status;
    coffer__mcf_entry entry = coffer__mcf_index_entry(&model->index, tensor);
    if (!coffer__range_fits(begin, len, entry.size))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%zu bytes at %" PRIu64 " of tensor %s requested, it has %" PRIu64, len, begin,
                            coffer__mcf_entry_name(&model->index, tensor).text, entry.size);
    *offset = entry.offset + begin;
    return coffer__mcf_check_known_damage(model, tensor, begin, len, err);
}

coffer_status coffer_mcf_read(void *out, const coffer_mcf *model, size_t tensor, uint64_t begin, size_t len,
                              coffer_error *err)
{
    uint64_t offset;
    coffer_status status = find_part(&offset, model, tensor, begin, len, err);
    if (!status)
        status = coffer_source_read_at(out, model->source, offset, len, err);
    if (status || model->allow_damaged)
        return status;
    return coffer__mcf_verify_read(model, offset, len, out, err);
}

coffer_status coffer__mcf_fetch(const uint8_t **out, const coffer_mcf *model, size_t tensor, uint64_t begin,
                                size_t len, uint8_t *scratch, coffer_error *err)
{
    uint64_t offset;
    const uint8_t *bytes = NULL;
    coffer_status status = find_part(&offset, model, tensor, begin, len, err);
    if (!status)
        status = coffer__source_fetch(&bytes, model->source, offset, len, scratch, err);
    if (!status && !model->allow_damaged)
        status = coffer__mcf_verify_read(model, offset, len, bytes, err);
    if (!status)
        *out = bytes;
    return status;
}

const uint8_t *coffer_mcf_view(const coffer_mcf *model, size_t tensor)
{
    coffer__mcf_entry entry;
    size_t len;
    if (coffer__mcf_check_range(model, tensor, NULL))
        return NULL;
    entry = coffer__mcf_index_entry(&model->index, tensor);
    if (!coffer__to_size(&len, entry.size) || coffer_mcf_verify(model, tensor, 0, len, NULL))
        return NULL;
    return coffer_source_view(model->source, entry.offset, len);
}
