/* Folders and files packed into a model: what goes in, what is refused before anything is written. */
#include "coffer/coffer.h"
#include "support/safetensors.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char two_tensors[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                                  "\"b\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[16,20]}}";

static int fresh_folder(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    return 0;
}

static const char *in_folder(const char *name)
{
    return temp_path(temp_folder, name);
}

/* One that stays while a test goes on. */
static const char *kept_path(const char *name)
{
    static char paths[16][300];
    static size_t next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    temp_write(in_folder(name), text, strlen(text));
}

/* ---- A packed model ---- */

typedef struct packed {
    coffer_source *src;
    coffer_mcf *model;
    const coffer_mcf_model_info *info;
} packed;

static packed open_packed(const char *name)
{
    packed out = { NULL, NULL, NULL };
    coffer_report *report = NULL;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    opts.full = true;
    assert_int_equal(coffer_source_open(&out.src, in_folder(name), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, out.src, &opts, NULL), COFFER_OK);
    for (size_t i = 0; i < coffer_report_count(report); i++)
        fail_msg("%s", coffer_report_at(report, i)->text);
    coffer_report_free(report);
    assert_int_equal(coffer_mcf_open(&out.model, out.src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_get_model_info(&out.info, out.model, NULL), COFFER_OK);
    return out;
}

static void close_packed(packed *done)
{
    coffer_mcf_close(done->model);
    coffer_source_close(done->src);
}

static const coffer_mcf_kv *find_kv(const packed *of, const char *key)
{
    for (size_t i = 0; i < of->info->kv_count; i++) {
        if (strcmp(of->info->kvs[i].key, key) == 0)
            return &of->info->kvs[i];
    }
    return NULL;
}

static void assert_section(const packed *of, uint32_t type, const char *expected)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    assert_int_equal(coffer_mcf_read_section(&bytes, &len, of->model, type, NULL), COFFER_OK);
    assert_string_equal((const char *)bytes, expected);
    assert_int_equal(len, strlen(expected));
    coffer_free(bytes);
}

static coffer_mcf_tensor find_tensor(const packed *of, const char *name)
{
    size_t index = coffer_mcf_find_tensor(of->model, name, strlen(name));
    assert_int_not_equal(index, SIZE_MAX);
    return *coffer_mcf_tensor_at(of->model, index);
}

static coffer_status pack_one(const char *input, const char *out, const coffer_mcf_pack_opts *opts,
                              coffer_error *err)
{
    return coffer_mcf_pack(in_folder(out), &input, 1, opts, err);
}

static void must_pack(const char *input, const char *out, const coffer_mcf_pack_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (pack_one(input, out, opts, &err))
        fail_msg("%s", err.text);
}

static void refused(coffer_status expected, const char *const *inputs, size_t count,
                    const coffer_mcf_pack_opts *opts, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_mcf_pack(in_folder("out.mcf"), inputs, count, opts, &err);
    if (status != expected || !strstr(err.text, part))
        fail_msg("%s, \"%s\" instead of %s, \"%s\"", coffer_status_name(status), err.text,
                 coffer_status_name(expected), part);
    assert_false(temp_exists(in_folder("out.mcf")));
}

/* ---- What goes in ---- */

static void a_folder_is_packed_with_all_that_belongs_to_it(void **state)
{
    (void)state;
    static const char config[] =
        "{\"model_type\":\"qwen2\",\"_name_or_path\":\"qwen/base\",\"vocab_size\":10,\"hidden_size\":4,"
        "\"num_hidden_layers\":3,\"num_attention_heads\":8,\"max_position_embeddings\":131072,"
        "\"rope_theta\":1000000.0,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,"
        "\"original_max_position_embeddings\":32768},\"x\":Infinity}\n";
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("config.json", config);
    write_text("generation_config.json", "{\"a\": 1}");
    write_text("tokenizer.json", "{\"version\": \"1.0\"}\n");
    write_text("vocab.json", "{}");
    write_text("merges.txt", "a b\n");
    must_pack(temp_folder, "out.mcf", NULL);
    packed out = open_packed("out.mcf");
    assert_section(&out, COFFER_MCF_CONFIG, config);
    assert_section(&out, COFFER_MCF_GENERATION_CONFIG, "{\"a\": 1}");
    assert_section(&out, COFFER_MCF_TOKENIZER, "{\"version\": \"1.0\"}\n");
    assert_section(&out, COFFER_MCF_VOCAB, "{}");
    assert_section(&out, COFFER_MCF_MERGES, "a b\n");
    assert_null(coffer_mcf_find_section(out.model, COFFER_MCF_TOKENIZER_CONFIG));
    assert_string_equal(coffer_mcf_arch_name(out.info->arch), "qwen");
    assert_string_equal(out.info->base_model, "qwen/base");
    assert_string_equal(out.info->model_name, strrchr(temp_folder, '/') + 1);
    assert_int_equal(out.info->vocab_size, 10);
    assert_int_equal(out.info->hidden_size, 4);
    assert_int_equal(out.info->layer_count, 3);
    assert_int_equal(out.info->head_count, 8);
    assert_int_equal(out.info->head_count_kv, 8);
    assert_int_equal(out.info->context_length, 131072);
    assert_int_equal(out.info->train_context, 32768);
    assert_string_equal(coffer_mcf_rope_name(out.info->rope_type), "yarn");
    assert_true(out.info->rope_freq_base == 1000000.0f && out.info->rope_scale == 4.0f);
    assert_string_equal(find_kv(&out, "hf.model_type")->text, "qwen2");
    coffer_mcf_tensor a = find_tensor(&out, "a");
    assert_int_equal(a.offset % 64, 0);
    assert_memory_equal(coffer_mcf_view(out.model, 0), "\1\2\3\4\5\6\7\10", 8);
    close_packed(&out);
}

static void a_config_of_several_models_gives_that_of_the_text(void **state)
{
    (void)state;
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("config.json",
               "{\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":7,"
               "\"num_attention_heads\":4,\"num_key_value_heads\":1},\"vocab_size\":null,"
               "\"rope_parameters\":{\"rope_theta\":5.0,\"rope_type\":\"linear\",\"factor\":2}}");
    must_pack(temp_folder, "out.mcf", NULL);
    packed out = open_packed("out.mcf");
    assert_int_equal(out.info->hidden_size, 7);
    assert_int_equal(out.info->head_count_kv, 1);
    assert_int_equal(out.info->vocab_size, 0);
    assert_int_equal(out.info->rope_type, 2);
    assert_true(out.info->rope_freq_base == 5.0f && out.info->rope_scale == 2.0f);
    close_packed(&out);
}

static void numbers_of_a_config_that_do_not_fit_are_left_out(void **state)
{
    (void)state;
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("config.json", "{\"model_type\":7,\"hidden_size\":-1,\"vocab_size\":1e30,"
                              "\"num_hidden_layers\":\"3\",\"rope_theta\":1e300,\"rope_scaling\":[]}");
    must_pack(temp_folder, "out.mcf", NULL);
    packed out = open_packed("out.mcf");
    assert_int_equal(out.info->arch, 0);
    assert_int_equal(out.info->hidden_size, 0);
    assert_int_equal(out.info->vocab_size, 0);
    assert_int_equal(out.info->layer_count, 0);
    assert_true(out.info->rope_freq_base == 0.0f);
    close_packed(&out);
}

static void a_chat_template_goes_into_the_tokenizers_config(void **state)
{
    (void)state;
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("chat_template.jinja", "{% if a < b %}\n");
    must_pack(temp_folder, "alone.mcf", NULL);
    packed out = open_packed("alone.mcf");
    assert_section(&out, COFFER_MCF_TOKENIZER_CONFIG, "{\"chat_template\":\"{% if a \\u003c b %}\\n\"}");
    close_packed(&out);
    write_text("tokenizer_config.json",
               "{\"z\": [1, {\"y\": 1.5, \"x\": null}], \"chat_template\": \"old\", \"a\": \"&\"}");
    must_pack(temp_folder, "folded.mcf", NULL);
    out = open_packed("folded.mcf");
    assert_section(&out, COFFER_MCF_TOKENIZER_CONFIG,
                   "{\"a\":\"\\u0026\",\"chat_template\":\"{% if a \\u003c b %}\\n\","
                   "\"z\":[1,{\"x\":null,\"y\":1.5}]}");
    close_packed(&out);
}

static void files_are_packed_together_and_named(void **state)
{
    (void)state;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    safetensors_write(in_folder("one.safetensors"), two_tensors, 20);
    safetensors_write(in_folder("two.safetensors"),
                      "{\"c\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    write_text("config.json", "{\"model_type\":\"llama\"}");
    const char *inputs[] = { kept_path("one.safetensors"), kept_path("two.safetensors"),
                             kept_path("config.json") };
    assert_int_equal(coffer_mcf_pack(in_folder("out.mcf"), inputs, 3, NULL, NULL), COFFER_OK);
    packed out = open_packed("out.mcf");
    assert_int_equal(coffer_mcf_tensor_count(out.model), 3);
    assert_string_equal(out.info->model_name, "one");
    assert_int_equal(out.info->arch, 1);
    close_packed(&out);
    opts.model_name = "mine";
    assert_int_equal(coffer_mcf_pack(in_folder("out.mcf"), (const char *[]){ in_folder("one.safetensors") },
                                     1, &opts, NULL),
                     COFFER_OK);
    out = open_packed("out.mcf");
    assert_string_equal(out.info->model_name, "mine");
    close_packed(&out);
}

static void globs_choose_tensors(void **state)
{
    (void)state;
    static const char *const include[] = { "x.*", "y.1" }, *const exclude[] = { "*.2" };
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    opts.include = include;
    opts.include_count = 2;
    opts.exclude = exclude;
    opts.exclude_count = 1;
    safetensors_write(in_folder("m.safetensors"),
                      "{\"x.1\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"x.2\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]},"
                      "\"y.1\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]},"
                      "\"y.3\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[3,4]}}",
                      4);
    must_pack(in_folder("m.safetensors"), "out.mcf", &opts);
    packed out = open_packed("out.mcf");
    assert_int_equal(coffer_mcf_tensor_count(out.model), 2);
    find_tensor(&out, "x.1");
    find_tensor(&out, "y.1");
    close_packed(&out);
}

static void a_cast_changes_floats_and_nothing_else(void **state)
{
    (void)state;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    uint8_t bytes[200] = { 0 };
    static const float values[] = { 1.0f, -2.5f, 65504.0f, 1.00390625f };
    static const char header[] = "{\"f\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
                                 "\"h\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[16,18]},"
                                 "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[18,22]}}";
    size_t len = strlen(header);
    opts.overwrite = true;
    bytes[0] = (uint8_t)len;
    memcpy(bytes + 8, header, len);
    memcpy(bytes + 8 + len, values, sizeof values);
    temp_write(in_folder("m.safetensors"), bytes, 8 + len + 22);
    opts.cast = COFFER_DTYPE_BF16;
    must_pack(in_folder("m.safetensors"), "out.mcf", &opts);
    packed out = open_packed("out.mcf");
    assert_int_equal(find_tensor(&out, "f").dtype, COFFER_DTYPE_BF16);
    assert_int_equal(find_tensor(&out, "h").dtype, COFFER_DTYPE_BF16);
    assert_int_equal(find_tensor(&out, "i").dtype, COFFER_DTYPE_I32);
    /* 1.00390625 lies between two: to the even one. */
    assert_memory_equal(coffer_mcf_view(out.model, 0), "\x80\x3f\x20\xc0\x80\x47\x80\x3f", 8);
    close_packed(&out);
}

static void a_large_tensor_is_cast_in_pieces(void **state)
{
    (void)state;
    enum { COUNT = 3 * 131072 * 17 + 5 };
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    coffer_tensors *set = NULL;
    char header[200];
    size_t len;
    opts.overwrite = true;
    snprintf(header, sizeof header, "{\"f\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
             COUNT, 4 * COUNT);
    uint8_t *bytes = safetensors_make(&len, header, (size_t)4 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        float value = (float)(i % 2048);
        memcpy(bytes + len - (size_t)4 * COUNT + 4 * i, &value, sizeof value);
    }
    temp_write(in_folder("m.safetensors"), bytes, len);
    free(bytes);
    opts.cast = COFFER_DTYPE_F16;
    opts.threads = 3;
    must_pack(in_folder("m.safetensors"), "out.mcf", &opts);
    float *values = malloc(COUNT * sizeof *values);
    assert_non_null(values);
    assert_int_equal(coffer_tensors_open_path(&set, in_folder("out.mcf"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_at(set, 0)->dtype, COFFER_DTYPE_F16);
    assert_int_equal(coffer_tensors_read_as(values, COFFER_DTYPE_F32, set, 0, 0, COUNT, NULL), COFFER_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(values[i] == (float)(i % 2048));
    coffer_tensors_close(set);
    free(values);
}

static void tied_tensors_share_a_payload_unless_told_otherwise(void **state)
{
    (void)state;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    uint8_t bytes[300] = { 0 };
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}";
    size_t len = strlen(header);
    opts.overwrite = true;
    bytes[0] = (uint8_t)len;
    memcpy(bytes + 8, header, len);
    temp_write(in_folder("m.safetensors"), bytes, 8 + len + 16);
    must_pack(in_folder("m.safetensors"), "out.mcf", NULL);
    packed out = open_packed("out.mcf");
    assert_int_equal(find_tensor(&out, "a").offset, find_tensor(&out, "b").offset);
    close_packed(&out);
    opts.no_dedup = true;
    opts.align = 4096;
    must_pack(in_folder("m.safetensors"), "out.mcf", &opts);
    out = open_packed("out.mcf");
    assert_int_equal(find_tensor(&out, "b").offset, find_tensor(&out, "a").offset + 4096);
    assert_int_equal(find_tensor(&out, "b").offset % 4096, 0);
    close_packed(&out);
}

static void a_model_packed_again_is_the_same_file(void **state)
{
    (void)state;
    size_t first_len, second_len;
    safetensors_write(in_folder("model.safetensors"),
                      "{\"__metadata__\":{\"k\":\"v\"},"
                      "\"c\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                      "\"f\":{\"dtype\":\"F8_E5M2\",\"shape\":[4],\"data_offsets\":[8,12]}}",
                      12);
    write_text("config.json", "{\"model_type\":\"llama\"}");
    must_pack(temp_folder, "out.mcf", NULL);
    must_pack(in_folder("out.mcf"), "again.mcf", NULL);
    uint8_t *first = temp_read(in_folder("out.mcf"), &first_len);
    uint8_t *second = temp_read(in_folder("again.mcf"), &second_len);
    assert_int_equal(first_len, second_len);
    assert_memory_equal(first, second, first_len);
    free(first);
    free(second);
}

/* ---- What is refused ---- */

static void two_inputs_with_one_name_are_refused_with_both_files(void **state)
{
    (void)state;
    safetensors_write(in_folder("one.safetensors"), two_tensors, 20);
    safetensors_write(in_folder("two.safetensors"), two_tensors, 20);
    const char *inputs[] = { kept_path("one.safetensors"), kept_path("two.safetensors") };
    refused(COFFER_E_DUPLICATE, inputs, 2, NULL, "two.safetensors");
    refused(COFFER_E_DUPLICATE, inputs, 2, NULL, "one.safetensors");
    write_text("config.json", "{}");
    assert_int_equal(mkdir(in_folder("sub"), 0777), 0);
    write_text("sub/config.json", "{}");
    const char *configs[] = { kept_path("one.safetensors"), kept_path("config.json"),
                              kept_path("sub/config.json") };
    refused(COFFER_E_DUPLICATE, configs, 3, NULL, "sub/config.json");
}

static void a_glob_that_matches_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const include[] = { "a", "nothing*" }, *const all[] = { "*" };
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    safetensors_write(in_folder("m.safetensors"), two_tensors, 20);
    const char *input = kept_path("m.safetensors");
    opts.include = include;
    opts.include_count = 2;
    refused(COFFER_E_INVALID_ARGUMENT, &input, 1, &opts, "nothing*");
    opts.include_count = 1;
    opts.exclude = all;
    opts.exclude_count = 1;
    refused(COFFER_E_INVALID_ARGUMENT, &input, 1, &opts, "no tensors left");
}

static void an_output_that_is_an_input_is_refused(void **state)
{
    (void)state;
    static const char *const outputs[] = { "model.safetensors", "./config.json", "chat_template.jinja",
                                           "link.mcf" };
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("config.json", "{}");
    write_text("chat_template.jinja", "x");
    assert_int_equal(symlink(in_folder("model.safetensors"), in_folder("link.mcf")), 0);
    for (size_t i = 0; i < 4; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        assert_int_equal(pack_one(temp_folder, outputs[i], NULL, &err), COFFER_E_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "are the same file"));
    }
    size_t len;
    uint8_t *bytes = safetensors_make(&len, two_tensors, 20);
    assert_true(temp_holds(in_folder("model.safetensors"), bytes, len));
    free(bytes);
}

static void broken_files_of_a_folder_are_named(void **state)
{
    (void)state;
    const char *input = temp_folder;
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    write_text("config.json", "{\"a\":");
    refused(COFFER_E_BAD_JSON, &input, 1, NULL, "config.json");
    write_text("config.json", "[]");
    refused(COFFER_E_BAD_JSON, &input, 1, NULL, "config.json");
    write_text("config.json", "{}");
    write_text("generation_config.json", "{]");
    refused(COFFER_E_BAD_JSON, &input, 1, NULL, "generation_config.json");
    write_text("generation_config.json", "{}");
    write_text("tokenizer_config.json", "nothing");
    refused(COFFER_E_BAD_JSON, &input, 1, NULL, "tokenizer_config.json");
    write_text("chat_template.jinja", "x");
    refused(COFFER_E_BAD_JSON, &input, 1, NULL, "tokenizer_config.json");
    write_text("tokenizer_config.json", "{}");
    write_text("chat_template.jinja", "\xff");
    refused(COFFER_E_BAD_TEXT, &input, 1, NULL, "chat template");
}

static void a_config_nested_too_deep_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    const char *input = temp_folder;
    char *deep = malloc(DEPTH + 6);
    assert_non_null(deep);
    memset(deep, '[', DEPTH);
    memcpy(deep, "{\"a\":", 5);
    safetensors_write(in_folder("model.safetensors"), two_tensors, 20);
    temp_write(in_folder("config.json"), deep, DEPTH);
    free(deep);
    refused(COFFER_E_LIMIT, &input, 1, NULL, "config.json");
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    safetensors_write(in_folder("m.safetensors"), two_tensors, 20);
    const char *input = kept_path("m.safetensors");
    refused(COFFER_E_INVALID_ARGUMENT, &input, 0, NULL, "nothing to pack");
    opts.cast = COFFER_DTYPE_I8;
    refused(COFFER_E_INVALID_ARGUMENT, &input, 1, &opts, "i8");
    opts.cast = COFFER_DTYPE_NONE;
    opts.align = 100;
    refused(COFFER_E_INVALID_ARGUMENT, &input, 1, &opts, "100");
    opts.struct_size = 0;
    refused(COFFER_E_INVALID_ARGUMENT, &input, 1, &opts, "_INIT");
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return ++*(int *)context > 0;
}

static void a_caller_who_wants_no_more_is_heard(void **state)
{
    (void)state;
    int calls = 0;
    coffer_progress progress = { sizeof progress, stop, &calls };
    coffer_mcf_pack_opts opts = COFFER_MCF_PACK_OPTS_INIT;
    opts.overwrite = true;
    safetensors_write(in_folder("m.safetensors"), two_tensors, 20);
    const char *input = kept_path("m.safetensors");
    opts.progress = &progress;
    refused(COFFER_E_CANCELLED, &input, 1, &opts, "");
    opts.cast = COFFER_DTYPE_F16;
    refused(COFFER_E_CANCELLED, &input, 1, &opts, "");
    assert_int_equal(calls, 2);
    temp_assert_only(temp_folder, "m.safetensors", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_folder_is_packed_with_all_that_belongs_to_it, fresh_folder),
        cmocka_unit_test_setup(a_config_of_several_models_gives_that_of_the_text, fresh_folder),
        cmocka_unit_test_setup(numbers_of_a_config_that_do_not_fit_are_left_out, fresh_folder),
        cmocka_unit_test_setup(a_chat_template_goes_into_the_tokenizers_config, fresh_folder),
        cmocka_unit_test_setup(files_are_packed_together_and_named, fresh_folder),
        cmocka_unit_test_setup(globs_choose_tensors, fresh_folder),
        cmocka_unit_test_setup(a_cast_changes_floats_and_nothing_else, fresh_folder),
        cmocka_unit_test_setup(a_large_tensor_is_cast_in_pieces, fresh_folder),
        cmocka_unit_test_setup(tied_tensors_share_a_payload_unless_told_otherwise, fresh_folder),
        cmocka_unit_test_setup(a_model_packed_again_is_the_same_file, fresh_folder),
        cmocka_unit_test_setup(two_inputs_with_one_name_are_refused_with_both_files, fresh_folder),
        cmocka_unit_test_setup(a_glob_that_matches_nothing_is_refused, fresh_folder),
        cmocka_unit_test_setup(an_output_that_is_an_input_is_refused, fresh_folder),
        cmocka_unit_test_setup(broken_files_of_a_folder_are_named, fresh_folder),
        cmocka_unit_test_setup(a_config_nested_too_deep_is_refused, fresh_folder),
        cmocka_unit_test_setup(wrong_options_are_refused, fresh_folder),
        cmocka_unit_test_setup(a_caller_who_wants_no_more_is_heard, fresh_folder),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
