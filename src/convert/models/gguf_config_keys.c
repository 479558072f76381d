/* The numbers of config.json that llama.cpp needs. */
#include "convert/models/gguf_keys.h"

#include "base/fail.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

static bool count_of(uint32_t *out, const coffer__json_value *map, const char *key)
{
    uint64_t value;
    if (!coffer__json_u64(&value, coffer__gguf_look_up(map, key)) || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool real_of(double *out, const coffer__json_value *map, const char *key)
{
    return coffer__json_f64(out, coffer__gguf_look_up(map, key)) && isfinite(*out);
}

static bool text_is(const coffer__json_value *value, const char *text)
{
    return value && value->kind == COFFER__JSON_STRING && strcmp(value->as.string, text) == 0;
}

/* Elements of a head. */
static uint32_t head_dim(const coffer__gguf_hf *hf)
{
    uint32_t dim = 0, hidden = 0;
    if (!count_of(&dim, hf->config, "head_dim") && count_of(&hidden, hf->config, "hidden_size") &&
        hf->heads.queries)
        dim = (uint32_t)(hidden / hf->heads.queries);
    return dim;
}

/* ---- Rotary positions ---- */

static const coffer__json_value *rope_of(const coffer__gguf_hf *hf)
{
    const coffer__json_value *rope = coffer__gguf_look_up(hf->config, "rope_scaling");
    return rope && rope->kind == COFFER__JSON_OBJECT && rope->as.count
               ? rope
               : coffer__gguf_look_up(hf->config, "rope_parameters");
}

static const coffer__json_value *rope_type_of(const coffer__json_value *rope)
{
    const coffer__json_value *type = coffer__gguf_look_up(rope, "rope_type");
    return type ? type : coffer__gguf_look_up(rope, "type");
}

/* The factors by which Llama 3.1 and later divide the frequencies: high ones stay, low ones are scaled, those
 * between are mixed. llama.cpp reads them from a tensor. */
static coffer_status make_rope_factors(coffer__gguf_hf *hf, const coffer__json_value *rope, coffer_error *err)
{
    double factor = 8, low = 1, high = 4, context = 8192, base = 10000;
    uint32_t count = head_dim(hf) / 2;
    real_of(&factor, rope, "factor");
    real_of(&low, rope, "low_freq_factor");
    real_of(&high, rope, "high_freq_factor");
    real_of(&context, rope, "original_max_position_embeddings");
    if (!real_of(&base, hf->config, "rope_theta"))
        real_of(&base, rope, "rope_theta");
    if (!(low < high) || !(factor > 0) || count == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                            "config.json: the numbers of rope_scaling contradict each other");
    hf->rope_factors = coffer__alloc_array(count, sizeof *hf->rope_factors);
    if (!hf->rope_factors)
        return coffer__fail_no_memory(err, count * sizeof *hf->rope_factors);
    hf->rope_factor_count = count;
    for (uint32_t i = 0; i < count; i++) {
        double wave = 2 * 3.14159265358979323846 * pow(base, (double)i / count);
        double smooth = (context / wave - low) / (high - low);
        hf->rope_factors[i] = wave < context / high  ? 1.0f
                              : wave > context / low ? (float)factor
                                                     : (float)(1 / ((1 - smooth) / factor + smooth));
    }
    return COFFER_OK;
}

static coffer_status take_rope(coffer__gguf_hf *hf, coffer_error *err)
{
    const coffer__json_value *rope = rope_of(hf), *type = rope_type_of(rope);
    if (text_is(type, "llama3"))
        return make_rope_factors(hf, rope, err);
    if (!type || text_is(type, "default") || text_is(type, "linear") || text_is(type, "yarn"))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "config.json: rope_scaling of type \"%.32s\" cannot be converted for llama.cpp; "
                        "--as-is writes the tensors under their own names",
                        type->kind == COFFER__JSON_STRING ? type->as.string : "?");
}

/* ---- The model ---- */

coffer_status coffer__gguf_hf_open(coffer__gguf_hf *hf, const coffer_mcf *model, const coffer_limits *limits,
                                   coffer_error *err)
{
    uint8_t *text = NULL;
    size_t len = 0;
    uint32_t heads = 0, keys = 0;
    *hf = (coffer__gguf_hf){ .arch = NULL };
    if (!coffer_mcf_find_section(model, COFFER_MCF_CONFIG))
        return COFFER_OK;
    coffer_status status = coffer_mcf_read_section(&text, &len, model, COFFER_MCF_CONFIG, err);
    if (!status && coffer__json_parse_python(&hf->json, (const char *)text, len, 0, limits, NULL))
        hf->json = NULL; /* a config.json that is not valid stays a section */
    coffer_free(text);
    if (status || !hf->json)
        return status;
    hf->config = coffer__json_root(hf->json);
    const coffer__json_value *type = coffer__json_find(hf->config, "model_type");
    hf->arch = type && type->kind == COFFER__JSON_STRING ? coffer__gguf_arch_for(type->as.string) : NULL;
    if (!hf->arch)
        return COFFER_OK;
    count_of(&heads, hf->config, "num_attention_heads");
    if (!count_of(&keys, hf->config, "num_key_value_heads"))
        keys = heads;
    count_of(&hf->vocab_size, hf->config, "vocab_size");
    hf->heads = (coffer__gguf_heads){ heads, keys };
    return take_rope(hf, err);
}

void coffer__gguf_hf_close(coffer__gguf_hf *hf)
{
    coffer__json_free(hf->json);
    coffer__free(hf->rope_factors);
}

/* ---- Keys ---- */

typedef struct config_key {
    const char *config, *gguf;
    bool is_real;
} config_key;

/* ModelInfo has the first ones, too, unless the model was written without it. */
static const config_key config_keys[] = {
    { "vocab_size", ".vocab_size", false },
    { "hidden_size", ".embedding_length", false },
    { "num_hidden_layers", ".block_count", false },
    { "num_attention_heads", ".attention.head_count", false },
    { "num_key_value_heads", ".attention.head_count_kv", false },
    { "rope_theta", ".rope.freq_base", true },
    { "max_position_embeddings", ".context_length", false },
    { "intermediate_size", ".feed_forward_length", false },
    { "rms_norm_eps", ".attention.layer_norm_rms_epsilon", true },
    { "layer_norm_eps", ".attention.layer_norm_epsilon", true },
    { "attn_logit_softcapping", ".attn_logit_softcapping", true },
    { "final_logit_softcapping", ".final_logit_softcapping", true },
    { "rope_local_base_freq", ".rope.freq_base_swa", true },
};

static coffer_status put_table(coffer__gguf_keys *keys, const coffer__gguf_hf *hf, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < sizeof config_keys / sizeof *config_keys; i++) {
        const config_key *row = &config_keys[i];
        uint32_t count;
        double real;
        if (row->is_real && real_of(&real, hf->config, row->config))
            status = coffer__gguf_keys_f32(keys, hf->arch->name, row->gguf, (float)real, err);
        else if (!row->is_real && count_of(&count, hf->config, row->config))
            status = coffer__gguf_keys_u32(keys, hf->arch->name, row->gguf, count, err);
    }
    return status;
}

/* Heads whose size is not the hidden size divided by their number say so, and heads that rotate in part. */
static coffer_status put_heads(coffer__gguf_keys *keys, const coffer__gguf_hf *hf, coffer_error *err)
{
    const char *arch = hf->arch->name;
    uint32_t dim = head_dim(hf), hidden = 0, window = 0, rotated;
    double part = 1;
    coffer_status status = COFFER_OK;
    if (!real_of(&part, hf->config, "partial_rotary_factor"))
        real_of(&part, rope_of(hf), "partial_rotary_factor");
    count_of(&hidden, hf->config, "hidden_size");
    rotated = (uint32_t)(part * dim);
    if (dim && (hf->arch->traits & COFFER__GGUF_HEAD_DIM || dim * hf->heads.queries != hidden)) {
        status = coffer__gguf_keys_u32(keys, arch, ".attention.key_length", dim, err);
        if (!status)
            status = coffer__gguf_keys_u32(keys, arch, ".attention.value_length", dim, err);
    }
    if (!status && dim && strcmp(arch, "bert") != 0)
        status = coffer__gguf_keys_u32(keys, arch, ".rope.dimension_count", rotated, err);
    const coffer__json_value *uses_window = coffer__gguf_look_up(hf->config, "use_sliding_window");
    bool off = uses_window && uses_window->kind == COFFER__JSON_BOOL && !uses_window->as.boolean;
    /* llama.cpp takes a phi3 file without the key for an old one. */
    if (!status && !off && (count_of(&window, hf->config, "sliding_window") || strcmp(arch, "phi3") == 0))
        status = coffer__gguf_keys_u32(keys, arch, ".attention.sliding_window", window, err);
    return status;
}

coffer_status coffer__gguf_put_config(coffer__gguf_keys *keys, const coffer__gguf_hf *hf, coffer_error *err)
{
    const char *arch = hf->arch->name;
    coffer_status status = put_table(keys, hf, err);
    if (!status)
        status = put_heads(keys, hf, err);
    if (!status && hf->rope_factors) /* the tensor has the factors; without the key llama.cpp scales again */
        status = coffer__gguf_keys_text(keys, arch, ".rope.scaling.type", "none", 4, err);
    if (!status && strcmp(arch, "bert") == 0)
        status = coffer__gguf_keys_bool(keys, arch, ".attention.causal", false, err);
    return status;
}
