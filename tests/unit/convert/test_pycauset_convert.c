/* Matrices there and back: every type, layout and kind of file. */
#include "support/archive.h"
#include "support/conversion.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS COFFER_TEST_DATA "/vectors/pycauset/"

static const coffer_dtype all_dtypes[] = { COFFER_DTYPE_BIT, COFFER_DTYPE_I8,  COFFER_DTYPE_I16,
                                           COFFER_DTYPE_I32, COFFER_DTYPE_I64, COFFER_DTYPE_U8,
                                           COFFER_DTYPE_U16, COFFER_DTYPE_U32, COFFER_DTYPE_U64,
                                           COFFER_DTYPE_F16, COFFER_DTYPE_F32, COFFER_DTYPE_F64,
                                           COFFER_DTYPE_C32, COFFER_DTYPE_C64, COFFER_DTYPE_C128 };

#define DTYPES (sizeof all_dtypes / sizeof *all_dtypes)

static bool has_sign(coffer_dtype dtype)
{
    return dtype != COFFER_DTYPE_BIT && dtype != COFFER_DTYPE_U8 && dtype != COFFER_DTYPE_U16 &&
           dtype != COFFER_DTYPE_U32 && dtype != COFFER_DTYPE_U64;
}

typedef struct layout {
    const char *name; /* of the setting that makes one */
    coffer_pycauset_type for_reals, for_integers;
    bool has_diagonal;
    uint64_t rows, cols;
} layout;

static const layout layouts[] = {
    { "dense", COFFER_PYCAUSET_DENSE_FLOAT, COFFER_PYCAUSET_INTEGER, false, 7, 70 },
    { "vector", COFFER_PYCAUSET_VECTOR, COFFER_PYCAUSET_VECTOR, false, 131, 1 },
    { "triangular", COFFER_PYCAUSET_TRIANGULAR_FLOAT, COFFER_PYCAUSET_TRIANGULAR_INTEGER, false, 67, 67 },
    { "triangular", COFFER_PYCAUSET_TRIANGULAR_FLOAT, COFFER_PYCAUSET_TRIANGULAR_INTEGER, true, 67, 67 },
    { "symmetric", COFFER_PYCAUSET_SYMMETRIC, COFFER_PYCAUSET_SYMMETRIC, false, 19, 19 },
    { "antisymmetric", COFFER_PYCAUSET_ANTISYMMETRIC, COFFER_PYCAUSET_ANTISYMMETRIC, false, 19, 19 },
    { "causal", COFFER_PYCAUSET_CAUSAL, COFFER_PYCAUSET_CAUSAL, false, 80, 80 },
};

/* False for an unknown matrix. */
static bool shape_of(coffer_pycauset_shape *out, const layout *of, coffer_dtype dtype)
{
    *out = (coffer_pycauset_shape)COFFER_PYCAUSET_SHAPE_INIT;
    out->type = coffer_dtype_is_integer(dtype) ? of->for_integers : of->for_reals;
    out->dtype = dtype;
    out->rows = of->rows;
    out->cols = of->cols;
    out->has_diagonal = of->has_diagonal;
    if (out->type == COFFER_PYCAUSET_CAUSAL && dtype != COFFER_DTYPE_BIT)
        return false;
    return out->type != COFFER_PYCAUSET_ANTISYMMETRIC || has_sign(dtype);
}

static void every_matrix_survives(const char *kind, bool holds_complex)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        for (size_t j = 0; j < DTYPES; j++) {
            coffer_pycauset_shape shape;
            coffer_pycauset_info before, after;
            char there[32];
            if (!shape_of(&shape, &layouts[i], all_dtypes[j]) ||
                (coffer_dtype_is_complex(shape.dtype) && !holds_complex))
                continue;
            snprintf(there, sizeof there, "m.%s", kind);
            matrix_make("before.pycauset", &shape);
            coffer_error err = COFFER_ERROR_INIT;
            coffer_status status = matrix_convert(&err, "before.pycauset", there, NULL);
            if (!status)
                status = matrix_convert(&err, there, "after.pycauset", "dtype",
                                        coffer_dtype_name(shape.dtype), "type", layouts[i].name,
                                        layouts[i].has_diagonal ? "diagonal" : NULL, NULL, NULL);
            if (status)
                fail_msg("%s, %s, %s: %s", kind, layouts[i].name, coffer_dtype_name(shape.dtype), err.text);
            matrix_assert_same("before.pycauset", "after.pycauset");
            free(matrix_values(&before, "before.pycauset"));
            free(matrix_values(&after, "after.pycauset"));
            assert_int_equal(before.type, after.type);
            assert_int_equal(before.dtype, after.dtype);
            assert_int_equal(before.has_diagonal, after.has_diagonal);
        }
    }
}

static void every_matrix_survives_npy(void **state)
{
    (void)state;
    every_matrix_survives("npy", true);
}

static void every_matrix_survives_matrix_market(void **state)
{
    (void)state;
    every_matrix_survives("mtx", true);
}

static void every_matrix_survives_csv(void **state)
{
    (void)state;
    every_matrix_survives("csv", false);
}

static bool has_hdf5(void)
{
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    shape.rows = shape.cols = 2;
    matrix_make("probe.pycauset", &shape);
    coffer_status status = matrix_convert(&err, "probe.pycauset", "probe.h5", NULL);
    assert_true(status == COFFER_OK || status == COFFER_E_UNSUPPORTED);
    return status == COFFER_OK;
}

static void every_matrix_survives_hdf5(void **state)
{
    (void)state;
    if (has_hdf5())
        every_matrix_survives("h5", true);
}

static void every_dense_matrix_survives_raw(void **state)
{
    (void)state;
    for (size_t j = 0; j < DTYPES; j++) {
        coffer_pycauset_shape shape;
        assert_true(shape_of(&shape, &layouts[0], all_dtypes[j]));
        matrix_make("before.pycauset", &shape);
        matrix_must_convert("before.pycauset", "m.raw", NULL);
        matrix_must_convert("m.raw", "after.pycauset", "dtype", coffer_dtype_name(shape.dtype), "cols", "70",
                            NULL);
        matrix_assert_same("before.pycauset", "after.pycauset");
    }
}

static void matrices_without_a_payload_become_values(void **state)
{
    (void)state;
    static const char *const kinds[] = { "npy", "mtx", "csv" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
        char there[16];
        snprintf(there, sizeof there, "m.%s", kinds[i]);
        shape.type = COFFER_PYCAUSET_IDENTITY;
        shape.rows = shape.cols = 3;
        matrix_make("before.pycauset", &shape);
        matrix_must_convert("before.pycauset", there, NULL);
        if (strcmp(kinds[i], "mtx") == 0)
            matrix_must_convert(there, "after.pycauset", "dense", NULL, NULL);
        else
            matrix_must_convert(there, "after.pycauset", NULL);
        matrix_assert_values("after.pycauset", 3, 3, (double[]){ 1, 0, 0, 0, 1, 0, 0, 0, 1 });
        shape.type = COFFER_PYCAUSET_UNIT_VECTOR;
        shape.cols = 1;
        shape.unit_index = 2;
        matrix_make("before.pycauset", &shape);
        matrix_must_convert("before.pycauset", there, NULL);
        matrix_must_convert(there, "after.pycauset", NULL);
        matrix_assert_values("after.pycauset", 3, 1, (double[]){ 0, 0, 1 });
    }
}

/* ---- The view ---- */

static void the_view_is_applied_unless_the_stored_values_are_asked_for(void **state)
{
    (void)state;
    temp_copy(VECTORS "transposed.pycauset", temp_path(temp_folder, "m.pycauset"));
    matrix_must_convert("m.pycauset", "m.csv", NULL);
    assert_true(temp_holds(temp_path(temp_folder, "m.csv"), "2.0,8.0\n4.0,10.0\n6.0,12.0\n", 26));
    matrix_must_convert("m.pycauset", "m.csv", "stored", NULL, NULL);
    size_t len;
    char *text = (char *)temp_read(temp_path(temp_folder, "m.csv"), &len);
    assert_string_equal(text, "1.0,2.0,3.0\n4.0,5.0,6.0\n");
    free(text);
    matrix_must_convert("m.pycauset", "m.mtx", NULL);
    text = (char *)temp_read(temp_path(temp_folder, "m.mtx"), &len);
    assert_string_equal(text,
                        "%%MatrixMarket matrix array real general\n3 2\n2.0\n4.0\n6.0\n8.0\n10.0\n12.0\n");
    free(text);
}

static void a_part_of_the_rows_and_columns_is_written(void **state)
{
    (void)state;
    temp_copy(VECTORS "dense-int8.pycauset", temp_path(temp_folder, "m.pycauset"));
    matrix_must_convert("m.pycauset", "m.csv", "rows", "1..3", "cols", "2", NULL);
    assert_true(temp_holds(temp_path(temp_folder, "m.csv"), "-1\n2\n", 5));
    matrix_must_convert("m.pycauset", "m.csv", "rows", "3..", "header", NULL, "delimiter", "tab", NULL);
    assert_true(temp_holds(temp_path(temp_folder, "m.csv"), "c0\tc1\tc2\n3\t4\t5\n", 15));
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "the matrix has 4", "m.pycauset", "n.csv", "rows", "2..5",
                       NULL);
    matrix_must_convert("m.pycauset", "m.mtx", "rows", "1..3", "layout", "coordinate", NULL);
    char *text = (char *)temp_read(temp_path(temp_folder, "m.mtx"), NULL);
    assert_string_equal(text, "%%MatrixMarket matrix coordinate integer general\n2 3 5\n"
                              "1 1 -3\n1 2 -2\n1 3 -1\n2 2 1\n2 3 2\n");
    free(text);
}

/* ---- Types ---- */

static void expect_header(const char *name, const char *descr, const char *shape)
{
    size_t len;
    char *text = (char *)temp_read(temp_path(temp_folder, name), &len);
    text[80] = '\0';
    if (!strstr(text + 10, descr) || !strstr(text + 10, shape))
        fail_msg("%s has the header %s, expected %s and %s", name, text + 10, descr, shape);
    free(text);
}

static void numpy_gets_the_types_it_has(void **state)
{
    (void)state;
    static const struct {
        const char *file, *descr, *shape;
    } cases[] = {
        { "dense-bit", "'|b1'", "" },           { "dense-int8", "'|i1'", "(4, 3)" },
        { "dense-uint64", "'<u8'", "(4, 3)" },  { "dense-float16", "'<f2'", "(4, 3)" },
        { "dense-float32", "'<f4'", "(4, 3)" }, { "complex-f64", "'<c16'", "(2, 2)" },
        { "complex-f16", "'<c8'", "(2, 2)" },   { "vector-f32", "'<f4'", "(4,)" },
        { "transposed", "'<f8'", "(3, 2)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s%s.pycauset", VECTORS, cases[i].file);
        temp_copy(path, temp_path(temp_folder, "m.pycauset"));
        matrix_must_convert("m.pycauset", "m.npy", NULL);
        expect_header("m.npy", cases[i].descr, cases[i].shape);
    }
    temp_copy(VECTORS "dense-int8.pycauset", temp_path(temp_folder, "m.pycauset"));
    matrix_must_convert("m.pycauset", "m.npy", "dtype", "f32", NULL);
    expect_header("m.npy", "'<f4'", "(4, 3)");
}

static void a_type_that_a_file_cannot_hold_is_an_error_with_the_nearest_option(void **state)
{
    (void)state;
    temp_copy(VECTORS "complex-f16.pycauset", temp_path(temp_folder, "c.pycauset"));
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "--part real, imag or abs", "c.pycauset", "m.csv", NULL);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "--part real, imag or abs", "c.pycauset", "m.npy", "dtype",
                       "f64", NULL);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "--dtype c64", "c.pycauset", "m.npy", "dtype", "c32", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "must be one of bit, i8", "c.pycauset", "m.npy", "dtype",
                       "float7", NULL);
    matrix_must_convert("c.pycauset", "m.csv", "part", "imag", NULL);
    assert_true(temp_holds(temp_path(temp_folder, "m.csv"), "10.0,11.0\n12.0,13.0\n", 20));
    matrix_must_convert("c.pycauset", "m.csv", "part", "real", "dtype", "i8", NULL);
    assert_true(temp_holds(temp_path(temp_folder, "m.csv"), "0,1\n2,3\n", 8));
    temp_copy(VECTORS "dense-f64.pycauset", temp_path(temp_folder, "f.pycauset"));
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "row 0, column 0", "f.pycauset", "m.npy", "dtype", "i32",
                       NULL);
    temp_copy(VECTORS "dense-int8.pycauset", temp_path(temp_folder, "i.pycauset"));
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "row 0, column 0: -6 does not fit u8; use --dtype i8",
                       "i.pycauset", "m.npy", "dtype", "u8", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "does not fit a bit", "i.pycauset", "m.npy", "dtype", "bit",
                       NULL);
}

static void integers_of_64_bits_keep_every_digit(void **state)
{
    (void)state;
    static const char text[] = "18446744073709551615,9007199254740993\n0,1\n";
    static const char negative[] = "-9223372036854775808,9223372036854775807\n-9007199254740993,1\n";
    temp_write(temp_path(temp_folder, "u.csv"), text, sizeof text - 1);
    temp_write(temp_path(temp_folder, "i.csv"), negative, sizeof negative - 1);
    static const char *const kinds[] = { "npy", "mtx", "csv" };
    for (size_t i = 0; i < 3; i++) {
        char there[16];
        snprintf(there, sizeof there, "there.%s", kinds[i]);
        matrix_must_convert("u.csv", "m.pycauset", NULL);
        matrix_must_convert("m.pycauset", there, NULL);
        matrix_must_convert(there, "m.pycauset", "dtype", "u64", NULL);
        matrix_must_convert("m.pycauset", "back.csv", NULL);
        assert_true(temp_holds(temp_path(temp_folder, "back.csv"), text, sizeof text - 1));
        matrix_must_convert("i.csv", "m.pycauset", NULL);
        matrix_must_convert("m.pycauset", there, NULL);
        matrix_must_convert(there, "m.pycauset", NULL);
        matrix_must_convert("m.pycauset", "back.csv", NULL);
        assert_true(temp_holds(temp_path(temp_folder, "back.csv"), negative, sizeof negative - 1));
    }
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "--dtype u64", "u.csv", "x.pycauset", "dtype", "i64", NULL);
}

static void real_numbers_come_back_bit_for_bit(void **state)
{
    (void)state;
    double values[256];
    uint64_t bits = 88172645463325252u;
    for (size_t i = 0; i < 256; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&values[i], &bits, sizeof bits);
        if (values[i] != values[i])
            values[i] = -0.0;
    }
    temp_write(temp_path(temp_folder, "in.raw"), values, sizeof values);
    matrix_must_convert("in.raw", "m.pycauset", "dtype", "f64", "cols", "16", NULL);
    static const char *const kinds[] = { "npy", "mtx", "csv" };
    for (size_t i = 0; i < 3; i++) {
        char there[16];
        snprintf(there, sizeof there, "there.%s", kinds[i]);
        matrix_must_convert("m.pycauset", there, NULL);
        matrix_must_convert(there, "back.pycauset", NULL);
        matrix_must_convert("back.pycauset", "back.raw", NULL);
        assert_true(temp_holds(temp_path(temp_folder, "back.raw"), values, sizeof values));
    }
}

/* ---- Metadata ---- */

static void metadata_travels_as_json(void **state)
{
    (void)state;
    temp_copy(VECTORS "updated-once.pycauset", temp_path(temp_folder, "m.pycauset"));
    matrix_must_convert("m.pycauset", "m.npy", "metadata", temp_path(temp_folder, "m.json"), NULL);
    static const char json[] =
        "{\"properties\": {\"label\": \"a.b\", \"n\": -3, \"x\": 1.0, \"list\": [1, true]}, "
        "\"rows\": 99, \"my.key\": {\"deep\": 18446744073709551615}}";
    temp_write(temp_path(temp_folder, "in.json"), json, sizeof json - 1);
    matrix_must_convert("m.npy", "back.pycauset", "metadata", temp_path(temp_folder, "in.json"), NULL);
    coffer_source *src = NULL;
    coffer_pycauset *matrix = NULL;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "back.pycauset"), NULL, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_pycauset_open(&matrix, src, NULL, NULL), COFFER_OK);
    const coffer_pycauset_value *root = coffer_pycauset_metadata(matrix);
    assert_int_equal(coffer_pycauset_get_info(matrix)->rows, 3);
    assert_string_equal(
        coffer_pycauset_value_text(coffer_pycauset_value_find(root, "properties.label"), NULL), "a.b");
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(root, "properties.n")), -3);
    assert_int_equal(coffer_pycauset_value_kind(coffer_pycauset_value_find(root, "properties.x")),
                     COFFER_PYCAUSET_F64);
    assert_true(coffer_pycauset_value_u64(coffer_pycauset_value_find(root, "my\\.key.deep")) == UINT64_MAX);
    coffer_pycauset_close(matrix);
    coffer_source_close(src);
    matrix_must_convert("back.pycauset", "again.npy", "metadata", temp_path(temp_folder, "out.json"), NULL);
    char *text = (char *)temp_read(temp_path(temp_folder, "out.json"), NULL);
    assert_non_null(strstr(text, "18446744073709551615"));
    assert_non_null(strstr(text, "\"label\": \"a.b\""));
    free(text);
    temp_write(temp_path(temp_folder, "bad.json"), "[1]", 3);
    matrix_must_refuse(COFFER_E_BAD_JSON, "bad.json: metadata is an object", "m.npy", "x.pycauset",
                       "metadata", temp_path(temp_folder, "bad.json"), NULL);
}

static void properties_and_attributes_are_the_same_thing(void **state)
{
    (void)state;
    static const char json[] = "{\"properties\": {\"label\": \"ä\", \"n\": -3, \"big\": "
                               "18446744073709551615, \"x\": 0.5, \"yes\": true}}";
    if (!has_hdf5())
        return;
    temp_write(temp_path(temp_folder, "in.json"), json, sizeof json - 1);
    temp_write(temp_path(temp_folder, "m.csv"), "1,2\n3,4\n", 8);
    matrix_must_convert("m.csv", "m.pycauset", "metadata", temp_path(temp_folder, "in.json"), NULL);
    matrix_must_convert("m.pycauset", "m.h5", "dataset", "deep/down", NULL);
    matrix_must_convert("m.h5", "back.pycauset", NULL);
    matrix_must_convert("back.pycauset", "m.csv", "metadata", temp_path(temp_folder, "out.json"), NULL);
    char *text = (char *)temp_read(temp_path(temp_folder, "out.json"), NULL);
    static const char *const expected[] = { "\"label\": \"ä\"", "\"n\": -3", "\"big\": 18446744073709551615",
                                            "\"x\": 0.5", "\"yes\": true" };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (!strstr(text, expected[i]))
            fail_msg("%s is not in %s", expected[i], text);
    }
    free(text);
    matrix_must_refuse(COFFER_E_NOT_FOUND, "\"nowhere\"", "m.h5", "x.pycauset", "dataset", "nowhere", NULL);
}

static void the_same_matrix_gives_the_same_bytes(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    shape.rows = shape.cols = 5;
    matrix_make("m.pycauset", &shape);
    static const char *const kinds[] = { "npy", "mtx", "csv", "h5" };
    for (size_t i = 0; i < (has_hdf5() ? 4 : 3); i++) {
        char first[16], second[16];
        size_t len;
        snprintf(first, sizeof first, "a.%s", kinds[i]);
        snprintf(second, sizeof second, "b.%s", kinds[i]);
        matrix_must_convert("m.pycauset", first, NULL);
        matrix_must_convert("m.pycauset", second, NULL);
        uint8_t *bytes = temp_read(temp_path(temp_folder, first), &len);
        assert_true(temp_holds(temp_path(temp_folder, second), bytes, len));
        free(bytes);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_matrix_survives_npy),
        TEST(every_matrix_survives_matrix_market),
        TEST(every_matrix_survives_csv),
        TEST(every_matrix_survives_hdf5),
        TEST(every_dense_matrix_survives_raw),
        TEST(matrices_without_a_payload_become_values),
        TEST(the_view_is_applied_unless_the_stored_values_are_asked_for),
        TEST(a_part_of_the_rows_and_columns_is_written),
        TEST(numpy_gets_the_types_it_has),
        TEST(a_type_that_a_file_cannot_hold_is_an_error_with_the_nearest_option),
        TEST(integers_of_64_bits_keep_every_digit),
        TEST(real_numbers_come_back_bit_for_bit),
        TEST(metadata_travels_as_json),
        TEST(properties_and_attributes_are_the_same_thing),
        TEST(the_same_matrix_gives_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
