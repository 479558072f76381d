/* Models of transformers as GGUF files of llama.cpp, and back. scripts/check-llama runs them there. */
#include "base/bytes.h"
#include "coffer/coffer.h"
#include "support/gguf.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>

#define MODELS COFFER_TEST_DATA "/compat/models/"

static coffer_status convert(const char *from, const char *to, const char *name, const char *value,
                             coffer_report *notes, coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_setting settings[] = { { name, value } };
    coffer_source *src = NULL;
    opts.overwrite = true;
    opts.notes = notes;
    opts.settings = settings;
    opts.setting_count = name != NULL;
    coffer_status status = coffer_source_open(&src, from, NULL, err);
    if (!status)
        status = coffer_convert(src, to, &opts, err);
    coffer_source_close(src);
    return status;
}

static void must_convert(const char *from, const char *to, const char *name, const char *value)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (convert(from, to, name, value, NULL, &err))
        fail_msg("%s", err.text);
}

static coffer_tensors *open_set(const char *path)
{
    coffer_tensors *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_tensors_open_path(&set, path, NULL, &err))
        fail_msg("%s", err.text);
    return set;
}

/* All elements of a tensor as float32; the number of them. */
static size_t read_all(float *out, const coffer_tensors *set, const char *name)
{
    size_t index = coffer_tensors_find(set, name);
    if (index == COFFER_INDEX_NONE)
        fail_msg("no tensor %s", name);
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    assert_true(tensor->elements <= 4096);
    assert_int_equal(coffer_tensors_read_as(out, COFFER_DTYPE_F32, set, index, 0, tensor->elements, NULL),
                     COFFER_OK);
    return (size_t)tensor->elements;
}

static void put_node(char *text, size_t size, const coffer_node *node)
{
    size_t used = strlen(text);
    switch (coffer_node_get_kind(node)) {
    case COFFER_NODE_TEXT:
        snprintf(text + used, size - used, "%s", coffer_node_get_text(node, NULL));
        break;
    case COFFER_NODE_BOOL:
        snprintf(text + used, size - used, "%s", coffer_node_get_bool(node) ? "true" : "false");
        break;
    case COFFER_NODE_LIST:
        for (const coffer_node *item = coffer_node_first(node); item; item = coffer_node_next(item)) {
            put_node(text, size, item);
            used = strlen(text);
            snprintf(text + used, size - used, "%s", coffer_node_next(item) ? "," : "");
        }
        break;
    default:
        snprintf(text + used, size - used, "%g", coffer_node_get_f64(node));
    }
}

/* The value of a key as text, the items of a list with commas; "" when the file does not have it. */
static const char *key_text(const coffer_tensors *set, const char *name)
{
    static char text[256];
    coffer_node *root = NULL;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    text[0] = 0;
    if (coffer_tensors_metadata_value(root, set, name, NULL) == COFFER_OK)
        put_node(text, sizeof text, coffer_node_first(root));
    coffer_node_free(root);
    return text;
}

static void hash_model(uint8_t out[32], const char *path)
{
    coffer_mcf *model = NULL;
    assert_int_equal(coffer_mcf_open_path(&model, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_content_hash(out, model, NULL, NULL), COFFER_OK);
    coffer_mcf_close(model);
}

/* Names, types, shapes and payloads. */
static void assert_same_tensors(const char *a, const char *b)
{
    uint8_t first[32], second[32];
    hash_model(first, a);
    hash_model(second, b);
    assert_memory_equal(first, second, sizeof first);
}

/* ---- Models made here ---- */

typedef struct hf_tensor {
    const char *name;
    uint64_t rows, cols; /* cols : 0 for a vector */
} hf_tensor;

/* A model of float32 tensors whose elements count up, with the files that are not NULL. */
static void write_model(const char *path, const hf_tensor *tensors, size_t count, const char *config,
                        const char *tokenizer, const char *settings)
{
    coffer_mcf_writer *writer = NULL;
    const char *const files[] = { config, tokenizer, settings };
    const uint32_t types[] = { COFFER_MCF_CONFIG, COFFER_MCF_TOKENIZER, COFFER_MCF_TOKENIZER_CONFIG };
    coffer_mcf_writer_opts opts = COFFER_MCF_WRITER_OPTS_INIT;
    opts.overwrite = true;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &opts, NULL), COFFER_OK);
    for (size_t i = 0; i < 3; i++) {
        if (files[i])
            assert_int_equal(coffer_mcf_writer_add_section(writer, types[i], 1, files[i], strlen(files[i]),
                                                           NULL),
                             COFFER_OK);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t dims[2] = { tensors[i].rows, tensors[i].cols };
        uint64_t elements = tensors[i].rows * (tensors[i].cols ? tensors[i].cols : 1);
        coffer_mcf_new_tensor tensor = COFFER_MCF_NEW_TENSOR_INIT;
        tensor.dtype = COFFER_DTYPE_F32;
        tensor.name = tensors[i].name;
        tensor.name_len = strlen(tensors[i].name);
        tensor.rank = tensors[i].cols ? 2 : 1;
        tensor.dims = dims;
        assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
        for (uint64_t j = 0; j < elements; j++) {
            float value = (float)j;
            assert_int_equal(coffer_mcf_writer_write(writer, &value, sizeof value, NULL), COFFER_OK);
        }
        assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

static const hf_tensor llama_tensors[] = {
    { "model.embed_tokens.weight", 4, 8 },
    { "model.layers.0.self_attn.q_proj.weight", 8, 8 },
    { "model.layers.0.self_attn.k_proj.weight", 4, 8 },
    { "model.layers.0.self_attn.k_proj.bias", 4, 0 },
    { "model.layers.0.input_layernorm.weight", 8, 0 },
    { "model.layers.0.self_attn.rotary_emb.inv_freq", 2, 0 },
};

#define LLAMA_CONFIG(more)                                                                                 \
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_attention_heads\": 2, "                         \
    "\"num_key_value_heads\": 1, \"num_hidden_layers\": 1, \"intermediate_size\": 12, \"vocab_size\": 4, " \
    "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0" more "}"

static bool notes_say(const coffer_report *notes, const char *text)
{
    for (size_t i = 0; i < coffer_report_count(notes); i++) {
        if (strstr(coffer_report_at(notes, i)->text, text))
            return true;
    }
    return false;
}

/* ---- There and back ---- */

static void models_of_transformers_come_back_from_gguf_unchanged(void **state)
{
    static const char *const names[] = { "llama", "qwen2", "qwen3" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char mcf[512];
        const char *gguf = temp_path(temp_folder, "a.gguf"), *back = temp_path(temp_folder, "back.mcf");
        snprintf(mcf, sizeof mcf, MODELS "%s.mcf", names[i]);
        must_convert(mcf, gguf, NULL, NULL);
        must_convert(gguf, back, NULL, NULL);
        coffer_tensors *set = open_set(gguf);
        assert_string_equal(key_text(set, "general.architecture"), names[i]);
        assert_int_not_equal(coffer_tensors_find(set, "token_embd.weight"), COFFER_INDEX_NONE);
        assert_int_not_equal(coffer_tensors_find(set, "blk.1.ffn_down.weight"), COFFER_INDEX_NONE);
        coffer_tensors_close(set);
    }
}

static void rows_of_queries_and_keys_take_turns(void **state)
{
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    const char *back = temp_path(temp_folder, "back.mcf");
    /* Heads of four rows: both halves in turn. */
    static const int query_rows[] = { 0, 2, 1, 3, 4, 6, 5, 7 }, keys[] = { 0, 2, 1, 3 };
    float values[64];
    (void)state;
    write_model(mcf, llama_tensors, 5, LLAMA_CONFIG(""), NULL, NULL);
    must_convert(mcf, gguf, NULL, NULL);
    coffer_tensors *set = open_set(gguf);
    assert_int_equal(read_all(values, set, "blk.0.attn_q.weight"), 64);
    for (size_t i = 0; i < 64; i++)
        assert_true(values[i] == (float)(query_rows[i / 8] * 8 + (int)(i % 8)));
    assert_int_equal(read_all(values, set, "blk.0.attn_k.weight"), 32);
    for (size_t i = 0; i < 32; i++)
        assert_true(values[i] == (float)(keys[i / 8] * 8 + (int)(i % 8)));
    assert_int_equal(read_all(values, set, "blk.0.attn_k.bias"), 4);
    for (size_t i = 0; i < 4; i++)
        assert_true(values[i] == (float)keys[i]);
    assert_string_equal(key_text(set, "llama.feed_forward_length"), "12");
    assert_string_equal(key_text(set, "llama.rope.dimension_count"), "4");
    assert_string_equal(key_text(set, "general.file_type"), "0");
    coffer_tensors_close(set);
    must_convert(gguf, back, NULL, NULL);
    assert_same_tensors(mcf, back);
}

static void quantize(const char *to, const char *from, coffer_dtype dtype)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    coffer_mcf_quantize_rule rule = COFFER_MCF_QUANTIZE_RULE_INIT;
    rule.dtype = dtype;
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.overwrite = true;
    assert_int_equal(coffer_mcf_quantize(NULL, to, from, &opts, NULL), COFFER_OK);
}

static void quantized_rows_keep_their_codes(void **state)
{
    const char *q8 = temp_path(temp_folder, "q8.mcf"), *gguf = temp_path(temp_folder, "q8.gguf");
    const char *wide = temp_path(temp_folder, "wide.mcf"), *back = temp_path(temp_folder, "back.mcf");
    static const hf_tensor tensors[] = { { "model.embed_tokens.weight", 4, 256 },
                                         { "model.layers.0.self_attn.q_proj.weight", 8, 256 } };
    static const coffer_dtype types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4 };
    static const int rows[] = { 0, 2, 1, 3, 4, 6, 5, 7 };
    (void)state;
    write_model(wide, tensors, 2, LLAMA_CONFIG(""), NULL, NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float before[2048], after[2048];
        quantize(q8, wide, types[i]);
        must_convert(q8, gguf, "round-scales", NULL);
        coffer_tensors *a = open_set(q8), *b = open_set(gguf);
        assert_true(coffer_tensors_at(b, coffer_tensors_find(b, "blk.0.attn_q.weight"))->dtype ==
                    COFFER_DTYPE_NONE);
        assert_int_equal(read_all(before, a, tensors[1].name), 2048);
        assert_int_equal(read_all(after, b, "blk.0.attn_q.weight"), 2048);
        for (size_t j = 0; j < 2048; j++)
            assert_true(after[j] == before[rows[j / 256] * 256 + (int)(j % 256)]);
        coffer_tensors_close(a);
        coffer_tensors_close(b);
        must_convert(gguf, back, NULL, NULL);
        assert_same_tensors(q8, back);
    }
}

static void narrow_rows_stay_quantized_on_request(void **state)
{
    static const hf_tensor tensors[] = { { "model.embed_tokens.weight", 4, 96 },
                                         { "model.layers.0.self_attn.q_proj.weight", 8, 96 } };
    static const coffer_dtype types[] = { COFFER_DTYPE_K6, COFFER_DTYPE_K4, COFFER_DTYPE_K3,
                                          COFFER_DTYPE_K2 };
    const char *plain = temp_path(temp_folder, "a.mcf"), *mcf = temp_path(temp_folder, "k.mcf");
    const char *gguf = temp_path(temp_folder, "k.gguf"), *decoded = temp_path(temp_folder, "d.gguf");
    (void)state;
    write_model(plain, tensors, 2, LLAMA_CONFIG(""), NULL, NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        float exact[768], rounded[768];
        coffer_report *notes = NULL;
        quantize(mcf, plain, types[i]);
        assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
        assert_int_equal(convert(mcf, decoded, NULL, NULL, notes, NULL), COFFER_OK);
        assert_true(notes_say(notes, "2 of the decoded tensors have scales or rows"));
        coffer_report_free(notes);
        must_convert(mcf, gguf, "round-scales", NULL);
        coffer_tensors *a = open_set(decoded), *b = open_set(gguf);
        size_t found = coffer_tensors_find(b, "blk.0.attn_q.weight");
        assert_string_equal(coffer_tensors_at(b, found)->type_name, i ? "Q4_0" : "Q8_0");
        assert_int_equal(read_all(exact, a, "blk.0.attn_q.weight"), 768);
        assert_int_equal(read_all(rounded, b, "blk.0.attn_q.weight"), 768);
        for (size_t j = 0; j < 768; j++) {
            float error = rounded[j] - exact[j], bound = exact[j] < 0 ? -exact[j] : exact[j];
            assert_true((error < 0 ? -error : error) <= bound / 2048);
        }
        coffer_tensors_close(a);
        coffer_tensors_close(b);
    }
}

/* ---- Other architectures ---- */

static void norms_of_gemma_get_one_added(void **state)
{
    static const hf_tensor tensors[] = { { "model.embed_tokens.weight", 4, 8 },
                                         { "lm_head.weight", 4, 8 },
                                         { "model.norm.weight", 8, 0 },
                                         { "model.layers.0.pre_feedforward_layernorm.weight", 8, 0 } };
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    const char *back = temp_path(temp_folder, "back.safetensors");
    coffer_report *notes = NULL;
    float values[8];
    (void)state;
    write_model(
        mcf, tensors, 4,
        "{\"model_type\": \"gemma2\", \"hidden_size\": 8, \"num_attention_heads\": 2, \"head_dim\": 16, "
        "\"sliding_window\": 64, \"final_logit_softcapping\": 30.0}",
        NULL, NULL);
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, notes, NULL), COFFER_OK);
    assert_true(notes_say(notes, "1 tensors were left out"));
    coffer_report_free(notes);
    coffer_tensors *set = open_set(gguf);
    read_all(values, set, "blk.0.ffn_norm.weight");
    assert_true(values[0] == 1.0f && values[7] == 8.0f);
    assert_true(coffer_tensors_find(set, "output.weight") == COFFER_INDEX_NONE);
    assert_string_equal(key_text(set, "gemma2.attention.key_length"), "16");
    assert_string_equal(key_text(set, "gemma2.attention.sliding_window"), "64");
    assert_string_equal(key_text(set, "gemma2.final_logit_softcapping"), "30");
    coffer_tensors_close(set);
    must_convert(gguf, back, NULL, NULL); /* safetensors get the names of transformers, too */
    set = open_set(back);
    read_all(values, set, "model.norm.weight");
    assert_true(values[0] == 0.0f && values[7] == 7.0f);
    coffer_tensors_close(set);
}

static void bert_gets_its_prefix_back(void **state)
{
    static const hf_tensor tensors[] = { { "bert.embeddings.word_embeddings.weight", 3, 8 },
                                         { "bert.embeddings.LayerNorm.bias", 8, 0 },
                                         { "bert.encoder.layer.0.attention.self.key.weight", 8, 8 } };
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    const char *back = temp_path(temp_folder, "back.mcf");
    (void)state;
    write_model(
        mcf, tensors, 3,
        "{\"model_type\": \"bert\", \"hidden_size\": 8, \"num_attention_heads\": 2, \"vocab_size\": 3, "
        "\"type_vocab_size\": 2, \"layer_norm_eps\": 1e-12}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[CLS]\": 0, \"##b\": 1, \"a\": 2}}}",
        "{\"cls_token\": {\"content\": \"[CLS]\"}}");
    must_convert(mcf, gguf, NULL, NULL);
    coffer_tensors *set = open_set(gguf);
    assert_true(coffer_tensors_find(set, "token_embd_norm.bias") != COFFER_INDEX_NONE);
    assert_string_equal(key_text(set, "tokenizer.ggml.model"), "bert");
    assert_string_equal(key_text(set, "tokenizer.ggml.tokens"), "[CLS],b,\xe2\x96\x81"
                                                                "a");
    assert_string_equal(key_text(set, "tokenizer.ggml.bos_token_id"), "0");
    assert_string_equal(key_text(set, "tokenizer.ggml.token_type_count"), "2");
    assert_string_equal(key_text(set, "bert.attention.causal"), "false");
    coffer_tensors_close(set);
    must_convert(gguf, back, NULL, NULL);
    assert_same_tensors(mcf, back);
}

static void long_contexts_of_llama_3_become_a_tensor(void **state)
{
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    const char *back = temp_path(temp_folder, "back.mcf");
    coffer_error err = COFFER_ERROR_INIT;
    float factors[2];
    (void)state;
    write_model(mcf, llama_tensors, 5,
                LLAMA_CONFIG(", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0, "
                             "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
                             "\"original_max_position_embeddings\": 64}"),
                NULL, NULL);
    must_convert(mcf, gguf, NULL, NULL);
    coffer_tensors *set = open_set(gguf);
    assert_int_equal(read_all(factors, set, "rope_freqs.weight"), 2);
    assert_true(factors[0] == 1.0f && factors[1] == 4.0f); /* waves of 2π and 200π tokens */
    assert_string_equal(key_text(set, "llama.rope.scaling.type"), "none");
    coffer_tensors_close(set);
    must_convert(gguf, back, NULL, NULL);
    assert_same_tensors(mcf, back);
    write_model(mcf, llama_tensors, 5, LLAMA_CONFIG(", \"rope_scaling\": {\"type\": \"longrope\"}"), NULL,
                NULL);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, NULL, &err), COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "longrope"));
    must_convert(mcf, gguf, "as-is", NULL);
    write_model(mcf, llama_tensors, 5,
                LLAMA_CONFIG(", \"rope_scaling\": {\"rope_type\": \"llama3\", \"low_freq_factor\": 9.0}"),
                NULL, NULL);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, NULL, &err), COFFER_E_BAD_VALUE);
}

/* ---- Models that do not fit ---- */

static void tensors_that_llama_cpp_does_not_have_are_named(void **state)
{
    static const hf_tensor strange[] = { { "model.embed_tokens.weight", 4, 8 },
                                         { "model.layers.0.extra", 4, 0 } };
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *notes = NULL;
    (void)state;
    write_model(mcf, strange, 2, LLAMA_CONFIG(""), NULL, NULL);
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, notes, NULL), COFFER_OK);
    assert_true(notes_say(notes, "does not have: 1 (\"model.layers.0.extra\"; --exclude leaves them out)"));
    coffer_report_free(notes);
    notes = NULL;
    coffer_tensors *set = open_set(gguf);
    assert_true(coffer_tensors_find(set, "model.layers.0.extra") != COFFER_INDEX_NONE);
    coffer_tensors_close(set);

    write_model(mcf, llama_tensors, 6, LLAMA_CONFIG(""), NULL, NULL); /* with inv_freq, which is computed */
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, notes, NULL), COFFER_OK);
    assert_true(notes_say(notes, "1 tensors were left out"));
    assert_true(notes_say(notes, "no key tokenizer.ggml.model"));
    coffer_report_free(notes);

    static const hf_tensor odd[] = { { "model.embed_tokens.weight", 4, 8 },
                                     { "model.layers.0.self_attn.q_proj.weight", 6, 8 } };
    write_model(mcf, odd, 2, LLAMA_CONFIG(""), NULL, NULL);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, NULL, &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "2 heads"));
    write_model(mcf, odd, 2, "not JSON", NULL, NULL); /* the names are then the model's own */
    must_convert(mcf, gguf, NULL, NULL);
}

static void tokenizers_say_what_cannot_be_converted(void **state)
{
    static const struct {
        const char *tokenizer, *note, *key, *value;
    } cases[] = {
        { "{\"model\": {\"type\": \"Unigram\", \"vocab\": []}}", "type \"Unigram\", which is not converted",
          "tokenizer.ggml.model", "" },
        { "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
          "\"pattern\": "
          "{\"Regex\": \"x\"}}, {\"type\": \"ByteLevel\"}]}, \"model\": {\"type\": \"BPE\", \"vocab\": "
          "{\"a\": 0, "
          "\"b\": 1, \"ab\": 2}, \"merges\": [[\"a\", \"b\"], 7]}}",
          "may split words in another way", "tokenizer.ggml.merges", "a b" },
        { "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": "
          "0, "
          "\"b\": 5}, \"merges\": [\"a b\"]}}",
          "2 tokens past the 4 of the model are left out", "tokenizer.ggml.tokens",
          "a,[PAD1],[PAD2],[PAD3]" },
        { "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"unk_token\": \"?\", \"vocab\": {\"?\": "
          "0, "
          "\"a\": 1, \"aa\": 2, \"<0x0A>\": 3}, \"merges\": [\"a a\"]}, \"added_tokens\": [{\"id\": 0, "
          "\"content\": "
          "\"?\", \"special\": true}], \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
          "[{\"SpecialToken\": {\"id\": \"a\"}}, {\"Sequence\": {\"id\": \"A\"}}]}}",
          "", "tokenizer.ggml.token_type", "2,1,1,6" },
    };
    const char *mcf = temp_path(temp_folder, "a.mcf"), *gguf = temp_path(temp_folder, "a.gguf");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer_report *notes = NULL;
        assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
        write_model(mcf, llama_tensors, 5, LLAMA_CONFIG(", \"bos_token_id\": [1, 2]"), cases[i].tokenizer,
                    "{\"chat_template\": \"{{ messages }}\"}");
        assert_int_equal(convert(mcf, gguf, NULL, NULL, notes, NULL), COFFER_OK);
        if (*cases[i].note && !notes_say(notes, cases[i].note))
            fail_msg("no note: %s", cases[i].note);
        coffer_tensors *set = open_set(gguf);
        assert_string_equal(key_text(set, cases[i].key), cases[i].value);
        if (i == 3) {
            assert_string_equal(key_text(set, "tokenizer.ggml.scores"), "0,-1e+06,0,0");
            assert_string_equal(key_text(set, "tokenizer.ggml.add_bos_token"), "true");
            assert_string_equal(key_text(set, "tokenizer.ggml.add_space_prefix"), "false");
            assert_string_equal(key_text(set, "tokenizer.chat_template"), "{{ messages }}");
        }
        coffer_tensors_close(set);
        coffer_report_free(notes);
    }
    coffer_error err = COFFER_ERROR_INIT;
    write_model(mcf, llama_tensors, 5, LLAMA_CONFIG(""), "{", NULL);
    assert_int_equal(convert(mcf, gguf, NULL, NULL, NULL, &err), COFFER_E_BAD_JSON);
}

/* ---- Files of other programs ---- */

static void names_of_any_gguf_file_can_be_those_of_transformers(void **state)
{
    float query[16], kept[2] = { 0, 0 };
    const made_tensor tensors[] = { { "blk.0.attn_q.weight", 0, 2, { 4, 4 }, query, sizeof query },
                                    { "rope_freqs.weight", 0, 1, { 2 }, kept, sizeof kept } };
    const char *gguf = temp_path(temp_folder, "a.gguf"), *mcf = temp_path(temp_folder, "a.mcf");
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *notes = NULL;
    float values[16];
    (void)state;
    for (size_t i = 0; i < 16; i++)
        query[i] = (float)i;
    for (int known = 0; known < 2; known++) {
        coffer__buffer keys = COFFER__BUFFER_INIT;
        const char *arch = known ? "llama" : "strange",
                   *heads = known ? "llama.attention.head_count" : "heads";
        coffer__gguf_put_key(&keys, "general.architecture", 20, COFFER__GGUF_STRING);
        coffer__gguf_put_string(&keys, arch, strlen(arch));
        coffer__gguf_put_key(&keys, heads, strlen(heads), COFFER__GGUF_U32);
        coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, 1);
        coffer__buffer bytes = gguf_make(tensors, 2, &keys, 2);
        temp_write(gguf, bytes.data, bytes.len);
        coffer__buffer_free(&bytes);
        coffer__buffer_free(&keys);
        if (!known) {
            assert_int_equal(convert(gguf, mcf, "names", "hf", NULL, &err), COFFER_E_UNSUPPORTED);
            assert_non_null(strstr(err.text, "\"strange\""));
        }
    }
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert(gguf, mcf, "names", "hf", notes, NULL), COFFER_OK);
    assert_true(notes_say(notes, "1 tensors keep their GGUF names"));
    coffer_report_free(notes);
    coffer_tensors *set = open_set(mcf);
    read_all(values, set, "model.layers.0.self_attn.q_proj.weight");
    assert_true(values[0] == 0.0f && values[4] == 8.0f && values[8] == 4.0f && values[12] == 12.0f);
    coffer_tensors_close(set);
    must_convert(gguf, mcf, "names", "keep");
    set = open_set(mcf);
    assert_true(coffer_tensors_find(set, "blk.0.attn_q.weight") != COFFER_INDEX_NONE);
    coffer_tensors_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(models_of_transformers_come_back_from_gguf_unchanged, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(rows_of_queries_and_keys_take_turns, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(quantized_rows_keep_their_codes, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(narrow_rows_stay_quantized_on_request, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(norms_of_gemma_get_one_added, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(bert_gets_its_prefix_back, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(long_contexts_of_llama_3_become_a_tensor, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(tensors_that_llama_cpp_does_not_have_are_named, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(tokenizers_say_what_cannot_be_converted, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(names_of_any_gguf_file_can_be_those_of_transformers, temp_setup,
                                        temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
