/* Elements that change in place, the way back, and checksums that cover every byte. */
#include "coffer/pycauset.h"
#include "support/matrix.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s: %s", coffer_status_name(status), err->text);
}

static const char *path(void)
{
    return temp_path(temp_folder, "m.pycauset");
}

static coffer_status set_element(uint64_t row, uint64_t col, double value, coffer_error *err)
{
    coffer_pycauset_changes *changes = NULL;
    coffer_pycauset_editor *editor = NULL;
    must(coffer_pycauset_changes_new(&changes, err), err);
    must(coffer_pycauset_changes_set_element(changes, row, col, &value, COFFER_DTYPE_F64, err), err);
    must(coffer_pycauset_editor_open(&editor, path(), NULL, err), err);
    coffer_status status = coffer_pycauset_editor_commit(NULL, editor, changes, err);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    return status;
}

static void expect_clean(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    opts.full = true;
    must(coffer_source_open(&src, path(), NULL, &err), &err);
    must(coffer_report_new(&report, 0, &err), &err);
    must(coffer_check(report, src, &opts, &err), &err);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    coffer_report_free(report);
    coffer_source_close(src);
}

static bool is_stored(const coffer_pycauset_shape *shape, uint64_t row, uint64_t col)
{
    uint64_t first = shape->transposed ? col : row, second = shape->transposed ? row : col;
    switch (shape->type) {
    case COFFER_PYCAUSET_IDENTITY:
    case COFFER_PYCAUSET_UNIT_VECTOR:
        return false;
    case COFFER_PYCAUSET_CAUSAL:
        return second > first;
    case COFFER_PYCAUSET_TRIANGULAR_FLOAT:
    case COFFER_PYCAUSET_TRIANGULAR_INTEGER:
        return shape->has_diagonal ? second >= first : second > first;
    default:
        return true;
    }
}

/* One element changes, and its mirror image with it; nothing else does. */
static void expect_changed(const test_matrix *matrix, uint64_t row, uint64_t col, double value)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset *m = NULL;
    bool mirrored = matrix->shape.type == COFFER_PYCAUSET_SYMMETRIC ||
                    matrix->shape.type == COFFER_PYCAUSET_ANTISYMMETRIC;
    double sign = matrix->shape.type == COFFER_PYCAUSET_ANTISYMMETRIC ? -1 : 1;
    must(coffer_pycauset_open_path(&m, path(), NULL, &err), &err);
    const coffer_pycauset_info *info = coffer_pycauset_get_info(m);
    for (uint64_t i = 0; i < info->rows; i++) {
        for (uint64_t j = 0; j < info->cols; j++) {
            double expected[2], real = 0, imag = 0;
            test_matrix_value(expected, matrix, i, j);
            must(coffer_pycauset_get(&real, &imag, m, i, j, &err), &err);
            if (i == row && j == col) {
                expected[0] = value;
                expected[1] = 0;
            } else if (mirrored && i == col && j == row) {
                expected[0] = sign * value;
                expected[1] = 0;
            }
            if (real != expected[0] || imag != expected[1])
                fail_msg("%s %s: (%d, %d) is %g%+gi, not %g%+gi", coffer_pycauset_type_name(info->type),
                         coffer_dtype_name(info->dtype), (int)i, (int)j, real, imag, expected[0],
                         expected[1]);
        }
    }
    coffer_pycauset_close(m);
}

static void check_kind(const coffer_pycauset_shape *shape, uint64_t seed)
{
    coffer_error err = COFFER_ERROR_INIT;
    test_matrix matrix;
    test_matrix_make(&matrix, shape, seed);
    uint64_t rows = test_matrix_seen_rows(&matrix), cols = test_matrix_seen_cols(&matrix);
    const uint64_t places[][2] = {
        { 0, 0 }, { rows - 1, cols - 1 }, { rows / 2, cols - 1 }, { rows - 1, cols / 3 }
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint64_t row = places[i][0], col = places[i][1];
        coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
        double old[2];
        opts.overwrite = true;
        test_matrix_write(&matrix, path(), 3, &opts);
        test_matrix_value(old, &matrix, row, col);
        double value = old[0] == 1 ? 0 : 1;
        coffer_status status = set_element(row, col, value, &err);
        if (is_stored(shape, row, col)) {
            must(status, &err);
            expect_changed(&matrix, row, col, value);
        } else {
            assert_true(status == COFFER_E_INVALID_ARGUMENT || status == COFFER_E_UNSUPPORTED);
        }
        expect_clean();
    }
    test_matrix_free(&matrix);
}

static void an_element_of_every_kind_can_be_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 9, 7);
        check_kind(&shape, i);
        shape.transposed = shape.conjugated = true;
        check_kind(&shape, i + 1000);
    }
}

static void write_doubles(uint64_t rows, uint64_t cols)
{
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    test_matrix matrix;
    shape.rows = rows;
    shape.cols = cols;
    opts.overwrite = true;
    test_matrix_make(&matrix, &shape, 5);
    test_matrix_write(&matrix, path(), 2, &opts);
    test_matrix_free(&matrix);
}

static void values_that_do_not_fit_are_refused_and_nothing_is_written(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len, len_after;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    test_matrix matrix;
    shape.type = COFFER_PYCAUSET_INTEGER;
    shape.dtype = COFFER_DTYPE_I8;
    shape.rows = shape.cols = 3;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, path(), 3, NULL);
    test_matrix_free(&matrix);
    uint8_t *before = temp_read(path(), &len);
    assert_int_equal(set_element(0, 0, 128, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(set_element(0, 0, 0.5, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(set_element(0, 0, NAN, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(set_element(3, 0, 1, &err), COFFER_E_INVALID_ARGUMENT);
    uint8_t *after = temp_read(path(), &len_after);
    assert_int_equal(len, len_after);
    assert_memory_equal(before, after, len);
    free(before);
    free(after);
    temp_empty(temp_folder);
}

/* The other groups of a payload of several MiB keep their checksums. */
static void checksums_of_large_payloads_follow_the_elements(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    write_doubles(300, 1000);
    must(set_element(299, 999, 1, &err), &err);
    must(set_element(131, 72, 1, &err), &err); /* the first element of the second MiB */
    must(set_element(131, 71, 1, &err), &err);
    expect_clean();
}

static void a_damaged_group_is_not_summed_again(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    size_t len;
    write_doubles(3, 3);
    uint8_t *bytes = temp_read(path(), &len);
    bytes[4096 + 20] ^= 1;
    temp_write(path(), bytes, len);
    free(bytes);
    assert_int_equal(set_element(0, 0, 1, &err), COFFER_E_BAD_CHECKSUM);
}

/* ---- The way back ---- */

static void revert_restores_values_and_metadata(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_editor *editor = NULL;
    coffer_pycauset *m = NULL;
    uint64_t generation = 0;
    double first = 0, second = 0;
    write_doubles(4, 4);
    must(coffer_pycauset_open_path(&m, path(), NULL, &err), &err);
    must(coffer_pycauset_get(&first, NULL, m, 1, 2, &err), &err);
    coffer_pycauset_close(m);
    must(set_element(1, 2, 1000, &err), &err);
    must(set_element(1, 2, 2000, &err), &err);
    must(set_element(3, 3, 3000, &err), &err);
    must(coffer_pycauset_editor_open(&editor, path(), NULL, &err), &err);
    must(coffer_pycauset_editor_revert(&generation, editor, 1, &err), &err);
    assert_int_equal(generation, 5);
    assert_int_equal(coffer_pycauset_editor_revert(NULL, editor, 5, &err), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_pycauset_editor_revert(NULL, editor, 77, &err), COFFER_E_NOT_FOUND);
    coffer_pycauset_editor_close(editor);
    expect_clean();
    must(coffer_pycauset_open_path(&m, path(), NULL, &err), &err);
    must(coffer_pycauset_get(&second, NULL, m, 1, 2, &err), &err);
    coffer_pycauset_close(m);
    assert_true(first == second);
}

/* ---- Every byte ---- */

static bool passes(const uint8_t *bytes, size_t len)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    opts.full = true;
    opts.threads = 1;
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    coffer_status status = coffer_check(report, src, &opts, NULL);
    bool clean = !status && coffer_report_total(report, COFFER_ERROR) == 0;
    coffer_report_free(report);
    coffer_source_close(src);
    return clean;
}

static void expect_no_flip_passes(void)
{
    size_t len;
    uint8_t *bytes = temp_read(path(), &len);
    assert_true(passes(bytes, len));
    for (size_t i = 0; i < len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            if (passes(bytes, len))
                fail_msg("bit %d of byte %zu can be flipped", bit, i);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    free(bytes);
}

static void no_flipped_bit_passes_a_full_check(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    write_doubles(3, 3); /* 72 bytes, so that padding follows */
    expect_no_flip_passes();
    must(set_element(1, 1, 1, &err), &err);
    must(set_element(1, 2, 2, &err), &err); /* the first block is named by no slot now */
    expect_no_flip_passes();
}

static void no_flipped_bit_passes_without_a_payload(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    test_matrix matrix;
    opts.overwrite = true;
    shape.type = COFFER_PYCAUSET_IDENTITY;
    shape.rows = shape.cols = 3;
    test_matrix_make(&matrix, &shape, 5);
    test_matrix_write(&matrix, path(), 2, &opts);
    test_matrix_free(&matrix);
    expect_no_flip_passes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_element_of_every_kind_can_be_changed),
        cmocka_unit_test(values_that_do_not_fit_are_refused_and_nothing_is_written),
        cmocka_unit_test(checksums_of_large_payloads_follow_the_elements),
        cmocka_unit_test(a_damaged_group_is_not_summed_again),
        cmocka_unit_test(revert_restores_values_and_metadata),
        cmocka_unit_test(no_flipped_bit_passes_a_full_check),
        cmocka_unit_test(no_flipped_bit_passes_without_a_payload),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
