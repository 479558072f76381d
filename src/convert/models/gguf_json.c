#include "convert/models/gguf_json.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/* ---- To JSON ---- */

static void write_float(coffer__json_writer *json, double value)
{
    if (isfinite(value))
        coffer__json_write_f64(json, value);
    else
        coffer__json_string(json, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static void write_hex(coffer__json_writer *json, const uint8_t *bytes, size_t len)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    char *to = (char *)coffer__buffer_extend(&text, 2 * len);
    for (size_t i = 0; to && i < len; i++) {
        to[2 * i] = hex_digits[bytes[i] >> 4];
        to[2 * i + 1] = hex_digits[bytes[i] & 15];
    }
    if (text.failed)
        json->out->failed = true;
    coffer__json_string_len(json, coffer__buffer_text(&text), text.failed ? 0 : text.len);
    coffer__buffer_free(&text);
}

static const uint8_t *next_string(size_t *len, coffer__cursor *cursor)
{
    *len = (size_t)coffer__cursor_u64(cursor);
    return coffer__cursor_bytes(cursor, *len);
}

static void write_number(coffer__json_writer *json, coffer__cursor *cursor, uint32_t type)
{
    coffer__number number = coffer__gguf_number(cursor, type);
    if (type == COFFER__GGUF_BOOL)
        coffer__json_write_bool(json, number.as.u64 != 0);
    else if (number.kind == COFFER__NUMBER_F64)
        write_float(json, number.as.f64);
    else if (number.kind == COFFER__NUMBER_I64)
        coffer__json_write_i64(json, number.as.i64);
    else
        coffer__json_write_u64(json, number.as.u64);
}

static void write_text(coffer__json_writer *json, const uint8_t *text, size_t len, bool hex)
{
    if (hex)
        write_hex(json, text, len);
    else
        coffer__json_string_len(json, (const char *)text, len);
}

/* Whether one of the strings that follow is not UTF-8. */
static bool has_bytes(coffer__cursor cursor, uint64_t count)
{
    for (uint64_t i = 0; i < count && !cursor.failed; i++) {
        size_t len;
        const uint8_t *text = next_string(&len, &cursor);
        if (text && !coffer__utf8_valid(text, len))
            return true;
    }
    return false;
}

static const char *shown_type(uint32_t type, bool hex)
{
    return hex ? "bytes" : coffer__gguf_value_name(type);
}

/* Depth and counts were checked when the file was opened. */
static void write_items(coffer__json_writer *json, coffer__cursor *cursor, uint32_t type, uint64_t count,
                        bool hex)
{
    coffer__json_open_array(json);
    for (uint64_t i = 0; i < count && !cursor->failed && !json->out->failed; i++) {
        if (type == COFFER__GGUF_STRING) {
            size_t len;
            const uint8_t *text = next_string(&len, cursor);
            write_text(json, text ? text : (const uint8_t *)"", text ? len : 0, hex);
            continue;
        }
        if (type != COFFER__GGUF_ARRAY) {
            write_number(json, cursor, type);
            continue;
        }
        uint32_t inner = coffer__cursor_u32(cursor);
        uint64_t inner_count = coffer__cursor_u64(cursor);
        bool inner_hex = inner == COFFER__GGUF_STRING && has_bytes(*cursor, inner_count);
        coffer__json_open_object(json);
        coffer__json_key(json, "type");
        coffer__json_string(json, shown_type(inner, inner_hex));
        coffer__json_key(json, "items");
        write_items(json, cursor, inner, inner_count, inner_hex);
        coffer__json_close_object(json);
    }
    coffer__json_close_array(json);
}

coffer_status coffer__gguf_to_json(coffer__buffer *json, coffer__buffer *type, const coffer__gguf *gguf,
                                   const coffer__gguf_key *key, coffer_error *err)
{
    bool array = key->type == COFFER__GGUF_ARRAY, hex;
    uint32_t item = array ? key->item_type : key->type;
    coffer__json_writer writer;
    uint8_t *bytes;
    size_t len;
    coffer_status status = coffer__gguf_read_value(&bytes, &len, gguf, key, err);
    if (status)
        return status;
    coffer__json_writer_init(&writer, json, 0);
    if (key->type == COFFER__GGUF_STRING) {
        hex = !coffer__utf8_valid(bytes, len);
        write_text(&writer, bytes, len, hex);
    } else {
        coffer__cursor cursor = coffer__cursor_over(bytes, len, key->offset);
        hex = item == COFFER__GGUF_STRING && has_bytes(cursor, key->count);
        if (array)
            write_items(&writer, &cursor, item, key->count, hex);
        else
            write_number(&writer, &cursor, item);
        if (cursor.failed)
            status =
                coffer__fail(err, COFFER_E_CHANGED, key->offset, "%s changed while it was read", key->name);
    }
    coffer__buffer_printf(type, array ? "[%s]" : "%s", shown_type(item, hex));
    coffer__free(bytes);
    if (!status && (json->failed || type->failed))
        status = coffer__fail_no_memory(err, json->len);
    return status;
}

/* ---- From JSON ---- */

/* Finds a type by name; false when it is unknown. */
static bool find_type(uint32_t *out, bool *hex, const char *name, size_t len)
{
    *hex = len == 5 && memcmp(name, "bytes", 5) == 0;
    *out = COFFER__GGUF_STRING;
    for (uint32_t type = 0; !*hex && type < COFFER__GGUF_VALUE_COUNT; type++) {
        const char *known = coffer__gguf_value_name(type);
        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            *out = type;
            return true;
        }
    }
    return *hex;
}

static coffer_status fail_value(const char *type, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "the JSON is not a value of type %s",
                        type);
}

static bool hex_digit(uint8_t *out, char digit)
{
    const char *found = digit ? strchr(hex_digits, digit) : NULL;
    if (found)
        *out = (uint8_t)(found - hex_digits);
    return found != NULL;
}

static bool put_hex(coffer__buffer *out, const char *text, size_t len)
{
    uint8_t length[8];
    if (len % 2)
        return false;
    coffer__store_u64(length, len / 2);
    coffer__buffer_append(out, length, sizeof length);
    for (size_t i = 0; i < len; i += 2) {
        uint8_t high, low;
        if (!hex_digit(&high, text[i]) || !hex_digit(&low, text[i + 1]))
            return false;
        uint8_t byte = (uint8_t)(high << 4 | low);
        coffer__buffer_append(out, &byte, 1);
    }
    return true;
}

static bool put_float(coffer__buffer *out, uint32_t type, const coffer__json_value *value)
{
    double number;
    if (value->kind == COFFER__JSON_STRING) {
        if (strcmp(value->as.string, "NaN") == 0)
            number = (double)NAN;
        else if (strcmp(value->as.string, "Infinity") == 0)
            number = (double)INFINITY;
        else if (strcmp(value->as.string, "-Infinity") == 0)
            number = -(double)INFINITY;
        else
            return false;
    } else if (!coffer__json_f64(&number, value)) {
        return false;
    }
    coffer__gguf_put_float(out, (coffer__gguf_value)type, number);
    return true;
}

static bool put_integer(coffer__buffer *out, uint32_t type, const coffer__json_value *value)
{
    size_t bits = 8 * coffer__gguf_value_size(type);
    bool is_signed = type == COFFER__GGUF_I8 || type == COFFER__GGUF_I16 || type == COFFER__GGUF_I32 ||
                     type == COFFER__GGUF_I64;
    uint64_t top = UINT64_MAX >> (64 - bits), most = is_signed ? top >> 1 : top;
    if (value->kind == COFFER__JSON_U64 && value->as.u64 <= most)
        coffer__gguf_put_integer(out, (coffer__gguf_value)type, value->as.u64);
    else if (value->kind == COFFER__JSON_I64 && is_signed && value->as.i64 >= -(int64_t)most - 1)
        coffer__gguf_put_integer(out, (coffer__gguf_value)type, (uint64_t)value->as.i64);
    else
        return false;
    return true;
}

static bool put_scalar(coffer__buffer *out, uint32_t type, bool hex, const coffer__json_value *value)
{
    switch (type) {
    case COFFER__GGUF_F32:
    case COFFER__GGUF_F64:
        return put_float(out, type, value);
    case COFFER__GGUF_BOOL:
        if (value->kind != COFFER__JSON_BOOL)
            return false;
        coffer__gguf_put_integer(out, COFFER__GGUF_BOOL, value->as.boolean);
        return true;
    case COFFER__GGUF_STRING:
        if (value->kind != COFFER__JSON_STRING)
            return false;
        if (hex)
            return put_hex(out, value->as.string, value->string_len);
        coffer__gguf_put_string(out, value->as.string, value->string_len);
        return true;
    default:
        return put_integer(out, type, value);
    }
}

static coffer_status put_items(coffer__buffer *out, const char *name, size_t name_len,
                               const coffer__json_value *items, unsigned depth, coffer_error *err)
{
    uint32_t type;
    bool hex;
    coffer_status status = COFFER_OK;
    if (depth > COFFER__GGUF_MAX_DEPTH || !items || items->kind != COFFER__JSON_ARRAY ||
        !find_type(&type, &hex, name, name_len))
        return fail_value("array", err);
    coffer__gguf_put_integer(out, COFFER__GGUF_U32, type);
    coffer__gguf_put_integer(out, COFFER__GGUF_U64, items->as.count);
    for (const coffer__json_value *at = coffer__json_first(items); !status && at;
         at = coffer__json_next(items, at)) {
        if (type == COFFER__GGUF_ARRAY) {
            const coffer__json_value *inner = coffer__json_find(at, "type");
            if (!inner || inner->kind != COFFER__JSON_STRING)
                return fail_value("array", err);
            status = put_items(out, inner->as.string, inner->string_len, coffer__json_find(at, "items"),
                               depth + 1, err);
        } else if (!put_scalar(out, type, hex, at)) {
            status = fail_value(coffer__gguf_value_name(type), err);
        }
    }
    return status;
}

coffer_status coffer__gguf_from_json(coffer__buffer *out, const char *type, size_t type_len,
                                     const coffer__json_value *value, coffer_error *err)
{
    uint32_t number;
    bool hex;
    if (type_len > 2 && type[0] == '[' && type[type_len - 1] == ']') {
        coffer__gguf_put_integer(out, COFFER__GGUF_U32, COFFER__GGUF_ARRAY);
        return put_items(out, type + 1, type_len - 2, value, 1, err);
    }
    if (!find_type(&number, &hex, type, type_len) || number == COFFER__GGUF_ARRAY)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%.*s\" is not a GGUF value type",
                            (int)(type_len < 40 ? type_len : 40), type);
    coffer__gguf_put_integer(out, COFFER__GGUF_U32, number);
    return put_scalar(out, number, hex, value) ? COFFER_OK : fail_value(coffer__gguf_value_name(number), err);
}
