/* How much columns count: vectors of NumPy and safetensors files, and importance matrices, old and new. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "convert/quantize/importance.h"
#include "support/safetensors.h"
#include "support/temp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[300];

static int fresh(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    snprintf(path, sizeof path, "%s/weights", temp_folder);
    return 0;
}

/* ---- The old layout ---- */

static void put_i32(coffer__buffer *out, uint32_t value)
{
    uint8_t bytes[4];
    coffer__store_u32(bytes, value);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

static void put_entry(coffer__buffer *out, const char *name, uint32_t calls, const float *values,
                      uint32_t count)
{
    put_i32(out, (uint32_t)strlen(name));
    coffer__buffer_append(out, name, strlen(name));
    put_i32(out, calls);
    put_i32(out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        coffer__store_f32(bytes, values[i]);
        coffer__buffer_append(out, bytes, sizeof bytes);
    }
}

static coffer__buffer imatrix(void)
{
    static const float sums[] = { 10, 20, 30 };
    coffer__buffer out = COFFER__BUFFER_INIT;
    put_i32(&out, 2);
    put_entry(&out, "blk.0.up.weight", 10, sums, 3);
    put_entry(&out, "blk.0.never.weight", 0, sums, 2);
    put_i32(&out, 10);
    put_i32(&out, 4);
    coffer__buffer_append(&out, "wiki", 4);
    return out;
}

static void assert_vector(const char *name, const float *expected, size_t count)
{
    coffer__importance *of = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    float *got = NULL;
    if (coffer__importance_open(&of, path, NULL, &err) ||
        coffer__importance_read(&got, of, name, count, &err))
        fail_msg("%s", err.text);
    if (expected) {
        assert_non_null(got);
        assert_memory_equal(got, expected, count * sizeof *got);
    } else {
        assert_null(got);
    }
    assert_string_equal(coffer__importance_source(of), "weights");
    coffer__free(got);
    coffer__importance_close(of);
}

static void sums_of_the_old_layout_are_divided_by_their_calls(void **state)
{
    static const float expected[] = { 1, 2, 3 };
    coffer__buffer file = imatrix();
    (void)state;
    temp_write(path, file.data, file.len);
    assert_vector("blk.0.up.weight", expected, 3);
    assert_vector("blk.0.never.weight", NULL, 2);
    assert_vector("blk.1.up.weight", NULL, 3);
    coffer__buffer_free(&file);
}

static void bytes_after_the_entries_may_be_missing(void **state)
{
    static const float expected[] = { 1, 2, 3 };
    coffer__buffer file = imatrix();
    (void)state;
    temp_write(path, file.data, file.len - 12);
    assert_vector("blk.0.up.weight", expected, 3);
    temp_write(path, file.data, file.len - 8);
    assert_vector("blk.0.up.weight", expected, 3);
    coffer__buffer_free(&file);
}

static void refused(const void *bytes, size_t len)
{
    coffer__importance *of = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    temp_write(path, bytes, len);
    if (coffer__importance_open(&of, path, NULL, &err) == COFFER_OK)
        fail_msg("%zu bytes are taken for importances", len);
    assert_true(strlen(err.text) > 0);
}

static void an_old_matrix_that_is_truncated_or_false_is_refused(void **state)
{
    coffer__buffer file = imatrix();
    (void)state;
    for (size_t len = 0; len < file.len; len++) {
        if (len != file.len - 12 && len != file.len - 8)
            refused(file.data, len);
    }
    static const size_t numbers[] = { 0, 4, 23, 27 }; /* entries, length, calls, values */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint8_t before[4];
        memcpy(before, file.data + numbers[i], 4);
        coffer__store_u32(file.data + numbers[i], UINT32_MAX);
        refused(file.data, file.len);
        memcpy(file.data + numbers[i], before, 4);
    }
    coffer__buffer_append(&file, "x", 1);
    refused(file.data, file.len);
    coffer__buffer_free(&file);
}

/* ---- Vectors by name ---- */

static void vectors_are_found_by_name_with_and_without_weight(void **state)
{
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                                 "\"b.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}";
    static const float a[] = { 1, 2 }, b[] = { 3 };
    (void)state;
    safetensors_write(path, header, 3);
    assert_vector("a.weight", a, 2);
    assert_vector("a", a, 2);
    assert_vector("b.weight", b, 1);
    assert_vector("b", NULL, 1);
}

static void sums_of_the_new_layout_are_divided_by_their_counts(void **state)
{
    static const char header[] =
        "{\"a.weight.in_sum2\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]},"
        "\"a.weight.counts\":{\"dtype\":\"U8\",\"shape\":[1,1],\"data_offsets\":[3,4]}}";
    static const float expected[] = { 0.25f, 0.5f, 0.75f };
    (void)state;
    safetensors_write(path, header, 4);
    assert_vector("a.weight", expected, 3);
}

static void another_length_is_an_error_with_both(void **state)
{
    static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    coffer__importance *of = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    float *got = NULL;
    (void)state;
    safetensors_write(path, header, 2);
    assert_int_equal(coffer__importance_open(&of, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__importance_read(&got, of, "a", 5, &err), COFFER_E_SIZE_MISMATCH);
    assert_non_null(strstr(err.text, ": 2 importances for \"a\", which has 5 columns"));
    coffer__importance_close(of);
}

static void an_importance_below_zero_is_an_error(void **state)
{
    static const float sums[] = { 1, -2 };
    coffer__buffer file = COFFER__BUFFER_INIT;
    coffer__importance *of = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    float *got = NULL;
    (void)state;
    put_i32(&file, 1);
    put_entry(&file, "a", 1, sums, 2);
    temp_write(path, file.data, file.len);
    coffer__buffer_free(&file);
    assert_int_equal(coffer__importance_open(&of, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer__importance_read(&got, of, "a", 2, &err), COFFER_E_BAD_VALUE);
    assert_non_null(strstr(err.text, "column 1 of \"a\" is -2"));
    coffer__importance_close(of);
}

static void one_array_is_for_all_tensors(void **state)
{
    static const char head[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    static const float expected[] = { 0.5f, 2.0f };
    uint8_t file[128 + 8];
    (void)state;
    memset(file, ' ', sizeof file);
    memcpy(file, head, sizeof head - 1);
    file[127] = '\n';
    memcpy(file + 128, expected, sizeof expected);
    temp_write(path, file, sizeof file);
    assert_vector("anything", expected, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sums_of_the_old_layout_are_divided_by_their_calls, fresh),
        cmocka_unit_test_setup(bytes_after_the_entries_may_be_missing, fresh),
        cmocka_unit_test_setup(an_old_matrix_that_is_truncated_or_false_is_refused, fresh),
        cmocka_unit_test_setup(vectors_are_found_by_name_with_and_without_weight, fresh),
        cmocka_unit_test_setup(sums_of_the_new_layout_are_divided_by_their_counts, fresh),
        cmocka_unit_test_setup(another_length_is_an_error_with_both, fresh),
        cmocka_unit_test_setup(an_importance_below_zero_is_an_error, fresh),
        cmocka_unit_test_setup(one_array_is_for_all_tensors, fresh),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
