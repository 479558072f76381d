/* Changes fields of a ModelInfo by name. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/real.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define KEY_PREFIX "kv."

typedef enum field_kind { FIELD_U32, FIELD_F32, FIELD_TEXT, FIELD_ARCH, FIELD_ROPE } field_kind;

static const struct field {
    const char *name;
    field_kind kind;
    size_t offset;
} fields[] = {
    { "model_name", FIELD_TEXT, offsetof(coffer_mcf_model_info, model_name) },
    { "base_model", FIELD_TEXT, offsetof(coffer_mcf_model_info, base_model) },
    { "arch", FIELD_ARCH, offsetof(coffer_mcf_model_info, arch) },
    { "vocab_size", FIELD_U32, offsetof(coffer_mcf_model_info, vocab_size) },
    { "hidden_size", FIELD_U32, offsetof(coffer_mcf_model_info, hidden_size) },
    { "layer_count", FIELD_U32, offsetof(coffer_mcf_model_info, layer_count) },
    { "head_count", FIELD_U32, offsetof(coffer_mcf_model_info, head_count) },
    { "head_count_kv", FIELD_U32, offsetof(coffer_mcf_model_info, head_count_kv) },
    { "context_length", FIELD_U32, offsetof(coffer_mcf_model_info, context_length) },
    { "train_context", FIELD_U32, offsetof(coffer_mcf_model_info, train_context) },
    { "rope_type", FIELD_ROPE, offsetof(coffer_mcf_model_info, rope_type) },
    { "rope_freq_base", FIELD_F32, offsetof(coffer_mcf_model_info, rope_freq_base) },
    { "rope_scale", FIELD_F32, offsetof(coffer_mcf_model_info, rope_scale) },
};

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static coffer_status fail_value(const char *field, const char *text, const char *wanted, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s is \"%s\", it must be %s",
                        field, text, wanted);
}

static coffer_status parse_u32(uint32_t *out, const char *field, const char *text, coffer_error *err)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == text || *at != 0 || value > UINT32_MAX)
        return fail_value(field, text, "an integer below 4294967296", err);
    *out = (uint32_t)value;
    return COFFER_OK;
}

static coffer_status parse_f32(float *out, const char *field, const char *text, coffer_error *err)
{
    double value;
    if (!coffer__parse_f64(&value, text, strlen(text)) || (isfinite(value) && !isfinite((float)value)))
        return fail_value(field, text, "a number in the range of float32", err);
    *out = (float)value;
    return COFFER_OK;
}

/* A name of the list, or the number itself. */
static coffer_status parse_name(uint32_t *out, const char *field, const char *text,
                                const char *(*name_of)(uint32_t), uint32_t count, coffer_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(name_of(i), text) == 0) {
            *out = i;
            return COFFER_OK;
        }
    }
    if (parse_u32(out, field, text, NULL) == COFFER_OK)
        return COFFER_OK;
    return fail_value(field, text,
                      field[0] == 'a' ? "unknown, llama, mistral, qwen, gemma, granite or smollm3"
                                      : "none, standard, linear or yarn",
                      err);
}

/* NULL as text brings the value of a new file back. */
static coffer_status change_field(coffer_mcf_model_info *info, const struct field *field, const char *text,
                                  coffer_error *err)
{
    uint8_t *place = (uint8_t *)info + field->offset;
    uint32_t number = 0;
    float real = 0;
    coffer_status status = COFFER_OK;
    switch (field->kind) {
    case FIELD_TEXT:
        if (text && !coffer__utf8_valid(text, strlen(text)))
            return fail_value(field->name, text, "UTF-8", err);
        memcpy(place, &text, sizeof text);
        return COFFER_OK;
    case FIELD_F32:
        if (text)
            status = parse_f32(&real, field->name, text, err);
        if (status == COFFER_OK)
            memcpy(place, &real, sizeof real);
        return status;
    case FIELD_ARCH:
        if (text)
            status = parse_name(&number, field->name, text, coffer_mcf_arch_name, COFFER_MCF_ARCH_SMOLLM3 + 1,
                                err);
        break;
    case FIELD_ROPE:
        if (text)
            status =
                parse_name(&number, field->name, text, coffer_mcf_rope_name, COFFER_MCF_ROPE_YARN + 1, err);
        break;
    case FIELD_U32:
        if (text)
            status = parse_u32(&number, field->name, text, err);
        break;
    }
    if (status == COFFER_OK)
        memcpy(place, &number, sizeof number);
    return status;
}

/* ---- The table ---- */

static coffer_status set_value(coffer_mcf_kv *kv, const char *text, coffer_error *err)
{
    switch (kv->type) {
    case COFFER_MCF_KV_U32:
        return parse_u32(&kv->u32, kv->key, text, err);
    case COFFER_MCF_KV_F32:
        return parse_f32(&kv->f32, kv->key, text, err);
    case COFFER_MCF_KV_STRING:
        if (!coffer__utf8_valid(text, strlen(text)))
            return fail_value(kv->key, text, "UTF-8", err);
        kv->text = text;
        kv->text_len = strlen(text);
        return COFFER_OK;
    }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "%s: unknown value type %d",
                        kv->key, (int)kv->type);
}

/* kvs : room for one more. */
static coffer_status change_key(coffer_mcf_kv *kvs, size_t *count, const char *key, const char *text,
                                coffer_mcf_kv_type type, coffer_error *err)
{
    size_t at = 0;
    while (at < *count && strcmp(kvs[at].key, key) != 0)
        at++;
    if (!text) {
        if (at == *count)
            return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "ModelInfo has no key \"%s\"",
                                key);
        memmove(&kvs[at], &kvs[at + 1], (*count - at - 1) * sizeof *kvs);
        --*count;
        return COFFER_OK;
    }
    if (at == *count)
        kvs[(*count)++] =
            (coffer_mcf_kv){ .struct_size = sizeof *kvs, .key = key, .type = COFFER_MCF_KV_STRING };
    if (type != 0)
        kvs[at].type = type;
    return set_value(&kvs[at], text, err);
}

static coffer_status fail_field(const char *field, coffer_error *err)
{
    coffer__buffer known = COFFER__BUFFER_INIT;
    coffer_status status;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        coffer__buffer_printf(&known, " %s", fields[i].name);
    status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                          "unknown field %.20s; known are kv.KEY%s", field, coffer__buffer_text(&known));
    coffer__buffer_free(&known);
    return status;
}

coffer_status coffer__mcf_change_model_info(coffer__buffer *out, coffer_mcf_model_info *info,
                                            const char *field, const char *text, coffer_mcf_kv_type type,
                                            coffer_error *err)
{
    coffer_mcf_kv *kvs = coffer__alloc_array(info->kv_count + 1, sizeof *kvs);
    size_t i = 0;
    coffer_status status;
    if (!kvs)
        return coffer__fail_no_memory(err, (info->kv_count + 1) * sizeof *kvs);
    if (info->kv_count > 0)
        memcpy(kvs, info->kvs, info->kv_count * sizeof *kvs);
    info->kvs = kvs;
    while (i < FIELD_COUNT && strcmp(fields[i].name, field) != 0)
        i++;
    if (i < FIELD_COUNT)
        status = change_field(info, &fields[i], text, err);
    else if (strncmp(field, KEY_PREFIX, strlen(KEY_PREFIX)) == 0 && field[strlen(KEY_PREFIX)] != 0)
        status = change_key(kvs, &info->kv_count, field + strlen(KEY_PREFIX), text, type, err);
    else
        status = fail_field(field, err);
    if (status == COFFER_OK)
        status = coffer__mcf_encode_model_info(out, info, err);
    info->kvs = NULL;
    info->kv_count = 0;
    coffer__free(kvs);
    return status;
}
