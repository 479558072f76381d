/* One tensor as a file for other programs. */
#include "coffer/tensors.h"

#include "coffer/convert.h"
#include "support/gguf.h"

#include <string.h>

enum { ROWS = 3, COLUMNS = 2, Q8_0 = 8, Q8_0_BYTES = 34 };

static const float values[ROWS * COLUMNS] = { 0.5f, 1.0f, -2.0f, 3.25f, 4.0f, 5.0f };

static coffer_status write_as(const char *name, const coffer_tensors *set,
                              const coffer_tensors_write_opts *opts, coffer_error *err)
{
    return coffer_tensors_write(temp_path(temp_folder, name), set, 0, opts, err);
}

static gguf_set plain(void)
{
    made_tensor tensor = { "w", 0, 2, { ROWS, COLUMNS }, values, sizeof values };
    return gguf_open_set(&tensor, 1, NULL, 0);
}

static void rows_are_written_as_text_and_as_they_are(void **state)
{
    (void)state;
    gguf_set open = plain();
    coffer_tensors_write_opts opts = COFFER_TENSORS_WRITE_OPTS_INIT;
    assert_int_equal(write_as("all.csv", open.set, NULL, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "all.csv"), "0.5,1.0\n-2.0,3.25\n4.0,5.0\n", 26));
    opts.first_row = 1;
    opts.row_count = 1;
    assert_int_equal(write_as("middle", open.set, &opts, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "middle"), "-2.0,3.25\n", 10));
    opts.kind = "raw";
    opts.row_count = UINT64_MAX;
    assert_int_equal(write_as("rest", open.set, &opts, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "rest"), values + COLUMNS, 2 * COLUMNS * sizeof *values));
    gguf_close_set(&open);
}

static void what_cannot_be_written_is_an_error_and_leaves_no_file(void **state)
{
    (void)state;
    gguf_set open = plain();
    coffer_tensors_write_opts opts = COFFER_TENSORS_WRITE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    opts.first_row = 2;
    opts.row_count = 2;
    assert_int_equal(write_as("no", open.set, &opts, &err), COFFER_E_INVALID_ARGUMENT);
    opts = (coffer_tensors_write_opts)COFFER_TENSORS_WRITE_OPTS_INIT;
    opts.kind = "png";
    assert_int_equal(write_as("no", open.set, &opts, &err), COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "must be npy, safetensors, csv or raw"));
    assert_int_equal(coffer_tensors_write(temp_path(temp_folder, "no"), open.set, 1, NULL, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_false(temp_exists(temp_path(temp_folder, "no")));
    assert_int_equal(write_as("twice", open.set, NULL, NULL), COFFER_OK);
    assert_int_equal(write_as("twice", open.set, NULL, &err), COFFER_E_EXISTS);
    gguf_close_set(&open);
}

static void quantized_tensors_are_decoded_or_written_raw_as_a_whole(void **state)
{
    (void)state;
    uint8_t block[Q8_0_BYTES] = { 0x00, 0x3c, 7, (uint8_t)-3 }; /* scale 1.0 */
    made_tensor tensor = { "q", Q8_0, 1, { 32 }, block, sizeof block };
    gguf_set open = gguf_open_set(&tensor, 1, NULL, 0);
    coffer_tensors_write_opts opts = COFFER_TENSORS_WRITE_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(write_as("q.npy", open.set, &opts, &err), COFFER_E_UNSUPPORTED);
    assert_false(temp_exists(temp_path(temp_folder, "q.npy")));
    opts.kind = "raw";
    assert_int_equal(write_as("q.raw", open.set, &opts, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "q.raw"), block, sizeof block));
    float decoded[32] = { 7.0f, -3.0f };
    opts.dequantize = true;
    assert_int_equal(write_as("q.f32", open.set, &opts, NULL), COFFER_OK);
    assert_true(temp_holds(temp_path(temp_folder, "q.f32"), decoded, sizeof decoded));
    gguf_close_set(&open);
}

static void the_header_of_an_array_gives_type_and_shape(void **state)
{
    (void)state;
    static const char wanted[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
    static const uint64_t dims[] = { ROWS, COLUMNS };
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *header = NULL;
    size_t size = 0;
    assert_int_equal(coffer_npy_header(&header, &size, COFFER_DTYPE_F32, dims, 2, NULL), COFFER_OK);
    assert_int_equal(size, 128);
    assert_memory_equal(header, wanted, sizeof wanted - 1);
    assert_int_equal(header[size - 1], '\n');
    coffer_free(header);
    assert_int_equal(coffer_npy_header(&header, &size, COFFER_DTYPE_Q8, dims, 2, &err), COFFER_E_UNSUPPORTED);
    assert_string_equal(err.text, "NumPy has no type for q8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_written_as_text_and_as_they_are),
        cmocka_unit_test(what_cannot_be_written_is_an_error_and_leaves_no_file),
        cmocka_unit_test(the_header_of_an_array_gives_type_and_shape),
        cmocka_unit_test(quantized_tensors_are_decoded_or_written_raw_as_a_whole),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
