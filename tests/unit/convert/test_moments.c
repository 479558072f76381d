/* Quantizing with second moments of a layer's inputs: files of them, good and bad, and the report. */
#include "support/model.h"
#include "support/weights.h"

#include "coffer/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEP = 320 }; /* columns of "deep.weight" */

static char in_path[300], out_path[300], moments_path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    snprintf(moments_path, sizeof moments_path, "%s/moments.mcf", temp_folder);
    weights_model(in_path);
    return 0;
}

/* ---- Files ---- */

/* Moments of inputs that depend on each other: a diagonal, and the same vector times itself. */
static float *new_moments(size_t columns)
{
    float *sums = malloc(columns * columns * sizeof *sums);
    assert_non_null(sums);
    for (size_t i = 0; i < columns; i++)
        for (size_t j = 0; j < columns; j++)
            sums[i * columns + j] = (float)(1 + i % 3) * (float)(1 + j % 3) + (i == j ? 0.5f : 0.0f);
    return sums;
}

static void add(coffer_mcf_writer *writer, const char *layer, const float *sums, uint64_t rows,
                uint64_t columns, const int64_t *count)
{
    char name[100];
    uint64_t dims[2] = { rows, columns }, one = 1;
    snprintf(name, sizeof name, "%s.moments", layer);
    assert_int_equal(model_add(writer, name, COFFER_DTYPE_F32, 2, dims, sums, NULL), COFFER_OK);
    snprintf(name, sizeof name, "%s.count", layer);
    if (count)
        assert_int_equal(model_add(writer, name, COFFER_DTYPE_I64, 1, &one, count, NULL), COFFER_OK);
}

/* A file for "deep.weight", the changed element at (row, column). */
static void write_changed(size_t row, size_t column, float value)
{
    static const int64_t count = 100;
    coffer_mcf_writer *writer = NULL;
    float *sums = new_moments(DEEP);
    sums[row * DEEP + column] = value;
    assert_int_equal(coffer_mcf_writer_create(&writer, moments_path, &model_overwrite, NULL), COFFER_OK);
    add(writer, "deep", sums, DEEP, DEEP, &count);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    free(sums);
}

static void write_good(void)
{
    write_changed(0, 0, 1.5f);
}

/* ---- Calls ---- */

static const coffer_mcf_quantize_rule k4 = { sizeof k4, COFFER_DTYPE_K4, NULL };

static coffer_mcf_quantize_opts with_moments(void)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    opts.rules = &k4;
    opts.rule_count = 1;
    opts.hessian = moments_path;
    return opts;
}

static void must(coffer_node *node, const coffer_mcf_quantize_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_quantize(node, out_path, in_path, opts, &err))
        fail_msg("%s", err.text);
    model_assert_clean(out_path);
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

static const coffer_node *row_of(const coffer_node *node, const char *name)
{
    const coffer_node *row = coffer_node_first(coffer_node_find(node, "tensors"));
    while (row && strcmp(coffer_node_get_text(coffer_node_find(row, "name"), NULL), name) != 0)
        row = coffer_node_next(row);
    assert_non_null(row);
    return row;
}

static uint8_t *payload_of(const char *name, size_t *len)
{
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_tensor *tensor =
        coffer_mcf_tensor_at(model, coffer_mcf_find_tensor(model, name, strlen(name)));
    uint8_t *bytes = malloc((size_t)tensor->size);
    assert_non_null(bytes);
    *len = (size_t)tensor->size;
    assert_int_equal(coffer_source_read_at(bytes, src, tensor->offset, *len, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return bytes;
}

/* ---- Tests ---- */

static void tensors_with_moments_are_calibrated_and_others_are_fitted_and_listed(void **state)
{
    static const int64_t count = 7;
    coffer_mcf_quantize_opts opts = with_moments();
    coffer_mcf_writer *writer = NULL;
    coffer_node *node = NULL;
    float *sums = new_moments(DEEP);
    size_t len, calibrated_len;
    (void)state;
    assert_int_equal(coffer_mcf_writer_create(&writer, moments_path, &model_overwrite, NULL), COFFER_OK);
    add(writer, "deep", sums, DEEP, DEEP, &count);
    add(writer, "another", sums, 2, 2, &count);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    free(sums);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    must(node, &opts);
    assert_string_equal(coffer_node_get_text(coffer_node_find(row_of(node, "deep.weight"), "method"), NULL),
                        "calibrated");
    assert_string_equal(coffer_node_get_text(coffer_node_find(row_of(node, "tall.weight"), "method"), NULL),
                        "fit");
    assert_true(coffer_node_get_f64(coffer_node_find(row_of(node, "deep.weight"), "output_snr_db")) >
                coffer_node_get_f64(coffer_node_find(row_of(node, "deep.weight"), "snr_db")) + 3.0);
    const coffer_node *moments = coffer_node_find(node, "moments");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(moments, "used")), 1);
    assert_int_equal(coffer_node_count(coffer_node_find(moments, "without")), 2);
    assert_string_equal(coffer_node_get_text(coffer_node_first(coffer_node_find(moments, "unused")), NULL),
                        "another");
    coffer_node_free(node);

    uint8_t *calibrated = payload_of("deep.weight", &calibrated_len),
            *fitted = payload_of("tall.weight", &len);
    opts.hessian = NULL;
    must(NULL, &opts);
    uint8_t *again = payload_of("tall.weight", &len), *other = payload_of("deep.weight", &calibrated_len);
    assert_memory_equal(fitted, again, len);
    assert_memory_not_equal(calibrated, other, calibrated_len);
    free(calibrated);
    free(fitted);
    free(again);
    free(other);
}

static void the_file_records_the_method_and_the_moments(void **state)
{
    coffer_mcf_quantize_opts opts = with_moments();
    (void)state;
    write_good();
    must(NULL, &opts);
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    const coffer_mcf_quality *quality =
        coffer_mcf_quality_at(model, coffer_mcf_find_tensor(model, "deep.weight", 11));
    assert_non_null(quality);
    assert_int_equal(quality->method, COFFER_QUANT_CALIBRATED);
    assert_string_equal(quality->importance, "moments.mcf");
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void any_number_of_threads_writes_the_same_file(void **state)
{
    coffer_mcf_quantize_opts opts = with_moments();
    size_t len;
    (void)state;
    write_good();
    opts.threads = 1;
    must(NULL, &opts);
    uint8_t *first = temp_read(out_path, &len);
    opts.threads = 3;
    must(NULL, &opts);
    assert_true(temp_holds(out_path, first, len));
    free(first);
}

static void int4_and_int8_take_moments_too(void **state)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_INT8, COFFER_DTYPE_INT4 };
    (void)state;
    write_good();
    for (size_t i = 0; i < 2; i++) {
        coffer_mcf_quantize_opts opts = with_moments();
        coffer_mcf_quantize_rule rule = { sizeof rule, types[i], NULL };
        coffer_node *node = NULL;
        opts.rules = &rule;
        assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
        must(node, &opts);
        const coffer_node *row = row_of(node, "deep.weight");
        assert_true(coffer_node_get_f64(coffer_node_find(row, "output_snr_db")) >
                    coffer_node_get_f64(coffer_node_find(row, "snr_db")) + 3.0);
        coffer_node_free(node);
    }
}

static void a_layer_without_samples_is_fitted(void **state)
{
    static const int64_t none = 0, some = 3;
    coffer_mcf_quantize_opts opts = with_moments();
    coffer_mcf_writer *writer = NULL;
    float *sums = new_moments(DEEP), *zeros = calloc((size_t)33 * 33, sizeof *zeros);
    coffer_node *node = NULL;
    (void)state;
    assert_int_equal(coffer_mcf_writer_create(&writer, moments_path, &model_overwrite, NULL), COFFER_OK);
    add(writer, "deep", sums, DEEP, DEEP, &none);
    add(writer, "tall.weight", zeros, 33, 33, &some);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    must(node, &opts);
    assert_int_equal(coffer_node_count(coffer_node_find(coffer_node_find(node, "moments"), "without")), 3);
    coffer_node_free(node);
    free(sums);
    free(zeros);
}

static void bad_matrices_are_refused(void **state)
{
    coffer_mcf_quantize_opts opts = with_moments();
    (void)state;
    write_changed(3, 5, NAN);
    refused(COFFER_E_BAD_VALUE, &opts, "the moments of \"deep.weight\" are not finite at row 3, column 5");
    write_changed(7, 7, INFINITY);
    refused(COFFER_E_BAD_VALUE, &opts, "not finite at row 7, column 7");
    write_changed(4, 4, -1.0f);
    refused(COFFER_E_BAD_VALUE, &opts, "element 4 of the diagonal is -1");
    write_changed(3, 5, 1.0f);
    refused(COFFER_E_BAD_VALUE, &opts, "not symmetric");
    write_changed(9, 9, 0.001f);
    refused(COFFER_E_BAD_VALUE, &opts, "more than the diagonal allows");
}

static void shapes_and_counts_that_do_not_match_are_refused(void **state)
{
    static const int64_t count = 5, negative = -1;
    static const struct {
        uint64_t rows, columns;
        const int64_t *count;
        coffer_status status;
        const char *text;
    } cases[] = {
        { 2, 3, &count, COFFER_E_SIZE_MISMATCH, "not a square matrix" },
        { 3, 3, &count, COFFER_E_SIZE_MISMATCH, "moments of 3 columns for \"deep.weight\", which has 320" },
        { 3, 3, &negative, COFFER_E_BAD_VALUE, "moments of -1 samples" },
        { 3, 3, NULL, COFFER_E_MISSING, "has .moments and no .count" },
    };
    coffer_mcf_quantize_opts opts = with_moments();
    float *sums = new_moments(DEEP);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        coffer_mcf_writer *writer = NULL;
        assert_int_equal(coffer_mcf_writer_create(&writer, moments_path, &model_overwrite, NULL), COFFER_OK);
        add(writer, "deep.weight", sums, cases[i].rows, cases[i].columns, cases[i].count);
        assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
        refused(cases[i].status, &opts, cases[i].text);
    }
    free(sums);
    weights_model(moments_path);
    refused(COFFER_E_MISSING, &opts, "no tensor has a name that ends in .moments");
}

static void moments_that_fit_nothing_or_the_wrong_method_are_an_error(void **state)
{
    coffer_mcf_quantize_opts opts = with_moments();
    const char *const exclude[] = { "deep*" };
    (void)state;
    write_good();
    opts.exclude = exclude;
    opts.exclude_count = 1;
    refused(COFFER_E_MISSING, &opts, "no moments for any of the tensors that are quantized");
    opts.exclude_count = 0;
    opts.method = COFFER_QUANT_EXACT;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "exact ignores second moments");
    opts.method = COFFER_QUANT_CALIBRATED;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "unknown method");
    opts.method = COFFER_QUANT_FIT;
    opts.damping = -1;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "invalid damping");
    opts.damping = 0;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mcf_quantize(NULL, moments_path, in_path, &opts, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "input and output are the same file"));
}

static void moments_beyond_the_memory_limit_are_refused(void **state)
{
    coffer_mcf_quantize_opts opts = with_moments();
    coffer_limits limits;
    (void)state;
    write_good();
    coffer_limits_init(&limits, sizeof limits);
    limits.memory_bytes = 8 * DEEP * DEEP - 1;
    opts.limits = &limits;
    refused(COFFER_E_LIMIT, &opts, "have 320 columns and need 8 bytes for each pair");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tensors_with_moments_are_calibrated_and_others_are_fitted_and_listed, fresh),
        cmocka_unit_test_setup(the_file_records_the_method_and_the_moments, fresh),
        cmocka_unit_test_setup(any_number_of_threads_writes_the_same_file, fresh),
        cmocka_unit_test_setup(int4_and_int8_take_moments_too, fresh),
        cmocka_unit_test_setup(a_layer_without_samples_is_fitted, fresh),
        cmocka_unit_test_setup(bad_matrices_are_refused, fresh),
        cmocka_unit_test_setup(shapes_and_counts_that_do_not_match_are_refused, fresh),
        cmocka_unit_test_setup(moments_that_fit_nothing_or_the_wrong_method_are_an_error, fresh),
        cmocka_unit_test_setup(moments_beyond_the_memory_limit_are_refused, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
