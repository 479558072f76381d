/* A model that several calls quantize together has the bytes of one that a single call wrote. */
#include "support/model.h"
#include "support/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char in_path[300], whole_path[300], joined_path[300], first_path[300], second_path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(in_path, sizeof in_path, "%s/in.mcf", temp_folder);
    snprintf(whole_path, sizeof whole_path, "%s/whole.mcf", temp_folder);
    snprintf(joined_path, sizeof joined_path, "%s/joined.mcf", temp_folder);
    snprintf(first_path, sizeof first_path, "%s/first.mcf", temp_folder);
    snprintf(second_path, sizeof second_path, "%s/second.mcf", temp_folder);
    weights_model(in_path);
    return 0;
}

static coffer_mcf_quantize_opts with_rule(const coffer_mcf_quantize_rule *rule)
{
    coffer_mcf_quantize_opts opts = COFFER_MCF_QUANTIZE_OPTS_INIT;
    opts.overwrite = true;
    opts.rules = rule;
    opts.rule_count = 1;
    opts.model_name = "weights";
    return opts;
}

static void must(const char *out, const coffer_mcf_quantize_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_mcf_quantize(NULL, out, in_path, opts, &err))
        fail_msg("%s", err.text);
}

static void write_part(const char *path, coffer_mcf_quantize_opts opts, const char *const *names,
                       size_t count)
{
    opts.only = names;
    opts.only_count = count;
    must(path, &opts);
}

static void assert_joined_is_whole(const coffer_mcf_quantize_opts *given)
{
    static const char *const first[] = { "wide.weight", "deep.weight" }, *const second[] = { "tall.weight" };
    const char *const parts[] = { second_path, first_path };
    coffer_mcf_quantize_opts opts = *given;
    size_t len;
    must(whole_path, &opts);
    write_part(first_path, opts, first, 2);
    write_part(second_path, opts, second, 1);
    opts.parts = parts;
    opts.part_count = 2;
    must(joined_path, &opts);
    uint8_t *bytes = temp_read(whole_path, &len);
    assert_true(temp_holds(joined_path, bytes, len));
    free(bytes);
    model_assert_clean(joined_path);
}

static void joined_parts_have_the_bytes_of_one_call(void **state)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_K4, COFFER_DTYPE_Q8, COFFER_DTYPE_INT8,
                                          COFFER_DTYPE_INT4 };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        coffer_mcf_quantize_rule rule = COFFER_MCF_QUANTIZE_RULE_INIT;
        rule.dtype = types[i];
        coffer_mcf_quantize_opts opts = with_rule(&rule);
        assert_joined_is_whole(&opts);
        opts.align = 4096;
        opts.no_checksums = opts.no_dedup = true;
        opts.activations = types[i] == COFFER_DTYPE_INT8;
        opts.percentile = types[i] == COFFER_DTYPE_INT4 ? 99.0 : 0.0;
        assert_joined_is_whole(&opts);
    }
}

static void a_part_has_the_named_tensors_alone(void **state)
{
    static const char *const names[] = { "tall.weight" }, *const wrong[] = { "tall.weight", "short.weight" };
    coffer_mcf_quantize_rule rule = { sizeof rule, COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    write_part(first_path, opts, names, 1);
    model_assert_clean(first_path);
    coffer_source *src = model_source(first_path);
    coffer_mcf *model = model_open(src);
    assert_int_equal(coffer_mcf_tensor_count(model), 1);
    assert_int_equal(coffer_mcf_tensor_at(model, 0)->dtype, COFFER_DTYPE_K4);
    coffer_mcf_close(model);
    coffer_source_close(src);
    opts.only = wrong;
    opts.only_count = 2;
    assert_int_equal(coffer_mcf_quantize(NULL, second_path, in_path, &opts, &err), COFFER_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "short.weight"));
    assert_false(temp_exists(second_path));
}

static void tensors_that_no_part_has_are_computed(void **state)
{
    static const char *const names[] = { "wide.weight" };
    const char *const parts[] = { first_path };
    coffer_mcf_quantize_rule rule = { sizeof rule, COFFER_DTYPE_K6, NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    size_t len;
    (void)state;
    must(whole_path, &opts);
    write_part(first_path, opts, names, 1);
    opts.parts = parts;
    opts.part_count = 1;
    must(joined_path, &opts);
    uint8_t *bytes = temp_read(whole_path, &len);
    assert_true(temp_holds(joined_path, bytes, len));
    free(bytes);
}

static void a_part_of_other_options_is_refused_by_name(void **state)
{
    static const char *const names[] = { "wide.weight" };
    const char *const parts[] = { first_path };
    coffer_mcf_quantize_rule rule = { sizeof rule, COFFER_DTYPE_K6, NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    write_part(first_path, opts, names, 1);
    rule.dtype = COFFER_DTYPE_K4;
    opts.parts = parts;
    opts.part_count = 1;
    assert_int_equal(coffer_mcf_quantize(NULL, joined_path, in_path, &opts, &err), COFFER_E_INCONSISTENT);
    assert_non_null(strstr(err.text, "first.mcf: \"wide.weight\" is k6"));
    assert_false(temp_exists(joined_path));
}

static void a_damaged_part_is_refused(void **state)
{
    static const char *const names[] = { "deep.weight" };
    const char *const parts[] = { first_path };
    coffer_mcf_quantize_rule rule = { sizeof rule, COFFER_DTYPE_Q8, NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    (void)state;
    write_part(first_path, opts, names, 1);
    uint8_t *bytes = temp_read(first_path, &len);
    coffer_source *src = model_source(first_path);
    coffer_mcf *model = model_open(src);
    bytes[coffer_mcf_tensor_at(model, 0)->offset + 5] ^= 1;
    coffer_mcf_close(model);
    coffer_source_close(src);
    temp_write(first_path, bytes, len);
    free(bytes);
    opts.parts = parts;
    opts.part_count = 1;
    assert_int_equal(coffer_mcf_quantize(NULL, joined_path, in_path, &opts, &err), COFFER_E_BAD_CHECKSUM);
    assert_non_null(strstr(err.text, "first.mcf"));
    assert_false(temp_exists(joined_path));
}

static void a_plan_names_the_types_without_errors(void **state)
{
    coffer_mcf_quantize_rule rule = { sizeof rule, COFFER_DTYPE_K4, NULL };
    coffer_mcf_quantize_opts opts = with_rule(&rule);
    coffer_node *plan = NULL;
    (void)state;
    opts.dry_run = opts.plan_only = true;
    assert_int_equal(coffer_node_new(&plan, NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_quantize(plan, NULL, in_path, &opts, NULL), COFFER_OK);
    const coffer_node *row = coffer_node_first(coffer_node_find(plan, "tensors"));
    assert_string_equal(coffer_node_get_text(coffer_node_find(row, "name"), NULL), "deep.weight");
    assert_string_equal(coffer_node_get_text(coffer_node_find(row, "type"), NULL), "k4");
    assert_int_equal(coffer_node_get_kind(coffer_node_find(row, "snr_db")), COFFER_NODE_NULL);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(plan, "quantised")), 3);
    coffer_node_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(joined_parts_have_the_bytes_of_one_call, fresh),
        cmocka_unit_test_setup(a_part_has_the_named_tensors_alone, fresh),
        cmocka_unit_test_setup(tensors_that_no_part_has_are_computed, fresh),
        cmocka_unit_test_setup(a_part_of_other_options_is_refused_by_name, fresh),
        cmocka_unit_test_setup(a_damaged_part_is_refused, fresh),
        cmocka_unit_test_setup(a_plan_names_the_types_without_errors, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
