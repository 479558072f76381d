/* Hierarchical texts and multimodal samples. */
#include "mldf/sample_value.h"

#include "base/utf8.h"
#include "term.h"

#include <inttypes.h>

bool sample_has_parts(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_BYTES &&
           (field->type == COFFER_MLDF_TEXT_HIERARCHICAL || field->type == COFFER_MLDF_MULTIMODAL);
}

static bool is_text(const coffer_mldf_part *part)
{
    return (part->type == COFFER_MLDF_TEXT || part->type == COFFER_MLDF_JSON) &&
           coffer__utf8_valid(part->bytes, part->size);
}

static void put_line(coffer__buffer *out, const coffer_mldf_part *part)
{
    const char *type = coffer_mldf_type_name(part->type);
    term_text size;
    if (part->name) {
        coffer__buffer_append(out, part->name, part->name_len);
        coffer__buffer_printf(out, ": ");
    }
    if (is_text(part)) {
        coffer__buffer_append(out, part->bytes, part->size);
        return;
    }
    if (type)
        coffer__buffer_printf(out, "%s, %s", type, term_bytes(size, part->size));
    else
        coffer__buffer_printf(out, "type %u, %s", part->type, term_bytes(size, part->size));
}

coffer_status sample_put_parts_text(coffer__buffer *out, const coffer_mldf *set, uint64_t sample,
                                    size_t field, coffer_error *err)
{
    coffer_mldf_parts *parts = NULL;
    coffer_status status = coffer_mldf_get_parts(&parts, set, sample, field, err);
    for (size_t i = 0; !status && i < coffer_mldf_parts_count(parts); i++) {
        coffer_mldf_part part = COFFER_MLDF_PART_INIT;
        status = coffer_mldf_parts_at(&part, parts, i, err);
        if (i > 0)
            coffer__buffer_printf(out, "\n");
        if (!status)
            put_line(out, &part);
    }
    coffer_mldf_parts_free(parts);
    return status;
}

static void put_object(coffer__json_writer *json, const coffer_mldf_part *part)
{
    const char *type = coffer_mldf_type_name(part->type);
    coffer__json_open_object(json);
    coffer__json_key(json, "name");
    coffer__json_string_len(json, part->name, part->name_len);
    coffer__json_key(json, "type");
    if (type)
        coffer__json_string(json, type);
    else
        coffer__json_write_u64(json, part->type);
    coffer__json_key(json, "size");
    coffer__json_write_u64(json, part->size);
    if (is_text(part)) {
        coffer__json_key(json, "text");
        coffer__json_string_len(json, (const char *)part->bytes, part->size);
    }
    coffer__json_close_object(json);
}

coffer_status sample_put_parts_json(coffer__json_writer *json, const coffer_mldf *set, uint64_t sample,
                                    size_t field, coffer_error *err)
{
    coffer_mldf_parts *parts = NULL;
    coffer_status status = coffer_mldf_get_parts(&parts, set, sample, field, err);
    if (status)
        return status;
    coffer__json_open_array(json);
    for (size_t i = 0; !status && i < coffer_mldf_parts_count(parts); i++) {
        coffer_mldf_part part = COFFER_MLDF_PART_INIT;
        status = coffer_mldf_parts_at(&part, parts, i, err);
        if (status)
            break;
        if (part.name)
            put_object(json, &part);
        else
            coffer__json_string_len(json, (const char *)part.bytes, part.size);
    }
    coffer__json_close_array(json);
    coffer_mldf_parts_free(parts);
    return status;
}
