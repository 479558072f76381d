/* Files of other programs become matrices; invalid files are refused, and no output file remains. */
#include "support/archive.h"
#include "support/conversion.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_file(const char *name, const void *bytes, size_t len)
{
    temp_write(temp_path(temp_folder, name), bytes, len);
}

static void put_text(const char *name, const char *text)
{
    put_file(name, text, strlen(text));
}

static void put_npy(const char *literal, const void *data, size_t len)
{
    coffer__buffer bytes = archive_npy(literal, data, len);
    put_file("a.npy", bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
}

static coffer_pycauset_info info_of(const char *name)
{
    coffer_pycauset_info info;
    free(matrix_values(&info, name));
    return info;
}

/* ---- NumPy ---- */

static void arrays_in_fortran_order_and_big_endian_are_read(void **state)
{
    (void)state;
    /* 2 × 3, by columns. */
    static const uint8_t big[] = { 0, 1, 0, 4, 0, 2, 0, 5, 0xff, 0xfd, 0, 6 };
    put_npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", big, sizeof big);
    matrix_must_convert("a.npy", "m.pycauset", NULL);
    matrix_assert_values("m.pycauset", 2, 3, (double[]){ 1, 2, -3, 4, 5, 6 });
    assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_I16);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_INTEGER);
}

static void a_large_array_in_fortran_order_goes_through_small_memory(void **state)
{
    (void)state;
    enum { ROWS = 300, COLS = 211 };
    static double columns[COLS][ROWS];
    for (size_t c = 0; c < COLS; c++) {
        for (size_t r = 0; r < ROWS; r++)
            columns[c][r] = (double)(r * COLS + c);
    }
    put_npy("{'descr': '<f8', 'fortran_order': True, 'shape': (300, 211), }\n", columns, sizeof columns);
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    limits.memory_bytes = 30000;
    opts.limits = &limits;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "a.npy"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, temp_path(temp_folder, "m.pycauset"), &opts, NULL), COFFER_OK);
    limits.memory_bytes = 1000;
    assert_int_equal(coffer_convert(src, temp_path(temp_folder, "n.pycauset"), &opts, NULL), COFFER_E_LIMIT);
    coffer_source_close(src);
    double *values = matrix_values(NULL, "m.pycauset");
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        assert_true(values[2 * i] == (double)i);
    free(values);
}

static void truth_values_become_bits_and_one_dimension_a_vector(void **state)
{
    (void)state;
    put_npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", "\1\0\7", 3);
    matrix_must_convert("a.npy", "m.pycauset", NULL);
    matrix_assert_values("m.pycauset", 3, 1, (double[]){ 1, 0, 1 });
    assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_BIT);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_VECTOR);
    matrix_must_convert("a.npy", "m.pycauset", "dtype", "u8", "type", "dense", NULL);
    assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_U8);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_INTEGER);
}

static void arrays_that_are_no_matrix_say_what_to_do(void **state)
{
    (void)state;
    static const uint8_t bytes[64] = { 1 };
    put_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 4), }\n", bytes, 24);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "--slice selects", "a.npy", "m.pycauset", NULL);
    matrix_must_convert("a.npy", "m.pycauset", "slice", "-1", NULL);
    assert_int_equal(info_of("m.pycauset").rows, 3);
    assert_int_equal(info_of("m.pycauset").cols, 4);
    matrix_must_convert("a.npy", "m.pycauset", "cols", "4", NULL);
    assert_int_equal(info_of("m.pycauset").rows, 6);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "24 elements do not make", "a.npy", "x.pycauset", "cols",
                       "5", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "do not make", "a.npy", "x.pycauset", "cols", "0", NULL);
    put_npy("{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }\n", bytes, 32);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "a.astype(\"f8\")", "a.npy", "x.pycauset", NULL);
    put_npy("{'descr': '|S4', 'fortran_order': False, 'shape': (2,), }\n", bytes, 8);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "are not numbers", "a.npy", "x.pycauset", NULL);
    put_npy("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (2,), }\n", bytes, 16);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "a[\"a\"]", "a.npy", "x.pycauset", NULL);
    put_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", bytes, 8);
    matrix_must_refuse(COFFER_E_BAD_VALUE, "", "a.npy", "x.pycauset", NULL);
    put_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9, 1), }\n", bytes, 64);
    matrix_must_refuse(COFFER_E_TRUNCATED, "", "a.npy", "x.pycauset", NULL);
    put_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }\n", bytes, 0);
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "without an element", "a.npy", "x.pycauset", NULL);
    temp_assert_only(temp_folder, "a.npy", "m.pycauset", NULL);
}

static void put_archive(bool deflate, uint32_t crc)
{
    const double columns[] = { 1, 4, 2, 5, 3, 6 };
    coffer__buffer npy =
        archive_npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", columns, sizeof columns);
    coffer__buffer row =
        archive_npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n", "\1\0\0\0\2\0\0\0", 8);
    const archive_member members[] = {
        { .name = "a.npy", .data = npy.data, .len = npy.len, .deflate = deflate, .crc = crc },
        { .name = "b.npy", .data = row.data, .len = row.len, .deflate = deflate },
    };
    coffer__buffer bytes = archive_build(members, 2, false);
    put_file("a.npz", bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
    coffer__buffer_free(&npy);
    coffer__buffer_free(&row);
}

static void an_array_of_an_archive_is_chosen_by_name(void **state)
{
    (void)state;
    for (int deflate = 0; deflate < 2; deflate++) {
        put_archive(deflate, 0);
        matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "choose one with --member: a, b", "a.npz", "x.pycauset",
                           NULL);
        matrix_must_refuse(COFFER_E_NOT_FOUND, "no array \"c\" in the archive; there are a, b", "a.npz",
                           "x.pycauset", "member", "c", NULL);
        matrix_must_convert("a.npz", "m.pycauset", "member", "a", NULL);
        matrix_assert_values("m.pycauset", 2, 3, (double[]){ 1, 2, 3, 4, 5, 6 });
        matrix_must_convert("a.npz", "m.pycauset", "member", "b", NULL);
        matrix_assert_values("m.pycauset", 2, 1, (double[]){ 1, 2 });
    }
    put_archive(true, 1);
    matrix_must_refuse(COFFER_E_BAD_CHECKSUM, "CRC-32", "a.npz", "x.pycauset", "member", "a", NULL);
}

/* ---- Text ---- */

static void lines_of_numbers_are_read_with_what_programs_put_around_them(void **state)
{
    (void)state;
    static const double expected[] = { 1, 2.5, -3, 4e10 };
    static const struct {
        const char *text, *delimiter;
        bool header;
    } cases[] = {
        { "1,2.5\n-3,4e10\n", NULL, false },
        { "\xef\xbb\xbf x , y\r\n1, 2.5\r\n\r\n\"-3\",\t4e10", NULL, false },
        { "# made by hand\n1;2.5\n# half way\n-3;4e10\n", ";", false },
        { "1\t2.5\n-3\t4e10\n", "tab", false },
        { "  1   2.5  \n-3 4e10\n", "space", false },
        { "0,1\n1,2.5\n-3,4e10\n", NULL, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("m.csv", cases[i].text);
        matrix_must_convert("m.csv", "m.pycauset", "delimiter",
                            cases[i].delimiter ? cases[i].delimiter : "comma",
                            cases[i].header ? "header" : NULL, NULL, NULL);
        matrix_assert_values("m.pycauset", 2, 2, expected);
        assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_F64);
    }
    put_text("m.csv", "1\n2\n3\n");
    matrix_must_convert("m.csv", "m.pycauset", NULL);
    assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_I64);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_VECTOR);
}

static void lines_that_are_not_right_are_refused_with_their_number(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        coffer_status status;
    } cases[] = {
        { "1,2\n3\n", "line 2 has 1 numbers, those before it 2", COFFER_E_INCONSISTENT },
        { "1,2\n3,x\n", "line 2, field 2: \"x\" is not a number", COFFER_E_BAD_VALUE },
        { "1,2\n3,\n", "line 2, field 2 is empty", COFFER_E_BAD_VALUE },
        { "1;2\n3,5;4\n", "--delimiter", COFFER_E_BAD_VALUE },
        { "a,b\n", "no line with numbers", COFFER_E_MISSING },
        { "", "no line with numbers", COFFER_E_MISSING },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_text("m.csv", cases[i].text);
        coffer_error err = COFFER_ERROR_INIT;
        coffer_status status = matrix_convert(&err, "m.csv", "x.pycauset", NULL);
        /* Two lines of "1;2" are a header and then no number. */
        matrix_check_refused(status, &err, cases[i].status, cases[i].part, (int)i);
    }
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "one character", "m.csv", "x.pycauset", "delimiter", "ab",
                       NULL);
    temp_assert_only(temp_folder, "m.csv", NULL);
}

/* ---- Matrix Market ---- */

static void symmetric_files_become_symmetric_matrices(void **state)
{
    (void)state;
    put_text("m.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n3 3 3\n1 1 5\n3 1 2\n3 2 -4\n");
    matrix_must_convert("m.mtx", "m.pycauset", NULL);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_SYMMETRIC);
    matrix_assert_values("m.pycauset", 3, 3, (double[]){ 5, 0, 2, 0, 0, -4, 2, -4, 0 });
    matrix_must_convert("m.mtx", "m.pycauset", "type", "dense", NULL);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_INTEGER);
    matrix_assert_values("m.pycauset", 3, 3, (double[]){ 5, 0, 2, 0, 0, -4, 2, -4, 0 });

    put_text("m.mtx", "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
    for (int dense = 0; dense < 2; dense++) {
        matrix_must_convert("m.mtx", "m.pycauset", dense ? "type" : NULL, "dense", NULL);
        matrix_assert_values("m.pycauset", 3, 3, (double[]){ 0, -1, -2, 1, 0, -3, 2, 3, 0 });
    }
    matrix_must_convert("m.mtx", "m.pycauset", NULL);
    assert_int_equal(info_of("m.pycauset").type, COFFER_PYCAUSET_ANTISYMMETRIC);
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n");
    matrix_must_refuse(COFFER_E_BAD_VALUE, "no diagonal", "m.mtx", "x.pycauset", NULL);
}

static void hermitian_files_become_dense_ones(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -2\n",
        "%%MatrixMarket matrix array complex hermitian\n2 2\n3 0\n1 -2\n0 0\n",
    };
    static const double expected[] = { 3, 0, 1, 2, 1, -2, 0, 0 };
    for (size_t i = 0; i < 2; i++) {
        put_text("m.mtx", texts[i]);
        matrix_must_convert("m.mtx", "m.pycauset", NULL);
        double *values = matrix_values(NULL, "m.pycauset");
        for (size_t j = 0; j < 8; j++)
            assert_true(values[j] == expected[j]);
        free(values);
    }
}

static void a_pattern_becomes_bits_and_entries_of_one_place_add_up(void **state)
{
    (void)state;
    put_text("m.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n2 3\n1 1\n2 3\n");
    matrix_must_convert("m.mtx", "m.pycauset", NULL);
    assert_int_equal(info_of("m.pycauset").dtype, COFFER_DTYPE_BIT);
    matrix_assert_values("m.pycauset", 2, 3, (double[]){ 1, 0, 0, 0, 0, 1 });
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n2 2 1.5\n1 1 1\n2 2 2\n");
    matrix_must_convert("m.mtx", "m.pycauset", NULL);
    matrix_assert_values("m.pycauset", 2, 2, (double[]){ 1, 0, 0, 3.5 });
}

static void a_matrix_that_is_all_but_empty_is_not_filled_with_zeros_unasked(void **state)
{
    (void)state;
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n100000000 100000000 1\n1 1 1\n");
    matrix_must_refuse(COFFER_E_LIMIT, "--dense", "m.mtx", "x.pycauset", NULL);
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n"
                      "9223372036854775807 9223372036854775807 1\n1 1 1\n");
    matrix_must_refuse(COFFER_E_LIMIT, "", "m.mtx", "x.pycauset", "dense", NULL, NULL);
    put_text("m.mtx", "%%MatrixMarket matrix coordinate real general\n18446744073709551615 0 0\n");
    matrix_must_refuse(COFFER_E_UNSUPPORTED, "without an element", "m.mtx", "x.pycauset", NULL);
    temp_assert_only(temp_folder, "m.mtx", NULL);
}

static void many_entries_are_sorted_outside_memory(void **state)
{
    (void)state;
    enum { SIDE = 200 };
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__buffer_printf(&text, "%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n", SIDE, SIDE,
                          SIDE * SIDE);
    for (int i = SIDE * SIDE - 1; i >= 0; i--)
        coffer__buffer_printf(&text, "%d %d %d\n", i % SIDE + 1, i / SIDE + 1, i);
    put_file("m.mtx", text.data, text.len);
    coffer__buffer_free(&text);
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    opts.overwrite = true;
    coffer_source *src = NULL;
    limits.memory_bytes = 100000;
    opts.limits = &limits;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "m.mtx"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, temp_path(temp_folder, "m.pycauset"), &opts, NULL), COFFER_OK);
    coffer_source_close(src);
    double *values = matrix_values(NULL, "m.pycauset");
    for (int row = 0; row < SIDE; row++) {
        for (int col = 0; col < SIDE; col++)
            assert_true(values[2 * (row * SIDE + col)] == col * SIDE + row);
    }
    free(values);
}

/* ---- Types of the result ---- */

static void values_that_a_type_cannot_hold_are_refused(void **state)
{
    (void)state;
    put_text("m.csv", "0,1\n2,0\n");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "not symmetric; use --type dense", "m.csv", "x.pycauset",
                       "type", "symmetric", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "not antisymmetric", "m.csv", "x.pycauset", "type",
                       "antisymmetric", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "", "m.csv", "x.pycauset", "type", "triangular", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "row 1, column 0: 2 does not fit a bit; use --dtype i64",
                       "m.csv", "x.pycauset", "type", "causal", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "is not a vector", "m.csv", "x.pycauset", "type", "vector",
                       NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "must be one of dense", "m.csv", "x.pycauset", "type",
                       "round", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "--type triangular", "m.csv", "x.pycauset", "diagonal",
                       NULL, NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "--dtype i64", "m.csv", "x.pycauset", "type",
                       "antisymmetric", "dtype", "u8", NULL);
    put_text("m.csv", "0,1,2\n2,0,1\n");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "a symmetric matrix is square", "m.csv", "x.pycauset",
                       "type", "symmetric", NULL);
    put_text("m.csv", "0.5,300\n");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "row 0, column 0: 0.5 does not fit i8", "m.csv",
                       "x.pycauset", "dtype", "i8", NULL);
    put_text("m.csv", "1,300\n");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "row 0, column 1: 300 does not fit i8; use --dtype i64",
                       "m.csv", "x.pycauset", "dtype", "i8", NULL);
    put_text("m.csv", "9223372036854775808.0,1\n");
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "does not fit i64", "m.csv", "x.pycauset", "dtype", "i64",
                       NULL);
    temp_assert_only(temp_folder, "m.csv", NULL);
}

static void raw_bytes_need_to_be_told_what_they_are(void **state)
{
    (void)state;
    put_file("m.raw", "\0\0\1\0\2\0\3\0\4\0", 10);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "raw bytes need --dtype", "m.raw", "x.pycauset", NULL);
    matrix_must_refuse(COFFER_E_SIZE_MISMATCH, "10 bytes are not a multiple", "m.raw", "x.pycauset", "dtype",
                       "i32", NULL);
    matrix_must_refuse(COFFER_E_INVALID_ARGUMENT, "offset", "m.raw", "x.pycauset", "dtype", "i16", "offset",
                       "11", NULL);
    matrix_must_convert("m.raw", "m.pycauset", "dtype", "i16", "offset", "2", "rows", "2", NULL);
    matrix_assert_values("m.pycauset", 2, 2, (double[]){ 1, 2, 3, 4 });
    matrix_must_convert("m.raw", "m.pycauset", "dtype", "i16", "checksum", NULL, NULL);
    matrix_assert_values("m.pycauset", 5, 1, (double[]){ 0, 1, 2, 3, 4 });
}

static void a_new_matrix_does_not_replace_a_file_unless_told(void **state)
{
    (void)state;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_source *src = NULL;
    put_text("m.csv", "1,2\n");
    put_text("m.pycauset", "precious");
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "m.csv"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_convert(src, temp_path(temp_folder, "m.pycauset"), &opts, NULL), COFFER_E_EXISTS);
    coffer_source_close(src);
    assert_true(temp_holds(temp_path(temp_folder, "m.pycauset"), "precious", 8));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_setup, temp_teardown)
    const struct CMUnitTest tests[] = {
        TEST(arrays_in_fortran_order_and_big_endian_are_read),
        TEST(a_large_array_in_fortran_order_goes_through_small_memory),
        TEST(truth_values_become_bits_and_one_dimension_a_vector),
        TEST(arrays_that_are_no_matrix_say_what_to_do),
        TEST(an_array_of_an_archive_is_chosen_by_name),
        TEST(lines_of_numbers_are_read_with_what_programs_put_around_them),
        TEST(lines_that_are_not_right_are_refused_with_their_number),
        TEST(symmetric_files_become_symmetric_matrices),
        TEST(hermitian_files_become_dense_ones),
        TEST(a_pattern_becomes_bits_and_entries_of_one_place_add_up),
        TEST(a_matrix_that_is_all_but_empty_is_not_filled_with_zeros_unasked),
        TEST(many_entries_are_sorted_outside_memory),
        TEST(values_that_a_type_cannot_hold_are_refused),
        TEST(raw_bytes_need_to_be_told_what_they_are),
        TEST(a_new_matrix_does_not_replace_a_file_unless_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
