/* Every allocation and every file operation of writing and reading matrices fails once. */
#include "support/fault.h"
#include "support/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scenario {
    size_t kind;
    bool exists;
    coffer_status (*act)(const char *folder, const struct scenario *of, coffer_error *err);
} scenario;

enum { ROWS = 20, COLS = 30 };

static coffer_status write_seed(const char *path, size_t kind, uint64_t seed, coffer_error *err)
{
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(kind, ROWS, COLS);
    coffer_pycauset_writer *writer = NULL;
    test_matrix matrix;
    opts.checksums = opts.overwrite = true;
    test_matrix_make(&matrix, &shape, seed);
    coffer_status status = coffer_pycauset_writer_create(&writer, path, &shape, &opts, err);
    if (status == COFFER_OK) {
        status = coffer_pycauset_writer_put_rows(writer, matrix.rows, shape.rows, err);
        if (status == COFFER_OK)
            status = coffer_pycauset_writer_commit(writer, err);
        else
            coffer_pycauset_writer_discard(writer);
    }
    test_matrix_free(&matrix);
    return status;
}

static void setup(const char *folder, void *context)
{
    const scenario *of = context;
    if (of->exists)
        assert_int_equal(write_seed(temp_path(folder, "m.pycauset"), of->kind, 1, NULL), COFFER_OK);
}

static coffer_status run(const char *folder, void *context, coffer_error *err)
{
    const scenario *of = context;
    return of->act(folder, of, err);
}

/* Which of the two matrices the file has; 0 without a file, −1 when it has another. */
static int which_is_there(const char *path, size_t kind)
{
    coffer_pycauset_shape shape = test_matrix_kind(kind, ROWS, COLS);
    size_t bytes = (size_t)(shape.rows * shape.cols) * 16;
    coffer_source *src;
    coffer_pycauset *m;
    int found = -1;
    if (!temp_exists(path))
        return 0;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_pycauset_open(&m, src, NULL, NULL) == COFFER_OK) {
        double *got = malloc(bytes);
        assert_int_equal(coffer_pycauset_read_rows(got, m, 0, shape.rows, COFFER_DTYPE_C128, NULL),
                         COFFER_OK);
        for (int seed = 1; seed <= 2; seed++) {
            test_matrix matrix;
            test_matrix_make(&matrix, &shape, (uint64_t)seed);
            if (memcmp(got, matrix.pairs, bytes) == 0)
                found = seed;
            test_matrix_free(&matrix);
        }
        free(got);
        coffer_pycauset_close(m);
    }
    coffer_source_close(src);
    return found;
}

static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static const char *old_or_new(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    int now = which_is_there(temp_path(folder, "m.pycauset"), of->kind);
    if (now != 2 && now != (of->exists ? 1 : 0))
        return "neither the old matrix nor the new one";
    if (which->status == COFFER_OK && now != 2)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "m.pycauset", NULL);
    return NULL;
}

static coffer_status create(const char *folder, const scenario *of, coffer_error *err)
{
    return write_seed(temp_path(folder, "m.pycauset"), of->kind, 2, err);
}

static void a_matrix_that_cannot_be_written_leaves_the_old_one(void **state)
{
    (void)state;
    static const size_t kinds[] = { 11, 12, 2 * 15, 6 * 15 };
    for (size_t i = 0; i < 8; i++) {
        scenario of = { kinds[i / 2], i % 2, create };
        fault_test test = { setup, run, old_or_new, &of };
        fault_each(&test);
    }
}

/* ---- Reading ---- */

static coffer_status read_all(const char *folder, const scenario *of, coffer_error *err)
{
    coffer_source_opts source_opts = COFFER_SOURCE_OPTS_INIT;
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_check_opts check_opts = COFFER_CHECK_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_pycauset *m = NULL;
    coffer_report *report = NULL;
    coffer_node *node = NULL;
    coffer_pycauset_summary stats;
    double *got = malloc(ROWS * COLS * 16), cells[4];
    coffer_status status;
    (void)of;
    source_opts.access = COFFER_ACCESS_READ;
    check_opts.full = true;
    check_opts.threads = opts.threads = 1;
    if ((status = coffer_source_open(&src, temp_path(folder, "m.pycauset"), &source_opts, err)) ||
        (status = coffer_pycauset_open(&m, src, NULL, err)) ||
        (status = coffer_pycauset_read_rows(got, m, 0, ROWS, COFFER_DTYPE_C128, err)) ||
        (status = test_matrix_stats(&stats, m, &opts, err)) ||
        (status = coffer_pycauset_downsample(cells, 2, 2, m, &opts, err)) ||
        (status = coffer_report_new(&report, 0, err)) ||
        (status = coffer_check(report, src, &check_opts, err)) || (status = coffer_node_new(&node, err)))
        goto out;
    coffer_diff_opts diff_opts = COFFER_DIFF_OPTS_INIT;
    diff_opts.threads = 1;
    status = coffer_diff(node, src, src, &diff_opts, err);
out:
    coffer_node_free(node);
    coffer_report_free(report);
    coffer_pycauset_close(m);
    coffer_source_close(src);
    free(got);
    return status;
}

static const char *nothing_changed(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    (void)which;
    if (which_is_there(temp_path(folder, "m.pycauset"), of->kind) != 1)
        return "the file is not what it was";
    temp_assert_no_litter(folder, "m.pycauset", NULL);
    return NULL;
}

static void reading_fails_cleanly(void **state)
{
    (void)state;
    static const size_t kinds[] = { 11, 12, 4 * 15 + 11 };
    for (size_t i = 0; i < 3; i++) {
        scenario of = { kinds[i], true, read_all };
        fault_test test = { setup, run, nothing_changed, &of };
        fault_each(&test);
    }
}

/* ---- Block matrices ---- */

static void child_paths(char paths[2][300], const char *folder)
{
    for (int i = 0; i < 2; i++)
        snprintf(paths[i], sizeof paths[i], "%s/child%d", folder, i);
}

static void setup_blocks(const char *folder, void *context)
{
    const scenario *of = context;
    char paths[2][300];
    child_paths(paths, folder);
    for (int i = 0; i < 2; i++)
        assert_int_equal(write_seed(paths[i], of->kind, (uint64_t)i + 1, NULL), COFFER_OK);
    if (of->exists) {
        const char *children[1] = { paths[0] };
        assert_int_equal(coffer_pycauset_write_blocks(temp_path(folder, "m.pycauset"), children, 1, 1, NULL,
                                                      NULL),
                         COFFER_OK);
    }
}

static coffer_status create_blocks(const char *folder, const scenario *of, coffer_error *err)
{
    char paths[2][300];
    (void)of;
    child_paths(paths, folder);
    const char *children[2] = { paths[0], paths[1] };
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    opts.overwrite = true;
    return coffer_pycauset_write_blocks(temp_path(folder, "m.pycauset"), children, 1, 2, &opts, err);
}

/* Number of columns of a matrix that can be read completely; 0 without a file, −1 when it cannot be read. */
static int64_t columns_of(const char *path)
{
    coffer_source *src;
    coffer_pycauset *m;
    int64_t columns = -1;
    if (!temp_exists(path))
        return 0;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    if (coffer_pycauset_open(&m, src, NULL, NULL) == COFFER_OK) {
        double *got = malloc(ROWS * COLS * 2 * 16);
        if (coffer_pycauset_read_rows(got, m, 0, ROWS, COFFER_DTYPE_C128, NULL) == COFFER_OK)
            columns = (int64_t)coffer_pycauset_get_info(m)->cols;
        free(got);
        coffer_pycauset_close(m);
    }
    coffer_source_close(src);
    return columns;
}

static const char *old_or_new_blocks(const char *folder, void *context, const fault_case *which)
{
    const scenario *of = context;
    int64_t columns = columns_of(temp_path(folder, "m.pycauset"));
    if (columns != 2 * COLS && columns != (of->exists ? COLS : 0))
        return "neither the old block matrix nor the new one";
    if (which->status == COFFER_OK && columns != 2 * COLS)
        return "reported as done, and is not";
    if (!may_litter(which) && columns == 0)
        temp_assert_no_litter(folder, "child0", "child1", NULL);
    return NULL;
}

static void a_block_matrix_that_cannot_be_written_leaves_the_old_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        scenario of = { 11, i == 1, create_blocks };
        fault_test test = { setup_blocks, run, old_or_new_blocks, &of };
        fault_each(&test);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_that_cannot_be_written_leaves_the_old_one),
        cmocka_unit_test(reading_fails_cleanly),
        cmocka_unit_test(a_block_matrix_that_cannot_be_written_leaves_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
