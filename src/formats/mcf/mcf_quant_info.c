/* QuantInfo: how tensors were quantized. Payloads of q* and k* tensors can be read without it. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "quant/quant.h"

COFFER__INIT_FUNCTION(coffer_mcf_quant, COFFER_MCF_QUANT_INIT)

static coffer__mcf_quant_record load_record(const uint8_t *bytes)
{
    coffer__mcf_quant_record record;
    record.tensor = coffer__load_u32(bytes + COFFER__MCF_QUANT_TENSOR_AT);
    record.method = bytes[COFFER__MCF_QUANT_METHOD_AT];
    record.domain = bytes[COFFER__MCF_QUANT_DOMAIN_AT];
    record.block_size = coffer__load_u16(bytes + COFFER__MCF_QUANT_BLOCK_AT);
    record.super_size = coffer__load_u16(bytes + COFFER__MCF_QUANT_SUPER_AT);
    memcpy(record.reserved, bytes + COFFER__MCF_QUANT_RESERVED_AT, sizeof record.reserved);
    record.min_clip = coffer__load_f32(bytes + COFFER__MCF_QUANT_MIN_AT);
    record.max_clip = coffer__load_f32(bytes + COFFER__MCF_QUANT_MAX_AT);
    return record;
}

void coffer__mcf_store_quant_record(uint8_t out[COFFER__MCF_QUANT_RECORD],
                                    const coffer__mcf_quant_record *record)
{
    coffer__store_u32(out + COFFER__MCF_QUANT_TENSOR_AT, record->tensor);
    out[COFFER__MCF_QUANT_METHOD_AT] = record->method;
    out[COFFER__MCF_QUANT_DOMAIN_AT] = record->domain;
    coffer__store_u16(out + COFFER__MCF_QUANT_BLOCK_AT, record->block_size);
    coffer__store_u16(out + COFFER__MCF_QUANT_SUPER_AT, record->super_size);
    memcpy(out + COFFER__MCF_QUANT_RESERVED_AT, record->reserved, sizeof record->reserved);
    coffer__store_f32(out + COFFER__MCF_QUANT_MIN_AT, record->min_clip);
    coffer__store_f32(out + COFFER__MCF_QUANT_MAX_AT, record->max_clip);
}

static coffer_status check_layout(size_t *count, const uint8_t *bytes, size_t len, uint64_t base,
                                  coffer_error *err)
{
    uint32_t version, records;
    if (len < COFFER__MCF_QUANT_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base, "QuantInfo has %zu bytes, its header takes %d",
                            len, COFFER__MCF_QUANT_HEADER);
    version = coffer__load_u32(bytes + COFFER__MCF_QUANT_VERSION_AT);
    records = coffer__load_u32(bytes + COFFER__MCF_QUANT_COUNT_AT);
    if (version != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "QuantInfo has version %lu, this program reads %d", (unsigned long)version,
                            COFFER__MCF_SECTION_VERSION);
    if (!coffer__range_fits(COFFER__MCF_QUANT_HEADER, (uint64_t)records * COFFER__MCF_QUANT_RECORD, len))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + COFFER__MCF_QUANT_COUNT_AT,
                            "QuantInfo declares %lu records, it has %zu", (unsigned long)records,
                            (len - COFFER__MCF_QUANT_HEADER) / COFFER__MCF_QUANT_RECORD);
    *count = records;
    return COFFER_OK;
}

coffer_status coffer__mcf_read_quant_records(coffer__mcf_quant_record **out, size_t *count,
                                             coffer_source *src, const coffer_mcf_section *section,
                                             const coffer_limits *limits, coffer_error *err)
{
    coffer__mcf_quant_record *records = NULL;
    uint8_t *bytes = NULL;
    size_t len = 0, n = 0;
    uint64_t max;
    coffer_status status;
    if (!coffer__mul_u64(&max, limits->entries, COFFER__MCF_QUANT_RECORD))
        max = UINT64_MAX;
    if ((status = coffer__mcf_load_section(&bytes, &len, src, section, max, err)) ||
        (status = check_layout(&n, bytes, len, section->offset, err)))
        goto out;
    records = coffer__alloc_array(n, sizeof *records);
    if (!records) {
        status = coffer__fail_no_memory(err, n * sizeof *records);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        records[i] = load_record(bytes + COFFER__MCF_QUANT_HEADER + i * COFFER__MCF_QUANT_RECORD);
    *count = n;
    *out = records;
out:
    coffer__free(bytes);
    return status;
}

coffer_mcf_quant coffer__mcf_implied_quant(coffer_dtype dtype)
{
    const coffer__quant_type *type = coffer__quant_find_type(dtype);
    coffer_mcf_quant quant = { .struct_size = sizeof quant, .method = dtype };
    if (type) {
        quant.block_size = type->block_size;
        quant.super_size = type->super_size;
    }
    return quant;
}

bool coffer__mcf_has_activations(const coffer_mcf *model, size_t tensor)
{
    return tensor < model->index.count && model->quant_of && model->quant_of[tensor] != 0 &&
           model->quants[model->quant_of[tensor] - 1].domain == COFFER__MCF_DOMAIN_ACTIVATIONS;
}

static coffer_mcf_quant to_public(const coffer__mcf_quant_record *record)
{
    return (coffer_mcf_quant){ .struct_size = sizeof(coffer_mcf_quant),
                               .method = coffer_mcf_dtype_from_code(record->method),
                               .activations = record->domain == COFFER__MCF_DOMAIN_ACTIVATIONS,
                               .block_size = record->block_size,
                               .super_size = record->super_size,
                               .min_clip = record->min_clip,
                               .max_clip = record->max_clip };
}

/* A QuantInfo that cannot be read counts as absent: only int8 and int4 tensors need it. */
coffer_status coffer__mcf_load_quants(coffer_mcf *model, coffer_error *err)
{
    const coffer_mcf_section *section = coffer_mcf_find_section(model, COFFER_MCF_QUANT_INFO);
    if (model->index.count == 0 || !section)
        return COFFER_OK;
    coffer_status status = coffer__mcf_read_quant_records(&model->quants, &model->quant_count, model->source,
                                                          section, &model->limits, err);
    if (status)
        return coffer__is_about_file(status) ? COFFER_OK : status;
    model->quant_of = coffer__calloc(model->index.count, sizeof *model->quant_of);
    model->public_quants = coffer__alloc_array(model->quant_count, sizeof *model->public_quants);
    if (!model->quant_of || !model->public_quants)
        return coffer__fail_no_memory(err, model->index.count * sizeof *model->quant_of);
    for (size_t i = 0; i < model->quant_count; i++) {
        uint32_t tensor = model->quants[i].tensor;
        model->public_quants[i] = to_public(&model->quants[i]);
        if (tensor < model->index.count && model->quant_of[tensor] == 0)
            model->quant_of[tensor] = (uint32_t)i + 1;
    }
    return COFFER_OK;
}

const coffer_mcf_quant *coffer_mcf_quant_at(const coffer_mcf *model, size_t tensor)
{
    if (tensor >= model->index.count || !model->quant_of || model->quant_of[tensor] == 0)
        return NULL;
    return &model->public_quants[model->quant_of[tensor] - 1];
}
