/* GGUF files to models and back. */
#include "base/bytes.h"
#include "coffer/convert.h"
#include "coffer/format.h"
#include "coffer/mcf.h"
#include "support/gguf.h"
#include "support/model.h"
#include "support/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GGUF COFFER_TEST_DATA "/compat/gguf/"
#define MCF COFFER_TEST_DATA "/vectors/mcf/"

/* ---- Steps ---- */

/* With one setting, or none when its name is NULL. notes : may be NULL. */
static coffer_status convert_with(const char *from, const char *to, const char *name, const char *value,
                                  coffer_report *notes, coffer_error *err)
{
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    opts.notes = notes;
    coffer_setting settings[] = { { name, value } };
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, from, NULL, err);
    opts.settings = settings;
    opts.setting_count = name != NULL;
    if (!status)
        status = coffer_convert(src, to, &opts, err);
    coffer_source_close(src);
    return status;
}

static coffer_status convert(const char *from, const char *to, const char *cast, coffer_error *err)
{
    return convert_with(from, to, cast ? "cast" : NULL, cast, NULL, err);
}

/* With tensors of one dimension in their own types. */
static void must_convert_as_is(const char *from, const char *to)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (convert_with(from, to, "as-is", NULL, NULL, &err))
        fail_msg("%s", err.text);
}

static void must_convert(const char *from, const char *to, const char *cast)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (convert(from, to, cast, &err))
        fail_msg("%s", err.text);
}

static void write_gguf(const char *path, const made_tensor *tensors, size_t count, const coffer__buffer *keys,
                       uint64_t key_count)
{
    coffer__buffer bytes = gguf_make(tensors, count, keys, key_count);
    temp_write(path, bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
}

static coffer_tensors *open_set(const char *path)
{
    coffer_tensors *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_tensors_open_path(&set, path, NULL, &err))
        fail_msg("%s", err.text);
    return set;
}

static void assert_clean(const char *path)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, &opts, NULL), COFFER_OK);
    if (coffer_report_count(report))
        fail_msg("%s", coffer_report_at(report, 0)->text);
    coffer_source_close(src);
    coffer_report_free(report);
}

/* How the two files differ (coffer_node_free). */
static coffer_node *diff(const char *a, const char *b)
{
    coffer_tensors *set_a = open_set(a), *set_b = open_set(b);
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *root = NULL;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    if (coffer_tensors_diff(root, set_a, set_b, NULL, &err))
        fail_msg("%s", err.text);
    coffer_tensors_close(set_a);
    coffer_tensors_close(set_b);
    return root;
}

static void assert_same(const char *a, const char *b)
{
    coffer_node *root = diff(a, b);
    const coffer_node *metadata = coffer_node_first(coffer_node_find(root, "metadata"));
    if (metadata)
        fail_msg("metadata differs: %s", coffer_node_get_text(coffer_node_first(metadata), NULL));
    assert_true(coffer_node_get_bool(coffer_node_find(root, "equal")));
    coffer_node_free(root);
}

typedef struct model {
    coffer_source *src;
    coffer_mcf *mcf;
    const coffer_mcf_model_info *info;
} model;

static model open_model(const char *path)
{
    model out = { NULL, NULL, NULL };
    assert_int_equal(coffer_source_open(&out.src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_open(&out.mcf, out.src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_get_model_info(&out.info, out.mcf, NULL), COFFER_OK);
    return out;
}

static void close_model(model *open)
{
    coffer_mcf_close(open->mcf);
    coffer_source_close(open->src);
}

static const coffer_mcf_kv *find_kv(const model *open, const char *key)
{
    for (size_t i = 0; i < open->info->kv_count; i++) {
        if (strcmp(open->info->kvs[i].key, key) == 0)
            return &open->info->kvs[i];
    }
    return NULL;
}

/* ---- There and back ---- */

static void metadata_and_tensors_come_through_a_model_unchanged(void **state)
{
    const char *mcf = temp_path(temp_folder, "plain.mcf"), *back = temp_path(temp_folder, "back.gguf");
    const char *again = temp_path(temp_folder, "again.mcf"), *last = temp_path(temp_folder, "last.gguf");
    (void)state;
    must_convert(GGUF "plain.gguf", mcf, NULL);
    assert_clean(mcf);
    must_convert_as_is(mcf, back);
    assert_same(GGUF "plain.gguf", back);
    must_convert(back, again, NULL);
    must_convert_as_is(again, last);
    assert_same(back, last);
    assert_same(mcf, again);
}

static void keys_fill_the_fields_of_model_info(void **state)
{
    const char *path = temp_path(temp_folder, "plain.mcf");
    (void)state;
    must_convert(GGUF "plain.gguf", path, NULL);
    model open = open_model(path);
    assert_string_equal(open.info->model_name, "tiny test");
    assert_string_equal(coffer_mcf_arch_name(open.info->arch), "qwen");
    assert_string_equal(find_kv(&open, "gguf.general.architecture")->text, "qwen2");
    assert_int_equal(open.info->vocab_size, 4);
    assert_int_equal(open.info->hidden_size, 64);
    assert_int_equal(open.info->layer_count, 2);
    assert_int_equal(open.info->head_count, 8);
    assert_int_equal(open.info->head_count_kv, 2);
    assert_int_equal(open.info->context_length, 4096);
    assert_int_equal(open.info->train_context, 1024);
    assert_string_equal(coffer_mcf_rope_name(open.info->rope_type), "yarn");
    assert_float_equal(open.info->rope_freq_base, 1e6, 0);
    assert_float_equal(open.info->rope_scale, 4, 0);
    assert_null(find_kv(&open, "gguf.qwen2.context_length"));
    assert_int_equal(find_kv(&open, "gguf.tokenizer.ggml.bos_token_id")->type, COFFER_MCF_KV_U32);
    assert_string_equal(find_kv(&open, "gguf.test.u64#u64")->text, "9223372036854775809");
    assert_string_equal(find_kv(&open, "gguf.test.no#bool")->text, "false");
    assert_string_equal(find_kv(&open, "gguf.tokenizer.ggml.tokens#[string]")->text,
                        "[\"<s>\",\"</s>\",\"h\xc3\xa9\",\"\\\"q\\\"\\n\"]");
    assert_non_null(strstr(find_kv(&open, "gguf.tokenizer.ggml.scores#[f32]")->text, "\"-Infinity\""));
    close_model(&open);
}

static void put_name(coffer__buffer *out, const char *name, coffer__gguf_value type)
{
    coffer__gguf_put_key(out, name, strlen(name), type);
}

static void odd_metadata_comes_back_to_the_bit(void **state)
{
    const char *first = temp_path(temp_folder, "odd.gguf"), *mcf = temp_path(temp_folder, "odd.mcf");
    const char *back = temp_path(temp_folder, "back.gguf");
    coffer__buffer keys = COFFER__BUFFER_INIT;
    float value = 1;
    made_tensor tensor = { "w", 0, 1, { 1 }, &value, sizeof value };
    (void)state;
    put_name(&keys, "general.architecture", COFFER__GGUF_STRING);
    coffer__gguf_put_string(&keys, "llama", 5);
    put_name(&keys, "general.name", COFFER__GGUF_STRING);
    coffer__gguf_put_string(&keys, "odd", 3);
    put_name(&keys, "not.utf8", COFFER__GGUF_STRING);
    coffer__gguf_put_string(&keys, "\xff\x00\x80", 3);
    put_name(&keys, "a#bool", COFFER__GGUF_U32); /* a name that looks like one with a type */
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, 7);
    put_name(&keys, "llama.block_count", COFFER__GGUF_U64); /* not the type of the field */
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 3);
    put_name(&keys, "llama.attention.head_count_kv", COFFER__GGUF_ARRAY); /* one for each layer */
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, COFFER__GGUF_I32);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 2);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_I32, 8);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_I32, (uint64_t)-1);
    put_name(&keys, "llama.context_length", COFFER__GGUF_U32); /* a field that 0 leaves empty */
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, 0);
    put_name(&keys, "nested", COFFER__GGUF_ARRAY);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, COFFER__GGUF_ARRAY);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 2);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, COFFER__GGUF_STRING);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 2);
    coffer__gguf_put_string(&keys, "ok", 2);
    coffer__gguf_put_string(&keys, "\xc3", 1);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, COFFER__GGUF_F64);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 1);
    coffer__gguf_put_float(&keys, COFFER__GGUF_F64, 0.1);
    put_name(&keys, "empty", COFFER__GGUF_ARRAY);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U32, COFFER__GGUF_BOOL);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U64, 0);
    write_gguf(first, &tensor, 1, &keys, 9);
    must_convert(first, mcf, NULL);
    must_convert(mcf, back, NULL);
    assert_same(first, back);
    model open = open_model(mcf);
    assert_int_equal(open.info->layer_count, 3);
    assert_int_equal(open.info->head_count_kv, 0);
    close_model(&open);
    coffer__buffer_free(&keys);
}

static void sections_of_a_model_come_through_gguf(void **state)
{
    const char *first = COFFER_TEST_DATA "/compat/mcf/mantle-pack.mcf";
    const char *gguf = temp_path(temp_folder, "pack.gguf"), *back = temp_path(temp_folder, "back.mcf");
    (void)state;
    must_convert_as_is(first, gguf);
    must_convert(gguf, back, NULL);
    model a = open_model(first), b = open_model(back);
    size_t files = 0;
    for (uint32_t type = COFFER_MCF_CONFIG; type <= COFFER_MCF_MERGES; type++) {
        uint8_t *bytes_a, *bytes_b;
        size_t len_a, len_b;
        if (!coffer_mcf_find_section(a.mcf, type))
            continue;
        files++;
        assert_int_equal(coffer_mcf_read_section(&bytes_a, &len_a, a.mcf, type, NULL), COFFER_OK);
        assert_int_equal(coffer_mcf_read_section(&bytes_b, &len_b, b.mcf, type, NULL), COFFER_OK);
        assert_int_equal(len_a, len_b);
        assert_memory_equal(bytes_a, bytes_b, len_a);
        coffer_free(bytes_a);
        coffer_free(bytes_b);
    }
    assert_true(files > 1);
    assert_int_equal(a.info->hidden_size, b.info->hidden_size);
    assert_string_equal(a.info->model_name, b.info->model_name);
    close_model(&a);
    close_model(&b);
}

/* ---- Types ---- */

static void assert_expected(const coffer_tensors *set, const char *name, const char *type)
{
    size_t index = coffer_tensors_find(set, name), len;
    char path[512];
    assert_int_not_equal(index, SIZE_MAX);
    const coffer_tensor *tensor = coffer_tensors_at(set, index);
    assert_string_equal(tensor->type_name, type);
    snprintf(path, sizeof path, MCF "quant-expected/%s.f32", name);
    uint8_t *expected = temp_read(path, &len);
    float *values = malloc(len);
    assert_int_equal(len, 4 * tensor->elements);
    assert_int_equal(coffer_tensors_read_as(values, COFFER_DTYPE_F32, set, index, 0, tensor->elements, NULL),
                     COFFER_OK);
    assert_memory_equal(values, expected, len);
    free(values);
    free(expected);
}

static void q8_and_q4_become_blocks_with_the_same_numbers(void **state)
{
    const char *path = temp_path(temp_folder, "quantized.gguf");
    (void)state;
    must_convert(MCF "quantised.mcf", path, NULL);
    coffer_tensors *set = open_set(path);
    assert_expected(set, "q8.4x512", "Q8_0");
    assert_expected(set, "q4.4x512", "Q4_0");
    assert_expected(set, "q8.3x300", "F32"); /* a row is not a multiple of the block size */
    assert_expected(set, "q4.1x1", "F32");
    assert_expected(set, "k4.4x512", "F32");
    assert_expected(set, "k2.3x300", "F32");
    assert_expected(set, "int4.w", "F32");
    assert_expected(set, "int8.act", "F32");
    coffer_tensors_close(set);
}

static void a_cast_decodes_everything(void **state)
{
    const char *path = temp_path(temp_folder, "cast.gguf"), *mcf = temp_path(temp_folder, "cast.mcf");
    (void)state;
    must_convert(MCF "quantised.mcf", path, "bf16");
    coffer_tensors *set = open_set(path);
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        assert_string_equal(coffer_tensors_at(set, i)->type_name, "BF16");
    coffer_tensors_close(set);
    must_convert(GGUF "blocks.gguf", mcf, "f16");
    set = open_set(mcf);
    for (size_t i = 0; i < coffer_tensors_count(set); i++)
        assert_int_equal(coffer_tensors_at(set, i)->dtype, COFFER_DTYPE_F16);
    coffer_tensors_close(set);
}

static void blocks_become_floats_without_loss(void **state)
{
    const char *path = temp_path(temp_folder, "blocks.mcf");
    (void)state;
    must_convert(GGUF "blocks.gguf", path, NULL);
    assert_clean(path);
    coffer_node *root = diff(GGUF "blocks.gguf", path);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(coffer_node_find(root, "tensors"), "identical")),
                     13);
    coffer_node_free(root);
}

/* ---- Blocks that stay blocks ---- */

static const char *type_of(const char *path, const char *name)
{
    coffer_tensors *set = open_set(path);
    static char text[16];
    size_t index = coffer_tensors_find(set, name);
    assert_true(index != COFFER_INDEX_NONE);
    snprintf(text, sizeof text, "%s", coffer_tensors_at(set, index)->type_name);
    coffer_tensors_close(set);
    return text;
}

static void assert_identical(const char *a, const char *b)
{
    coffer_node *root = diff(a, b);
    const coffer_node *tensors = coffer_node_find(root, "tensors");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(tensors, "identical")),
                     coffer_node_get_u64(coffer_node_find(tensors, "compared")));
    coffer_node_free(root);
}

/* Three rows of 512 weights in a type. */
static void write_quantized(const char *path, const char *plain, coffer_dtype dtype, float scale)
{
    enum { ROWS = 3, COLUMNS = 512 };
    static float values[ROWS * COLUMNS];
    coffer_mcf_quantize_rule rule = { sizeof rule, dtype, NULL };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    weights_fill(values, ROWS * COLUMNS, 7);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] *= scale;
    weights_one(plain, ROWS, COLUMNS, values);
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.overwrite = true;
    if (coffer_mcf_quantize(NULL, path, plain, &opts, &err))
        fail_msg("%s", err.text);
}

static void quantized_tensors_stay_quantized_in_gguf_and_back(void **state)
{
    static const struct {
        coffer_dtype dtype;
        const char *block, *again;
    } types[] = {
        { COFFER_DTYPE_Q8, "Q8_0", "Q8" }, { COFFER_DTYPE_Q4, "Q4_0", "Q4" },
        { COFFER_DTYPE_K6, "Q6_K", "K6" }, { COFFER_DTYPE_K4, "Q4_K", "K4" },
        { COFFER_DTYPE_K3, "Q4_K", "K4" }, { COFFER_DTYPE_K2, "Q4_K", "K4" },
    };
    const char *mcf = temp_path(temp_folder, "w.mcf"), *gguf = temp_path(temp_folder, "w.gguf");
    const char *again = temp_path(temp_folder, "w2.mcf"), *plain = temp_path(temp_folder, "plain.mcf");
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        write_quantized(mcf, plain, types[i].dtype, 4.0f);
        must_convert(mcf, gguf, NULL);
        assert_string_equal(type_of(gguf, "w"), types[i].block);
        assert_identical(mcf, gguf);
        must_convert(gguf, again, NULL);
        assert_string_equal(type_of(again, "w"), types[i].again);
        assert_identical(mcf, again);
        assert_clean(again);
    }
}

static bool notes_say(const coffer_report *notes, const char *text)
{
    for (size_t i = 0; i < coffer_report_count(notes); i++) {
        if (strstr(coffer_report_at(notes, i)->text, text))
            return true;
    }
    return false;
}

static void scales_that_are_too_small_are_decoded_or_rounded_on_request(void **state)
{
    const char *mcf = temp_path(temp_folder, "w.mcf"), *gguf = temp_path(temp_folder, "w.gguf");
    coffer_report *notes = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    write_quantized(mcf, temp_path(temp_folder, "plain.mcf"), COFFER_DTYPE_K4, 1e-3f);
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert_with(mcf, gguf, NULL, NULL, notes, &err), COFFER_OK);
    assert_string_equal(type_of(gguf, "w"), "F32");
    assert_identical(mcf, gguf);
    assert_true(notes_say(notes, "1 tensor of type k4 decoded to F32"));
    assert_true(notes_say(notes, "--round-scales"));
    coffer_report_free(notes);
    assert_int_equal(coffer_report_new(&notes, 0, NULL), COFFER_OK);
    assert_int_equal(convert_with(mcf, gguf, "round-scales", NULL, notes, &err), COFFER_OK);
    assert_string_equal(type_of(gguf, "w"), "Q4_K");
    assert_true(notes_say(notes, "stored with rounded scales as Q4_K"));
    coffer_report_free(notes);
    coffer_node *root = diff(mcf, gguf);
    assert_true(coffer_node_get_f64(coffer_node_find(coffer_node_find(root, "tensors"), "max_abs")) < 1e-5);
    coffer_node_free(root);
}

static void write_model(const char *path, coffer_dtype dtype, uint32_t rank, const void *bytes, size_t len)
{
    uint64_t dims[5] = { 1, 1, 1, 1, 1 };
    coffer_mcf_new_tensor tensor = { sizeof(coffer_mcf_new_tensor), dtype, "w", 1, rank, dims, NULL };
    coffer_mcf_writer *writer = NULL;
    dims[0] = len / coffer_dtype_size(dtype);
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_write(writer, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

static void int8_of_three_dimensions_becomes_floats(void **state)
{
    const char *mcf = temp_path(temp_folder, "int8.mcf"), *gguf = temp_path(temp_folder, "int8.gguf");
    uint64_t dims[3] = { 2, 3, 5 };
    uint8_t payload[64 + 30] = { 0 };
    coffer_mcf_quant quant = { sizeof quant, COFFER_DTYPE_INT8, false, 0, 0, -1, 1 };
    coffer_mcf_new_tensor tensor = {
        sizeof(coffer_mcf_new_tensor), COFFER_DTYPE_INT8, "w", 1, 3, dims, &quant
    };
    coffer_mcf_writer *writer = NULL;
    float values[30];
    (void)state;
    coffer__store_u32(payload, 0x3F000000); /* 0.5 */
    for (size_t i = 0; i < 30; i++)
        payload[64 + i] = (uint8_t)i;
    assert_int_equal(coffer_mcf_writer_create(&writer, mcf, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_begin_tensor(writer, &tensor, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_write(writer, payload, sizeof payload, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_end_tensor(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    must_convert(mcf, gguf, NULL);
    coffer_tensors *set = open_set(gguf);
    assert_int_equal(coffer_tensors_at(set, 0)->rank, 3);
    assert_int_equal(coffer_tensors_read(values, set, 0, 0, sizeof values, NULL), COFFER_OK);
    assert_float_equal(values[29], 14.5, 0);
    coffer_tensors_close(set);
    /* A single row of the last dimension. */
    set = open_set(mcf);
    assert_int_equal(coffer_tensors_read_as(values, COFFER_DTYPE_F32, set, 0, 20, 5, NULL), COFFER_OK);
    assert_float_equal(values[0], 10, 0);
    coffer_tensors_close(set);
}

static void unsigned_integers_widen_and_what_gguf_lacks_is_refused(void **state)
{
    const char *mcf = temp_path(temp_folder, "u.mcf"), *gguf = temp_path(temp_folder, "u.gguf");
    uint16_t values[] = { 0, 1, 65535 };
    uint64_t wide[] = { UINT64_MAX };
    int32_t widened[3];
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    write_model(mcf, COFFER_DTYPE_U16, 1, values, sizeof values);
    must_convert(mcf, gguf, NULL);
    coffer_tensors *set = open_set(gguf);
    assert_string_equal(coffer_tensors_at(set, 0)->type_name, "I32");
    assert_int_equal(coffer_tensors_read(widened, set, 0, 0, sizeof widened, NULL), COFFER_OK);
    assert_int_equal(widened[2], 65535);
    coffer_tensors_close(set);
    remove(gguf);
    write_model(mcf, COFFER_DTYPE_U64, 1, wide, sizeof wide);
    assert_int_equal(convert(mcf, gguf, NULL, &err), COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "\"w\" is U64"));
    write_model(mcf, COFFER_DTYPE_F32, 5, wide, 4);
    assert_int_equal(convert(mcf, gguf, NULL, &err), COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "5 dimensions"));
    temp_assert_only(temp_folder, "u.mcf", NULL);
}

/* ---- Refused conversions ---- */

static void a_type_that_is_not_decoded_leaves_no_file(void **state)
{
    const char *gguf = temp_path(temp_folder, "iq.gguf"), *mcf = temp_path(temp_folder, "iq.mcf");
    uint8_t block[66] = { 0 };
    made_tensor tensor = { "w", 16, 1, { 256 }, block, sizeof block };
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    write_gguf(gguf, &tensor, 1, NULL, 0);
    assert_int_equal(convert(gguf, mcf, NULL, &err), COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "IQ2_XXS"));
    temp_assert_only(temp_folder, "iq.gguf", NULL);
}

static void a_part_of_a_split_model_is_refused(void **state)
{
    const char *gguf = temp_path(temp_folder, "a-00001-of-00003.gguf"),
               *mcf = temp_path(temp_folder, "a.mcf");
    coffer__buffer keys = COFFER__BUFFER_INIT;
    float value = 1;
    made_tensor tensor = { "w", 0, 1, { 1 }, &value, sizeof value };
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    put_name(&keys, "split.count", COFFER__GGUF_U16);
    coffer__gguf_put_integer(&keys, COFFER__GGUF_U16, 3);
    write_gguf(gguf, &tensor, 1, &keys, 1);
    assert_int_equal(convert(gguf, mcf, NULL, &err), COFFER_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "split into 3 files"));
    assert_false(temp_exists(mcf));
    coffer__buffer_free(&keys);
}

static void the_input_cannot_be_the_output(void **state)
{
    const char *path = temp_path(temp_folder, "same.gguf");
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    size_t len;
    (void)state;
    temp_copy(MCF "plain.mcf", path);
    uint8_t *before = temp_read(path, &len);
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, path, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_true(temp_holds(path, before, len));
    coffer_source_close(src);
    free(before);
}

/* A key that was edited by hand. */
static void put_kv(const char *path, const char *key, const char *text)
{
    coffer_mcf_kv kv = { .struct_size = sizeof kv,
                         .key = key,
                         .type = COFFER_MCF_KV_STRING,
                         .text = text,
                         .text_len = strlen(text) };
    coffer_mcf_kv two[2] = { kv, kv };
    coffer_mcf_model_info info = COFFER_MCF_MODEL_INFO_INIT;
    coffer_mcf_writer *writer = NULL;
    two[0].key = "gguf.a";
    info.kvs = two;
    info.kv_count = 2;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, &model_overwrite, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_set_model_info(writer, &info, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

static void keys_with_values_of_another_type_are_refused(void **state)
{
    static const char *const bad[][2] = {
        { "gguf.k#u8", "256" },           { "gguf.k#u8", "-1" },       { "gguf.k#i8", "-129" },
        { "gguf.k#bool", "1" },           { "gguf.k#string", "1" },    { "gguf.k#f32", "\"x\"" },
        { "gguf.k#[u8]", "7" },           { "gguf.k#[u8]", "[300]" },  { "gguf.k#none", "1" },
        { "gguf.k#[none]", "[]" },        { "gguf.k#array", "[]" },    { "gguf.k#bytes", "\"0\"" },
        { "gguf.k#bytes", "\"zz\"" },     { "gguf.k#[array]", "[1]" }, { "gguf.k#u8", "{" },
        { "gguf.k#[array]", "[{}]" },     { "gguf.k#u64", "1.5" },     { "gguf.k#[]", "[]" },
        { "gguf.a#string", "\"twice\"" },
    };
    const char *mcf = temp_path(temp_folder, "kv.mcf"), *gguf = temp_path(temp_folder, "kv.gguf");
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        put_kv(mcf, bad[i][0], bad[i][1]);
        if (convert(mcf, gguf, NULL, &err) == COFFER_OK)
            fail_msg("%s = %s was accepted", bad[i][0], bad[i][1]);
        assert_true(err.text[0] != 0);
        assert_false(temp_exists(gguf));
    }
    put_kv(mcf, "gguf.k#i8", "-128");
    must_convert(mcf, gguf, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(metadata_and_tensors_come_through_a_model_unchanged, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(keys_fill_the_fields_of_model_info, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(odd_metadata_comes_back_to_the_bit, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(sections_of_a_model_come_through_gguf, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(q8_and_q4_become_blocks_with_the_same_numbers, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(a_cast_decodes_everything, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(blocks_become_floats_without_loss, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(quantized_tensors_stay_quantized_in_gguf_and_back, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(scales_that_are_too_small_are_decoded_or_rounded_on_request,
                                        temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(int8_of_three_dimensions_becomes_floats, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(unsigned_integers_widen_and_what_gguf_lacks_is_refused, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(a_type_that_is_not_decoded_leaves_no_file, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(a_part_of_a_split_model_is_refused, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(the_input_cannot_be_the_output, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(keys_with_values_of_another_type_are_refused, temp_setup,
                                        temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
