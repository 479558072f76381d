/* The parts of a value: the texts of a hierarchical text, and what a multimodal sample is made of. */
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mldf/analyze/mldf_survey.h"

#include <inttypes.h>

struct coffer_mldf_parts {
    coffer_bytes value;
    coffer_mldf_part *parts;
    size_t count;
};

COFFER__INIT_FUNCTION(coffer_mldf_part, COFFER_MLDF_PART_INIT)

/* The bytes have been checked: every part is inside of them. */
static void take_texts(coffer_mldf_parts *parts)
{
    const uint8_t *ends = parts->value.data + sizeof(uint32_t);
    const uint8_t *text = ends + parts->count * sizeof(uint32_t);
    uint32_t last = 0;
    for (size_t i = 0; i < parts->count; i++) {
        uint32_t end = coffer__load_u32(ends + i * sizeof(uint32_t));
        parts->parts[i] = (coffer_mldf_part)COFFER_MLDF_PART_INIT;
        parts->parts[i].type = COFFER_MLDF_TEXT;
        parts->parts[i].bytes = text + last;
        parts->parts[i].size = end - last;
        last = end;
    }
}

static void take_mixture(coffer_mldf_parts *parts)
{
    coffer__cursor cursor = coffer__cursor_over(parts->value.data, parts->value.size, 0);
    coffer__cursor_skip(&cursor, sizeof(uint32_t));
    for (size_t i = 0; i < parts->count; i++) {
        coffer_mldf_part part = COFFER_MLDF_PART_INIT;
        part.type = coffer__cursor_u16(&cursor);
        part.name_len = coffer__cursor_u16(&cursor);
        part.size = coffer__cursor_u32(&cursor);
        part.name = (const char *)coffer__cursor_bytes(&cursor, part.name_len);
        part.bytes = coffer__cursor_bytes(&cursor, part.size);
        parts->parts[i] = part;
    }
}

static coffer_status take_parts(coffer_mldf_parts *parts, const coffer_mldf *set, uint64_t sample,
                                size_t index, coffer_error *err)
{
    const coffer_mldf_field *field = &set->schema.fields[index];
    coffer_mldf_entry entry;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status =
        coffer__mldf_read_with_spare(&parts->value, &entry, set, sample, index, false, 0, err);
    if (status)
        return status;
    if (!entry.present)
        return coffer__mldf_fail_value(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, set, sample, index,
                                       "no value");
    status =
        coffer__mldf_check_content(field, &entry, parts->value.data, parts->value.size, &set->limits, &found);
    if (status)
        return coffer__mldf_fail_value(err, status, entry.offset, set, sample, index, "%s", found.text);
    parts->count = coffer__load_u32(parts->value.data);
    parts->parts = coffer__alloc_array(parts->count ? parts->count : 1, sizeof *parts->parts);
    if (!parts->parts)
        return coffer__fail_no_memory(err, parts->count * sizeof *parts->parts);
    if (field->type == COFFER_MLDF_TEXT_HIERARCHICAL)
        take_texts(parts);
    else
        take_mixture(parts);
    return COFFER_OK;
}

coffer_status coffer_mldf_get_parts(coffer_mldf_parts **out, const coffer_mldf *set, uint64_t sample,
                                    size_t field, coffer_error *err)
{
    coffer_status status = coffer__mldf_check_index(set, sample, field, err);
    if (status)
        return status;
    uint16_t type = set->schema.fields[field].type;
    if (type != COFFER_MLDF_TEXT_HIERARCHICAL && type != COFFER_MLDF_MULTIMODAL)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s has neither hierarchical texts nor multimodal samples",
                            set->schema.fields[field].name);
    coffer_mldf_parts *parts = coffer__calloc(1, sizeof *parts);
    if (!parts)
        return coffer__fail_no_memory(err, sizeof *parts);
    status = take_parts(parts, set, sample, field, err);
    if (status) {
        coffer_mldf_parts_free(parts);
        return status;
    }
    *out = parts;
    return COFFER_OK;
}

void coffer_mldf_parts_free(coffer_mldf_parts *parts)
{
    if (!parts)
        return;
    coffer_free(parts->value.data);
    coffer__free(parts->parts);
    coffer__free(parts);
}

size_t coffer_mldf_parts_count(const coffer_mldf_parts *parts)
{
    return parts->count;
}

coffer_status coffer_mldf_parts_at(coffer_mldf_part *out, const coffer_mldf_parts *parts, size_t index,
                                   coffer_error *err)
{
    if (index >= parts->count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "part %zu requested, the value has %zu", index, parts->count);
    return coffer__give_struct(out, &parts->parts[index], sizeof parts->parts[index], err);
}
