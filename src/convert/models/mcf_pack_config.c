/* ModelInfo while it is put together, from the files of a Hugging Face folder. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "convert/models/mcf_pack.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Room for one more, with its key. */
static coffer_status add(coffer_mcf_kv **out, coffer__mcf_info *info, const char *prefix, const char *name,
                         coffer_error *err)
{
    size_t prefix_len = strlen(prefix), name_len = strlen(name);
    coffer_status status =
        coffer__array_reserve_one(&info->kvs, &info->capacity, info->count, sizeof *info->kvs, err);
    if (status)
        return status;
    char *key = coffer__malloc(prefix_len + name_len + 1);
    if (!key)
        return coffer__fail_no_memory(err, prefix_len + name_len + 1);
    memcpy(key, prefix, prefix_len);
    memcpy(key + prefix_len, name, name_len + 1);
    *out = &info->kvs[info->count++];
    **out = (coffer_mcf_kv){ .struct_size = sizeof **out, .key = key };
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_u32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       uint32_t value, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_U32;
    kv->u32 = value;
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_f32(coffer__mcf_info *info, const char *prefix, const char *name,
                                       float value, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_F32;
    kv->f32 = value;
    return COFFER_OK;
}

coffer_status coffer__mcf_info_add_text(coffer__mcf_info *info, const char *prefix, const char *name,
                                        const char *text, size_t len, coffer_error *err)
{
    coffer_mcf_kv *kv;
    coffer_status status = add(&kv, info, prefix, name, err);
    if (status)
        return status;
    kv->type = COFFER_MCF_KV_STRING;
    kv->text = coffer__strndup(text, len);
    kv->text_len = len;
    return kv->text ? COFFER_OK : coffer__fail_no_memory(err, len);
}

coffer_status coffer__mcf_info_set_name(char **name, const char *text, size_t len, coffer_error *err)
{
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return coffer__fail_no_memory(err, len);
    coffer__free(*name);
    *name = copy;
    return COFFER_OK;
}

static int by_key(const void *left, const void *right)
{
    return strcmp(((const coffer_mcf_kv *)left)->key, ((const coffer_mcf_kv *)right)->key);
}

coffer_status coffer__mcf_info_finish(const coffer_mcf_model_info **out, coffer__mcf_info *info,
                                      coffer_error *err)
{
    if (info->count)
        qsort(info->kvs, info->count, sizeof *info->kvs, by_key);
    for (size_t i = 1; i < info->count; i++) {
        if (strcmp(info->kvs[i - 1].key, info->kvs[i].key) == 0)
            return coffer__fail(err, COFFER_E_DUPLICATE, COFFER_OFFSET_NONE, "duplicate key \"%s\"",
                                info->kvs[i].key);
    }
    info->info.model_name = info->model_name;
    info->info.base_model = info->base_model;
    info->info.kvs = info->kvs;
    info->info.kv_count = info->count;
    *out = &info->info;
    return COFFER_OK;
}

void coffer__mcf_info_free(coffer__mcf_info *info)
{
    for (size_t i = 0; i < info->count; i++) {
        coffer__free(info->kvs[i].key);
        coffer__free(info->kvs[i].text);
    }
    coffer__free(info->kvs);
    coffer__free(info->model_name);
    coffer__free(info->base_model);
    *info = (coffer__mcf_info)COFFER__MCF_INFO_INIT;
}

/* Fills a ModelInfo from the config.json of a Hugging Face model. */

/* A config of several models in one (text and images) has the language model's numbers in a map of its own.
 */
typedef struct hf_config {
    const coffer__json_value *top, *text;
} hf_config;

static const coffer__json_value *look_up(const hf_config *config, const char *key)
{
    const coffer__json_value *value = coffer__json_find(config->top, key);
    if (!value || value->kind == COFFER__JSON_NULL)
        value = coffer__json_find(config->text, key);
    return value && value->kind != COFFER__JSON_NULL ? value : NULL;
}

/* 0 for anything but a number in range: the fields of ModelInfo are only informative. */
static uint32_t number_of(const hf_config *config, const char *key)
{
    double value;
    if (!coffer__json_f64(&value, look_up(config, key)) || !(value >= 0) || value > (double)UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static bool real_of(float *out, const coffer__json_value *value)
{
    double real;
    if (!coffer__json_f64(&real, value) || !(fabs(real) <= (double)FLT_MAX))
        return false;
    *out = (float)real;
    return true;
}

static const char *text_of(const coffer__json_value *value)
{
    return value && value->kind == COFFER__JSON_STRING && strlen(value->as.string) == value->string_len
               ? value->as.string
               : NULL;
}

static bool contains(const char *text, const char *part)
{
    size_t len = strlen(part);
    for (; *text; text++) {
        if (strncasecmp(text, part, len) == 0)
            return true;
    }
    return false;
}

uint32_t coffer__mcf_arch_of(const char *model_type)
{
    static const char *const families[] = { "smollm3", "llama", "mistral", "qwen", "gemma", "granite" };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (contains(model_type, families[i]))
            return coffer_mcf_arch_by_name(families[i]);
    }
    return 0;
}

/* "rope_scaling", or since 2025 "rope_parameters", which holds rope_theta too. */
static coffer_status take_rope(coffer__mcf_info *info, const hf_config *config, coffer_error *err)
{
    const coffer__json_value *scaling = look_up(config, "rope_scaling");
    const coffer__json_value *parameters = look_up(config, "rope_parameters");
    coffer_status status = COFFER_OK;
    if (!scaling || scaling->kind != COFFER__JSON_OBJECT || scaling->as.count == 0)
        scaling = parameters;
    if (!real_of(&info->info.rope_freq_base, look_up(config, "rope_theta")))
        real_of(&info->info.rope_freq_base, coffer__json_find(parameters, "rope_theta"));
    if (!scaling || scaling->kind != COFFER__JSON_OBJECT || scaling->as.count == 0)
        return COFFER_OK;
    const char *type = text_of(coffer__json_find(scaling, "rope_type"));
    if (!type)
        type = text_of(coffer__json_find(scaling, "type"));
    if (type) {
        info->info.rope_type = strcmp(type, "linear") == 0    ? 2
                               : strcmp(type, "yarn") == 0    ? 3
                               : strcmp(type, "default") == 0 ? 1
                                                              : 0;
        status = coffer__mcf_info_add_text(info, "hf.rope_type", "", type, strlen(type), err);
    }
    real_of(&info->info.rope_scale, coffer__json_find(scaling, "factor"));
    hf_config inner = { scaling, NULL };
    info->info.train_context = number_of(&inner, "original_max_position_embeddings");
    return status ? status : coffer__mcf_info_add_text(info, "hf.rope_scaling", "", "present", 7, err);
}

static coffer_status take_names(coffer__mcf_info *info, const hf_config *config, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const char *type = text_of(coffer__json_find(config->top, "model_type"));
    const char *origin = text_of(coffer__json_find(config->top, "_name_or_path"));
    if (type) {
        info->info.arch = coffer__mcf_arch_of(type);
        status = coffer__mcf_info_add_text(info, "hf.model_type", "", type, strlen(type), err);
    }
    /* A local path does not name a model. */
    if (!status && origin && *origin && origin[0] != '/' && origin[0] != '.' && origin[0] != '~' &&
        !strchr(origin, '\\'))
        status = coffer__mcf_info_set_name(&info->base_model, origin, strlen(origin), err);
    return status;
}

static coffer_status take_config(coffer__mcf_info *info, const coffer__json_value *root, coffer_error *err)
{
    hf_config config = { root, coffer__json_find(root, "text_config") };
    coffer_mcf_model_info *model = &info->info;
    model->vocab_size = number_of(&config, "vocab_size");
    model->hidden_size = number_of(&config, "hidden_size");
    model->layer_count = number_of(&config, "num_hidden_layers");
    model->head_count = number_of(&config, "num_attention_heads");
    /* Models without grouped heads leave it out: every head has keys and values of its own. */
    model->head_count_kv = look_up(&config, "num_key_value_heads") ? number_of(&config, "num_key_value_heads")
                                                                   : model->head_count;
    model->context_length = number_of(&config, "max_position_embeddings");
    coffer_status status = take_names(info, &config, err);
    if (!status)
        status = take_rope(info, &config, err);
    if (!model->train_context)
        model->train_context = number_of(&config, "original_max_position_embeddings");
    return status ? status : coffer__mcf_info_add_u32(info, "hf.config_json_present", "", 1, err);
}

coffer_status coffer__mcf_info_from_config(coffer__mcf_info *info, const uint8_t *text, size_t len,
                                           const char *name, const coffer_limits *limits, coffer_error *err)
{
    coffer__json *json = NULL;
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = coffer__json_parse_python(&json, (const char *)text, len, 0, limits, &failure);
    if (status)
        return coffer__fail_other(err, coffer__fail_copy(err, &failure), name);
    if (coffer__json_root(json)->kind != COFFER__JSON_OBJECT)
        status = coffer__fail_other(err, coffer__fail(err, COFFER_E_BAD_JSON, 0, "not a JSON object"), name);
    else
        status = take_config(info, coffer__json_root(json), err);
    coffer__json_free(json);
    return status;
}

/* A chat template that is a file of its own goes into tokenizer_config.json, where programs look for it. The
 * bytes are those that Go's encoder gives, keys sorted, <, > and & escaped, so that models packed here and by
 * the format's first program are the same. Never rendered: a template is data. */

static int by_member_key(const void *left, const void *right)
{
    return strcmp((*(const coffer__json_value *const *)left)->key,
                  (*(const coffer__json_value *const *)right)->key);
}

/* Depth is bounded by the parser's. */
static bool write_sorted(coffer__json_writer *writer, const coffer__json_value *value,
                         const coffer__json_value *chat_template);

static bool write_object(coffer__json_writer *writer, const coffer__json_value *object,
                         const coffer__json_value *chat_template)
{
    size_t count = 0;
    bool done = true;
    const coffer__json_value **members = coffer__alloc_array((size_t)object->as.count + 1, sizeof *members);
    if (!members)
        return false;
    for (const coffer__json_value *member = coffer__json_first(object); member;
         member = coffer__json_next(object, member)) {
        if (!chat_template || strcmp(member->key, chat_template->key) != 0)
            members[count++] = member;
    }
    if (chat_template)
        members[count++] = chat_template;
    qsort(members, count, sizeof *members, by_member_key);
    coffer__json_open_object(writer);
    for (size_t i = 0; done && i < count; i++) {
        coffer__json_key_len(writer, members[i]->key, members[i]->key_len);
        done = write_sorted(writer, members[i], NULL);
    }
    coffer__json_close_object(writer);
    coffer__free(members);
    return done;
}

static bool write_sorted(coffer__json_writer *writer, const coffer__json_value *value,
                         const coffer__json_value *chat_template)
{
    bool done = true;
    if (value->kind == COFFER__JSON_OBJECT)
        return write_object(writer, value, chat_template);
    if (value->kind != COFFER__JSON_ARRAY) {
        coffer__json_write_value(writer, value);
        return true;
    }
    coffer__json_open_array(writer);
    for (const coffer__json_value *member = coffer__json_first(value); done && member;
         member = coffer__json_next(value, member))
        done = write_sorted(writer, member, NULL);
    coffer__json_close_array(writer);
    return done;
}

/* These characters occur in JSON only inside strings. */
static void escape(coffer__buffer *out, const coffer__buffer *json)
{
    for (size_t i = 0; i < json->len; i++) {
        uint8_t c = json->data[i];
        bool separator = c == 0xe2 && json->len - i >= 3 && json->data[i + 1] == 0x80 &&
                         (json->data[i + 2] & 0xfe) == 0xa8;
        if (separator) {
            coffer__buffer_printf(out, "\\u%04x", 0x2028 + (json->data[i + 2] & 1));
            i += 2;
        } else if (c == '<' || c == '>' || c == '&') {
            coffer__buffer_printf(out, "\\u%04x", c);
        } else {
            coffer__buffer_append(out, &c, 1);
        }
    }
}

static coffer_status parse_config(coffer__json **out, const coffer__mcf_resource *config,
                                  const coffer_limits *limits, coffer_error *err)
{
    static const char nothing[] = "{}";
    coffer_error failure = COFFER_ERROR_INIT;
    const char *text = config ? (const char *)config->bytes : nothing;
    const char *name = config ? config->path : nothing;
    coffer_status status =
        coffer__json_parse_python(out, text, config ? config->len : sizeof nothing - 1, 0, limits, &failure);
    if (status)
        return coffer__fail_other(err, coffer__fail_copy(err, &failure), name);
    if (coffer__json_root(*out)->kind != COFFER__JSON_OBJECT)
        return coffer__fail_other(err, coffer__fail(err, COFFER_E_BAD_JSON, 0, "not a JSON object"), name);
    return COFFER_OK;
}

coffer_status coffer__mcf_pack_fold(coffer__buffer *out, const coffer__mcf_resource *config,
                                    const char *chat_template, size_t template_len,
                                    const coffer_limits *limits, coffer_error *err)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json *parsed = NULL;
    coffer__json_value value = {
        .key = "chat_template", .key_len = 13, .kind = COFFER__JSON_STRING, .span = 1
    };
    if (template_len > UINT32_MAX || !coffer__utf8_valid(chat_template, template_len))
        return coffer__fail(err, COFFER_E_BAD_TEXT, COFFER_OFFSET_NONE, "the chat template is not UTF-8");
    value.as.string = chat_template;
    value.string_len = (uint32_t)template_len;
    coffer_status status = parse_config(&parsed, config, limits, err);
    if (!status) {
        coffer__json_writer_init(&writer, &json, 0);
        bool done = write_sorted(&writer, coffer__json_root(parsed), &value);
        escape(out, &json);
        if (!done || json.failed || out->failed)
            status = coffer__fail_no_memory(err, json.len);
    }
    coffer__buffer_free(&json);
    coffer__json_free(parsed);
    return status;
}
