/* Types by quality, by the size of the file, and by names of llama.cpp. */
#include "support/model.h"
#include "support/weights.h"

#include "coffer/quantize.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[300], out_path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(out_path, sizeof out_path, "%s/out.mcf", temp_folder);
    weights_model(in_path);
    return 0;
}

static coffer_node *must(const coffer_mcf_quantize_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *node = NULL;
    assert_int_equal(coffer_node_new(&node, NULL), COFFER_OK);
    if (coffer_mcf_quantize(node, out_path, in_path, opts, &err))
        fail_msg("%s", err.text);
    return node;
}

static void refused(const coffer_mcf_quantize_opts *opts, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_mcf_quantize(NULL, out_path, in_path, opts, &err), COFFER_E_INVALID_ARGUMENT);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" instead of \"%s\"", err.text, part);
}

static double number(const coffer_node *row, const char *key)
{
    return coffer_node_get_f64(coffer_node_find(row, key));
}

/* ---- Quality ---- */

static void each_tensor_gets_the_smallest_type_that_is_good_enough(void **state)
{
    static const double targets[] = { 5, 12, 20, 25, 40 };
    uint64_t before = 0;
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
        opts.dry_run = true;
        opts.min_snr = targets[i];
        coffer_node *node = must(&opts);
        uint64_t size = coffer_node_get_u64(coffer_node_find(node, "size")), quantized = 0;
        const coffer_node *row = coffer_node_first(coffer_node_find(node, "tensors"));
        for (; row; row = coffer_node_next(row)) {
            if (coffer_node_get_kind(coffer_node_find(row, "snr_db")) == COFFER_NODE_NULL)
                continue;
            quantized++;
            assert_true(number(row, "snr_db") >= targets[i]);
            assert_true(fabs(number(row, "error") - pow(10, -number(row, "snr_db") / 20)) < 1e-9);
        }
        assert_int_equal(quantized, 3);
        assert_true(size > before);
        before = size;
        coffer_node_free(node);
        opts.min_snr = 0;
        opts.max_error = pow(10, -targets[i] / 20);
        node = must(&opts);
        assert_int_equal(coffer_node_get_u64(coffer_node_find(node, "size")), size);
        coffer_node_free(node);
    }
}

static void what_no_type_is_good_enough_for_is_copied(void **state)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    (void)state;
    opts.dry_run = true;
    opts.min_snr = 90;
    opts.max_error = 0.5; /* the stricter one applies */
    coffer_node *node = must(&opts);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(node, "quantised")), 0);
    coffer_node_free(node);
}

/* ---- Size ---- */

static void a_file_is_at_most_as_large_as_asked_for_and_uses_it(void **state)
{
    static const uint64_t sizes[] = { 22000, 26000, 34000, 130000 };
    double before = 0.0;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
        size_t len;
        opts.overwrite = true;
        opts.max_size = sizes[i];
        coffer_node *node = must(&opts);
        free(temp_read(out_path, &len));
        double bits = number(node, "bits_per_weight");
        assert_true(len <= sizes[i]);
        assert_true(bits > before);
        before = bits;
        coffer_node_free(node);
    }
}

static void targets_that_cannot_be_are_refused(void **state)
{
    static const coffer_mcf_quantize_rule all = { sizeof all, COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    (void)state;
    opts.max_size = 5000;
    refused(&opts, "a file of 5000 bytes is too small: with the smallest types it takes up to ");
    opts.max_size = 100;
    refused(&opts, "a file of 100 bytes is too small");
    opts.min_snr = 20;
    refused(&opts, "contradict each other");
    opts.max_size = 0;
    opts.rules = &all;
    opts.rule_count = 1;
    refused(&opts, "k4 for all tensors contradicts a target");
    opts.rule_count = 0;
    opts.min_snr = NAN;
    refused(&opts, "invalid target of nan dB");
    opts.min_snr = 0;
    opts.max_error = 1;
    refused(&opts, "a relative error of 1 is not between 0 and 1");
    opts.max_error = 0.1;
    opts.activations = true;
    refused(&opts, "a target chooses types for weights");
}

/* ---- Names of llama.cpp ---- */

static const char *const names[] = {
    "lm_head.weight",
    "model.embed_tokens.weight",
    "model.layers.0.mlp.down_proj.weight",
    "model.layers.1.mlp.down_proj.weight",
    "model.layers.2.self_attn.q_proj.weight",
    "model.layers.2.self_attn.v_proj.weight",
    "model.layers.7.self_attn.o_proj.weight",
};
#define NAMES (sizeof names / sizeof *names)

static void write_llama(size_t first)
{
    static const uint64_t dims[] = { 2, 32 };
    coffer_mcf_writer *writer = NULL;
    float values[64];
    assert_int_equal(coffer_mcf_writer_create(&writer, in_path, &model_overwrite, NULL), COFFER_OK);
    for (size_t i = first; i < NAMES; i++) {
        weights_fill(values, 64, (uint32_t)i);
        assert_int_equal(model_add(writer, names[i], COFFER_DTYPE_F32, 2, dims, values, NULL), COFFER_OK);
    }
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
}

static void assert_types(const char *preset, size_t first, const char *expected)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    char types[200] = "";
    write_llama(first);
    opts.dry_run = true;
    opts.preset = preset;
    coffer_node *node = must(&opts);
    const coffer_node *row = coffer_node_first(coffer_node_find(node, "tensors"));
    for (; row; row = coffer_node_next(row)) {
        strcat(types, *types ? " " : "");
        strcat(types, coffer_node_get_text(coffer_node_find(row, "type"), NULL));
    }
    assert_string_equal(types, expected);
    assert_string_equal(coffer_node_get_text(coffer_node_find(coffer_node_find(node, "preset"), "meaning"),
                                             NULL),
                        coffer_mcf_quantize_preset(preset));
    coffer_node_free(node);
}

static void names_of_llama_cpp_stand_for_mixtures(void **state)
{
    (void)state;
    assert_types("Q4_K_M", 0, "k6 k4 k6 k4 k4 k4 k4");
    assert_types("q4_k_m", 1, "k6 k6 k4 k4 k4 k4"); /* the embeddings are the output */
    assert_types("Q4_K_S", 0, "k6 k4 k4 k4 k4 k4 k4");
    assert_types("Q3_K_M", 0, "k6 k3 k4 k4 k3 k4 k4");
    assert_types("Q3_K_L", 0, "k6 k3 k6 k6 k3 k6 k6");
    assert_types("Q2_K", 0, "k6 k2 k3 k3 k2 k4 k3");
    assert_types("Q8_0", 0, "q8 q8 q8 q8 q8 q8 q8");
    assert_types("Q4_0", 0, "k6 q4 q4 q4 q4 q4 q4");
    assert_null(coffer_mcf_quantize_preset("Q5_K_M"));
}

static void rules_go_before_a_mixture_and_contradictions_are_refused(void **state)
{
    static const coffer_mcf_quantize_rule rules[] = { { sizeof *rules, COFFER_DTYPE_NONE, "lm_head*" },
                                                      { sizeof *rules, COFFER_DTYPE_K4, NULL } };
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    (void)state;
    write_llama(0);
    opts.dry_run = true;
    opts.preset = "Q6_K";
    opts.rules = rules;
    opts.rule_count = 1;
    coffer_node *node = must(&opts);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(node, "quantised")), NAMES - 1);
    coffer_node_free(node);
    opts.rule_count = 2;
    refused(&opts, "k4 for all tensors contradicts Q6_K");
    opts.rule_count = 0;
    opts.target_bpw = 4;
    refused(&opts, "Q6_K contradicts a target");
    opts.target_bpw = 0;
    opts.activations = true;
    refused(&opts, "Q6_K is for weights");
    opts.preset = "Q9";
    refused(&opts, "unknown mixture of types \"Q9\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_tensor_gets_the_smallest_type_that_is_good_enough, fresh),
        cmocka_unit_test_setup(what_no_type_is_good_enough_for_is_copied, fresh),
        cmocka_unit_test_setup(a_file_is_at_most_as_large_as_asked_for_and_uses_it, fresh),
        cmocka_unit_test_setup(targets_that_cannot_be_are_refused, fresh),
        cmocka_unit_test_setup(names_of_llama_cpp_stand_for_mixtures, fresh),
        cmocka_unit_test_setup(rules_go_before_a_mixture_and_contradictions_are_refused, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
