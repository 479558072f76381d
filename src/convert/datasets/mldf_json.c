#include "convert/datasets/mldf_export.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

static void put_number(coffer__json_writer *writer, const char *key, uint64_t value)
{
    coffer__json_key(writer, key);
    coffer__json_write_u64(writer, value);
}

static void put_entry(coffer__json_writer *writer, const coffer_mldf_field *field,
                      const coffer_mldf_entry *entry)
{
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE) {
        put_number(writer, "height", entry->height);
        put_number(writer, "width", entry->width);
        put_number(writer, "channels", entry->channels);
        put_number(writer, "mode", entry->mode);
    } else if (field->kind == COFFER_MLDF_ENTRY_AUDIO) {
        put_number(writer, "samples", entry->num_samples);
        put_number(writer, "sample_rate", entry->sample_rate);
        put_number(writer, "channels", entry->channels);
        put_number(writer, "bit_depth", entry->bit_depth);
        put_number(writer, "codec", entry->codec);
    } else if (field->kind == COFFER_MLDF_ENTRY_TEXT) {
        put_number(writer, "encoding", entry->encoding);
    }
}

static coffer_status put_base64(coffer__json_writer *writer, const uint8_t *bytes, size_t size,
                                coffer_error *err)
{
    if (size > SIZE_MAX / 2)
        return coffer__fail_no_memory(err, size);
    size_t room = sodium_base64_ENCODED_LEN(size, sodium_base64_VARIANT_ORIGINAL);
    char *text = coffer__malloc(room);
    if (!text)
        return coffer__fail_no_memory(err, room);
    sodium_bin2base64(text, room, bytes, size, sodium_base64_VARIANT_ORIGINAL);
    coffer__json_key(writer, "base64");
    coffer__json_string_len(writer, text, room - 1);
    coffer__free(text);
    return COFFER_OK;
}

coffer_status coffer__mldf_json_put(coffer__json_writer *writer, const coffer_mldf_field *field,
                                    const coffer_mldf_entry *entry, const uint64_t *dims,
                                    const uint8_t *bytes, size_t size, coffer_error *err)
{
    const char *type = coffer_mldf_type_name(field->type);
    coffer__json_open_object(writer);
    coffer__json_key(writer, "type");
    coffer__json_string(writer, type ? type : coffer_mldf_type_name(COFFER_MLDF_BYTES));
    put_entry(writer, field, entry);
    if (dims) {
        coffer__json_key(writer, "dtype");
        coffer__json_string(writer, coffer_dtype_name(field->dtype));
        coffer__json_key(writer, "shape");
        coffer__json_open_array(writer);
        for (uint32_t i = 0; i < field->ndim; i++)
            coffer__json_write_u64(writer, dims[i]);
        coffer__json_close_array(writer);
    }
    coffer_status status = put_base64(writer, bytes, size, err);
    coffer__json_close_object(writer);
    return status;
}

void coffer__mldf_json_put_text(coffer__json_writer *writer, uint16_t type, const char *text, size_t len)
{
    coffer__json_open_object(writer);
    coffer__json_key(writer, "type");
    coffer__json_string(writer, coffer_mldf_type_name(type));
    coffer__json_key(writer, "text");
    coffer__json_string_len(writer, text, len);
    coffer__json_close_object(writer);
}

coffer_status coffer__mldf_json_put_float(coffer__json_writer *writer, double value, coffer_error *err)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &value, sizeof bits);
    coffer__store_u64(bytes, bits);
    coffer__json_open_object(writer);
    coffer__json_key(writer, "type");
    coffer__json_string(writer, coffer_mldf_type_name(COFFER_MLDF_FLOAT));
    coffer_status status = put_base64(writer, bytes, sizeof bytes, err);
    coffer__json_close_object(writer);
    return status;
}

static const coffer__json_value *bytes_of(const coffer__json_value *object)
{
    const coffer__json_value *bytes = coffer__json_find(object, "base64");
    return bytes ? bytes : coffer__json_find(object, "text");
}

uint16_t coffer__mldf_json_type(const coffer__json_value *object)
{
    return coffer_mldf_type_by_name(coffer__json_find(object, "type")->as.string);
}

bool coffer__mldf_json_is(const coffer__json_value *value)
{
    const coffer__json_value *type = coffer__json_find(value, "type");
    const coffer__json_value *bytes = bytes_of(value);
    return type && type->kind == COFFER__JSON_STRING && bytes && bytes->kind == COFFER__JSON_STRING &&
           coffer_mldf_type_by_name(type->as.string);
}

static uint64_t number_of(const coffer__json_value *object, const char *key, uint64_t max)
{
    uint64_t value = 0;
    return coffer__json_u64(&value, coffer__json_find(object, key)) && value <= max ? value : 0;
}

/* Dimensions of an array; false when the object does not have valid ones. */
static bool shape_of(uint64_t dims[COFFER_MLDF_MAX_DIMS], size_t *ndim, const coffer__json_value *object)
{
    const coffer__json_value *shape = coffer__json_find(object, "shape");
    if (!shape || shape->kind != COFFER__JSON_ARRAY || shape->as.count > COFFER_MLDF_MAX_DIMS)
        return false;
    *ndim = 0;
    for (const coffer__json_value *dim = coffer__json_first(shape); dim;
         dim = coffer__json_next(shape, dim)) {
        if (!coffer__json_u64(&dims[(*ndim)++], dim))
            return false;
    }
    return true;
}

coffer_status coffer__mldf_json_survey(coffer__column *column, const coffer__json_value *object,
                                       coffer_error *err)
{
    uint16_t type = coffer_mldf_type_by_name(coffer__json_find(object, "type")->as.string);
    uint64_t dims[COFFER_MLDF_MAX_DIMS] = { 0 };
    size_t ndim = 0;
    if (column->given_type && column->given_type != type)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "\"%s\" is of type %s here and of type %s before", column->name,
                            coffer_mldf_type_name(type), coffer_mldf_type_name(column->given_type));
    if (type == COFFER_MLDF_FLOAT)
        return COFFER_OK; /* a scalar as any other */
    if (type == COFFER_MLDF_INT)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%s\": numbers have no bytes",
                            column->name);
    column->given_type = type;
    if (!coffer__dataset_is_array(type))
        return COFFER_OK;
    const coffer__json_value *dtype = coffer__json_find(object, "dtype");
    if (!dtype || dtype->kind != COFFER__JSON_STRING || !shape_of(dims, &ndim, object))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "\"%s\": an array without its shape",
                            column->name);
    coffer__array_facts_add_shape(&column->arrays, coffer_dtype_by_name(dtype->as.string), dims, ndim);
    return COFFER_OK;
}

static void take_entry(coffer__dataset_value *value, const coffer__json_value *object)
{
    value->has_entry = true;
    value->entry = (coffer_mldf_entry){
        .struct_size = sizeof(coffer_mldf_entry),
        .present = true,
        .height = (uint16_t)number_of(object, "height", UINT16_MAX),
        .width = (uint16_t)number_of(object, "width", UINT16_MAX),
        .channels = (uint16_t)number_of(object, "channels", UINT16_MAX),
        .mode = (uint8_t)number_of(object, "mode", UINT8_MAX),
        .num_samples = (uint32_t)number_of(object, "samples", UINT32_MAX),
        .sample_rate = (uint32_t)number_of(object, "sample_rate", UINT32_MAX),
        .bit_depth = (uint8_t)number_of(object, "bit_depth", UINT8_MAX),
        .codec = (uint8_t)number_of(object, "codec", UINT8_MAX),
        .encoding = (uint8_t)number_of(object, "encoding", UINT8_MAX),
    };
}

static coffer_status take_bytes(coffer__dataset_value *value, const coffer__json_value *object,
                                const coffer_mldf_field *field, coffer_error *err)
{
    const coffer__json_value *text = coffer__json_find(object, "base64");
    if (!text) {
        text = coffer__json_find(object, "text");
        return coffer__dataset_value_copy(value, text->as.string, text->string_len, err);
    }
    size_t room = text->string_len / 4 * 3 + 3, size = 0;
    value->own.len = 0;
    uint8_t *to = coffer__buffer_extend(&value->own, room);
    if (!to)
        return coffer__fail_no_memory(err, room);
    if (sodium_base642bin(to, room, text->as.string, text->string_len, NULL, &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0 ||
        size > room)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%s\": not base64", field->name);
    value->own.len = size;
    value->bytes = to;
    value->size = size;
    return COFFER_OK;
}

coffer_status coffer__mldf_json_take(coffer__dataset_value *value, const coffer__json_value *object,
                                     const coffer_mldf_field *field, coffer_error *err)
{
    size_t ndim = 0;
    coffer_status status = take_bytes(value, object, field, err);
    if (status)
        return status;
    value->form = COFFER__DATASET_READY;
    if (field->type == COFFER_MLDF_FLOAT) {
        if (value->size != sizeof value->f64)
            return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%s\": a float of %zu bytes",
                                field->name, value->size);
        uint64_t bits = coffer__load_u64(value->bytes);
        memcpy(&value->f64, &bits, sizeof bits);
        value->form = COFFER__DATASET_SCALAR;
        return COFFER_OK;
    }
    if (field->type == COFFER_MLDF_JSON)
        return COFFER_OK;
    if (coffer__dataset_is_array(field->type)) {
        if (!shape_of(value->dims, &ndim, object) || ndim != field->ndim)
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "\"%s\": %zu dimensions, the field has %" PRIu32, field->name, ndim,
                                field->ndim);
        return COFFER_OK;
    }
    take_entry(value, object);
    return COFFER_OK;
}
