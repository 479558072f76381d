#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_container(const coffer__json_value *value)
{
    return value->kind == COFFER__JSON_ARRAY || value->kind == COFFER__JSON_OBJECT;
}

const coffer__json_value *coffer__json_first(const coffer__json_value *parent)
{
    return parent && is_container(parent) && parent->as.count > 0 ? parent + 1 : NULL;
}

const coffer__json_value *coffer__json_next(const coffer__json_value *parent, const coffer__json_value *child)
{
    const coffer__json_value *next = child + child->span;
    return next < parent + parent->span ? next : NULL;
}

const coffer__json_value *coffer__json_find(const coffer__json_value *object, const char *key)
{
    if (!object || object->kind != COFFER__JSON_OBJECT)
        return NULL;
    size_t len = strlen(key);
    for (const coffer__json_value *at = coffer__json_first(object); at; at = coffer__json_next(object, at)) {
        if (at->key_len == len && memcmp(at->key, key, len) == 0)
            return at;
    }
    return NULL;
}

bool coffer__json_u64(uint64_t *out, const coffer__json_value *value)
{
    if (!value || value->kind != COFFER__JSON_U64)
        return false;
    *out = value->as.u64;
    return true;
}

bool coffer__json_f64(double *out, const coffer__json_value *value)
{
    if (!value)
        return false;
    switch (value->kind) {
    case COFFER__JSON_U64:
        *out = (double)value->as.u64;
        return true;
    case COFFER__JSON_I64:
        *out = (double)value->as.i64;
        return true;
    case COFFER__JSON_F64:
        *out = value->as.f64;
        return true;
    case COFFER__JSON_NUMBER: { /* of those, only integers are finite: no decimal point, no locale */
        double rounded = strtod(value->as.string, NULL);
        if (!isfinite(rounded))
            return false;
        *out = rounded;
        return true;
    }
    default:
        return false;
    }
}

size_t coffer__json_object_length(const char *text, size_t len)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t at = 0; at < len && (at == 0 ? text[at] == '{' : depth > 0); at++) {
        if (in_string && text[at] == '\\')
            at++;
        else if (text[at] == '"')
            in_string = !in_string;
        else if (!in_string && text[at] == '{')
            depth++;
        else if (!in_string && text[at] == '}' && --depth == 0)
            return at + 1;
    }
    return 0;
}
