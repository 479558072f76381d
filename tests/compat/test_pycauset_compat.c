/* Files that the pycauset program wrote. */
#include "support/container.h"

#include <stdio.h>

#define FOLDER COFFER_TEST_DATA "/compat/pycauset/"

typedef struct opened {
    coffer_source *source;
    coffer_pycauset *matrix;
    const coffer_pycauset_info *info;
} opened;

static opened open_clean(const char *path)
{
    opened file = { .source = scan_source(path) };
    coffer_report *report = scan_check(file.source, true);
    for (size_t i = 0; i < coffer_report_count(report); i++)
        fail_msg("%s: %s", path, coffer_report_at(report, i)->text);
    coffer_report_free(report);
    file.matrix = container_open(file.source);
    file.info = coffer_pycauset_get_info(file.matrix);
    return file;
}

static void close_file(opened *file)
{
    coffer_pycauset_close(file->matrix);
    coffer_source_close(file->source);
}

/* The stored number at this index of the payload. */
static double stored(const opened *file, uint64_t index)
{
    double value;
    assert_int_equal(coffer_source_read_at(&value, file->source, file->info->payload_offset + 8 * index, 8,
                                           NULL),
                     COFFER_OK);
    return value;
}

static void doubles_with_cached_values_and_64_bytes_too_many(void **state)
{
    opened file = open_clean(FOLDER "float64.pycauset");
    double real, imag;
    (void)state;
    assert_int_equal(file.info->rows, 6);
    assert_int_equal(file.info->cols, 4);
    assert_int_equal(file.info->payload_length, file.info->payload_needed + 64);
    assert_true(coffer_pycauset_value_f64(coffer_pycauset_cached(file.matrix, "trace", NULL)) == 2.5);
    assert_int_equal(coffer_pycauset_value_count(coffer_pycauset_cached(file.matrix, "sum", NULL)), 2);
    for (uint64_t i = 0; i < 24; i++) {
        assert_int_equal(coffer_pycauset_get(&real, &imag, file.matrix, i / 4, i % 4, NULL), COFFER_OK);
        assert_true(real == stored(&file, i) && imag == 0);
    }
    close_file(&file);
}

static void a_conjugated_matrix_with_a_complex_scalar(void **state)
{
    opened file = open_clean(FOLDER "complex64-conj-scalar.pycauset");
    double real, imag;
    (void)state;
    assert_true(file.info->conjugated && file.info->scalar_real == 2 && file.info->scalar_imag == -1);
    for (uint64_t i = 0; i < 4; i++) {
        double re = stored(&file, 2 * i), im = stored(&file, 2 * i + 1);
        assert_int_equal(coffer_pycauset_get(&real, &imag, file.matrix, i / 2, i % 2, NULL), COFFER_OK);
        assert_true(real == 2 * re + im);
        assert_true(imag == -(2 * im - re));
    }
    close_file(&file);
}

static void a_transposed_matrix_with_a_scalar(void **state)
{
    opened file = open_clean(FOLDER "int32-transposed.pycauset");
    double real, imag;
    (void)state;
    for (uint64_t i = 0; i < 25; i++) {
        int32_t value;
        assert_int_equal(coffer_source_read_at(&value, file.source,
                                               file.info->payload_offset + 4 * (i % 5 * 5 + i / 5), 4, NULL),
                         COFFER_OK);
        assert_int_equal(coffer_pycauset_get(&real, &imag, file.matrix, i / 5, i % 5, NULL), COFFER_OK);
        assert_true(real == 3.0 * value);
    }
    close_file(&file);
}

static void bits_of_a_vector(void **state)
{
    opened file = open_clean(FOLDER "bitvector.pycauset");
    double real, imag;
    (void)state;
    assert_int_equal(file.info->rows, 70);
    for (uint64_t i = 0; i < 70; i++) {
        assert_int_equal(coffer_pycauset_get(&real, &imag, file.matrix, i, 0, NULL), COFFER_OK);
        assert_true(real == (i == 0 || i == 64 || i == 65));
    }
    close_file(&file);
}

static void a_cached_value_that_refers_to_another_file(void **state)
{
    opened file = open_clean(FOLDER "vector-cached-ref.pycauset");
    bool stale = true;
    (void)state;
    const coffer_pycauset_value *inverse = coffer_pycauset_cached(file.matrix, "inverse", &stale);
    assert_int_equal(file.info->generation, 4);
    assert_int_equal(file.info->active_slot, 'B');
    assert_false(stale);
    assert_string_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(inverse, "ref_kind"), NULL),
                        "sibling_object_store");
    assert_string_equal(coffer_pycauset_value_text(coffer_pycauset_value_find(inverse, "object_id"), NULL),
                        "00000000000000000000000000000002");
    close_file(&file);
}

static void our_commits_continue_after_those_of_the_program(void **state)
{
    static const char *const names[] = { "float64", "complex64-conj-scalar", "int32-transposed", "bitvector",
                                         "vector-cached-ref" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = temp_path(temp_folder, names[i]);
        char from[300];
        uint64_t before, after;
        snprintf(from, sizeof from, FOLDER "%s.pycauset", names[i]);
        temp_copy(from, path);
        container_read(path, "rows", &before);
        container_commit(path, "properties.note", 5);
        container_assert_sound(path);
        assert_int_equal(container_read(path, "properties.note", &after), 5);
        assert_int_equal(after, before + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_with_cached_values_and_64_bytes_too_many),
        cmocka_unit_test(a_conjugated_matrix_with_a_complex_scalar),
        cmocka_unit_test(a_transposed_matrix_with_a_scalar),
        cmocka_unit_test(bits_of_a_vector),
        cmocka_unit_test(a_cached_value_that_refers_to_another_file),
        cmocka_unit_test(our_commits_continue_after_those_of_the_program),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
