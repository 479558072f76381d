/* Checking new values against their fields, and their row entries. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mldf/analyze/mldf_survey.h"
#include "formats/mldf/write/mldf_write.h"

#include <inttypes.h>

static coffer_status fail_value(coffer_error *err, const coffer_mldf_field *field, const char *what)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "field %s: %s", field->name,
                        what);
}

/* Where the caller leaves the entry open, it follows from the type and the size. */
static void complete_entry(coffer_mldf_entry *entry, const coffer_mldf_field *field, size_t size, bool given)
{
    size_t tokens;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->mode == COFFER_MLDF_MODE_RAW &&
        field->type != COFFER_MLDF_IMAGE_RAW)
        entry->mode = field->type == COFFER_MLDF_IMAGE_JPEG ? COFFER_MLDF_MODE_JPEG : COFFER_MLDF_MODE_PNG;
    if (field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->sample_rate == 0)
        entry->sample_rate = field->sample_rate;
    if (field->kind != COFFER_MLDF_ENTRY_TEXT)
        return;
    if (!given && field->type == COFFER_MLDF_TEXT_TOKENISED)
        entry->encoding = COFFER_MLDF_ENCODING_I32;
    if (entry->encoding == COFFER_MLDF_ENCODING_UTF8)
        return;
    tokens = size / (entry->encoding == COFFER_MLDF_ENCODING_I32 ? 4 : 2);
    entry->num_tokens = (uint16_t)(tokens < COFFER_MLDF_TOKENS_BY_SIZE ? tokens : COFFER_MLDF_TOKENS_BY_SIZE);
}

coffer_status coffer__mldf_check_new_value(coffer_mldf_entry *entry, const coffer_mldf_field *field,
                                           const uint8_t *bytes, size_t size, bool given, coffer_error *err)
{
    coffer_limits limits = coffer__limits(NULL);
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status;
    if (!coffer__mldf_has_payload(field->kind))
        return fail_value(err, field, "it has no payload");
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->channels > UINT8_MAX)
        return fail_value(err, field, "an image has at most 255 channels");
    complete_entry(entry, field, size, given);
    status = coffer__mldf_check_entry_values(field, entry, &found);
    if (!status)
        status = coffer__mldf_check_content(field, entry, bytes, size, &limits, &found);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_no_memory(err, size);
    return status ? fail_value(err, field, found.text) : COFFER_OK;
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

static bool shape_varies(const coffer_mldf_field *field)
{
    for (uint32_t i = 0; i < field->ndim; i++) {
        if (field->dims[i] == 0)
            return true;
    }
    return false;
}

coffer_status coffer_mldf_writer_set_array(coffer_mldf_writer *writer, size_t field, const uint64_t *dims,
                                           const void *elements, size_t size, coffer_error *err)
{
    const coffer_mldf_field *descriptor;
    const coffer__mldf_type_info *info;
    uint8_t *value;
    size_t front;
    coffer_status status;
    if (field >= writer->column_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %zu: the set has %zu fields", field, writer->column_count);
    descriptor = &writer->columns[field].field;
    info = coffer__mldf_type_info_of(descriptor->type);
    if (!info || !info->has_array)
        return fail_value(err, descriptor, "it does not contain arrays");
    for (uint32_t i = 0; i < descriptor->ndim; i++) {
        if (descriptor->dims[i] != 0 && dims[i] != descriptor->dims[i])
            return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                                "field %s: dimension %u is %" PRIu64 ", the field says %" PRIu64,
                                descriptor->name, i, dims[i], descriptor->dims[i]);
    }
    if (!shape_varies(descriptor))
        return coffer_mldf_writer_set_bytes(writer, field, elements, size, NULL, err);
    front = 8 * (size_t)descriptor->ndim;
    if (size > COFFER__MLDF_PAYLOAD_MAX - front)
        return fail_value(err, descriptor, "the array is too large for a payload");
    value = coffer__malloc(front + size);
    if (!value)
        return coffer__fail_no_memory(err, front + size);
    for (uint32_t i = 0; i < descriptor->ndim; i++)
        coffer__store_u64(value + 8 * (size_t)i, dims[i]);
    if (size > 0)
        memcpy(value + front, elements, size);
    writer->copies = true;
    status = coffer_mldf_writer_set_bytes(writer, field, value, front + size, NULL, err);
    writer->copies = false;
    coffer__free(value);
    return status;
}
