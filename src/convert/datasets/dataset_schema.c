/* Shared by all inputs of samples: schema, values, digests. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_input.h"

#include <string.h>

#define NAME_MAX_LEN 63
#define FIELDS_MAX 65535

bool coffer__dataset_is_array(uint16_t type)
{
    return type == COFFER_MLDF_NDARRAY || type == COFFER_MLDF_SPECTROGRAM ||
           type == COFFER_MLDF_CODEC_TOKENS || type == COFFER_MLDF_VIDEO_FRAMES ||
           type == COFFER_MLDF_OPTICAL_FLOW || type == COFFER_MLDF_TEXT_PACKED;
}

coffer_status coffer__dataset_add_field(coffer_mldf_field **out, coffer__dataset_schema *schema,
                                        const char *name, size_t name_len, uint16_t type, coffer_error *err)
{
    if (name_len == 0 || name_len > NAME_MAX_LEN)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a field \"%.*s\" of %zu bytes: a name has 1 to %d",
                            (int)(name_len < 80 ? name_len : 80), name, name_len, NAME_MAX_LEN);
    if (!coffer__utf8_valid(name, name_len) || memchr(name, 0, name_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "the field \"%.*s\" is not UTF-8",
                            (int)name_len, name);
    if (schema->count == FIELDS_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "more than %d fields", FIELDS_MAX);
    coffer_status status = coffer__array_reserve_one(&schema->fields, &schema->capacity, schema->count,
                                                     sizeof *schema->fields, err);
    if (status)
        return status;
    char *copy = coffer__arena_text(&schema->names, name, name_len);
    if (!copy)
        return coffer__fail_no_memory(err, name_len);
    coffer_mldf_field *field = &schema->fields[schema->count++];
    *field = (coffer_mldf_field)COFFER_MLDF_FIELD_INIT;
    field->name = copy;
    field->type = type;
    *out = field;
    return COFFER_OK;
}

void coffer__dataset_schema_free(coffer__dataset_schema *schema)
{
    coffer__arena_free(&schema->names);
    coffer__free(schema->fields);
}

coffer_status coffer__dataset_input_new(void *out, size_t size, coffer_error *err)
{
    coffer__dataset_input *input = coffer__calloc(1, size);
    coffer__digest *seen = coffer__digest_new();
    if (!input || !seen) {
        coffer__free(input);
        coffer__digest_free(seen);
        return coffer__fail_no_memory(err, size);
    }
    input->seen = seen;
    memcpy(out, &input, sizeof input);
    return COFFER_OK;
}

coffer_status coffer__dataset_leave_out(coffer__dataset_input *input, const char *name, coffer_status code,
                                        const char *text, bool expected, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&input->left_out, &input->left_out_capacity,
                                                     input->left_out_count, sizeof *input->left_out, err);
    if (status)
        return status;
    char *copy = coffer__arena_text(&input->left_out_names, name, strlen(name));
    if (!copy)
        return coffer__fail_no_memory(err, strlen(name));
    input->left_out[input->left_out_count++] = (coffer__left_out){ copy, text, code, expected };
    return COFFER_OK;
}

void coffer__dataset_input_free(coffer__dataset_input *input)
{
    coffer__free(input->left_out);
    coffer__arena_free(&input->left_out_names);
    coffer__dataset_schema_free(&input->schema);
    coffer__digest_free(input->seen);
    coffer__free(input);
}

coffer_status coffer__dataset_value_copy(coffer__dataset_value *value, const void *bytes, size_t size,
                                         coffer_error *err)
{
    value->own.len = 0;
    if (!coffer__buffer_append(&value->own, bytes, size))
        return coffer__fail_no_memory(err, size);
    value->bytes = value->own.data;
    value->size = size;
    return COFFER_OK;
}
