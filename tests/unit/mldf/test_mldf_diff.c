#include "base/bytes.h"
#include "support/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t key[COFFER_MLDF_KEY_SIZE] = "diff", other_key[COFFER_MLDF_KEY_SIZE] = "riff";

typedef struct made_file {
    uint8_t *bytes;
    size_t len;
    coffer_source *src;
} made_file;

static made_file make(dataset *made)
{
    made_file file;
    file.bytes = dataset_make(&file.len, NULL, made);
    file.src = dataset_source_of(file.bytes, file.len);
    dataset_free(made);
    return file;
}

static void drop(made_file *file)
{
    coffer_source_close(file->src);
    free(file->bytes);
}

static coffer_node *diff(const made_file *a, const made_file *b, double tolerance, const uint8_t *with_key)
{
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    coffer_node *out = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.tolerance = tolerance;
    opts.key = with_key;
    opts.threads = 2;
    opts.header = true;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    if (coffer_diff(out, a->src, b->src, &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return out;
}

static bool are_equal(const made_file *a, const made_file *b, double tolerance, const uint8_t *with_key)
{
    coffer_node *found = diff(a, b, tolerance, with_key);
    bool equal = coffer_node_get_bool(coffer_node_find(found, "equal"));
    coffer_node_free(found);
    return equal;
}

static const coffer_node *entry_of(const coffer_node *root, const char *list, size_t index)
{
    const coffer_node *entry = coffer_node_first(coffer_node_find(root, list));
    while (index-- > 0)
        entry = coffer_node_next(entry);
    assert_non_null(entry);
    return entry;
}

static const char *text_of(const coffer_node *entry, const char *name)
{
    return coffer_node_get_text(coffer_node_find(entry, name), NULL);
}

static void sets_that_are_laid_out_differently_hold_the_same(void **state)
{
    dataset_opts a_opts = { .stride = 204, .unsized = true };
    dataset_opts b_opts = { .rows_last = true, .checksummed = true, .page_size = 8192 };
    made_file a = make(dataset_small(50, &a_opts)), b = make(dataset_small(50, &b_opts));
    coffer_node *found = diff(&a, &b, 0, NULL);
    (void)state;
    assert_true(coffer_node_get_bool(coffer_node_find(found, "equal")));
    assert_true(coffer_node_count(coffer_node_find(found, "metadata")) >= 5);
    assert_string_equal(text_of(entry_of(found, "metadata", 0), "path"), "header.alloc_table_ptr");
    coffer_node_free(found);
    drop(&a);
    drop(&b);
}

static void encrypted_sets_are_compared_by_what_they_hold_when_there_is_a_key(void **state)
{
    dataset_opts sealed = { .key = key }, otherwise = { .key = other_key };
    made_file plain = make(dataset_small(9, NULL)), a = make(dataset_small(9, &sealed)),
              b = make(dataset_small(9, &sealed)), c = make(dataset_small(9, &otherwise));
    (void)state;
    assert_true(are_equal(&plain, &a, 0, key));
    assert_true(are_equal(&a, &b, 0, NULL));
    assert_false(are_equal(&a, &c, 0, NULL));
    drop(&plain);
    drop(&a);
    drop(&b);
    drop(&c);
}

static void the_first_difference_of_each_field_is_named(void **state)
{
    dataset *changed = dataset_small(2000, NULL);
    made_file a = make(dataset_small(2000, NULL));
    (void)state;
    dataset_int(changed, 1500, SMALL_LABEL, 77);
    dataset_int(changed, 1999, SMALL_LABEL, 78);
    dataset_bytes(changed, 3, SMALL_CAPTION, "another text", 12, NULL);
    made_file b = make(changed);
    coffer_node *found = diff(&a, &b, 0, NULL);
    assert_false(coffer_node_get_bool(coffer_node_find(found, "equal")));
    const coffer_node *label = entry_of(found, "values", SMALL_LABEL);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(label, "differing")), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(label, "first_sample")), 1500);
    const coffer_node *first = entry_of(found, "differences", 0);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(first, "sample")), 3);
    assert_string_equal(text_of(first, "field"), "caption");
    assert_string_equal(text_of(first, "a"), "caption 3 \xc3\xa9");
    assert_string_equal(text_of(first, "b"), "another text");
    assert_int_equal(coffer_node_get_i64(coffer_node_find(entry_of(found, "differences", 2), "b")), 78);
    assert_int_equal(coffer_node_count(coffer_node_find(found, "differences")), 3);
    coffer_node_free(found);
    drop(&a);
    drop(&b);
}

static void a_tolerance_forgives_numbers_and_elements_of_arrays(void **state)
{
    static const uint64_t dims[] = { 3 };
    made_file file[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        dataset *made = dataset_new(2, NULL);
        float numbers[3] = { 1, 2, 3.0f + (float)i / 8 };
        dataset_field(made, "score", COFFER_MLDF_FLOAT, 0);
        dataset_array_field(made, "array", COFFER_MLDF_NDARRAY, 0, 1, 1, dims);
        dataset_float(made, 0, 0, 5 + i * 0.125);
        dataset_float(made, 1, 0, (double)NAN);
        dataset_bytes(made, 1, 1, numbers, sizeof numbers, NULL);
        file[i] = make(made);
    }
    assert_false(are_equal(&file[0], &file[1], 0, NULL));
    assert_false(are_equal(&file[0], &file[1], 0.1, NULL));
    assert_true(are_equal(&file[0], &file[1], 0.125, NULL));
    coffer_node *found = diff(&file[0], &file[1], 0, NULL);
    assert_true(coffer_node_get_f64(coffer_node_find(entry_of(found, "values", 1), "largest")) == 0.125);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry_of(found, "differences", 1), "at")), 2);
    coffer_node_free(found);
    drop(&file[0]);
    drop(&file[1]);
}

static void large_integers_differ_by_one_too(void **state)
{
    made_file file[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        dataset *made = dataset_new(1, NULL);
        dataset_field(made, "n", COFFER_MLDF_INT, 0);
        dataset_int(made, 0, 0, INT64_MAX - i);
        file[i] = make(made);
    }
    assert_false(are_equal(&file[0], &file[1], 0, NULL));
    drop(&file[0]);
    drop(&file[1]);
}

static void fields_that_came_went_or_changed_are_listed(void **state)
{
    static const uint64_t dims[] = { 2 };
    dataset *x = dataset_new(1, NULL), *y = dataset_new(2, NULL);
    (void)state;
    dataset_field(x, "gone", COFFER_MLDF_INT, 0);
    dataset_field(x, "kind", COFFER_MLDF_INT, 0);
    dataset_array_field(x, "shape", COFFER_MLDF_NDARRAY, 0, 1, 1, dims);
    dataset_field(y, "kind", COFFER_MLDF_FLOAT, 0);
    dataset_array_field(y, "shape", COFFER_MLDF_NDARRAY, 0, 4, 1, dims);
    dataset_field(y, "new", COFFER_MLDF_TEXT, 0);
    made_file a = make(x), b = make(y);
    coffer_node *found = diff(&a, &b, 0, NULL);
    assert_false(coffer_node_get_bool(coffer_node_find(found, "equal")));
    assert_string_equal(text_of(entry_of(found, "metadata", 0), "path"), "fields.gone");
    assert_string_equal(text_of(entry_of(found, "metadata", 0), "change"), "removed");
    assert_string_equal(text_of(entry_of(found, "metadata", 1), "path"), "fields.kind.type");
    assert_string_equal(text_of(entry_of(found, "metadata", 1), "a"), "int");
    assert_string_equal(text_of(entry_of(found, "metadata", 1), "b"), "float");
    assert_string_equal(text_of(entry_of(found, "metadata", 2), "path"), "fields.new");
    assert_string_equal(text_of(entry_of(found, "metadata", 2), "change"), "added");
    assert_string_equal(text_of(entry_of(found, "metadata", 3), "path"), "fields.shape.shape");
    assert_string_equal(text_of(entry_of(found, "metadata", 3), "b"), "f64 [2]");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(found, "samples_b")), 2);
    coffer_node_free(found);
    drop(&a);
    drop(&b);
}

static void fewer_samples_are_a_difference(void **state)
{
    made_file a = make(dataset_small(10, NULL)), b = make(dataset_small(11, NULL));
    (void)state;
    assert_false(are_equal(&a, &b, 0, NULL));
    drop(&a);
    drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_that_are_laid_out_differently_hold_the_same),
        cmocka_unit_test(encrypted_sets_are_compared_by_what_they_hold_when_there_is_a_key),
        cmocka_unit_test(the_first_difference_of_each_field_is_named),
        cmocka_unit_test(a_tolerance_forgives_numbers_and_elements_of_arrays),
        cmocka_unit_test(large_integers_differ_by_one_too),
        cmocka_unit_test(fields_that_came_went_or_changed_are_listed),
        cmocka_unit_test(fewer_samples_are_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
