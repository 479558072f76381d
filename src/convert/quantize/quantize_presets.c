/* Mixtures of types by the names that llama.cpp has for them, with our types in place of those of ggml. */
#include "convert/quantize/quantize.h"

#include <string.h>
#include <strings.h>

typedef struct preset {
    const char *name;
    coffer_dtype base, values, down, attention_output, output;
    bool some_layers; /* values and down : in half of the layers only */
    const char *meaning;
} preset;

#define K2 COFFER_DTYPE_K2
#define K3 COFFER_DTYPE_K3
#define K4 COFFER_DTYPE_K4
#define K6 COFFER_DTYPE_K6
#define Q4 COFFER_DTYPE_Q4
#define Q8 COFFER_DTYPE_Q8

static const preset presets[] = {
    { "Q2_K", K2, K4, K3, K3, K6, false,
      "k2; attention values k4, attention and feed-forward outputs k3, output k6" },
    { "Q3_K_S", K3, K3, K3, K3, K6, false, "k3; output k6" },
    { "Q3_K_M", K3, K4, K4, K4, K6, false,
      "k3; attention values, attention and feed-forward outputs k4, output k6" },
    { "Q3_K", K3, K4, K4, K4, K6, false,
      "k3; attention values, attention and feed-forward outputs k4, output k6" },
    { "Q3_K_L", K3, K6, K6, K6, K6, false,
      "k3; attention values, attention and feed-forward outputs, output k6" },
    { "Q4_0", Q4, Q4, Q4, Q4, K6, false, "q4; output k6" },
    { "Q4_K_S", K4, K4, K4, K4, K6, false, "k4; output k6" },
    { "Q4_K_M", K4, K6, K6, K4, K6, true,
      "k4; attention values and feed-forward outputs of half of the layers k6, output k6" },
    { "Q4_K", K4, K6, K6, K4, K6, true,
      "k4; attention values and feed-forward outputs of half of the layers k6, output k6" },
    { "Q6_K", K6, K6, K6, K6, K6, false, "k6" },
    { "Q8_0", Q8, Q8, Q8, Q8, Q8, false, "q8" },
};

static const preset *find_preset(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (strcasecmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

const char *coffer_mcf_quantize_preset(const char *name)
{
    const preset *found = find_preset(name);
    return found ? found->meaning : NULL;
}

/* ---- Tensors by their names, those of Hugging Face and of GGUF ---- */

static bool has_part(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(name, *parts))
            return true;
    return false;
}

static bool is_output(const char *name)
{
    static const char *const parts[] = { "lm_head", NULL };
    return has_part(name, parts) || strcmp(name, "output.weight") == 0;
}

static bool is_embedding(const char *name)
{
    static const char *const parts[] = { "embed_tokens", "token_embd", "wte.", "word_embeddings", NULL };
    return has_part(name, parts);
}

/* The first component that is a number: the layer. */
static bool find_layer(uint64_t *out, const char *name)
{
    for (const char *part = name; part; part = strchr(part, '.') ? strchr(part, '.') + 1 : NULL) {
        size_t digits = strspn(part, "0123456789");
        if (digits == 0 || digits > 6 || (part[digits] != '.' && part[digits] != 0))
            continue;
        *out = 0;
        for (size_t i = 0; i < digits; i++)
            *out = *out * 10 + (uint64_t)(part[i] - '0');
        return true;
    }
    return false;
}

coffer__quantize_model coffer__quantize_model_of(const coffer__selection *selection)
{
    coffer__quantize_model model = { 0, false };
    for (size_t i = 0; i < selection->count; i++) {
        const char *name = selection->items[i].tensor->name;
        uint64_t layer;
        if (find_layer(&layer, name) && layer >= model.layers)
            model.layers = layer + 1;
        model.has_output = model.has_output || is_output(name);
    }
    return model;
}

/* The first and last eighth, and every third between. */
static bool has_more_bits(const char *name, uint64_t layers)
{
    uint64_t layer;
    if (!find_layer(&layer, name))
        return true;
    uint64_t eighth = layers / 8;
    return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

coffer_dtype coffer__quantize_preset_type(const char *name, const char *tensor,
                                          const coffer__quantize_model *model)
{
    static const char *const values[] = { "v_proj", "attn_v", ".value.", "qkv", NULL };
    static const char *const down[] = { "down_proj", "ffn_down", "c_proj", "fc2", NULL };
    static const char *const attention_output[] = { "o_proj", "attn_output", "attn.c_proj", "out_proj",
                                                    NULL };
    const preset *mixture = find_preset(name);
    if (is_output(tensor) || (is_embedding(tensor) && !model->has_output))
        return mixture->output;
    if (has_part(tensor, attention_output))
        return mixture->attention_output;
    coffer_dtype chosen_type = has_part(tensor, values) ? mixture->values
                               : has_part(tensor, down) ? mixture->down
                                                        : mixture->base;
    return mixture->some_layers && !has_more_bits(tensor, model->layers) ? mixture->base : chosen_type;
}
