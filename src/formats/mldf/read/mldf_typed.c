/* Values as what their field says they are. */
#include "formats/mldf/mldf_private.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "formats/mldf/analyze/mldf_survey.h"

#include <inttypes.h>

static coffer_status fail_type(const coffer_mldf *set, uint64_t sample, size_t field, const char *wanted,
                               coffer_error *err)
{
    const char *name = coffer_mldf_type_name(set->schema.fields[field].type);
    return coffer__mldf_fail_value(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, set, sample, field,
                                   "asked for as %s, the field holds %s", wanted, name ? name : "unknown");
}

static coffer_status fail_absent(const coffer_mldf *set, uint64_t sample, size_t field, coffer_error *err)
{
    return coffer__mldf_fail_value(err, COFFER_E_MISSING, coffer__mldf_entry_place(set, sample, field), set,
                                   sample, field, "no value");
}

static bool is_kind(const coffer_mldf *set, size_t field, coffer_mldf_entry_kind kind)
{
    return set->schema.fields[field].kind == kind;
}

coffer_status coffer_mldf_get_int(int64_t *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                  coffer_error *err)
{
    coffer_mldf_entry entry;
    coffer_status status = coffer__mldf_read_entry(&entry, set, sample, field, err);
    if (status)
        return status;
    if (!is_kind(set, field, COFFER_MLDF_ENTRY_INT))
        return fail_type(set, sample, field, "int", err);
    *out = entry.i64;
    return COFFER_OK;
}

coffer_status coffer_mldf_get_float(double *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                    coffer_error *err)
{
    coffer_mldf_entry entry;
    coffer_status status = coffer__mldf_read_entry(&entry, set, sample, field, err);
    if (status)
        return status;
    if (!is_kind(set, field, COFFER_MLDF_ENTRY_FLOAT))
        return fail_type(set, sample, field, "float", err);
    *out = entry.f64;
    return COFFER_OK;
}

/* A value of a field that has been found to be of the right type. */
static coffer_status read_present(coffer_bytes *out, coffer_mldf_entry *entry, const coffer_mldf *set,
                                  uint64_t sample, size_t field, size_t spare, coffer_error *err)
{
    coffer_status status = coffer__mldf_read_with_spare(out, entry, set, sample, field, false, spare, err);
    if (status)
        return status;
    return entry->present ? COFFER_OK : fail_absent(set, sample, field, err);
}

coffer_status coffer_mldf_get_text(coffer_bytes *out, const coffer_mldf *set, uint64_t sample, size_t field,
                                   coffer_error *err)
{
    coffer_mldf_entry entry;
    size_t valid;
    coffer_status status = coffer__mldf_check_index(set, sample, field, err);
    if (status)
        return status;
    if (!is_kind(set, field, COFFER_MLDF_ENTRY_TEXT) && set->schema.fields[field].type != COFFER_MLDF_JSON)
        return fail_type(set, sample, field, "text", err);
    status = read_present(out, &entry, set, sample, field, 1, err);
    if (status)
        return status;
    if (entry.encoding != COFFER_MLDF_ENCODING_UTF8)
        return coffer__mldf_fail_value(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, set, sample, field,
                                       "asked for as text, it holds token ids");
    valid = coffer__utf8_valid_prefix(out->data, out->size);
    if (valid < out->size)
        return coffer__mldf_fail_value(err, COFFER_E_BAD_TEXT, entry.offset, set, sample, field,
                                       "byte %zu of its text is not UTF-8", valid);
    out->data[out->size] = 0;
    return COFFER_OK;
}

coffer_status coffer__mldf_array_shape(uint64_t dims[COFFER_MLDF_MAX_DIMS], size_t *head,
                                       const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                       coffer_error *err)
{
    uint64_t total = coffer_dtype_size(field->dtype);
    bool varies = false;
    for (uint32_t d = 0; d < field->ndim; d++)
        varies = varies || field->dims[d] == 0;
    *head = varies ? field->ndim * sizeof(uint64_t) : 0;
    if (size < *head)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "%zu bytes, its dimensions alone take %zu", size, *head);
    for (uint32_t d = 0; d < field->ndim; d++) {
        dims[d] = varies ? coffer__load_u64(bytes + d * sizeof(uint64_t)) : field->dims[d];
        if (field->dims[d] != 0 && dims[d] != field->dims[d])
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "dimension %lu is %" PRIu64 ", the field says %" PRIu64, (unsigned long)d,
                                dims[d], field->dims[d]);
        if (!coffer__mul_u64(&total, total, dims[d]))
            return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                                "the product of its dimensions is out of all bounds");
    }
    if (coffer_dtype_size(field->dtype) > 0 && total != size - *head)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "its elements take %" PRIu64 " bytes, there are %zu", total, size - *head);
    return COFFER_OK;
}

coffer_status coffer_mldf_get_array(coffer_bytes *out, uint64_t dims[COFFER_MLDF_MAX_DIMS],
                                    const coffer_mldf *set, uint64_t sample, size_t field, coffer_error *err)
{
    const coffer__mldf_type_info *info;
    coffer_error found = COFFER_ERROR_INIT;
    coffer_mldf_entry entry;
    size_t head = 0;
    coffer_status status = coffer__mldf_check_index(set, sample, field, err);
    if (status)
        return status;
    info = coffer__mldf_type_info_of(set->schema.fields[field].type);
    if (!info || !info->has_array || !is_kind(set, field, COFFER_MLDF_ENTRY_BYTES))
        return fail_type(set, sample, field, "array", err);
    status = read_present(out, &entry, set, sample, field, 0, err);
    if (status)
        return status;
    status = coffer__mldf_array_shape(dims, &head, &set->schema.fields[field], out->data, out->size, &found);
    if (status)
        return coffer__mldf_fail_value(err, status, entry.offset, set, sample, field, "%s", found.text);
    out->size -= head;
    memmove(out->data, out->data + head, out->size);
    return COFFER_OK;
}

/* From the last to the first, so that the wider ids may grow over the narrower ones. */
static void widen_ids(coffer_bytes *bytes)
{
    for (size_t i = bytes->size / sizeof(uint16_t); i-- > 0;)
        coffer__store_u32(bytes->data + i * sizeof(uint32_t),
                          coffer__load_u16(bytes->data + i * sizeof(uint16_t)));
    bytes->size *= 2;
}

/* As many bytes after the ids as they take themselves. */
static coffer_status double_room(coffer_bytes *bytes, coffer_error *err)
{
    uint8_t *data;
    if (bytes->capacity / 2 >= bytes->size)
        return COFFER_OK;
    data = coffer__realloc(bytes->data, bytes->size * 2);
    if (!data)
        return coffer__fail_no_memory(err, bytes->size * 2);
    bytes->data = data;
    bytes->capacity = bytes->size * 2;
    return COFFER_OK;
}

coffer_status coffer_mldf_get_tokens(coffer_bytes *out_u32, const coffer_mldf *set, uint64_t sample,
                                     size_t field, coffer_error *err)
{
    coffer_mldf_entry entry;
    size_t width;
    coffer_status status = coffer__mldf_read_entry(&entry, set, sample, field, err);
    if (status)
        return status;
    if (!is_kind(set, field, COFFER_MLDF_ENTRY_TEXT))
        return fail_type(set, sample, field, "tokens", err);
    if (!entry.present)
        return fail_absent(set, sample, field, err);
    if (entry.encoding != COFFER_MLDF_ENCODING_I32 && entry.encoding != COFFER_MLDF_ENCODING_I16)
        return coffer__mldf_fail_value(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, set, sample, field,
                                       "asked for as tokens, its encoding is %u", entry.encoding);
    width = entry.encoding == COFFER_MLDF_ENCODING_I32 ? sizeof(uint32_t) : sizeof(uint16_t);
    status = read_present(out_u32, &entry, set, sample, field, 0, err);
    if (status)
        return status;
    if (out_u32->size % width != 0)
        return coffer__mldf_fail_value(err, COFFER_E_SIZE_MISMATCH, entry.offset, set, sample, field,
                                       "%zu bytes are not a multiple of the id size, %zu", out_u32->size,
                                       width);
    if (width == sizeof(uint16_t)) {
        status = double_room(out_u32, err);
        if (!status)
            widen_ids(out_u32);
    }
    if (!status)
        coffer__swap_numbers(out_u32->data, sizeof(uint32_t), out_u32->size / sizeof(uint32_t));
    return status;
}

/* The parts of a value: the texts of a hierarchical text, and what a multimodal sample is made of. */

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
