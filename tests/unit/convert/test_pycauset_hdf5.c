/* HDF5 files that h5py wrote, harmless and other ones. */
#include "support/conversion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES COFFER_TEST_DATA "/hdf5/"

static void take(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", FILES, name);
    temp_copy(path, temp_path(temp_folder, "in.h5"));
}

/* Asks the library, for the tests do not see how it was built. */
static bool built_with_hdf5(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    void *state = NULL;
    temp_setup(&state);
    take("truth.h5");
    coffer_status status = matrix_convert(&err, "in.h5", "probe.pycauset", NULL);
    temp_teardown(&state);
    return status != COFFER_E_UNSUPPORTED;
}

static void what_h5py_writes_is_read(void **state)
{
    (void)state;
    coffer_pycauset_info info;
    double expected[600];
    for (size_t i = 0; i < 600; i++)
        expected[i] = (double)i;
    take("compressed.h5");
    matrix_must_convert("in.h5", "m.pycauset", NULL);
    matrix_assert_values("m.pycauset", 30, 20, expected);
    free(matrix_values(&info, "m.pycauset"));
    assert_int_equal(info.dtype, COFFER_DTYPE_I16);
    take("truth.h5");
    matrix_must_convert("in.h5", "m.pycauset", NULL);
    matrix_assert_values("m.pycauset", 2, 2, (double[]){ 1, 0, 0, 1 });
    free(matrix_values(&info, "m.pycauset"));
    assert_int_equal(info.dtype, COFFER_DTYPE_BIT);
    take("complex.h5");
    matrix_must_convert("in.h5", "m.pycauset", NULL);
    double *values = matrix_values(&info, "m.pycauset");
    assert_int_equal(info.dtype, COFFER_DTYPE_C64);
    assert_true(values[0] == 1 && values[1] == 2 && values[2] == 3 && values[3] == -4);
    free(values);
}

static void a_dataset_is_chosen_by_its_name(void **state)
{
    (void)state;
    take("two-datasets.h5");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "choose one with --dataset: a, b/x", "in.h5", "x.pycauset",
                       NULL);
    matrix_must_convert("in.h5", "m.pycauset", "dataset", "b/x", NULL);
    matrix_assert_values("m.pycauset", 2, 3, (double[]){ 0, 1, 2, 3, 4, 5 });
    matrix_must_convert("in.h5", "m.pycauset", "dataset", "/a", NULL);
    matrix_assert_values("m.pycauset", 3, 1, (double[]){ 0, 1, 2 });
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "does not contain numbers", "in.h5", "x.pycauset", "dataset",
                       "text", NULL);
    matrix_must_refuse(COFFER_E_NOT_FOUND, "\"b\"", "in.h5", "x.pycauset", "dataset", "b", NULL);
}

static void what_no_matrix_holds_says_what_to_do(void **state)
{
    (void)state;
    take("three-dimensions.h5");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "--slice selects a matrix by 1 index", "in.h5",
                       "x.pycauset", NULL);
    matrix_must_convert("in.h5", "m.pycauset", "slice", "0", NULL);
    take("long-double.h5");
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "--dtype f64 rounds them", "in.h5", "x.pycauset", NULL);
    matrix_must_convert("in.h5", "m.pycauset", "dtype", "f64", NULL);
    matrix_assert_values("m.pycauset", 1, 2, (double[]){ 1.5, 2 });
}

static void no_link_leads_out_of_the_file(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    shape.rows = 2;
    shape.cols = 3;
    matrix_make("m.pycauset", &shape);
    matrix_must_convert("m.pycauset", "secret.h5", NULL);
    matrix_must_convert("m.pycauset", "secret.raw", NULL);
    assert_int_equal(chdir(temp_folder), 0);
    take("external-link.h5");
    matrix_must_refuse(COFFER_E_NOT_FOUND, "elsewhere", "in.h5", "x.pycauset", "dataset", "elsewhere", NULL);
    matrix_must_refuse(COFFER_E_MISSING, "no dataset", "in.h5", "x.pycauset", NULL);
    take("external-storage.h5");
    matrix_must_refuse(COFFER_E_UNSAFE_PATH, "in external files", "in.h5", "x.pycauset", NULL);
    take("virtual.h5");
    matrix_must_refuse(COFFER_E_UNSAFE_PATH, "in external files", "in.h5", "x.pycauset", NULL);
    assert_int_equal(chdir(before), 0);
    free(before);
    temp_assert_only(temp_folder, "m.pycauset", "secret.h5", "secret.raw", "in.h5", NULL);
}

static void what_is_declared_but_not_there_is_refused(void **state)
{
    (void)state;
    take("all-but-empty.h5");
    matrix_must_refuse(COFFER_E_LIMIT, "--dense", "in.h5", "x.pycauset", NULL);
    take("huge-chunks.h5");
    matrix_must_refuse(COFFER_E_LIMIT, "chunks of 1024 × 262144", "in.h5", "x.pycauset", NULL);
    take("soft-link-loop.h5");
    matrix_must_refuse(COFFER_E_NOT_FOUND, "too many links", "in.h5", "x.pycauset", "dataset", "a", NULL);
}

static void every_prefix_of_a_file_is_refused(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = temp_read(FILES "complex.h5", &len);
    for (size_t cut = 8; cut < len; cut += 7) {
        coffer_error err = COFFER_ERROR_INIT;
        temp_write(temp_path(temp_folder, "in.h5"), bytes, cut);
        assert_int_not_equal(matrix_convert(&err, "in.h5", "x.pycauset", NULL), COFFER_OK);
        assert_true(err.text[0] != '\0');
    }
    free(bytes);
    temp_assert_only(temp_folder, "in.h5", NULL);
}

static void hdf5_does_not_go_to_a_stream(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    shape.rows = shape.cols = 2;
    matrix_make("m.pycauset", &shape);
    opts.to = "hdf5";
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "m.pycauset"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, "-", &opts, NULL), COFFER_E_UNSUPPORTED);
    coffer_source_close(src);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_h5py_writes_is_read),
        TEST(a_dataset_is_chosen_by_its_name),
        TEST(what_no_matrix_holds_says_what_to_do),
        TEST(no_link_leads_out_of_the_file),
        TEST(what_is_declared_but_not_there_is_refused),
        TEST(every_prefix_of_a_file_is_refused),
        TEST(hdf5_does_not_go_to_a_stream),
    };
    if (!built_with_hdf5()) {
        puts("the library was built without libhdf5");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
