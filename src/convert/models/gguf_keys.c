#include "convert/models/gguf_keys.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

void coffer__gguf_keys_free(coffer__gguf_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        coffer__free(keys->names[i]);
    coffer__free(keys->names);
}

coffer_status coffer__gguf_keys_note(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     size_t name_len, coffer_error *err)
{
    size_t prefix_len = strlen(prefix);
    coffer_status status =
        coffer__array_reserve_one(&keys->names, &keys->capacity, keys->count, sizeof *keys->names, err);
    if (status)
        return status;
    char *whole = coffer__malloc(prefix_len + name_len + 1);
    if (!whole)
        return coffer__fail_no_memory(err, prefix_len + name_len + 1);
    memcpy(whole, prefix, prefix_len);
    memcpy(whole + prefix_len, name, name_len);
    whole[prefix_len + name_len] = 0;
    keys->names[keys->count++] = whole;
    return COFFER_OK;
}

coffer_status coffer__gguf_keys_begin(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                      coffer__gguf_value type, coffer_error *err)
{
    coffer_status status = coffer__gguf_keys_note(keys, prefix, name, strlen(name), err);
    if (status)
        return status;
    const char *whole = keys->names[keys->count - 1];
    coffer__gguf_put_key(keys->out, whole, strlen(whole), type);
    return COFFER_OK;
}

/* A derived key that the file has in another way is not written again. */
static bool is_there(const coffer__gguf_keys *keys, const char *prefix, const char *name)
{
    return keys->first_derived != SIZE_MAX && coffer__gguf_keys_have(keys, prefix, name);
}

coffer_status coffer__gguf_keys_text(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     const char *text, size_t len, coffer_error *err)
{
    if (is_there(keys, prefix, name))
        return COFFER_OK;
    coffer_status status = coffer__gguf_keys_begin(keys, prefix, name, COFFER__GGUF_STRING, err);
    if (!status)
        coffer__gguf_put_string(keys->out, text, len);
    return status;
}

static coffer_status put_integer(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                 coffer__gguf_value type, uint64_t value, coffer_error *err)
{
    if (is_there(keys, prefix, name))
        return COFFER_OK;
    coffer_status status = coffer__gguf_keys_begin(keys, prefix, name, type, err);
    if (!status)
        coffer__gguf_put_integer(keys->out, type, value);
    return status;
}

coffer_status coffer__gguf_keys_u32(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                    uint32_t value, coffer_error *err)
{
    return put_integer(keys, prefix, name, COFFER__GGUF_U32, value, err);
}

coffer_status coffer__gguf_keys_bool(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                     bool value, coffer_error *err)
{
    return put_integer(keys, prefix, name, COFFER__GGUF_BOOL, value, err);
}

coffer_status coffer__gguf_keys_f32(coffer__gguf_keys *keys, const char *prefix, const char *name,
                                    float value, coffer_error *err)
{
    if (is_there(keys, prefix, name))
        return COFFER_OK;
    coffer_status status = coffer__gguf_keys_begin(keys, prefix, name, COFFER__GGUF_F32, err);
    if (!status)
        coffer__gguf_put_float(keys->out, COFFER__GGUF_F32, (double)value);
    return status;
}

coffer_status coffer__gguf_keys_array(coffer__gguf_keys *keys, const char *name, coffer__gguf_value item,
                                      uint64_t count, coffer_error *err)
{
    coffer_status status = coffer__gguf_keys_begin(keys, "", name, COFFER__GGUF_ARRAY, err);
    if (!status) {
        coffer__gguf_put_integer(keys->out, COFFER__GGUF_U32, item);
        coffer__gguf_put_integer(keys->out, COFFER__GGUF_U64, count);
    }
    return status;
}

bool coffer__gguf_keys_have(const coffer__gguf_keys *keys, const char *prefix, const char *name)
{
    size_t prefix_len = strlen(prefix);
    for (size_t i = 0; i < keys->count; i++) {
        if (strncmp(keys->names[i], prefix, prefix_len) == 0 &&
            strcmp(keys->names[i] + prefix_len, name) == 0)
            return true;
    }
    return false;
}

void coffer__gguf_keys_derive(coffer__gguf_keys *keys)
{
    keys->first_derived = keys->count;
}

coffer_status coffer__gguf_keys_finish(coffer__gguf_keys *keys, coffer_error *err)
{
    size_t first = keys->first_derived, end = keys->count;
    if (first >= end)
        return COFFER_OK;
    coffer_status status =
        coffer__gguf_keys_array(keys, COFFER__GGUF_DERIVED, COFFER__GGUF_STRING, end - first, err);
    for (size_t i = first; !status && i < end; i++)
        coffer__gguf_put_string(keys->out, keys->names[i], strlen(keys->names[i]));
    return status;
}

const coffer__json_value *coffer__gguf_look_up(const coffer__json_value *map, const char *key)
{
    const coffer__json_value *value = coffer__json_find(map, key);
    return value && value->kind != COFFER__JSON_NULL ? value : NULL;
}
