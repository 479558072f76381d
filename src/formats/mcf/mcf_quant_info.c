/* QuantInfo: how tensors were quantized. Payloads of q* and k* tensors can be read without it. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant.h"

static coffer__mcf_quant_record load_record(const uint8_t *at)
{
    coffer__mcf_quant_record record;
    record.tensor = coffer__load_u32(at);
    record.method = at[4];
    record.domain = at[5];
    record.block_size = coffer__load_u16(at + 6);
    record.super_size = coffer__load_u16(at + 8);
    memcpy(record.reserved, at + COFFER__MCF_QUANT_RESERVED_AT, sizeof record.reserved);
    record.min_clip = coffer__load_f32(at + 16);
    record.max_clip = coffer__load_f32(at + 20);
    return record;
}

void coffer__mcf_store_quant_record(uint8_t out[COFFER__MCF_QUANT_RECORD],
                                    const coffer__mcf_quant_record *record)
{
    coffer__store_u32(out, record->tensor);
    out[4] = record->method;
    out[5] = record->domain;
    coffer__store_u16(out + 6, record->block_size);
    coffer__store_u16(out + 8, record->super_size);
    memcpy(out + COFFER__MCF_QUANT_RESERVED_AT, record->reserved, sizeof record->reserved);
    coffer__store_f32(out + 16, record->min_clip);
    coffer__store_f32(out + 20, record->max_clip);
}

static coffer_status check_layout(size_t *count, const uint8_t *bytes, size_t len, uint64_t base,
                                  coffer_error *err)
{
    uint32_t version, records;
    if (len < COFFER__MCF_QUANT_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base, "QuantInfo has %zu bytes, its header takes %d",
                            len, COFFER__MCF_QUANT_HEADER);
    version = coffer__load_u32(bytes);
    records = coffer__load_u32(bytes + 4);
    if (version != COFFER__MCF_SECTION_VERSION)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "QuantInfo has version %lu, this program reads %d", (unsigned long)version,
                            COFFER__MCF_SECTION_VERSION);
    if (!coffer__range_fits(COFFER__MCF_QUANT_HEADER, (uint64_t)records * COFFER__MCF_QUANT_RECORD, len))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + 4, "QuantInfo says %lu records, it has %zu",
                            (unsigned long)records,
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
    coffer_mcf_quant quant = { .method = dtype };
    if (type) {
        quant.block_size = type->block_size;
        quant.super_size = type->super_size;
    }
    return quant;
}

bool coffer_mcf_get_quant(coffer_mcf_quant *out, const coffer_mcf *model, size_t tensor)
{
    const coffer__mcf_quant_record *record;
    if (tensor >= model->index.count || !model->quant_of || model->quant_of[tensor] == 0)
        return false;
    record = &model->quants[model->quant_of[tensor] - 1];
    *out = (coffer_mcf_quant){ .method = coffer_mcf_dtype_from_code(record->method),
                               .activations = record->domain == 1,
                               .block_size = record->block_size,
                               .super_size = record->super_size,
                               .min_clip = record->min_clip,
                               .max_clip = record->max_clip };
    return true;
}
