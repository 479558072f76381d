#include "support/matrix.h"
#include "support/temp.h"

#include "base/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct opened {
    coffer_source *src;
    coffer_pycauset *m;
} opened;

static void must(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s: %s", coffer_status_name(status), err->text);
}

static void open_file(opened *out, const char *path, coffer_access access)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source_opts opts = COFFER_SOURCE_OPTS_INIT;
    opts.access = access;
    must(coffer_source_open(&out->src, path, &opts, &err), &err);
    must(coffer_pycauset_open(&out->m, out->src, NULL, &err), &err);
}

static void close_file(opened *file)
{
    coffer_pycauset_close(file->m);
    coffer_source_close(file->src);
}

static double seen_number(const test_matrix *matrix, uint64_t row, uint64_t col, bool magnitude)
{
    double pair[2];
    test_matrix_value(pair, matrix, row, col);
    return magnitude ? hypot(pair[0], pair[1]) : pair[0];
}

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fmax(1, fabs(expected))))
        fail_msg("%.17g is not %.17g", got, expected);
}

static void check_stats(const test_matrix *matrix, const coffer_pycauset_summary *stats)
{
    uint64_t rows = test_matrix_seen_rows(matrix), cols = test_matrix_seen_cols(matrix), nonzero = 0;
    double min = INFINITY, max = -INFINITY, sum = 0, squares = 0, count = (double)(rows * cols);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; j < cols; j++) {
            double value = seen_number(matrix, i, j, stats->complex_values);
            nonzero += value != 0;
            min = fmin(min, value);
            max = fmax(max, value);
            sum += value;
            squares += value * value;
        }
    }
    assert_int_equal(stats->elements, rows * cols);
    assert_int_equal(stats->nonzero, nonzero);
    assert_int_equal(stats->nans + stats->infinities, 0);
    assert_close(stats->min, min);
    assert_close(stats->max, max);
    assert_close(stats->mean, sum / count);
    assert_close(stats->frobenius, sqrt(squares));
    assert_close(stats->std * stats->std, squares / count - sum * sum / count / count);
}

static void statistics_of_every_kind_are_those_of_its_values(void **state)
{
    (void)state;
    static const double scalars[][2] = { { 1, 0 }, { -2, 0 }, { 0.5, 1 } };
    const char *path = temp_path(temp_folder, "s.pycauset");
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        for (unsigned v = 0; v < 6; v++) {
            coffer_error err = COFFER_ERROR_INIT;
            coffer_pycauset_shape shape = test_matrix_kind(i, 70, 33);
            coffer_pycauset_summary stats;
            test_matrix matrix;
            opened file;
            shape.scalar_real = scalars[v / 2][0];
            shape.scalar_imag = scalars[v / 2][1];
            shape.transposed = shape.conjugated = v % 2;
            test_matrix_make(&matrix, &shape, i);
            test_matrix_write(&matrix, path, 70, NULL);
            open_file(&file, path, v % 2 ? COFFER_ACCESS_READ : COFFER_ACCESS_MAP);
            must(test_matrix_stats(&stats, file.m, NULL, &err), &err);
            check_stats(&matrix, &stats);
            close_file(&file);
            test_matrix_free(&matrix);
        }
    }
}

static void statistics_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    const char *path = temp_path(temp_folder, "t.pycauset");
    static const size_t kinds[] = { 0, 11, 12, 2 * 15 + 10, 4 * 15 + 11, 6 * 15 + 11 };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_pycauset_shape shape = test_matrix_kind(kinds[k], 1500, 1501);
        coffer_pycauset_summary stats[3];
        test_matrix matrix;
        opened file;
        shape.scalar_real = 1.1;
        test_matrix_make(&matrix, &shape, k);
        test_matrix_write(&matrix, path, 1500, NULL);
        open_file(&file, path, COFFER_ACCESS_AUTO);
        for (uint32_t t = 0; t < 3; t++) {
            coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
            opts.threads = 1 + 2 * t;
            memset(&stats[t], 0, sizeof stats[t]);
            must(test_matrix_stats(&stats[t], file.m, &opts, &err), &err);
            assert_true(stats[0].mean == stats[t].mean && stats[0].std == stats[t].std &&
                        stats[0].frobenius == stats[t].frobenius && stats[0].nonzero == stats[t].nonzero);
        }
        close_file(&file);
        test_matrix_free(&matrix);
    }
}

static void nans_and_infinities_are_counted_apart(void **state)
{
    (void)state;
    const double rows[6] = { NAN, 1, INFINITY, -INFINITY, 0, 3 };
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_pycauset_writer *writer;
    coffer_pycauset_summary stats;
    opened file;
    const char *path = temp_path(temp_folder, "n.pycauset");
    shape.rows = 2;
    shape.cols = 3;
    must(coffer_pycauset_writer_create(&writer, path, &shape, NULL, &err), &err);
    must(coffer_pycauset_writer_put_rows(writer, rows, 2, &err), &err);
    must(coffer_pycauset_writer_commit(writer, &err), &err);
    open_file(&file, path, COFFER_ACCESS_AUTO);
    must(test_matrix_stats(&stats, file.m, NULL, &err), &err);
    assert_true(stats.nans == 1 && stats.infinities == 2 && stats.nonzero == 5 && stats.elements == 6);
    assert_true(stats.min == 0 && stats.max == 3);
    assert_close(stats.mean, 4.0 / 3);
    close_file(&file);
}

static void an_empty_matrix_has_no_mean(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 0, 5);
    coffer_pycauset_summary stats;
    double cell = 7;
    test_matrix matrix;
    opened file;
    const char *path = temp_path(temp_folder, "e.pycauset");
    test_matrix_make(&matrix, &shape, 0);
    test_matrix_write(&matrix, path, 1, NULL);
    open_file(&file, path, COFFER_ACCESS_AUTO);
    must(test_matrix_stats(&stats, file.m, NULL, &err), &err);
    assert_true(stats.elements == 0 && stats.density == 0 && isnan(stats.mean) && isnan(stats.min));
    must(coffer_pycauset_downsample(&cell, 1, 1, file.m, NULL, &err), &err);
    assert_true(cell == 7);
    close_file(&file);
    test_matrix_free(&matrix);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(int *)context;
    return 1;
}

static void progress_can_stop_the_work(void **state)
{
    (void)state;
    int calls = 0;
    double cells[4];
    coffer_progress progress = { sizeof progress, stop, &calls };
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 1200, 1000);
    coffer_pycauset_summary stats;
    test_matrix matrix;
    opened file;
    const char *path = temp_path(temp_folder, "p.pycauset");
    opts.progress = &progress;
    opts.threads = 1;
    test_matrix_make(&matrix, &shape, 0);
    test_matrix_write(&matrix, path, 1200, NULL);
    open_file(&file, path, COFFER_ACCESS_AUTO);
    assert_int_equal(test_matrix_stats(&stats, file.m, &opts, &err), COFFER_E_CANCELLED);
    assert_int_equal(coffer_pycauset_downsample(cells, 2, 2, file.m, &opts, &err), COFFER_E_CANCELLED);
    assert_int_equal(calls, 2);
    close_file(&file);
    test_matrix_free(&matrix);
}

/* ---- Pictures ---- */

static void check_picture(const test_matrix *matrix, const double *cells, uint64_t grid_rows,
                          uint64_t grid_cols, bool magnitudes)
{
    uint64_t rows = test_matrix_seen_rows(matrix), cols = test_matrix_seen_cols(matrix);
    for (uint64_t i = 0; i < grid_rows; i++) {
        for (uint64_t j = 0; j < grid_cols; j++) {
            double sum = 0, count = 0;
            for (uint64_t r = i * rows / grid_rows; r < (i + 1) * rows / grid_rows; r++) {
                for (uint64_t c = j * cols / grid_cols; c < (j + 1) * cols / grid_cols; c++, count++)
                    sum += seen_number(matrix, r, c, magnitudes);
            }
            assert_close(cells[i * grid_cols + j], sum / count);
        }
    }
}

static void a_picture_has_the_means_of_even_cells(void **state)
{
    (void)state;
    static const uint64_t grids[][2] = { { 1, 1 }, { 7, 5 }, { 3, 64 }, { 1000, 1000 } };
    const char *path = temp_path(temp_folder, "d.pycauset");
    double *cells = malloc(1000 * 1000 * sizeof *cells);
    for (size_t i = 0; i < test_matrix_kinds(); i += 4) {
        for (size_t g = 0; g < 4; g++) {
            coffer_error err = COFFER_ERROR_INIT;
            coffer_pycauset_shape shape = test_matrix_kind(i, 61, 100);
            test_matrix matrix;
            opened file;
            shape.transposed = g % 2;
            shape.scalar_imag = g == 1;
            test_matrix_make(&matrix, &shape, i);
            test_matrix_write(&matrix, path, 61, NULL);
            open_file(&file, path, COFFER_ACCESS_AUTO);
            const coffer_pycauset_info *info = coffer_pycauset_get_info(file.m);
            must(coffer_pycauset_downsample(cells, grids[g][0], grids[g][1], file.m, NULL, &err), &err);
            check_picture(&matrix, cells, grids[g][0] < info->rows ? grids[g][0] : info->rows,
                          grids[g][1] < info->cols ? grids[g][1] : info->cols,
                          coffer_dtype_is_complex(info->value_dtype));
            close_file(&file);
            test_matrix_free(&matrix);
        }
    }
    free(cells);
}

static void wide_matrices_are_pictured_in_parts(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(10, 3, 200003);
    double cells[2 * 9];
    test_matrix matrix;
    opened file;
    const char *path = temp_path(temp_folder, "w.pycauset");
    test_matrix_make(&matrix, &shape, 5);
    test_matrix_write(&matrix, path, 3, NULL);
    open_file(&file, path, COFFER_ACCESS_READ);
    must(coffer_pycauset_downsample(cells, 2, 9, file.m, NULL, &err), &err);
    check_picture(&matrix, cells, 2, 9, false);
    close_file(&file);
    test_matrix_free(&matrix);
}

/* ---- Differences ---- */

static coffer_node *diff_files(const char *a, const char *b, const coffer_diff_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *out;
    coffer_source *of_a, *of_b;
    must(coffer_node_new(&out, &err), &err);
    must(coffer_source_open(&of_a, a, NULL, &err), &err);
    must(coffer_source_open(&of_b, b, NULL, &err), &err);
    must(coffer_diff(out, of_a, of_b, opts, &err), &err);
    coffer_source_close(of_a);
    coffer_source_close(of_b);
    return out;
}

static const coffer_node *find(const coffer_node *node, const char *a, const char *b)
{
    node = coffer_node_find(node, a);
    return b ? coffer_node_find(node, b) : node;
}

static void write_pair(const char *a, const char *b, test_matrix *matrix, const coffer_pycauset_shape *shape,
                       size_t at, double value)
{
    test_matrix_make(matrix, shape, 8);
    test_matrix_write(matrix, a, 100, NULL);
    if (at != SIZE_MAX)
        memcpy(matrix->rows + 8 * at, &value, 8);
    test_matrix_write(matrix, b, 100, NULL);
}

static void equal_files_are_equal(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(11, 300, 90);
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    test_matrix matrix;
    write_pair(a, b, &matrix, &shape, SIZE_MAX, 0);
    coffer_node *diff = diff_files(a, b, NULL);
    assert_true(coffer_node_get_bool(find(diff, "equal", NULL)));
    assert_int_equal(coffer_node_get_u64(find(diff, "values", "compared")), 300 * 90);
    assert_int_equal(coffer_node_count(find(diff, "differences", NULL)), 0);
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

static void a_difference_is_found_and_named(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(11, 300, 90);
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    test_matrix matrix;
    write_pair(a, b, &matrix, &shape, 200 * 90 + 7, 1000);
    coffer_node *diff = diff_files(a, b, NULL);
    assert_false(coffer_node_get_bool(find(diff, "equal", NULL)));
    const coffer_node *first = find(diff, "values", "first");
    assert_int_equal(coffer_node_get_u64(find(first, "row", NULL)), 200);
    assert_int_equal(coffer_node_get_u64(find(first, "col", NULL)), 7);
    assert_int_equal(coffer_node_get_u64(find(diff, "values", "differing")), 1);
    const coffer_node *shown = coffer_node_first(find(diff, "differences", NULL));
    assert_int_equal(coffer_node_get_u64(find(shown, "row", NULL)), 200);
    assert_true(coffer_node_get_f64(find(shown, "b", NULL)) == 1000);
    coffer_node_free(diff);
    opts.tolerance = 2000;
    diff = diff_files(a, b, &opts);
    assert_true(coffer_node_get_bool(find(diff, "equal", NULL)));
    assert_true(coffer_node_get_f64(find(diff, "values", "max_abs")) > 800);
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

static void the_number_of_listed_differences_is_limited(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(11, 100, 900);
    coffer_diff_opts opts = COFFER_DIFF_OPTS_INIT;
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, a, 100, NULL);
    test_matrix_free(&matrix);
    test_matrix_make(&matrix, &shape, 2);
    test_matrix_write(&matrix, b, 100, NULL);
    opts.max_shown = 5;
    coffer_node *diff = diff_files(a, b, &opts);
    assert_int_equal(coffer_node_count(find(diff, "differences", NULL)), 5);
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

static void values_are_compared_as_they_are_seen(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(4 * 15 + 11, 40, 40); /* symmetric: its own transpose */
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, a, 100, NULL);
    matrix.shape.transposed = true;
    test_matrix_write(&matrix, b, 100, NULL);
    coffer_node *diff = diff_files(a, b, NULL);
    assert_true(coffer_node_get_bool(find(diff, "equal", NULL)));
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

static void another_shape_or_type_is_a_difference(void **state)
{
    (void)state;
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    coffer_pycauset_shape shape = test_matrix_kind(8 * 15 + 11, 5, 5); /* identity of f64 */
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, a, 100, NULL);
    matrix.shape.dtype = COFFER_DTYPE_I8;
    test_matrix_write(&matrix, b, 100, NULL);
    coffer_node *diff = diff_files(a, b, NULL);
    assert_false(coffer_node_get_bool(find(diff, "equal", NULL)));
    assert_false(coffer_node_get_bool(find(diff, "type", "equal")));
    assert_int_equal(coffer_node_get_u64(find(diff, "values", "differing")), 0);
    coffer_node_free(diff);
    matrix.shape.rows = 6;
    test_matrix_write(&matrix, b, 100, NULL);
    diff = diff_files(a, b, NULL);
    assert_false(coffer_node_get_bool(find(diff, "shape", "equal")));
    assert_int_equal(coffer_node_get_kind(find(diff, "values", NULL)), COFFER_NODE_NULL);
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

static void metadata_is_compared_without_what_the_payload_implies(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 5, 5);
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_changes *changes;
    coffer_pycauset_editor *editor;
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, a, 5, NULL);
    opts.payload_uuid = "00112233445566778899aabbccddeeff";
    opts.checksums = true;
    test_matrix_write(&matrix, b, 5, &opts);
    coffer_node *diff = diff_files(a, b, NULL);
    assert_true(coffer_node_get_bool(find(diff, "equal", NULL)));
    coffer_node_free(diff);
    must(coffer_pycauset_changes_new(&changes, &err), &err);
    must(coffer_pycauset_changes_set_string(changes, "properties.label", "x", 1, &err), &err);
    must(coffer_pycauset_editor_open(&editor, b, NULL, &err), &err);
    must(coffer_pycauset_editor_commit(NULL, editor, changes, &err), &err);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    diff = diff_files(a, b, NULL);
    assert_false(coffer_node_get_bool(find(diff, "equal", NULL)));
    assert_int_equal(coffer_node_get_u64(find(diff, "metadata_differences", NULL)), 1);
    coffer_node_free(diff);
    test_matrix_free(&matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_of_every_kind_are_those_of_its_values),
        cmocka_unit_test(statistics_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(nans_and_infinities_are_counted_apart),
        cmocka_unit_test(an_empty_matrix_has_no_mean),
        cmocka_unit_test(progress_can_stop_the_work),
        cmocka_unit_test(a_picture_has_the_means_of_even_cells),
        cmocka_unit_test(wide_matrices_are_pictured_in_parts),
        cmocka_unit_test(equal_files_are_equal),
        cmocka_unit_test(a_difference_is_found_and_named),
        cmocka_unit_test(the_number_of_listed_differences_is_limited),
        cmocka_unit_test(values_are_compared_as_they_are_seen),
        cmocka_unit_test(another_shape_or_type_is_a_difference),
        cmocka_unit_test(metadata_is_compared_without_what_the_payload_implies),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
