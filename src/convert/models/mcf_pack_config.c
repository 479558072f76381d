/* Fills a ModelInfo from the config.json of a Hugging Face model. */
#include "base/fail.h"
#include "base/json.h"
#include "convert/models/mcf_info.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

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
    coffer_mcf_model_info *to = &info->info;
    to->vocab_size = number_of(&config, "vocab_size");
    to->hidden_size = number_of(&config, "hidden_size");
    to->layer_count = number_of(&config, "num_hidden_layers");
    to->head_count = number_of(&config, "num_attention_heads");
    /* Models without grouped heads leave it out: every head has keys and values of its own. */
    to->head_count_kv =
        look_up(&config, "num_key_value_heads") ? number_of(&config, "num_key_value_heads") : to->head_count;
    to->context_length = number_of(&config, "max_position_embeddings");
    coffer_status status = take_names(info, &config, err);
    if (!status)
        status = take_rope(info, &config, err);
    if (!to->train_context)
        to->train_context = number_of(&config, "original_max_position_embeddings");
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
