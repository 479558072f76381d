/* Checks QuantInfo against the index: one record for each quantized tensor, none for the others. */
#include "formats/mcf/mcf_check.h"
#include "formats/mcf/mcf_quality.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>

static uint64_t place_of(const coffer__mcf_checker *check, size_t record)
{
    return check->quants_at + (uint64_t)record * COFFER__MCF_QUANT_RECORD;
}

static void check_reserved(const coffer__mcf_checker *check, size_t number)
{
    const coffer__mcf_quant_record *record = &check->quants[number];
    for (size_t i = 0; i < sizeof record->reserved; i++) {
        if (record->reserved[i] != 0) {
            coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                               place_of(check, number) + COFFER__MCF_QUANT_RESERVED_AT + i,
                               "QuantInfo record %zu: a reserved byte is %u, not 0", number,
                               record->reserved[i]);
            return;
        }
    }
}

static void check_sizes(const coffer__mcf_checker *check, size_t number, coffer_dtype method)
{
    const coffer__mcf_quant_record *record = &check->quants[number];
    coffer_mcf_quant implied = coffer__mcf_implied_quant(method);
    if (record->block_size != implied.block_size || record->super_size != implied.super_size)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR,
                           place_of(check, number) + COFFER__MCF_QUANT_BLOCK_AT,
                           "QuantInfo record %zu: %s with blocks of %u and %u instead of %u and %u", number,
                           coffer_dtype_name(method), record->block_size, record->super_size,
                           implied.block_size, implied.super_size);
    if (record->domain > COFFER__MCF_DOMAIN_ACTIVATIONS ||
        (record->domain == COFFER__MCF_DOMAIN_ACTIVATIONS && coffer__mcf_is_blocked(method)))
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR,
                           place_of(check, number) + COFFER__MCF_QUANT_DOMAIN_AT,
                           "QuantInfo record %zu: the domain of a %s tensor is %u", number,
                           coffer_dtype_name(method), record->domain);
}

static void check_clip(const coffer__mcf_checker *check, size_t number)
{
    const coffer__mcf_quant_record *record = &check->quants[number];
    uint64_t place = place_of(check, number) + COFFER__MCF_QUANT_MIN_AT;
    if (isnan(record->min_clip) || isnan(record->max_clip))
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, place,
                           "QuantInfo record %zu: a clip bound is not a number", number);
    else if (record->min_clip > record->max_clip)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR, place,
                           "QuantInfo record %zu: the smallest value %g is larger than the largest, %g",
                           number, (double)record->min_clip, (double)record->max_clip);
}

static void check_record(const coffer__mcf_checker *check, size_t number)
{
    const coffer__mcf_quant_record *record = &check->quants[number];
    coffer_dtype method = coffer_mcf_dtype_from_code(record->method);
    uint32_t dtype;
    check_reserved(check, number);
    check_clip(check, number);
    if (coffer_dtype_is_quantized(method))
        check_sizes(check, number, method);
    if (record->tensor >= check->index.count) {
        coffer__report_add(check->report, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, place_of(check, number),
                           "QuantInfo record %zu is for tensor %" PRIu32 ", the index has %zu", number,
                           record->tensor, check->index.count);
        if (coffer_dtype_is_quantized(method))
            return;
    }
    dtype = record->tensor < check->index.count ? coffer__mcf_index_entry(&check->index, record->tensor).dtype
                                                : record->method;
    if (!coffer_dtype_is_quantized(method) || record->method != dtype)
        coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_ERROR,
                           place_of(check, number) + COFFER__MCF_QUANT_METHOD_AT,
                           "QuantInfo record %zu has method 0x%x, its tensor type 0x%" PRIx32, number,
                           record->method, dtype);
    else if (check->quant_of[record->tensor] != number + 1)
        coffer__report_add(check->report, COFFER_E_DUPLICATE, COFFER_ERROR, place_of(check, number),
                           "tensor %s has more than one QuantInfo record",
                           coffer__mcf_entry_name(&check->index, record->tensor).text);
}

static void check_missing(const coffer__mcf_checker *check)
{
    for (size_t i = 0; i < check->index.count && !coffer__report_full(check->report); i++) {
        coffer_dtype dtype = coffer_mcf_dtype_from_code(coffer__mcf_index_entry(&check->index, i).dtype);
        if (coffer_dtype_is_quantized(dtype) && check->quant_of[i] == 0)
            coffer__report_add(check->report, COFFER_E_MISSING, COFFER_ERROR,
                               coffer__mcf_entry_at(&check->index, i),
                               "tensor %s is %s and has no QuantInfo record",
                               coffer__mcf_entry_name(&check->index, i).text, coffer_dtype_name(dtype));
    }
}

static coffer_status load_index(coffer__mcf_checker *check, coffer_error *err)
{
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_TENSOR_INDEX);
    coffer_error found = COFFER_ERROR_INIT;
    if (!section)
        return COFFER_OK;
    if (coffer__mcf_index_load(&check->index, check->source, section, &check->limits, &found))
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    check->has_index = true;
    return COFFER_OK;
}

static coffer_status load_records(coffer__mcf_checker *check, coffer_error *err)
{
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_QUANT_INFO);
    coffer_error found = COFFER_ERROR_INIT;
    uint64_t end;
    if (!section)
        return COFFER_OK;
    if (coffer__mcf_read_quant_records(&check->quants, &check->quant_count, check->source, section,
                                       &check->limits, &found))
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    check->quants_at = section->offset + COFFER__MCF_QUANT_HEADER;
    end = place_of(check, check->quant_count);
    if (section->offset + section->size > end)
        coffer__report_add(check->report, COFFER_E_TRAILING_BYTES, COFFER_WARNING, end,
                           "QuantInfo has %" PRIu64 " bytes after its %zu records",
                           section->offset + section->size - end, check->quant_count);
    return COFFER_OK;
}

bool coffer__mcf_checker_activations(const coffer__mcf_checker *check, size_t tensor)
{
    uint32_t dtype = coffer__mcf_index_entry(&check->index, tensor).dtype;
    const coffer__mcf_quant_record *record;
    if (check->quant_of[tensor] == 0)
        return false;
    record = &check->quants[check->quant_of[tensor] - 1];
    return record->domain == COFFER__MCF_DOMAIN_ACTIVATIONS && record->method == dtype &&
           !coffer__mcf_is_blocked(coffer_mcf_dtype_from_code(dtype));
}

coffer_status coffer__mcf_check_quants(coffer__mcf_checker *check, coffer_error *err)
{
    coffer_status status = load_index(check, err);
    if (!status)
        status = load_records(check, err);
    if (status)
        return status;
    check->quant_of = coffer__calloc(check->index.count ? check->index.count : 1, sizeof *check->quant_of);
    if (!check->quant_of)
        return coffer__fail_no_memory(err, check->index.count * sizeof *check->quant_of);
    for (size_t i = 0; i < check->quant_count; i++) {
        uint32_t tensor = check->quants[i].tensor;
        if (tensor < check->index.count && check->quant_of[tensor] == 0)
            check->quant_of[tensor] = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < check->quant_count && !coffer__report_full(check->report); i++)
        check_record(check, i);
    check_missing(check);
    return COFFER_OK;
}

/* ---- QuantQuality ---- */

static void check_quality_record(const coffer__mcf_checker *check, const coffer__mcf_qualities *qualities,
                                 size_t index)
{
    coffer__mcf_quality_record record;
    coffer_error found = COFFER_ERROR_INIT;
    uint64_t place = coffer__mcf_quality_place(qualities, index) + COFFER__MCF_QUALITY_RESERVED_AT;
    if (coffer__mcf_quality_at(&record, qualities, index, &found))
        coffer__report_add_error(check->report, COFFER_ERROR, &found);
    if (coffer__load_u32(qualities->raw + (place - qualities->base)))
        coffer__report_add(check->report, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, place,
                           "reserved bytes of record %zu of QuantQuality are not zero", index);
}

coffer_status coffer__mcf_check_quality(coffer__mcf_checker *check, coffer_error *err)
{
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_QUALITY);
    coffer__mcf_qualities qualities = { 0 };
    coffer_error found = COFFER_ERROR_INIT;
    if (!section)
        return COFFER_OK;
    if (coffer__mcf_quality_load(&qualities, check->source, section, &check->limits, &found))
        return coffer__report_take(check->report, COFFER_ERROR, &found, err);
    for (size_t i = 0; i < qualities.count && !coffer__report_full(check->report); i++)
        check_quality_record(check, &qualities, i);
    coffer__mcf_quality_free(&qualities);
    return COFFER_OK;
}
