/* Parts of the metadata that Coffer adds to the specification: scales, marks of damage, places of records. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mscan/mscan_layout.h"
#include "formats/mscan/mscan_metadata.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_kind(const coffer__json_value *value, coffer__json_kind kind)
{
    return value && value->kind == kind;
}

static bool read_scale(coffer_mscan_quantization *out, const coffer__json_value *value)
{
    out->struct_size = sizeof *out;
    return coffer__json_f64(&out->scale, coffer__json_find(value, "scale")) &&
           coffer__json_f64(&out->offset, coffer__json_find(value, "offset")) && isfinite(out->scale) &&
           isfinite(out->offset);
}

static bool read_param_scales(coffer_mscan_quantization *out, const coffer__mscan_metadata *metadata,
                              const coffer__json_value *values)
{
    const coffer__json_value *value;
    if (!is_kind(values, COFFER__JSON_OBJECT))
        return false;
    for (value = coffer__json_first(values); value; value = coffer__json_next(values, value)) {
        coffer_mscan_quantization scale;
        uint64_t id;
        if (!coffer__mscan_parse_id(&id, value->key, value->key_len) || !read_scale(&scale, value))
            return false;
        if (id < COFFER__MSCAN_PARAM_IDS && metadata->param_index[id])
            out[metadata->param_index[id] - 1] = scale;
    }
    return true;
}

static bool read_sequence_scales(coffer_mscan_quantization *out, const coffer__mscan_metadata *metadata,
                                 const coffer__json_value *values)
{
    const coffer__json_value *value;
    size_t index = 0;
    if (!is_kind(values, COFFER__JSON_ARRAY))
        return false;
    for (value = coffer__json_first(values); value && index < metadata->sequence_count;
         value = coffer__json_next(values, value)) {
        if (!read_scale(&out[index++], value))
            return false;
    }
    return true;
}

static bool is_text(const coffer__json_value *value, const char *text)
{
    return is_kind(value, COFFER__JSON_STRING) && strcmp(value->as.string, text) == 0;
}

/* *understood is false when the entry says something this version does not know. */
static coffer_status read_scales(bool *understood, coffer__mscan_scales *out,
                                 const coffer__mscan_loader *load, const coffer__json_value *entry)
{
    const coffer__json_value *scope = coffer__json_find(entry, "scope");
    const coffer__json_value *values = coffer__json_find(entry, "values");
    bool by_param = is_text(scope, "param"), by_sequence = is_text(scope, "sequence");
    size_t count = by_param ? load->out->param_count : load->out->sequence_count;

    *understood = false;
    if (!is_text(coffer__json_find(entry, "kind"), "linear"))
        return COFFER_OK;
    out->has_common = read_scale(&out->common, entry);
    if (!scope || is_text(scope, "file")) {
        out->scope = COFFER_MSCAN_SCALE_FILE;
        *understood = out->has_common;
        return COFFER_OK;
    }
    if (!by_param && !by_sequence)
        return COFFER_OK;
    out->scope = by_param ? COFFER_MSCAN_SCALE_PARAM : COFFER_MSCAN_SCALE_SEQUENCE;
    out->values = coffer__alloc_array(count, sizeof *out->values);
    if (!out->values)
        return coffer__fail_no_memory(load->err, count * sizeof *out->values);
    for (size_t i = 0; i < count; i++)
        out->values[i].scale = NAN;
    *understood = by_param ? read_param_scales(out->values, load->out, values)
                           : read_sequence_scales(out->values, load->out, values);
    return COFFER_OK;
}

coffer_status coffer__mscan_load_scales(coffer__mscan_loader *load, coffer_mscan_metric metric,
                                        const char *key)
{
    const coffer__json_value *quantization = coffer__json_find(load->out->root, "quantization");
    const coffer__json_value *entry = coffer__json_find(quantization, key);
    coffer__mscan_scales scales = { 0 };
    bool understood = true;
    coffer_status status = COFFER_OK;

    if (entry)
        status = read_scales(&understood, &scales, load, entry);
    else if (is_kind(quantization, COFFER__JSON_OBJECT) || !quantization)
        return COFFER_OK;
    else
        understood = false;
    if (status || !understood) {
        coffer__free(scales.values);
        if (!status && load->report)
            coffer__report_add(load->report, COFFER_E_BAD_VALUE, COFFER_WARNING, load->base,
                               "the quantization of %s is not understood: its values stay raw integers", key);
        return status;
    }
    load->out->scales[metric] = scales;
    return COFFER_OK;
}

/* ---- Damage that is known ---- */

coffer_status coffer__mscan_load_marks(coffer__mscan_loader *load)
{
    coffer__mscan_metadata *out = load->out;
    const coffer__json_value *list = coffer__json_find(out->root, "damage"), *value;
    if (!list)
        return COFFER_OK;
    if (list->kind != COFFER__JSON_ARRAY)
        return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE, "\"damage\" is %s, not an array",
                                    coffer__mscan_kind_name(list));
    if (list->as.count > load->limits->entries)
        return coffer__fail(load->err, COFFER_E_LIMIT, load->base,
                            "%" PRIu64 " entries of \"damage\", the limit is %" PRIu64, list->as.count,
                            load->limits->entries);
    out->marks = coffer__alloc_array((size_t)list->as.count, sizeof *out->marks);
    if (!out->marks)
        return coffer__fail_no_memory(load->err, list->as.count * sizeof *out->marks);
    for (value = coffer__json_first(list); value; value = coffer__json_next(list, value)) {
        coffer__mscan_mark mark = { .in_metadata = is_text(coffer__json_find(value, "what"), "metadata") };
        uint64_t crc = 0;
        bool has_range = coffer__json_u64(&mark.first_record, coffer__json_find(value, "first_record")) &&
                         coffer__json_u64(&mark.num_records, coffer__json_find(value, "num_records"));
        if (!mark.in_metadata && !has_range)
            return coffer__mscan_refuse(load, COFFER_E_BAD_VALUE,
                                        "an entry of \"damage\" does not say where it is");
        mark.unverified = is_text(coffer__json_find(value, "state"), "unverified");
        mark.has_crc = coffer__json_u64(&crc, coffer__json_find(value, "crc32")) && crc <= UINT32_MAX;
        mark.crc = (uint32_t)crc;
        out->marks[out->mark_count++] = mark;
    }
    return COFFER_OK;
}

/* ---- Places of records ---- */

coffer__mscan_extent coffer__mscan_extent_of(const coffer__json_value *value)
{
    coffer__mscan_extent extent = { 0 };
    uint64_t crc = 0;
    extent.has_range = coffer__json_u64(&extent.first_record, coffer__json_find(value, "first_record")) &&
                       coffer__json_u64(&extent.num_records, coffer__json_find(value, "num_records"));
    extent.has_crc =
        extent.has_range && coffer__json_u64(&crc, coffer__json_find(value, "crc32")) && crc <= UINT32_MAX;
    extent.crc = (uint32_t)crc;
    return extent;
}
