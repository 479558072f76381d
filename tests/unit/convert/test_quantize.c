/* Whole files quantized: which tensors become what, and that what is written is right. */
#include "support/model.h"
#include "support/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[300], out_path[300], other_path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    snprintf(other_path, sizeof other_path, "%s/other.mcf", temp_folder);
    return 0;
}

static coffer_mcf_quantize_opts with_rules(const coffer_mcf_quantize_rule *rules, size_t count)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    opts.rules = rules;
    opts.rule_count = count;
    return opts;
}

static void must(const char *out, const char *in, const coffer_mcf_quantize_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_quantize(NULL, out, in, opts, &err))
        fail_msg("%s", err.text);
    model_assert_clean(out);
}

static void refused(coffer_status expected, const coffer_mcf_quantize_opts *opts, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_status status = coffer_mcf_quantize(NULL, out_path, in_path, opts, &err);
    if (status != expected || !strstr(err.text, part))
        fail_msg("%s, \"%s\" instead of %s, \"%s\"", coffer_status_name(status), err.text,
                 coffer_status_name(expected), part);
    assert_false(temp_exists(out_path));
}

static coffer_dtype type_of(const char *path, const char *name)
{
    coffer_source *src = model_source(path);
    coffer_mcf *model = model_open(src);
    size_t index = coffer_mcf_find_tensor(model, name, strlen(name));
    assert_int_not_equal(index, SIZE_MAX);
    coffer_dtype dtype = coffer_mcf_tensor_at(model, index)->dtype;
    coffer_mcf_close(model);
    coffer_source_close(src);
    return dtype;
}

static void assert_same_files(const char *a, const char *b)
{
    size_t len;
    uint8_t *bytes = temp_read(a, &len);
    assert_true(temp_holds(b, bytes, len));
    free(bytes);
}

/* ---- Which tensors are quantized ---- */

static void float_tensors_of_two_dimensions_are_quantized_and_others_copied(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    (void)state;
    weights_model(in_path);
    must(out_path, in_path, &opts);
    assert_int_equal(type_of(out_path, "deep.weight"), COFFER_DTYPE_K4);
    assert_int_equal(type_of(out_path, "wide.weight"), COFFER_DTYPE_K4);
    assert_int_equal(type_of(out_path, "tall.weight"), COFFER_DTYPE_K4);
    assert_int_equal(type_of(out_path, "norm.weight"), COFFER_DTYPE_F32);
    assert_int_equal(type_of(out_path, "ids"), COFFER_DTYPE_I32);
}

static void the_last_rule_that_matches_counts(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = {
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, "*e*.weight" },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_NONE, "wide.*" },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_F16, "norm.*" },
    };
    coffer_mcf_quantize_opts opts = with_rules(rules, 4);
    (void)state;
    weights_model(in_path);
    must(out_path, in_path, &opts);
    assert_int_equal(type_of(out_path, "deep.weight"), COFFER_DTYPE_Q8);
    assert_int_equal(type_of(out_path, "tall.weight"), COFFER_DTYPE_K4);
    assert_int_equal(type_of(out_path, "wide.weight"), COFFER_DTYPE_F32);
    assert_int_equal(type_of(out_path, "norm.weight"), COFFER_DTYPE_F16);
}

static void what_include_and_exclude_leave_out_is_copied(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q4, NULL };
    static const char *const include[] = { "*e*.weight" }, *const exclude[] = { "wide*" };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    (void)state;
    opts.include = include;
    opts.exclude = exclude;
    opts.include_count = opts.exclude_count = 1;
    weights_model(in_path);
    must(out_path, in_path, &opts);
    assert_int_equal(type_of(out_path, "deep.weight"), COFFER_DTYPE_Q4);
    assert_int_equal(type_of(out_path, "wide.weight"), COFFER_DTYPE_F32);
}

static void a_glob_that_matches_nothing_is_an_error(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = {
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, "dep.*" }
    };
    static const char *const include[] = { "nothing" };
    coffer_mcf_quantize_opts opts = with_rules(rules, 2);
    (void)state;
    weights_model(in_path);
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "\"dep.*\"");
    opts.rule_count = 1;
    opts.include = include;
    opts.include_count = 1;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "\"nothing\"");
}

/* Rules from an older header end before .glob: the library must not read the next rule, or memory after the
 * array, as their glob. */
static void shorter_rules_get_the_defaults_of_what_they_lack(void **state)
{
    enum { SHORT = offsetof(coffer_mcf_quantize_rule, glob) };
    (void)state;
    weights_model(in_path);
    uint8_t *bytes = malloc(2 * SHORT); /* exact, so that sanitizers see a read past its end */
    assert_non_null(bytes);
    const coffer_dtype types[] = { COFFER_DTYPE_K4, COFFER_DTYPE_Q8 };
    const uint32_t size = SHORT;
    for (size_t i = 0; i < 2; i++) {
        memcpy(bytes + i * SHORT, &size, sizeof size);
        memcpy(bytes + i * SHORT + offsetof(coffer_mcf_quantize_rule, dtype), &types[i], sizeof types[i]);
    }
    coffer_mcf_quantize_opts opts = with_rules((const void *)bytes, 2);
    must(out_path, in_path, &opts);
    assert_int_equal(type_of(out_path, "deep.weight"), COFFER_DTYPE_Q8);
    memset(bytes, 0, sizeof size);
    assert_int_equal(coffer_mcf_quantize(NULL, other_path, in_path, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    free(bytes);
}

static void types_that_nothing_can_become_are_refused(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = {
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_F64, NULL },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL }
    };
    coffer_mcf_quantize_opts opts = with_rules(rules, 1);
    (void)state;
    weights_model(in_path);
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "cannot quantize to f64");
    opts = with_rules(rules + 1, 1);
    opts.activations = true;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "k4 is for weights");
}

static void quantized_tensors_are_copied_unless_asked_otherwise(void **state)
{
    static const coffer_mcf_quantize_rule first = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, NULL },
                                          second = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K3,
                                                     NULL };
    coffer_mcf_quantize_opts opts = with_rules(&first, 1);
    (void)state;
    weights_model(in_path);
    must(out_path, in_path, &opts);
    opts = with_rules(&second, 1);
    must(other_path, out_path, &opts);
    assert_int_equal(type_of(other_path, "deep.weight"), COFFER_DTYPE_Q8);
    opts.requantize = true;
    must(other_path, out_path, &opts);
    assert_int_equal(type_of(other_path, "deep.weight"), COFFER_DTYPE_K3);
}

/* ---- The written file ---- */

static void payloads_are_those_of_the_encoder_whatever_the_bands(void **state)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4, COFFER_DTYPE_K3, COFFER_DTYPE_K2 };
    enum { ROWS = 700, COLS = 777 }; /* several bands, and a row that ends within a block */
    float *values = malloc(ROWS * COLS * sizeof *values);
    (void)state;
    assert_non_null(values);
    weights_fill(values, ROWS * COLS, 7);
    weights_one(in_path, ROWS, COLS, values);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), types[i], NULL };
        coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
        coffer_quant_tensor tensor = COFFER_QUANT_TENSOR_INIT;
        uint64_t size;
        tensor.dtype = types[i];
        tensor.rows = ROWS;
        tensor.cols = COLS;
        assert_int_equal(coffer_quant_size(&size, &tensor, NULL), COFFER_OK);
        uint8_t *expected = malloc(size), *got = malloc(size);
        assert_int_equal(coffer_quant_encode(expected, &tensor, values, NULL, NULL), COFFER_OK);
        must(out_path, in_path, &opts);
        coffer_source *src = model_source(out_path);
        coffer_mcf *model = model_open(src);
        assert_int_equal(coffer_mcf_tensor_at(model, 0)->size, size);
        assert_int_equal(coffer_mcf_read(got, model, 0, 0, size, NULL), COFFER_OK);
        assert_memory_equal(got, expected, size);
        coffer_mcf_close(model);
        coffer_source_close(src);
        free(expected);
        free(got);
    }
    free(values);
}

static void the_bytes_do_not_depend_on_the_number_of_threads(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    (void)state;
    weights_model(in_path);
    opts.model_name = "m";
    opts.threads = 1;
    must(out_path, in_path, &opts);
    opts.threads = 3;
    must(other_path, in_path, &opts);
    assert_same_files(out_path, other_path);
}

static void zeros_subnormals_and_rows_of_one_element_come_back(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    static const float column[5] = { 0.0f, 1.0f, -2.0f, 1e-40f, 3e-30f };
    float back[5];
    (void)state;
    weights_one(in_path, 5, 1, column);
    must(out_path, in_path, &opts);
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_read_rows_f32(back, model, 0, 0, 5, NULL), COFFER_OK);
    for (size_t i = 0; i < 5; i++)
        assert_true(fabsf(back[i] - column[i]) <= 1e-3f * fabsf(column[i]) + 1e-7f);
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void numbers_that_are_not_finite_are_named_or_taken_for_zero(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    float values[3 * 40];
    (void)state;
    weights_fill(values, 120, 9);
    values[85] = NAN;
    weights_one(in_path, 3, 40, values);
    refused(COFFER_E_BAD_VALUE, &opts, "\"w\" is NaN at row 2, column 5");
    values[7] = -INFINITY;
    weights_one(in_path, 3, 40, values);
    refused(COFFER_E_BAD_VALUE, &opts, "\"w\" is infinite at row 0, column 7");
    opts.nan_to_zero = true;
    must(out_path, in_path, &opts);
    values[85] = values[7] = 0.0f;
    weights_one(in_path, 3, 40, values);
    must(other_path, in_path, &opts);
    coffer_source *sources[2] = { model_source(out_path), model_source(other_path) };
    coffer_mcf *models[2] = { model_open(sources[0]), model_open(sources[1]) };
    uint8_t hashes[2][32];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            coffer_mcf_content_hash(
                hashes[i], models[i],
                &(coffer_mcf_work_opts){ .struct_size = sizeof(coffer_mcf_work_opts), .threads = 1 }, NULL),
            COFFER_OK);
        coffer_mcf_close(models[i]);
        coffer_source_close(sources[i]);
    }
    assert_memory_equal(hashes[0], hashes[1], 32);
}

static void the_input_is_never_the_output(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    (void)state;
    weights_model(in_path);
    uint8_t *before = temp_read(in_path, &len);
    assert_int_equal(coffer_mcf_quantize(NULL, in_path, in_path, &opts, &err), COFFER_E_INVALID_ARGUMENT);
    assert_true(temp_holds(in_path, before, len));
    free(before);
}

/* ---- The table ---- */

static const coffer_node *row_of(const coffer_node *root, const char *name)
{
    const coffer_node *node = coffer_node_first(coffer_node_find(root, "tensors"));
    while (node && strcmp(coffer_node_get_text(coffer_node_find(node, "name"), NULL), name) != 0)
        node = coffer_node_next(node);
    assert_non_null(node);
    return node;
}

static void a_dry_run_gives_the_same_table_and_writes_nothing(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rules(&rule, 1);
    coffer_node *dry = NULL, *wet = NULL;
    (void)state;
    weights_model(in_path);
    assert_int_equal(coffer_node_new(&dry, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&wet, NULL), COFFER_OK);
    opts.dry_run = true;
    assert_int_equal(coffer_mcf_quantize(dry, out_path, in_path, &opts, NULL), COFFER_OK);
    temp_assert_only(temp_folder, "in.mcf", NULL);
    assert_int_equal(coffer_mcf_quantize(dry, NULL, in_path, &opts, NULL), COFFER_OK);
    opts.dry_run = false;
    assert_int_equal(coffer_mcf_quantize(wet, out_path, in_path, &opts, NULL), COFFER_OK);
    const coffer_node *a = row_of(dry, "deep.weight"), *b = row_of(wet, "deep.weight");
    /* A row has two super-scales, ten sub-scales, and codes of half a byte. */
    assert_true(coffer_node_get_f64(coffer_node_find(a, "bits")) == 8.0 * (4 + 10 + 160) / 320);
    double snr = coffer_node_get_f64(coffer_node_find(a, "snr_db"));
    assert_true(snr > 19.0 && snr < 25.0);
    assert_true(snr == coffer_node_get_f64(coffer_node_find(b, "snr_db")));
    assert_int_equal(coffer_node_get_kind(coffer_node_find(row_of(dry, "ids"), "snr_db")), COFFER_NODE_NULL);
    coffer_node_free(dry);
    coffer_node_free(wet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(float_tensors_of_two_dimensions_are_quantized_and_others_copied, fresh),
        cmocka_unit_test_setup(the_last_rule_that_matches_counts, fresh),
        cmocka_unit_test_setup(what_include_and_exclude_leave_out_is_copied, fresh),
        cmocka_unit_test_setup(a_glob_that_matches_nothing_is_an_error, fresh),
        cmocka_unit_test_setup(shorter_rules_get_the_defaults_of_what_they_lack, fresh),
        cmocka_unit_test_setup(types_that_nothing_can_become_are_refused, fresh),
        cmocka_unit_test_setup(quantized_tensors_are_copied_unless_asked_otherwise, fresh),
        cmocka_unit_test_setup(payloads_are_those_of_the_encoder_whatever_the_bands, fresh),
        cmocka_unit_test_setup(the_bytes_do_not_depend_on_the_number_of_threads, fresh),
        cmocka_unit_test_setup(zeros_subnormals_and_rows_of_one_element_come_back, fresh),
        cmocka_unit_test_setup(numbers_that_are_not_finite_are_named_or_taken_for_zero, fresh),
        cmocka_unit_test_setup(the_input_is_never_the_output, fresh),
        cmocka_unit_test_setup(a_dry_run_gives_the_same_table_and_writes_nothing, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
