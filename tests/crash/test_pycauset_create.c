/* A crash while a matrix is created or replaced leaves the old one, the new one, or none. */
#include "support/crash.h"
#include "support/matrix.h"

#include <stdlib.h>
#include <string.h>

struct creation {
    size_t kind;
    uint64_t rows, cols;
    bool replaces;
};

static void write_matrix(const char *folder, const struct creation *of, uint64_t seed)
{
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(of->kind, of->rows, of->cols);
    test_matrix matrix;
    opts.checksums = true;
    test_matrix_make(&matrix, &shape, seed);
    test_matrix_write(&matrix, temp_path(folder, "m.pycauset"), 3, &opts);
    test_matrix_free(&matrix);
}

static void write_old(const char *folder, void *context)
{
    write_matrix(folder, context, 1);
}

static void write_new(const char *folder, void *context)
{
    write_matrix(folder, context, 2);
}

static bool holds(const coffer_pycauset *m, const struct creation *of, uint64_t seed)
{
    coffer_pycauset_shape shape = test_matrix_kind(of->kind, of->rows, of->cols);
    size_t count = (size_t)(shape.rows * shape.cols);
    double *got = malloc(count * 16);
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, seed);
    bool same = coffer_pycauset_read_rows(got, m, 0, shape.rows, COFFER_DTYPE_C128, NULL) == COFFER_OK &&
                memcmp(got, matrix.pairs, count * 16) == 0;
    test_matrix_free(&matrix);
    free(got);
    return same;
}

static bool is_clean(coffer_source *src)
{
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report;
    opts.full = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    bool clean = coffer_check(report, src, &opts, NULL) == COFFER_OK &&
                 coffer_report_total(report, COFFER_ERROR) + coffer_report_total(report, COFFER_WARNING) == 0;
    coffer_report_free(report);
    return clean;
}

static const char *old_or_new(const char *folder, void *context, bool finished)
{
    const struct creation *of = context;
    const char *path = temp_path(folder, "m.pycauset"), *wrong = NULL;
    coffer_source *src = NULL;
    coffer_pycauset *m = NULL;
    if (!temp_exists(path))
        return finished || of->replaces ? "the file is missing" : NULL;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_pycauset_open(&m, src, NULL, NULL) != COFFER_OK)
        wrong = "it does not open";
    else if (!is_clean(src))
        wrong = "check finds something";
    else if (!holds(m, of, 2) && (finished || !of->replaces || !holds(m, of, 1)))
        wrong = "neither the old matrix nor the new one";
    coffer_pycauset_close(m);
    coffer_source_close(src);
    return wrong;
}

static void a_new_matrix_is_complete_or_not_there(void **state)
{
    (void)state;
    struct creation of = { 11, 8, 9, false };
    crash_test test = { NULL, write_new, old_or_new, &of };
    assert_true(crash_enumerate(&test) > 10);
}

static void a_matrix_that_is_replaced_is_old_or_new(void **state)
{
    (void)state;
    struct creation of = { 12, 7, 20, true }; /* the planes of COMPLEX_FLOAT16 come from a second file */
    crash_test test = { write_old, write_new, old_or_new, &of };
    assert_true(crash_enumerate(&test) > 10);
}

static void a_triangle_of_bits_that_is_replaced_is_old_or_new(void **state)
{
    (void)state;
    struct creation of = { 6 * 15, 40, 40, true };
    crash_test test = { write_old, write_new, old_or_new, &of };
    assert_true(crash_enumerate(&test) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_matrix_is_complete_or_not_there),
        cmocka_unit_test(a_matrix_that_is_replaced_is_old_or_new),
        cmocka_unit_test(a_triangle_of_bits_that_is_replaced_is_old_or_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
