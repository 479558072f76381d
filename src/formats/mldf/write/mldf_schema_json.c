/* Parsing a schema from JSON. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mldf/write/mldf_write.h"

#include <inttypes.h>

struct coffer_mldf_schema {
    coffer_mldf_field *fields;
    size_t count;
    coffer__arena names;
};

COFFER__INIT_FUNCTION(coffer_mldf_schema_opts, COFFER_MLDF_SCHEMA_OPTS_INIT)

/* "field 3 (image): …" */
static coffer_status fail_field(coffer_error *err, size_t index, const coffer_mldf_field *field,
                                const char *key, const char *expected)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "field %zu (%s): \"%s\" must be %s",
                        index, field->name ? field->name : "without a name", key, expected);
}

static coffer_status take_number(uint32_t *out, const coffer__json_value *value, uint32_t most,
                                 coffer_mldf_field *field, size_t index, coffer_error *err)
{
    uint64_t number;
    if (!coffer__json_u64(&number, value) || number > most)
        return fail_field(err, index, field, value->key, "an integer that is not too large");
    *out = (uint32_t)number;
    return COFFER_OK;
}

static coffer_status take_flag(coffer_mldf_field *field, unsigned flag, const coffer__json_value *value,
                               size_t index, coffer_error *err)
{
    if (value->kind != COFFER__JSON_BOOL)
        return fail_field(err, index, field, value->key, "true or false");
    if (value->as.boolean)
        field->flags |= (uint16_t)flag;
    return COFFER_OK;
}

static coffer_status take_type(coffer_mldf_field *field, const coffer__json_value *value, size_t index,
                               coffer_error *err)
{
    if (value->kind == COFFER__JSON_STRING)
        field->type = coffer_mldf_type_by_name(value->as.string);
    if (field->type == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "field %zu (%s): \"%s\" is not a type (int, float, bytes, text, image-jpeg …)",
                            index, field->name ? field->name : "without a name",
                            value->kind == COFFER__JSON_STRING ? value->as.string : "this");
    return COFFER_OK;
}

static coffer_status take_shape(coffer_mldf_field *field, const coffer__json_value *value, size_t index,
                                coffer_error *err)
{
    if (value->kind != COFFER__JSON_ARRAY || value->as.count > COFFER_MLDF_MAX_DIMS)
        return fail_field(err, index, field, "shape", "a list of at most 13 numbers");
    for (const coffer__json_value *dim = coffer__json_first(value); dim;
         dim = coffer__json_next(value, dim)) {
        if (!coffer__json_u64(&field->dims[field->ndim], dim))
            return fail_field(err, index, field, "shape", "a list of whole numbers; 0 varies");
        field->ndim++;
    }
    return COFFER_OK;
}

static coffer_status take_name(coffer_mldf_field *field, coffer__arena *names,
                               const coffer__json_value *value, size_t index, coffer_error *err)
{
    if (value->kind != COFFER__JSON_STRING || strlen(value->as.string) != value->string_len)
        return fail_field(err, index, field, "name", "a string without NULs");
    field->name = coffer__arena_text(names, value->as.string, value->string_len);
    return field->name ? COFFER_OK : coffer__fail_no_memory(err, value->string_len);
}

static coffer_status take_member(coffer_mldf_field *field, const coffer__json_value *member, size_t index,
                                 coffer_error *err)
{
    uint32_t number = 0;
    coffer_status status;
    if (strcmp(member->key, "name") == 0)
        return COFFER_OK;
    if (strcmp(member->key, "type") == 0)
        return take_type(field, member, index, err);
    if (strcmp(member->key, "optional") == 0)
        return take_flag(field, COFFER_MLDF_FIELD_OPTIONAL, member, index, err);
    if (strcmp(member->key, "zstd") == 0)
        return take_flag(field, COFFER_MLDF_FIELD_ZSTD, member, index, err);
    if (strcmp(member->key, "encrypted") == 0)
        return take_flag(field, COFFER_MLDF_FIELD_ENCRYPTED, member, index, err);
    if (strcmp(member->key, "shape") == 0)
        return take_shape(field, member, index, err);
    if (strcmp(member->key, "sample_rate") == 0)
        return take_number(&field->sample_rate, member, UINT32_MAX, field, index, err);
    if (strcmp(member->key, "jpeg_quality") == 0) {
        status = take_number(&number, member, 100, field, index, err);
        field->jpeg_quality = (uint8_t)number;
        return status;
    }
    if (strcmp(member->key, "dtype") == 0) {
        field->dtype =
            member->kind == COFFER__JSON_STRING ? coffer_dtype_by_name(member->as.string) : COFFER_DTYPE_NONE;
        return field->dtype != COFFER_DTYPE_NONE
                   ? COFFER_OK
                   : fail_field(err, index, field, "dtype", "a type of elements");
    }
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "field %zu (%s): \"%s\" is not known",
                        index, field->name, member->key);
}

static coffer_status take_field(coffer_mldf_field *field, coffer__arena *names,
                                const coffer__json_value *value, size_t index, coffer_error *err)
{
    const coffer__json_value *name = coffer__json_find(value, "name");
    coffer_status status;
    if (value->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "field %zu is not an object", index);
    if (!name || !coffer__json_find(value, "type"))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "field %zu has no \"%s\"", index,
                            name ? "type" : "name");
    status = take_name(field, names, name, index, err);
    for (const coffer__json_value *member = coffer__json_first(value); member && !status;
         member = coffer__json_next(value, member))
        status = take_member(field, member, index, err);
    return status;
}

static const coffer__json_value *list_in(const coffer__json_value *root)
{
    const coffer__json_value *list =
        root->kind == COFFER__JSON_OBJECT ? coffer__json_find(root, "fields") : root;
    return list && list->kind == COFFER__JSON_ARRAY ? list : NULL;
}

static coffer_status take_fields(coffer_mldf_schema *list, const coffer__json_value *root, coffer_error *err)
{
    static const coffer_mldf_field unset = COFFER_MLDF_FIELD_INIT;
    const coffer__json_value *values = list_in(root);
    coffer_status status = COFFER_OK;
    if (!values)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "a schema is a list of fields, or {\"fields\": […]}");
    if (values->as.count > UINT16_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " fields: a set has from 1 to %d", values->as.count, UINT16_MAX);
    list->fields = coffer__calloc(values->as.count ? (size_t)values->as.count : 1, sizeof *list->fields);
    if (!list->fields)
        return coffer__fail_no_memory(err, values->as.count * sizeof *list->fields);
    for (const coffer__json_value *value = coffer__json_first(values); value && !status;
         value = coffer__json_next(values, value), list->count++) {
        list->fields[list->count] = unset;
        status = take_field(&list->fields[list->count], &list->names, value, list->count, err);
    }
    return status;
}

coffer_status coffer_mldf_schema_parse(coffer_mldf_schema **out, const char *text, size_t len,
                                       const coffer_mldf_schema_opts *opts, coffer_error *err)
{
    coffer_mldf_schema_opts options = COFFER_MLDF_SCHEMA_OPTS_INIT;
    coffer_mldf_schema *list = coffer__calloc(1, sizeof *list);
    coffer__json *json = NULL;
    coffer_status status;
    if (!list)
        return coffer__fail_no_memory(err, sizeof *list);
    status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        goto out;
    coffer_limits limits = coffer__limits(options.limits);
    status = coffer__json_parse(&json, text, len, 0, &limits, err);
    if (!status)
        status = take_fields(list, coffer__json_root(json), err);
    if (status)
        goto out;
    *out = list;
    list = NULL;
out:
    coffer__json_free(json);
    coffer_mldf_schema_free(list);
    return status;
}

size_t coffer_mldf_schema_count(const coffer_mldf_schema *schema)
{
    return schema->count;
}

const coffer_mldf_field *coffer_mldf_schema_fields(const coffer_mldf_schema *schema)
{
    return schema->fields;
}

void coffer_mldf_schema_free(coffer_mldf_schema *schema)
{
    if (!schema)
        return;
    coffer__arena_free(&schema->names);
    coffer__free(schema->fields);
    coffer__free(schema);
}

coffer_status coffer_mldf_writer_create_json(coffer_mldf_writer **out, const char *path, const char *schema,
                                             size_t schema_len, const coffer_mldf_writer_opts *opts,
                                             coffer_error *err)
{
    coffer_mldf_writer_opts options = COFFER_MLDF_WRITER_OPTS_INIT;
    coffer_mldf_schema_opts parsing = COFFER_MLDF_SCHEMA_OPTS_INIT;
    coffer_mldf_schema *parsed = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    parsing.limits = options.limits;
    if (!status)
        status = coffer_mldf_schema_parse(&parsed, schema, schema_len, &parsing, err);
    if (!status)
        status = coffer_mldf_writer_create(out, path, parsed->fields, parsed->count, &options, err);
    coffer_mldf_schema_free(parsed);
    return status;
}
