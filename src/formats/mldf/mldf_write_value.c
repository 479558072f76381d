/* Whether a value is what its field says, and what the row says about it. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "formats/mldf/mldf_write.h"

#define SEE_SIZE 65535u /* more tokens than the row can count */

static coffer_status fail_value(coffer_error *err, const coffer_mldf_field *field, const char *what)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s: %s", field->name,
                        what);
}

static coffer_status fail_size(coffer_error *err, const coffer_mldf_field *field, uint64_t expected,
                               size_t size)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "field %s: a value of its shape has %llu bytes, this one %zu", field->name,
                        (unsigned long long)expected, size);
}

/* ---- Images, sound, text ---- */

static coffer_status check_image(coffer_mldf_entry *entry, const coffer_mldf_field *field, size_t size,
                                 coffer_error *err)
{
    uint64_t pixels = (uint64_t)entry->height * entry->width * entry->channels;
    if (entry->mode == 0 && field->type != COFFER_MLDF_IMAGE_RAW)
        entry->mode = field->type == COFFER_MLDF_IMAGE_JPEG ? 1 : 2;
    if (entry->mode > 2)
        return fail_value(err, field, "the mode of an image is 0, 1 or 2");
    if (entry->channels > UINT8_MAX)
        return fail_value(err, field, "an image has at most 255 channels");
    if (entry->mode == 0 && pixels != size)
        return fail_size(err, field, pixels, size);
    return COFFER_OK;
}

static coffer_status check_audio(coffer_mldf_entry *entry, const coffer_mldf_field *field, size_t size,
                                 coffer_error *err)
{
    uint64_t frame = (uint64_t)entry->channels * (entry->bit_depth / 8u);
    if (entry->codec > 3)
        return fail_value(err, field, "the codec of sound is 0, 1, 2 or 3");
    if (entry->sample_rate == 0)
        entry->sample_rate = field->sample_rate;
    if (entry->codec != 0 || field->type != COFFER_MLDF_AUDIO)
        return COFFER_OK;
    if (entry->bit_depth % 8 != 0 || frame == 0)
        return fail_value(err, field, "a waveform needs channels and a bit depth of whole bytes");
    if (entry->num_samples * frame != size)
        return fail_size(err, field, entry->num_samples * frame, size);
    return COFFER_OK;
}

static coffer_status check_text(coffer_mldf_entry *entry, const coffer_mldf_field *field,
                                const uint8_t *bytes, size_t size, bool given, coffer_error *err)
{
    size_t width;
    if (!given && field->type == COFFER_MLDF_TEXT_TOKENISED)
        entry->encoding = 1;
    if (entry->encoding > 2)
        return fail_value(err, field, "the encoding of text is 0, 1 or 2");
    if (entry->encoding == 0)
        return coffer__utf8_valid(bytes, size) ? COFFER_OK : fail_value(err, field, "the text is not UTF-8");
    width = entry->encoding == 1 ? 4 : 2;
    if (size % width != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s: %zu bytes are no whole number of ids of %zu", field->name, size,
                            width);
    entry->num_tokens = (uint16_t)(size / width < SEE_SIZE ? size / width : SEE_SIZE);
    return COFFER_OK;
}

/* ---- Structured bytes ---- */

static bool shape_varies(const coffer_mldf_field *field)
{
    for (uint32_t i = 0; i < field->ndim; i++) {
        if (field->dims[i] == 0)
            return true;
    }
    return false;
}

static coffer_status check_array(const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                 coffer_error *err)
{
    uint64_t expected = coffer_dtype_size(field->dtype);
    bool varies = shape_varies(field);
    if (varies && size < 8 * (size_t)field->ndim)
        return fail_value(err, field, "the value must begin with its dimensions");
    for (uint32_t i = 0; i < field->ndim; i++) {
        uint64_t dim = varies ? coffer__load_u64(bytes + 8 * (size_t)i) : field->dims[i];
        if (field->dims[i] != 0 && dim != field->dims[i])
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "field %s: dimension %u is %llu, the field says %llu", field->name, i,
                                (unsigned long long)dim, (unsigned long long)field->dims[i]);
        if (!coffer__mul_u64(&expected, expected, dim))
            return fail_value(err, field, "the dimensions are too large");
    }
    if (varies && !coffer__add_u64(&expected, expected, 8 * (uint64_t)field->ndim))
        return fail_value(err, field, "the dimensions are too large");
    if (coffer_dtype_size(field->dtype) != 0 && expected != size)
        return fail_size(err, field, expected, size);
    return COFFER_OK;
}

static coffer_status check_json(const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                coffer_error *err)
{
    coffer_error cause = COFFER_ERROR_INIT;
    coffer_limits limits = coffer__limits(NULL);
    coffer__json *json = NULL;
    coffer_status status = coffer__json_parse(&json, (const char *)bytes, size, 0, &limits, &cause);
    coffer__json_free(json);
    if (status == COFFER_OK || status == COFFER_E_NO_MEMORY)
        return status ? coffer__fail_no_memory(err, size) : COFFER_OK;
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s: at byte %llu, %s",
                        field->name, (unsigned long long)cause.offset, cause.text);
}

static coffer_status check_hierarchy(const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                     coffer_error *err)
{
    uint32_t parts, end = 0;
    size_t front;
    if (size < 4)
        return fail_value(err, field, "hierarchical text begins with the number of its parts");
    parts = coffer__load_u32(bytes);
    if (parts > (size - 4) / 4)
        return fail_value(err, field, "more parts than the value has room for");
    front = 4 + 4 * (size_t)parts;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t next = coffer__load_u32(bytes + 4 + 4 * (size_t)i);
        if (next < end || next > size - front)
            return fail_value(err, field, "the ends of the parts must go up and lie inside the text");
        end = next;
    }
    if (end != size - front || !coffer__utf8_valid(bytes + front, size - front))
        return fail_value(err, field, "the text must be UTF-8 and end with its last part");
    return COFFER_OK;
}

static coffer_status check_multimodal(const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                      coffer_error *err)
{
    uint64_t at = 4;
    uint32_t parts = size < 4 ? 0 : coffer__load_u32(bytes);
    if (size < 4)
        return fail_value(err, field, "a multimodal sample begins with the number of its parts");
    for (uint32_t i = 0; i < parts; i++) {
        uint64_t need;
        if (size < at + 8)
            return fail_value(err, field, "a part of the multimodal sample is cut off");
        need = (uint64_t)coffer__load_u16(bytes + at + 2) + coffer__load_u32(bytes + at + 4);
        at += 8;
        if (need > size - at)
            return fail_value(err, field, "a part of the multimodal sample is cut off");
        if (!coffer__utf8_valid(bytes + at, coffer__load_u16(bytes + at - 6)))
            return fail_value(err, field, "the name of a part is not UTF-8");
        at += need;
    }
    return at == size ? COFFER_OK : fail_value(err, field, "bytes behind the last part");
}

static coffer_status check_bytes(const coffer_mldf_field *field, const uint8_t *bytes, size_t size,
                                 coffer_error *err)
{
    const coffer__mldf_type_info *info = coffer__mldf_type_info_of(field->type);
    if (info && info->has_array)
        return check_array(field, bytes, size, err);
    switch (field->type) {
    case COFFER_MLDF_JSON:
        return check_json(field, bytes, size, err);
    case COFFER_MLDF_TEXT_HIERARCHICAL:
        return check_hierarchy(field, bytes, size, err);
    case COFFER_MLDF_MULTIMODAL:
        return check_multimodal(field, bytes, size, err);
    default:
        return COFFER_OK;
    }
}

coffer_status coffer__mldf_check_new_value(coffer_mldf_entry *entry, const coffer_mldf_field *field,
                                           const uint8_t *bytes, size_t size, bool given, coffer_error *err)
{
    switch (field->kind) {
    case COFFER_MLDF_ENTRY_IMAGE:
        return check_image(entry, field, size, err);
    case COFFER_MLDF_ENTRY_AUDIO:
        return check_audio(entry, field, size, err);
    case COFFER_MLDF_ENTRY_TEXT:
        return check_text(entry, field, bytes, size, given, err);
    case COFFER_MLDF_ENTRY_BYTES:
        return check_bytes(field, bytes, size, err);
    default:
        return fail_value(err, field, "it has no payload");
    }
}

/* ---- The row ---- */

void coffer__mldf_store_entry(uint8_t *at, coffer_mldf_entry_kind kind, const coffer_mldf_entry *entry)
{
    switch (kind) {
    case COFFER_MLDF_ENTRY_IMAGE:
        coffer__store_u16(at + 12, entry->height);
        coffer__store_u16(at + 14, entry->width);
        at[16] = (uint8_t)entry->channels;
        at[17] = entry->mode;
        break;
    case COFFER_MLDF_ENTRY_AUDIO:
        coffer__store_u32(at + 12, entry->num_samples);
        coffer__store_u32(at + 16, entry->sample_rate);
        coffer__store_u16(at + 20, entry->channels);
        at[22] = entry->bit_depth;
        at[23] = entry->codec;
        break;
    case COFFER_MLDF_ENTRY_TEXT:
        coffer__store_u16(at + 12, entry->num_tokens);
        at[14] = entry->encoding;
        break;
    default:
        break;
    }
}

/* ---- Arrays ---- */

coffer_status coffer_mldf_set_array(coffer_mldf_writer *writer, size_t field, const uint64_t *dims,
                                    const void *elements, size_t size, coffer_error *err)
{
    const coffer_mldf_field *of;
    const coffer__mldf_type_info *info;
    uint8_t *value;
    size_t front;
    coffer_status status;
    if (field >= writer->column_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: the set has %zu fields", field, writer->column_count);
    of = &writer->columns[field].field;
    info = coffer__mldf_type_info_of(of->type);
    if (!info || !info->has_array)
        return fail_value(err, of, "it holds no arrays");
    for (uint32_t i = 0; i < of->ndim; i++) {
        if (of->dims[i] != 0 && dims[i] != of->dims[i])
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "field %s: dimension %u is %llu, the field says %llu", of->name, i,
                                (unsigned long long)dims[i], (unsigned long long)of->dims[i]);
    }
    if (!shape_varies(of))
        return coffer_mldf_set_bytes(writer, field, elements, size, NULL, err);
    front = 8 * (size_t)of->ndim;
    if (size > COFFER__MLDF_PAYLOAD_MAX - front)
        return fail_size(err, of, COFFER__MLDF_PAYLOAD_MAX, size);
    value = coffer__malloc(front + size);
    if (!value)
        return coffer__fail_no_memory(err, front + size);
    for (uint32_t i = 0; i < of->ndim; i++)
        coffer__store_u64(value + 8 * (size_t)i, dims[i]);
    if (size > 0)
        memcpy(value + front, elements, size);
    status = coffer_mldf_set_bytes(writer, field, value, front + size, NULL, err);
    coffer__free(value);
    return status;
}
