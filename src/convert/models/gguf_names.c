#include "convert/models/gguf_names.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"

#include <inttypes.h>
#include <string.h>

/* "*" is the number of a layer; ".weight" and ".bias" follow. An empty GGUF name: the tensor is left out. */
typedef struct coffer__gguf_name {
    const char *hf, *gguf;
} gguf_name;

/* ---- Tables ---- */

static const gguf_name decoder[] = {
    { "model.embed_tokens", "token_embd" },
    { "model.norm", "output_norm" },
    { "lm_head", "output" },
    { "model.layers.*.input_layernorm", "blk.*.attn_norm" },
    { "model.layers.*.self_attn.q_proj", "blk.*.attn_q" },
    { "model.layers.*.self_attn.k_proj", "blk.*.attn_k" },
    { "model.layers.*.self_attn.v_proj", "blk.*.attn_v" },
    { "model.layers.*.self_attn.o_proj", "blk.*.attn_output" },
    { "model.layers.*.self_attn.q_norm", "blk.*.attn_q_norm" },
    { "model.layers.*.self_attn.k_norm", "blk.*.attn_k_norm" },
    { "model.layers.*.post_attention_layernorm", "blk.*.ffn_norm" },
    { "model.layers.*.mlp.gate_proj", "blk.*.ffn_gate" },
    { "model.layers.*.mlp.up_proj", "blk.*.ffn_up" },
    { "model.layers.*.mlp.down_proj", "blk.*.ffn_down" },
    { "model.layers.*.self_attn.rotary_emb.inv_freq", "" },
    { "model.rotary_emb.inv_freq", "" },
    { NULL, NULL },
};

static const gguf_name gemma2[] = {
    { "model.layers.*.post_attention_layernorm", "blk.*.post_attention_norm" },
    { "model.layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm" },
    { "model.layers.*.post_feedforward_layernorm", "blk.*.post_ffw_norm" },
    { NULL, NULL },
};

static const gguf_name phi3[] = {
    { "model.layers.*.self_attn.qkv_proj", "blk.*.attn_qkv" },
    { "model.layers.*.mlp.gate_up_proj", "blk.*.ffn_up" },
    { NULL, NULL },
};

static const gguf_name phi2[] = {
    { "model.final_layernorm", "output_norm" },
    { "model.layers.*.self_attn.dense", "blk.*.attn_output" },
    { "model.layers.*.mlp.fc1", "blk.*.ffn_up" },
    { "model.layers.*.mlp.fc2", "blk.*.ffn_down" },
    { NULL, NULL },
};

static const gguf_name bert[] = {
    { "embeddings.word_embeddings", "token_embd" },
    { "embeddings.position_embeddings", "position_embd" },
    { "embeddings.token_type_embeddings", "token_types" },
    { "embeddings.LayerNorm", "token_embd_norm" },
    { "encoder.layer.*.attention.self.query", "blk.*.attn_q" },
    { "encoder.layer.*.attention.self.key", "blk.*.attn_k" },
    { "encoder.layer.*.attention.self.value", "blk.*.attn_v" },
    { "encoder.layer.*.attention.output.dense", "blk.*.attn_output" },
    { "encoder.layer.*.attention.output.LayerNorm", "blk.*.attn_output_norm" },
    { "encoder.layer.*.intermediate.dense", "blk.*.ffn_up" },
    { "encoder.layer.*.output.dense", "blk.*.ffn_down" },
    { "encoder.layer.*.output.LayerNorm", "blk.*.layer_output_norm" },
    { "embeddings.position_ids", "" },
    { "pooler.dense", "" },
    { "cls.predictions", "" },
    { "cls.predictions.decoder", "" },
    { "cls.predictions.transform.dense", "" },
    { "cls.predictions.transform.LayerNorm", "" },
    { "cls.seq_relationship", "" },
    { NULL, NULL },
};

static const gguf_name plain[] = { { NULL, NULL } };

/* The first row of a GGUF name is the one that a file without config.json is taken for. */
static const coffer__gguf_arch architectures[] = {
    { "llama", "llama", COFFER__GGUF_PERMUTED, plain },
    { "mistral", "llama", COFFER__GGUF_PERMUTED, plain },
    { "qwen2", "qwen2", 0, plain },
    { "qwen3", "qwen3", COFFER__GGUF_HEAD_DIM, plain },
    { "gemma", "gemma", COFFER__GGUF_PLUS_ONE | COFFER__GGUF_TIED | COFFER__GGUF_HEAD_DIM, plain },
    { "gemma2", "gemma2", COFFER__GGUF_PLUS_ONE | COFFER__GGUF_TIED | COFFER__GGUF_HEAD_DIM, gemma2 },
    { "gemma3_text", "gemma3", COFFER__GGUF_PLUS_ONE | COFFER__GGUF_TIED | COFFER__GGUF_HEAD_DIM, gemma2 },
    { "phi3", "phi3", 0, phi3 },
    { "phi", "phi2", COFFER__GGUF_LAYER_NORM, phi2 },
    { "bert", "bert", COFFER__GGUF_LAYER_NORM, bert },
};

#define ARCH_COUNT (sizeof architectures / sizeof *architectures)

const coffer__gguf_arch *coffer__gguf_arch_for(const char *model_type)
{
    for (size_t i = 0; i < ARCH_COUNT; i++) {
        if (strcmp(architectures[i].model_type, model_type) == 0)
            return &architectures[i];
    }
    return NULL;
}

const coffer__gguf_arch *coffer__gguf_arch_named(const char *name)
{
    for (size_t i = 0; i < ARCH_COUNT; i++) {
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    }
    return NULL;
}

/* ---- Names ---- */

/* Whether the text up to `len` is the pattern; the digits for its star. */
static bool fits(const char *pattern, const char *text, size_t len, const char **digits, size_t *digit_count)
{
    const char *star = strchr(pattern, '*'), *end = text + len;
    size_t before = star ? (size_t)(star - pattern) : strlen(pattern);
    *digit_count = 0;
    if (len < before || strncmp(pattern, text, before) != 0)
        return false;
    if (!star)
        return len == before;
    *digits = text + before;
    while (*digits + *digit_count < end && strchr("0123456789", (*digits)[*digit_count]))
        ++*digit_count;
    const char *rest = *digits + *digit_count;
    return *digit_count && (size_t)(end - rest) == strlen(star + 1) &&
           strncmp(rest, star + 1, (size_t)(end - rest)) == 0;
}

static void put_name(coffer__buffer *out, const char *pattern, const char *digits, size_t digit_count,
                     const char *suffix)
{
    const char *star = strchr(pattern, '*');
    int before = star ? (int)(star - pattern) : (int)strlen(pattern);
    coffer__buffer_printf(out, "%.*s%.*s%s%s", before, pattern, star ? (int)digit_count : 0, digits,
                          star ? star + 1 : "", suffix);
}

static coffer__gguf_match search(coffer__buffer *out, const gguf_name *table, const char *name, bool to_gguf)
{
    const char *suffix = strrchr(name, '.'), *digits = "";
    size_t digit_count;
    if (!suffix || (strcmp(suffix, ".weight") != 0 && strcmp(suffix, ".bias") != 0))
        suffix = name + strlen(name);
    for (; table->hf; table++) {
        if (!fits(to_gguf ? table->hf : table->gguf, name, (size_t)(suffix - name), &digits, &digit_count))
            continue;
        if (!*table->gguf)
            return COFFER__GGUF_LEFT_OUT;
        put_name(out, to_gguf ? table->gguf : table->hf, digits, digit_count, suffix);
        return COFFER__GGUF_RENAMED;
    }
    return COFFER__GGUF_UNKNOWN;
}

static coffer__gguf_match search_all(coffer__buffer *out, const coffer__gguf_arch *arch, const char *name,
                                     bool to_gguf)
{
    coffer__gguf_match match = search(out, arch->names, name, to_gguf);
    return match == COFFER__GGUF_UNKNOWN && arch->names != bert ? search(out, decoder, name, to_gguf) : match;
}

size_t coffer__gguf_prefix_len(const coffer__gguf_arch *arch, const char *name)
{
    static const char prefix[] = "bert.";
    return arch->names == bert && strncmp(name, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
}

coffer__gguf_match coffer__gguf_name_of(coffer__buffer *out, const coffer__gguf_arch *arch, const char *name)
{
    name += coffer__gguf_prefix_len(arch, name);
    if (arch->traits & COFFER__GGUF_TIED && strcmp(name, "lm_head.weight") == 0)
        return COFFER__GGUF_LEFT_OUT;
    return search_all(out, arch, name, true);
}

/* ---- Rows and numbers ---- */

static bool contains(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

coffer_status coffer__gguf_reshape(coffer_tensors *set, size_t tensor, const coffer__gguf_arch *arch,
                                   const char *name, coffer__gguf_heads heads,
                                   coffer__gguf_direction direction, coffer_error *err)
{
    const coffer_tensor *found = coffer_tensors_at(set, tensor);
    bool is_query = contains(name, ".q_proj."), is_key = contains(name, ".k_proj.");
    if (arch->traits & COFFER__GGUF_PERMUTED && (is_query || is_key) && found->rank <= 2)
        return coffer__tensors_reorder(set, tensor,
                                       direction == COFFER__TO_GGUF ? COFFER__ROWS_INTERLEAVED
                                                                    : COFFER__ROWS_SPLIT,
                                       is_query ? heads.queries : heads.keys, err);
    if (arch->traits & COFFER__GGUF_PLUS_ONE && found->rank == 1 && contains(name, "norm.weight"))
        return coffer__tensors_add_number(set, tensor, direction == COFFER__TO_GGUF ? 1.0f : -1.0f, err);
    return COFFER_OK;
}

/* ---- A whole GGUF file ---- */

/* The text of a key (coffer__free), NULL without one. */
static coffer_status read_text(char **out, const coffer__gguf *gguf, const char *name, coffer_error *err)
{
    const coffer__gguf_key *key = coffer__gguf_find(gguf, name);
    size_t len;
    *out = NULL;
    return key && key->type == COFFER__GGUF_STRING
               ? coffer__gguf_read_value((uint8_t **)(void *)out, &len, gguf, key, err)
               : COFFER_OK;
}

static coffer_status read_count(uint64_t *out, const coffer__gguf *gguf, const char *arch, const char *name,
                                coffer_error *err)
{
    coffer__buffer key_name = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&key_name, "%s.%s", arch, name);
    const coffer__gguf_key *key = coffer__gguf_find(gguf, coffer__buffer_text(&key_name));
    uint8_t *bytes = NULL;
    size_t len;
    coffer_status status = COFFER_OK;
    if (key && key->type == COFFER__GGUF_U32) {
        status = coffer__gguf_read_value(&bytes, &len, gguf, key, err);
        if (!status)
            *out = coffer__load_u32(bytes);
    }
    coffer__free(bytes);
    coffer__buffer_free(&key_name);
    return status;
}

bool coffer__gguf_wants_hf_names(const coffer__convert_job *job)
{
    const char *names = coffer__job_setting(job, "names");
    return names && strcmp(names, "hf") == 0;
}

typedef struct renaming {
    coffer_tensors *set;
    const coffer__gguf_arch *arch;
    coffer__gguf_heads heads;
    const char *prefix; /* before the names of transformers */
    bool own;           /* the file was converted from those names */
    size_t kept;        /* tensors that have no other name */
} renaming;

static coffer_status restore_tensor(renaming *job, size_t tensor, coffer_error *err)
{
    coffer__buffer name = COFFER__BUFFER_INIT;
    coffer_status status = COFFER_OK;
    coffer__buffer_printf(&name, "%s", job->prefix);
    coffer__gguf_match match = search_all(&name, job->arch, coffer_tensors_at(job->set, tensor)->name, false);
    if (match != COFFER__GGUF_RENAMED)
        job->kept++;
    else if (name.failed)
        status = coffer__fail_no_memory(err, name.len);
    else
        status = coffer__tensors_rename(job->set, tensor, coffer__buffer_text(&name), err);
    if (!status && match == COFFER__GGUF_RENAMED)
        status = coffer__gguf_reshape(job->set, tensor, job->arch, coffer__buffer_text(&name), job->heads,
                                      COFFER__FROM_GGUF, err);
    coffer__buffer_free(&name);
    return status;
}

static coffer_status restore_all(renaming *job, coffer_error *err)
{
    static const char computed[] = "rope_freqs.weight"; /* from the numbers of config.json */
    coffer_status status = COFFER_OK;
    size_t found = job->own ? coffer_tensors_find(job->set, computed) : COFFER_INDEX_NONE;
    if (found != COFFER_INDEX_NONE)
        coffer__tensors_remove(job->set, found);
    for (size_t i = 0; !status && i < coffer_tensors_count(job->set); i++)
        status = restore_tensor(job, i, err);
    return status ? status : coffer__tensors_sort(job->set, err);
}

coffer_status coffer__gguf_restore_names(coffer_tensors *set, bool requested, coffer_report *notes,
                                         coffer_error *err)
{
    const coffer__gguf *gguf = coffer__gguf_of(set);
    char *arch = NULL, *names = NULL;
    renaming job = { .set = set, .prefix = "" };
    coffer_status status = read_text(&names, gguf, COFFER__GGUF_NAMES, err);
    job.own = names && strncmp(names, COFFER__GGUF_NAMES_HF, strlen(COFFER__GGUF_NAMES_HF)) == 0;
    if (status || !(job.own || requested))
        goto out;
    if (job.own && names[strlen(COFFER__GGUF_NAMES_HF)] == ':')
        job.prefix = names + strlen(COFFER__GGUF_NAMES_HF) + 1;
    status = read_text(&arch, gguf, "general.architecture", err);
    job.arch = arch ? coffer__gguf_arch_named(arch) : NULL;
    if (!status && !job.arch)
        status = coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                              "the names of transformers are not known for the architecture \"%.32s\"",
                              arch ? arch : "");
    if (!status)
        status = read_count(&job.heads.queries, gguf, arch, "attention.head_count", err);
    job.heads.keys = job.heads.queries;
    if (!status)
        status = read_count(&job.heads.keys, gguf, arch, "attention.head_count_kv", err);
    if (!status)
        status = restore_all(&job, err);
    if (!status && job.kept && notes)
        coffer__report_add(notes, COFFER_E_UNSUPPORTED, COFFER_NOTE, COFFER_OFFSET_NONE,
                           "%zu tensors keep their GGUF names: transformers has no others for them",
                           job.kept);
out:
    coffer__free(arch);
    coffer__free(names);
    return status;
}
