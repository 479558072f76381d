/* Importances, targets and whole-tensor scales, in files. */
#include "support/model.h"
#include "support/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[300], out_path[300], weights_path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    snprintf(weights_path, sizeof weights_path, "%s/weights.mcf", temp_folder);
    return 0;
}

static coffer_mcf_quantize_opts with_rule(const coffer_mcf_quantize_rule *rule)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    opts.rules = rule;
    opts.rule_count = rule ? 1 : 0;
    return opts;
}

static void must(coffer_node *node, const coffer_mcf_quantize_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_quantize(node, out_path, in_path, opts, &err))
        fail_msg("%s", err.text);
    if (!opts->dry_run)
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

/* The first tensor of the output, decoded (free()). */
static float *decoded(uint64_t *rows, uint64_t *cols)
{
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    coffer_mcf_tensor tensor = *coffer_mcf_tensor_at(model, 0);
    float *out = malloc(tensor.elements * sizeof *out);
    *rows = tensor.dims[0];
    *cols = tensor.dims[1];
    assert_int_equal(coffer_mcf_read_rows_f32(out, model, 0, 0, *rows, NULL), COFFER_OK);
    coffer_mcf_close(model);
    coffer_source_close(src);
    return out;
}

/* ---- Importances ---- */

static double error_of_columns(const float *values, uint64_t first, uint64_t count)
{
    uint64_t rows, cols;
    float *got = decoded(&rows, &cols);
    double sum = 0;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t i = first; i < first + count; i++)
            sum += pow((double)got[row * cols + i] - (double)values[row * cols + i], 2);
    free(got);
    return sum;
}

static void columns_that_count_more_come_out_better(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K3, NULL };
    enum { ROWS = 64, COLS = 256 };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    float values[ROWS * COLS], weights[COLS];
    (void)state;
    weights_fill(values, ROWS * COLS, 5);
    for (size_t i = 0; i < COLS; i++)
        weights[i] = i % 32 < 4 ? 100.0f : 1.0f;
    weights_one(in_path, ROWS, COLS, values);
    weights_one(weights_path, 1, COLS, weights);
    must(NULL, &opts);
    double before = error_of_columns(values, 0, 4);
    opts.weights = weights_path;
    must(NULL, &opts);
    assert_true(error_of_columns(values, 0, 4) < 0.7 * before);
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    assert_non_null(coffer_mcf_quality_at(model, 0));
    assert_string_equal(coffer_mcf_quality_at(model, 0)->importance, "weights.mcf");
    coffer_mcf_close(model);
    coffer_source_close(src);
}

static void importances_that_fit_nothing_are_an_error(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL };
    static const float some[7] = { 1, 1, 1, 1, 1, 1, 1 };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    (void)state;
    weights_model(in_path);
    weights_one(weights_path, 1, 7, some);
    opts.weights = weights_path;
    refused(COFFER_E_MISSING, &opts, "no importances for any of the tensors");
    float values[64] = { 1 };
    weights_one(in_path, 1, 64, values);
    refused(COFFER_E_SIZE_MISMATCH, &opts, "7 importances for \"w\", which has 64 columns");
    assert_int_equal(coffer_mcf_quantize(NULL, weights_path, in_path, &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    opts.method = COFFER_QUANT_ABSMAX;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "absmax");
}

/* ---- Targets ---- */

static void a_target_is_reached_and_a_larger_one_costs_less(void **state)
{
    coffer_mcf_quantize_opts opts = with_rule(NULL);
    double before = INFINITY;
    (void)state;
    weights_model(in_path);
    for (double target = 4.0; target < 12.0; target += 0.75) {
        coffer_node *node = NULL;
        double error = 0;
        assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
        opts.target_bpw = target;
        opts.dry_run = true;
        must(node, &opts);
        double bits = coffer_node_get_f64(coffer_node_find(node, "bits_per_weight"));
        assert_true(bits <= target && (bits > target - 1.5 || target > 9.0));
        const coffer_node *row = coffer_node_first(coffer_node_find(node, "tensors"));
        for (; row; row = coffer_node_next(row)) {
            const coffer_node *snr = coffer_node_find(row, "snr_db");
            const char *name = coffer_node_get_text(coffer_node_find(row, "name"), NULL);
            double elements = *name == 'd' ? 64 * 320 : *name == 'w' ? 3 * 700 : 130 * 33;
            if (coffer_node_get_kind(snr) != COFFER_NODE_NULL)
                error += elements * pow(10, -coffer_node_get_f64(snr) / 10);
        }
        assert_true(error <= before * 1.05);
        before = error;
        coffer_node_free(node);
    }
}

static void a_target_keeps_to_the_rules_and_chooses_the_same_again(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = {
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_Q8, "wide*" },
        { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_K4, NULL }
    };
    coffer_mcf_quantize_opts opts = with_rule(rules);
    size_t len;
    (void)state;
    weights_model(in_path);
    opts.target_bpw = 5.0;
    opts.threads = 1;
    must(NULL, &opts);
    coffer_source *src = model_source(out_path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_tensor_at(model, coffer_mcf_find_tensor(model, "wide.weight", 11))->dtype,
                     COFFER_DTYPE_Q8);
    coffer_mcf_close(model);
    coffer_source_close(src);
    uint8_t *first = temp_read(out_path, &len);
    opts.threads = 3;
    must(NULL, &opts);
    assert_true(temp_holds(out_path, first, len));
    free(first);
    assert_int_equal(remove(out_path), 0);
    opts.rule_count = 2;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "contradicts a target");
    opts.rule_count = 0;
    opts.target_bpw = 0.5;
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "0.5 bits per weight is too low");
}

/* ---- One scale for a whole tensor ---- */

static void whole_scales_are_the_bounds_over_the_largest_code(void **state)
{
    static const struct {
        coffer_dtype dtype;
        bool activations;
        float steps;
    } cases[] = { { COFFER_DTYPE_INT8, false, 127 },
                  { COFFER_DTYPE_INT4, false, 7 },
                  { COFFER_DTYPE_INT8, true, 254 },
                  { COFFER_DTYPE_INT4, true, 14 } };
    enum { ROWS = 201, COLS = 333 }; /* odd: codes of int4 do not end with rows */
    float *values = malloc(ROWS * COLS * sizeof *values);
    (void)state;
    weights_fill(values, ROWS * COLS, 8);
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] = values[i] < 0 ? values[i] * 0.25f : values[i];
    values[1000] = 0.5f;
    values[2000] = -0.125f;
    weights_one(in_path, ROWS, COLS, values);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), cases[c].dtype, NULL };
        coffer_mcf_quantize_opts opts = with_rule(&rule);
        uint64_t rows, cols;
        opts.activations = cases[c].activations;
        must(NULL, &opts);
        float range = cases[c].activations ? 0.625f : 0.5f, scale = range / cases[c].steps;
        float *got = decoded(&rows, &cols);
        for (size_t i = 0; i < ROWS * COLS; i++)
            assert_true(fabsf(got[i] - values[i]) <= 0.5001f * scale + (values[i] == 0.5f ? scale / 2 : 0) +
                                                         (values[i] == -0.125f ? scale / 2 : 0));
        free(got);
        coffer_source *src = model_source(out_path);
        coffer_mcf *model = model_open(src);
        const coffer_mcf_quant *quant = coffer_mcf_quant_at(model, 0);
        assert_non_null(quant);
        assert_int_equal(quant->activations, cases[c].activations);
        assert_true(quant->max_clip == 0.5f);
        assert_true(quant->min_clip == (cases[c].activations ? -0.125f : -0.5f));
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    free(values);
}

static void a_percentile_is_exact_and_clips_values_beyond_it(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_INT8,
                                                   NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    float values[1000];
    (void)state;
    for (int i = 0; i < 1000; i++) /* magnitudes 1 to 1000, in no order */
        values[i] = (float)(i * 7 % 1000 + 1) * (i % 2 ? -1.0f : 1.0f);
    weights_one(in_path, 10, 100, values);
    for (int activations = 0; activations < 2; activations++) {
        opts.activations = activations != 0;
        opts.percentile = 99;
        must(NULL, &opts);
        coffer_source *src = model_source(out_path);
        coffer_mcf *model = model_open(src);
        const coffer_mcf_quant *quant = coffer_mcf_quant_at(model, 0);
        assert_non_null(quant);
        if (!activations)
            assert_true(quant->max_clip == 990.0f && quant->min_clip == -990.0f);
        else
            assert_true(quant->max_clip > 975.0f && quant->max_clip < 985.0f && quant->min_clip < -975.0f &&
                        quant->min_clip > -985.0f);
        coffer_mcf_close(model);
        coffer_source_close(src);
    }
    opts.percentile = 10;
    assert_int_equal(remove(out_path), 0);
    refused(COFFER_E_INVALID_ARGUMENT, &opts, "a percentile of 10");
}

static void zeros_alone_have_a_scale_of_zero_and_stay_zeros(void **state)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_INT8, COFFER_DTYPE_INT4, COFFER_DTYPE_K2,
                                          COFFER_DTYPE_Q4 };
    static const float values[3 * 5] = { 0 };
    (void)state;
    weights_one(in_path, 3, 5, values);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), types[i], NULL };
        coffer_mcf_quantize_opts opts = with_rule(&rule);
        uint64_t rows, cols;
        opts.activations = types[i] == COFFER_DTYPE_INT8;
        must(NULL, &opts);
        float *got = decoded(&rows, &cols);
        assert_memory_equal(got, values, sizeof values);
        free(got);
    }
}

static void numbers_that_are_not_finite_stop_whole_scales_too(void **state)
{
    static const coffer_mcf_quantize_rule rule = { sizeof(coffer_mcf_quantize_rule), COFFER_DTYPE_INT8,
                                                   NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    float values[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    (void)state;
    values[7] = INFINITY;
    weights_one(in_path, 3, 4, values);
    refused(COFFER_E_BAD_VALUE, &opts, "\"w\" is not finite at row 1, column 3");
    opts.nan_to_zero = true;
    must(NULL, &opts);
}

/* ---- Scales ---- */

static void small_scales_are_counted_and_avoided_on_request(void **state)
{
    enum { ROWS = 3, COLS = 330 };
    static const coffer_dtype types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4, COFFER_DTYPE_K3, COFFER_DTYPE_K2 };
    static float values[ROWS * COLS];
    (void)state;
    weights_fill(values, ROWS * COLS, 3);
    for (size_t i = 0; i < ROWS * COLS; i++)
        values[i] *= i < COLS ? 1.0f : 1e-4f; /* only some of the scales are small */
    weights_one(in_path, ROWS, COLS, values);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        coffer_mcf_quantize_rule rule = { sizeof rule, types[i], NULL };
        coffer_mcf_quantize_opts opts = with_rule(&rule);
        for (int portable = 0; portable < 2; portable++) {
            coffer_node *node = NULL;
            uint64_t rows, cols;
            assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
            opts.portable_scales = portable;
            must(node, &opts);
            uint64_t small = coffer_node_get_u64(coffer_node_find(node, "small_scales"));
            assert_true(portable ? small == 0 : small > 0);
            coffer_node_free(node);
            float *result = decoded(&rows, &cols);
            for (size_t j = COLS; j < ROWS * COLS; j++) /* the scale is 2^-14, codes round to nearest */
                assert_true(fabsf(result[j] - values[j]) <= 2e-4f);
            free(result);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(columns_that_count_more_come_out_better, fresh),
        cmocka_unit_test_setup(importances_that_fit_nothing_are_an_error, fresh),
        cmocka_unit_test_setup(a_target_is_reached_and_a_larger_one_costs_less, fresh),
        cmocka_unit_test_setup(a_target_keeps_to_the_rules_and_chooses_the_same_again, fresh),
        cmocka_unit_test_setup(whole_scales_are_the_bounds_over_the_largest_code, fresh),
        cmocka_unit_test_setup(a_percentile_is_exact_and_clips_values_beyond_it, fresh),
        cmocka_unit_test_setup(zeros_alone_have_a_scale_of_zero_and_stay_zeros, fresh),
        cmocka_unit_test_setup(numbers_that_are_not_finite_stop_whole_scales_too, fresh),
        cmocka_unit_test_setup(small_scales_are_counted_and_avoided_on_request, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
