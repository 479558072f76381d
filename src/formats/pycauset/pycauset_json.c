/* Values from JSON, and to nodes. */
#include "formats/pycauset/pycauset_private.h"

#include "base/fail.h"
#include "base/report.h"

#include <stdlib.h>

/* ---- From JSON ---- */

static int by_key(const void *a, const void *b)
{
    const coffer_pycauset_value *x = a, *y = b;
    return coffer__pycauset_compare_keys(x->key, x->key_len, y->key, y->key_len);
}

static coffer_status take_children(coffer_pycauset_value *out, coffer__arena *memory,
                                   const coffer__json_value *parent, coffer_error *err)
{
    size_t count = (size_t)parent->as.count, at = 0;
    bool map = parent->kind == COFFER__JSON_OBJECT;
    coffer_pycauset_value *children = coffer__arena_take(memory, count * sizeof *children);
    if (!children)
        return coffer__fail_no_memory(err, count * sizeof *children);
    for (const coffer__json_value *v = coffer__json_first(parent); v;
         v = coffer__json_next(parent, v), at++) {
        coffer_status status;
        children[at] = (coffer_pycauset_value){ .kind = 0 };
        if (map && v->key_len > COFFER__PYCAUSET_MAX_KEY)
            return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                "a key of %lu bytes, the limit is %d", (unsigned long)v->key_len,
                                COFFER__PYCAUSET_MAX_KEY);
        if (map) {
            children[at].key_len = (uint16_t)v->key_len;
            children[at].key = coffer__arena_text(memory, v->key, v->key_len);
            if (!children[at].key)
                return coffer__fail_no_memory(err, v->key_len);
        }
        status = coffer__pycauset_from_json(&children[at], memory, v, err);
        if (status)
            return status;
    }
    if (map && count > 1)
        qsort(children, count, sizeof *children, by_key);
    out->kind = map ? COFFER_PYCAUSET_MAP : COFFER_PYCAUSET_ARRAY;
    out->as.children = children;
    out->count = (uint32_t)count;
    return COFFER_OK;
}

coffer_status coffer__pycauset_from_json(coffer_pycauset_value *out, coffer__arena *memory,
                                         const coffer__json_value *json, coffer_error *err)
{
    switch (json->kind) {
    case COFFER__JSON_BOOL:
        out->kind = COFFER_PYCAUSET_BOOL;
        out->as.boolean = json->as.boolean;
        return COFFER_OK;
    case COFFER__JSON_U64:
        out->kind = COFFER_PYCAUSET_U64;
        out->as.u64 = json->as.u64;
        return COFFER_OK;
    case COFFER__JSON_I64:
        out->kind = COFFER_PYCAUSET_I64;
        out->as.i64 = json->as.i64;
        return COFFER_OK;
    case COFFER__JSON_F64:
        out->kind = COFFER_PYCAUSET_F64;
        out->as.f64 = json->as.f64;
        return COFFER_OK;
    case COFFER__JSON_STRING:
        out->kind = COFFER_PYCAUSET_STRING;
        out->count = json->string_len;
        out->as.text = coffer__arena_text(memory, json->as.string, json->string_len);
        return out->as.text ? COFFER_OK : coffer__fail_no_memory(err, json->string_len);
    case COFFER__JSON_ARRAY:
    case COFFER__JSON_OBJECT:
        return take_children(out, memory, json, err);
    case COFFER__JSON_NUMBER:
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%s is out of the range of metadata numbers", json->as.string);
    case COFFER__JSON_NULL:
        break;
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "metadata cannot contain null");
}

/* ---- To nodes ---- */

static void bytes_to_node(coffer_node *parent, const char *name, const coffer_pycauset_value *value)
{
    static const char digits[] = "0123456789abcdef";
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (uint32_t i = 0; i < value->count; i++) {
        unsigned byte = (unsigned char)value->as.text[i];
        char pair[2] = { digits[byte >> 4], digits[byte & 15] };
        coffer__buffer_append(&text, pair, 2);
    }
    coffer_node_add_text_len(parent, name, text.failed ? "" : (const char *)text.data,
                             text.failed ? 0 : text.len);
    coffer__buffer_free(&text);
}

void coffer__pycauset_to_node(coffer_node *parent, const char *name, const coffer_pycauset_value *value)
{
    coffer_node *list;
    switch (coffer_pycauset_value_kind(value)) {
    case COFFER_PYCAUSET_BOOL:
        coffer_node_add_bool(parent, name, value->as.boolean);
        break;
    case COFFER_PYCAUSET_I64:
        coffer_node_add_i64(parent, name, value->as.i64, COFFER_UNIT_NONE);
        break;
    case COFFER_PYCAUSET_U64:
        coffer_node_add_u64(parent, name, value->as.u64, COFFER_UNIT_NONE);
        break;
    case COFFER_PYCAUSET_F64:
        coffer_node_add_f64(parent, name, value->as.f64, COFFER_UNIT_NONE);
        break;
    case COFFER_PYCAUSET_STRING:
        coffer_node_add_text_len(parent, name, value->as.text, value->count);
        break;
    case COFFER_PYCAUSET_BYTES:
        bytes_to_node(parent, name, value);
        break;
    case COFFER_PYCAUSET_ARRAY:
    case COFFER_PYCAUSET_MAP:
        list = value->kind == COFFER_PYCAUSET_MAP ? coffer_node_add_map(parent, name)
                                                  : coffer_node_add_list(parent, name);
        for (uint32_t i = 0; i < value->count; i++)
            coffer__pycauset_to_node(list, value->as.children[i].key, &value->as.children[i]);
        break;
    default:
        coffer_node_add_null(parent, name);
    }
}

coffer_status coffer_pycauset_value_to_node(coffer_node *out, const coffer_pycauset_value *map,
                                            coffer_error *err)
{
    if (coffer_pycauset_value_kind(map) != COFFER_PYCAUSET_MAP)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the value is not a map");
    for (uint32_t i = 0; i < map->count; i++)
        coffer__pycauset_to_node(out, map->as.children[i].key, &map->as.children[i]);
    return coffer_node_status(out, err);
}
