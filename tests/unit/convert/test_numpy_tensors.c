/* NumPy's files as sets of tensors: the order of rows, little-endian, whatever the file says. */
#include "coffer/coffer.h"
#include "support/archive.h"
#include "support/temp.h"

#include <string.h>

#define NPY(type, fortran, shape) "{'descr': '" type "', 'fortran_order': " fortran ", 'shape': " shape ", }"

/* Writes an archive of one array into the temporary folder. */
static coffer_tensors *open_array(const char *literal, const void *data, size_t len, bool deflate)
{
    coffer_tensors *set = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    const char *path = temp_path(temp_folder, "a.npz");
    coffer__buffer npy = archive_npy(literal, data, len);
    archive_member member = { .name = "w.npy", .data = npy.data, .len = npy.len, .deflate = deflate };
    coffer__buffer zip = archive_build(&member, 1, false);
    temp_write(path, zip.data, zip.len);
    coffer__buffer_free(&zip);
    coffer__buffer_free(&npy);
    if (coffer_tensors_open_path(&set, path, NULL, &err))
        fail_msg("%s", err.text);
    assert_string_equal(coffer_tensors_kind(set), "npz");
    assert_int_equal(coffer_tensors_count(set), 1);
    assert_string_equal(coffer_tensors_at(set, 0)->name, "w");
    return set;
}

static void stored_and_deflated_arrays_read_the_same(void **state)
{
    (void)state;
    static const float values[] = { 1, 2, 3, 4, 5, 6 };
    for (int deflate = 0; deflate < 2; deflate++) {
        float read[6], part[2];
        coffer_tensors *set = open_array(NPY("<f4", "False", "(2, 3)"), values, sizeof values, deflate == 1);
        const coffer_tensor *tensor = coffer_tensors_at(set, 0);
        assert_int_equal(tensor->dtype, COFFER_DTYPE_F32);
        assert_int_equal(tensor->rank, 2);
        assert_int_equal(tensor->dims[1], 3);
        assert_true((tensor->offset == COFFER_OFFSET_NONE) == (deflate == 1));
        assert_int_equal(coffer_tensors_read(read, set, 0, 0, sizeof read, NULL), COFFER_OK);
        assert_memory_equal(read, values, sizeof values);
        assert_int_equal(coffer_tensors_read(part, set, 0, 8, sizeof part, NULL), COFFER_OK);
        assert_memory_equal(part, values + 2, sizeof part);
        coffer_tensors_close(set);
    }
}

static void the_order_of_fortran_becomes_that_of_rows(void **state)
{
    (void)state;
    /* [[0, 1, 2], [10, 11, 12]] twice, column by column. */
    static const uint8_t values[] = { 0, 50, 10, 60, 1, 51, 11, 61, 2, 52, 12, 62 };
    static const uint8_t rows[] = { 0, 1, 2, 10, 11, 12, 50, 51, 52, 60, 61, 62 };
    uint8_t read[12];
    coffer_tensors *set = open_array(NPY("|u1", "True", "(2, 2, 3)"), values, sizeof values, true);
    assert_int_equal(coffer_tensors_read(read, set, 0, 0, sizeof read, NULL), COFFER_OK);
    assert_memory_equal(read, rows, sizeof rows);
    coffer_tensors_close(set);
}

static void big_endian_elements_are_turned_round(void **state)
{
    (void)state;
    static const uint8_t values[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06 };
    uint8_t read[4];
    coffer_tensors *set = open_array(NPY(">u2", "False", "(3,)"), values, sizeof values, false);
    assert_int_equal(coffer_tensors_read(read, set, 0, 0, 4, NULL), COFFER_OK);
    assert_memory_equal(read, "\2\1\4\3", 4);
    /* Not at the edge of an element. */
    assert_int_equal(coffer_tensors_read(read, set, 0, 1, 4, NULL), COFFER_OK);
    assert_memory_equal(read, "\1\4\3\6", 4);
    coffer_tensors_close(set);
}

static void a_damaged_array_is_not_read(void **state)
{
    (void)state;
    /* Far more than what is read for the header. */
    static const float values[100000] = { 1 };
    float read;
    coffer_tensors *set = NULL;
    const char *path = temp_path(temp_folder, "bad.npz");
    coffer__buffer npy = archive_npy(NPY("<f4", "False", "(100000,)"), values, sizeof values);
    archive_member member = { .name = "w.npy", .data = npy.data, .len = npy.len, .crc = 7 };
    coffer__buffer zip = archive_build(&member, 1, false);
    temp_write(path, zip.data, zip.len);
    assert_int_equal(coffer_tensors_open_path(&set, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_read(&read, set, 0, 0, sizeof read, NULL), COFFER_E_BAD_CHECKSUM);
    coffer_tensors_close(set);
    coffer__buffer_free(&zip);
    coffer__buffer_free(&npy);
}

static void a_single_array_is_called_what_its_file_is(void **state)
{
    (void)state;
    static const int64_t values[] = { -1, 7 };
    double read[2];
    coffer_tensors *set = NULL;
    const char *path = temp_path(temp_folder, "weights.npy");
    coffer__buffer npy = archive_npy(NPY("<i8", "False", "(2,)"), values, sizeof values);
    temp_write(path, npy.data, npy.len);
    coffer__buffer_free(&npy);
    assert_int_equal(coffer_tensors_open_path(&set, path, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_tensors_kind(set), "npy");
    assert_string_equal(coffer_tensors_at(set, 0)->name, "weights");
    assert_int_equal(coffer_tensors_read_as(read, COFFER_DTYPE_F64, set, 0, 0, 2, NULL), COFFER_OK);
    assert_true(read[0] == -1 && read[1] == 7);
    coffer_tensors_close(set);
}

static void texts_are_listed_and_not_read_as_numbers(void **state)
{
    (void)state;
    uint8_t read[8];
    coffer_tensors *set = open_array(NPY("|S4", "False", "(2,)"), "abcdefgh", 8, false);
    assert_int_equal(coffer_tensors_at(set, 0)->dtype, COFFER_DTYPE_NONE);
    assert_int_equal(coffer_tensors_at(set, 0)->size, 8);
    assert_int_equal(coffer_tensors_read(read, set, 0, 0, 8, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_read_as(read, COFFER_DTYPE_F32, set, 0, 0, 2, NULL),
                     COFFER_E_UNSUPPORTED);
    coffer_tensors_close(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_and_deflated_arrays_read_the_same),
        cmocka_unit_test(the_order_of_fortran_becomes_that_of_rows),
        cmocka_unit_test(big_endian_elements_are_turned_round),
        cmocka_unit_test(a_damaged_array_is_not_read),
        cmocka_unit_test(a_single_array_is_called_what_its_file_is),
        cmocka_unit_test(texts_are_listed_and_not_read_as_numbers),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
