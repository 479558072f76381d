/* Two sets of tensors: what differs, and how far. */
#include "coffer/tensors.h"

#include "coffer/mcf.h"
#include "support/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float base[] = { 1, 2, 3, 4, 5, 6 };
static float changed[] = { 1, 2, 3, 4.5f, 5, 8 };

static made_tensor tensor(const char *name, const float *values)
{
    return (made_tensor){ name, 0, 2, { 2, 3 }, values, sizeof base };
}

/* coffer_node_free. */
static coffer_node *diff(const gguf_set *a, const gguf_set *b, const coffer_tensors_diff_opts *opts)
{
    coffer_node *root = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_node_new(&root, NULL), COFFER_OK);
    if (coffer_tensors_diff(root, a->set, b->set, opts, &err))
        fail_msg("%s", err.text);
    return root;
}

static bool equal(const coffer_node *root)
{
    return coffer_node_get_bool(coffer_node_find(root, "equal"));
}

static uint64_t number(const coffer_node *root, const char *name)
{
    return coffer_node_get_u64(coffer_node_find(coffer_node_find(root, "tensors"), name));
}

static const coffer_node *first_in(const coffer_node *root, const char *list)
{
    return coffer_node_first(coffer_node_find(root, list));
}

static double real(const coffer_node *map, const char *name)
{
    return coffer_node_get_f64(coffer_node_find(map, name));
}

static void sets_with_the_same_tensors_are_equal(void **state)
{
    made_tensor one[] = { tensor("a", base), tensor("b", changed) };
    made_tensor two[] = { tensor("b", changed), tensor("a", base) }; /* another layout */
    gguf_set a = gguf_open_set(one, 2, NULL, 0), b = gguf_open_set(two, 2, NULL, 0);
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_true(equal(root));
    assert_int_equal(number(root, "compared"), 2);
    assert_int_equal(number(root, "identical"), 2);
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void values_that_differ_are_measured(void **state)
{
    made_tensor one = tensor("w", base), two = tensor("w", changed);
    gguf_set a = gguf_open_set(&one, 1, NULL, 0), b = gguf_open_set(&two, 1, NULL, 0);
    coffer_node *root = diff(&a, &b, NULL);
    const coffer_node *entry = first_in(root, "values");
    (void)state;
    assert_false(equal(root));
    assert_string_equal(coffer_node_get_text(coffer_node_find(entry, "name"), NULL), "w");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry, "differing")), 2);
    assert_true(fabs(real(entry, "max_abs") - (2)) <= 0);
    assert_true(fabs(real(entry, "rmse") - (sqrt(4.25 / 6))) <= 1e-12);
    assert_true(fabs(real(entry, "snr_db") - (10 * log10(91 / 4.25))) <= 1e-9);
    double products = 1 + 4 + 9 + 18 + 25 + 48, b_squares = 1 + 4 + 9 + 20.25 + 25 + 64;
    assert_true(fabs(real(entry, "cosine") - (products / sqrt(91 * b_squares))) <= 1e-12);
    const coffer_node *first = coffer_node_find(entry, "first"), *max_at = coffer_node_find(entry, "max_at");
    assert_int_equal(coffer_node_get_u64(coffer_node_first(first)), 1);
    assert_int_equal(coffer_node_get_u64(coffer_node_next(coffer_node_first(first))), 0);
    assert_int_equal(coffer_node_get_u64(coffer_node_next(coffer_node_first(max_at))), 2);
    coffer_node_free(root);

    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    opts.tolerance = 0.5;
    root = diff(&a, &b, &opts);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(first_in(root, "values"), "differing")), 1);
    coffer_node_free(root);
    opts.tolerance = 2;
    root = diff(&a, &b, &opts);
    assert_true(equal(root));
    assert_float_equal(real(coffer_node_find(root, "tensors"), "max_abs"), 2, 0);
    assert_null(first_in(root, "values"));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void names_and_shapes_are_reported(void **state)
{
    made_tensor one[] = { tensor("a", base), tensor("m", base), tensor("s", base) };
    made_tensor two[] = { tensor("m", base), tensor("s", base), tensor("z", base) };
    two[1].dims[0] = 3;
    two[1].dims[1] = 2;
    gguf_set a = gguf_open_set(one, 3, NULL, 0), b = gguf_open_set(two, 3, NULL, 0);
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_false(equal(root));
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "only_in_a"), "name"), NULL),
                        "a");
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "only_in_b"), "name"), NULL),
                        "z");
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "shapes"), "name"), NULL), "s");
    assert_int_equal(number(root, "compared"), 1);
    coffer_node_free(root);
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    opts.include = "m";
    root = diff(&a, &b, &opts);
    assert_true(equal(root));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void another_type_is_a_difference_unless_there_is_a_tolerance(void **state)
{
    double doubles[6];
    for (size_t i = 0; i < 6; i++)
        doubles[i] = (double)base[i];
    made_tensor one = tensor("w", base), two = { "w", 28, 2, { 2, 3 }, doubles, sizeof doubles };
    gguf_set a = gguf_open_set(&one, 1, NULL, 0), b = gguf_open_set(&two, 1, NULL, 0);
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_false(equal(root));
    assert_int_equal(number(root, "identical"), 1);
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "types"), "b"), NULL), "f64");
    coffer_node_free(root);
    opts.tolerance = 1e-9;
    root = diff(&a, &b, &opts);
    assert_true(equal(root));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void nan_differs_from_a_number_and_equals_nan(void **state)
{
    float with_nan[] = { 1, 2, NAN, 4, 5, 6 }, other_nan[] = { 1, 2, -NAN, 4, 5, 6 };
    made_tensor one = tensor("w", base), two = tensor("w", with_nan), three = tensor("w", other_nan);
    gguf_set a = gguf_open_set(&one, 1, NULL, 0), b = gguf_open_set(&two, 1, NULL, 0),
             c = gguf_open_set(&three, 1, NULL, 0);
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_false(equal(root));
    assert_true(isinf(real(first_in(root, "values"), "max_abs")));
    coffer_node_free(root);
    root = diff(&b, &c, NULL);
    assert_true(equal(root));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
    gguf_close_set(&c);
}

static void blocks_compare_with_what_they_decode_to(void **state)
{
    uint8_t block[34];
    float values[32];
    block[0] = 0, block[1] = 0x3C; /* 1 */
    for (size_t i = 0; i < 32; i++) {
        block[2 + i] = (uint8_t)i;
        values[i] = (float)i;
    }
    made_tensor one = { "w", COFFER__GGUF_Q8_0, 1, { 32 }, block, sizeof block };
    made_tensor two = { "w", 0, 1, { 32 }, values, sizeof values };
    gguf_set a = gguf_open_set(&one, 1, NULL, 0), b = gguf_open_set(&two, 1, NULL, 0);
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_int_equal(number(root, "identical"), 1);
    assert_int_equal(number(root, "other_type"), 1);
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void blocks_that_are_not_decoded_compare_by_their_bytes(void **state)
{
    uint8_t one_block[66] = { 1 }, other_block[66] = { 2 };
    made_tensor one = { "w", 16, 1, { 256 }, one_block, 66 }, two = { "w", 16, 1, { 256 }, other_block, 66 };
    gguf_set a = gguf_open_set(&one, 1, NULL, 0), b = gguf_open_set(&two, 1, NULL, 0);
    coffer_node *root = diff(&a, &a, NULL);
    (void)state;
    assert_true(equal(root));
    coffer_node_free(root);
    root = diff(&a, &b, NULL);
    assert_false(equal(root));
    assert_non_null(strstr(
        coffer_node_get_text(coffer_node_find(first_in(root, "not_decoded"), "text"), NULL), "IQ2_XXS"));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static coffer__buffer keys(const char *name, uint64_t value)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__gguf_put_key(&out, "same", 4, COFFER__GGUF_U32);
    coffer__gguf_put_integer(&out, COFFER__GGUF_U32, 1);
    coffer__gguf_put_key(&out, name, strlen(name), COFFER__GGUF_U32);
    coffer__gguf_put_integer(&out, COFFER__GGUF_U32, value);
    return out;
}

static void metadata_of_files_of_one_kind_is_compared(void **state)
{
    made_tensor one = tensor("w", base);
    coffer__buffer of_a = keys("k", 1), of_b = keys("k", 2), of_c = keys("l", 1);
    gguf_set a = gguf_open_set(&one, 1, &of_a, 2), b = gguf_open_set(&one, 1, &of_b, 2),
             c = gguf_open_set(&one, 1, &of_c, 2);
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_false(equal(root));
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "metadata"), "path"), NULL),
                        "k");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(first_in(root, "metadata"), "a")), 1);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(first_in(root, "metadata"), "b")), 2);
    coffer_node_free(root);
    root = diff(&a, &c, NULL);
    assert_int_equal(number(root, "metadata_differences"), 2);
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
    gguf_close_set(&c);
    coffer__buffer_free(&of_a);
    coffer__buffer_free(&of_b);
    coffer__buffer_free(&of_c);
}

static void the_tensor_that_is_worst_off_is_listed_first(void **state)
{
    float far[6];
    memcpy(far, base, sizeof far);
    far[5] += 100.0f;
    made_tensor one[] = { tensor("a", base), tensor("b", base), tensor("c", base) };
    made_tensor two[] = { tensor("a", changed), tensor("b", far), tensor("c", changed) };
    gguf_set a = gguf_open_set(one, 3, NULL, 0), b = gguf_open_set(two, 3, NULL, 0);
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    opts.max_shown = 1;
    coffer_node *root = diff(&a, &b, &opts);
    (void)state;
    assert_int_equal(number(root, "differing"), 3);
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "values"), "name"), NULL), "b");
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static gguf_set model_with(const char *path, const char *config)
{
    gguf_set out = { COFFER__BUFFER_INIT, NULL, NULL };
    coffer_mcf_writer *writer = NULL;
    assert_int_equal(coffer_mcf_writer_create(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(
        coffer_mcf_writer_add_section(writer, COFFER_MCF_CONFIG, 1, config, strlen(config), NULL), COFFER_OK);
    assert_int_equal(coffer_mcf_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_open_path(&out.set, path, NULL, NULL), COFFER_OK);
    return out;
}

static void files_inside_of_models_are_compared(void **state)
{
    char *folder = temp_make();
    gguf_set a = model_with(temp_path(folder, "a.mcf"), "{}");
    gguf_set b = model_with(temp_path(folder, "b.mcf"), "{\"a\":1}");
    coffer_node *root = diff(&a, &b, NULL);
    (void)state;
    assert_false(equal(root));
    assert_string_equal(coffer_node_get_text(coffer_node_find(first_in(root, "metadata"), "path"), NULL),
                        "config\\.json.a");
    coffer_node_free(root);
    root = diff(&a, &a, NULL);
    assert_true(equal(root));
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
    temp_remove(folder);
}

static void many_differences_are_counted_and_few_listed(void **state)
{
    made_tensor one[30], two[30];
    char names[30][8];
    for (size_t i = 0; i < 30; i++) {
        snprintf(names[i], sizeof names[i], "t%02zu", i);
        one[i] = tensor(names[i], base);
        two[i] = tensor(names[i], changed);
    }
    gguf_set a = gguf_open_set(one, 30, NULL, 0), b = gguf_open_set(two, 30, NULL, 0);
    coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
    opts.max_shown = 4;
    coffer_node *root = diff(&a, &b, &opts);
    (void)state;
    assert_int_equal(number(root, "differing"), 30);
    assert_int_equal(coffer_node_count(coffer_node_find(root, "values")), 4);
    coffer_node_free(root);
    gguf_close_set(&a);
    gguf_close_set(&b);
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    enum { COUNT = 2500000 };
    float *one = malloc(COUNT * sizeof *one), *two = malloc(COUNT * sizeof *two);
    for (size_t i = 0; i < COUNT; i++) {
        one[i] = (float)(i * 2654435761u % 10007) * 0.001f;
        two[i] = one[i] * (1.0f + (float)(i % 13) * 1e-4f);
    }
    made_tensor from = { "w", 0, 1, { COUNT }, one, COUNT * sizeof *one };
    gguf_set a = gguf_open_set(&from, 1, NULL, 0);
    from.bytes = two;
    gguf_set b = gguf_open_set(&from, 1, NULL, 0);
    double rmse[3];
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        coffer_tensors_diff_opts opts = COFFER_TENSORS_DIFF_OPTS_INIT;
        opts.threads = threads;
        coffer_node *root = diff(&a, &b, &opts);
        rmse[threads - 1] = real(first_in(root, "values"), "rmse");
        coffer_node_free(root);
    }
    assert_true(rmse[0] > 0 && rmse[0] == rmse[1] && rmse[0] == rmse[2]);
    gguf_close_set(&a);
    gguf_close_set(&b);
    free(one);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_with_the_same_tensors_are_equal),
        cmocka_unit_test(values_that_differ_are_measured),
        cmocka_unit_test(names_and_shapes_are_reported),
        cmocka_unit_test(another_type_is_a_difference_unless_there_is_a_tolerance),
        cmocka_unit_test(nan_differs_from_a_number_and_equals_nan),
        cmocka_unit_test(blocks_compare_with_what_they_decode_to),
        cmocka_unit_test(blocks_that_are_not_decoded_compare_by_their_bytes),
        cmocka_unit_test(metadata_of_files_of_one_kind_is_compared),
        cmocka_unit_test(the_tensor_that_is_worst_off_is_listed_first),
        cmocka_unit_test(files_inside_of_models_are_compared),
        cmocka_unit_test(many_differences_are_counted_and_few_listed),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
