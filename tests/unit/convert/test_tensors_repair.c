/* Repair of safetensors and GGUF: complete tensors are saved, lost ones stay known. */
#include "base/bytes.h"
#include "coffer/tensors.h"
#include "support/gguf.h"
#include "support/safetensors.h"
#include "support/temp.h"

#include <stdlib.h>
#include <string.h>

static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                             "\"b\":{\"dtype\":\"I16\",\"shape\":[5],\"data_offsets\":[16,26]},"
                             "\"c\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[26,33]}}";

enum { DATA_BYTES = 33 };

typedef struct repaired {
    coffer_status status;
    uint64_t errors, warnings;
    uint64_t check_errors; /* of the result */
    coffer_tensors *set;   /* NULL when nothing was saved */
} repaired;

static repaired repair(const char *in, const char *out)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    repaired result = { 0 };
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    result.status = coffer_tensors_repair(report, in, out, &opts, &err);
    result.errors = coffer_report_total(report, COFFER_ERROR);
    result.warnings = coffer_report_total(report, COFFER_WARNING);
    coffer_report_free(report);
    if (result.status)
        return result;
    if (coffer_tensors_open_path(&result.set, out, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_tensors_check(report, result.set, NULL, NULL), COFFER_OK);
    result.check_errors = coffer_report_total(report, COFFER_ERROR);
    coffer_report_free(report);
    return result;
}

/* The bytes of tensors in the result are those of the original. */
static void assert_bytes(const coffer_tensors *set, const char *name, const uint8_t *expected, size_t len)
{
    uint8_t bytes[64];
    size_t index = coffer_tensors_find(set, name);
    assert_true(index != COFFER_INDEX_NONE);
    assert_int_equal(coffer_tensors_at(set, index)->size, len);
    assert_int_equal(coffer_tensors_read(bytes, set, index, 0, len, NULL), COFFER_OK);
    assert_memory_equal(bytes, expected, len);
}

static void a_truncated_file_keeps_its_complete_tensors_at_any_length(void **state)
{
    const char *in = temp_path(temp_folder, "in.safetensors"),
               *out = temp_path(temp_folder, "out.safetensors");
    size_t len;
    uint8_t *file = safetensors_make(&len, header, DATA_BYTES);
    const uint8_t *data = file + len - DATA_BYTES;
    (void)state;
    for (size_t cut = 0; cut <= len; cut++) {
        temp_write(in, file, cut);
        repaired result = repair(in, out);
        if (cut < len - DATA_BYTES + 16) {
            assert_int_not_equal(result.status, COFFER_OK);
            continue;
        }
        size_t kept = cut == len ? 3 : cut >= len - DATA_BYTES + 26 ? 2 : 1;
        assert_int_equal(result.status, COFFER_OK);
        assert_int_equal(coffer_tensors_count(result.set), kept);
        assert_int_equal(result.errors, 3 - kept);
        assert_int_equal(result.check_errors, 3 - kept);
        assert_bytes(result.set, "a", data, 16);
        if (kept > 1)
            assert_bytes(result.set, "b", data + 16, 10);
        coffer_tensors_close(result.set);
    }
    free(file);
}

static void every_changed_bit_of_a_header_is_survived_and_reported(void **state)
{
    const char *in = temp_path(temp_folder, "in.safetensors"),
               *out = temp_path(temp_folder, "out.safetensors");
    size_t len, saved = 0;
    uint8_t *file = safetensors_make(&len, header, DATA_BYTES);
    (void)state;
    for (size_t bit = 0; bit < 8 * (len - DATA_BYTES); bit++) {
        file[bit / 8] = (uint8_t)(file[bit / 8] ^ 1u << bit % 8);
        temp_write(in, file, len);
        repaired result = repair(in, out);
        saved += result.set != NULL;
        coffer_tensors_close(result.set);
        file[bit / 8] = (uint8_t)(file[bit / 8] ^ 1u << bit % 8);
    }
    assert_true(saved > 64); /* at least when the length is wrong */
    free(file);
}

static void a_gguf_file_keeps_its_keys_and_complete_tensors(void **state)
{
    const char *in = temp_path(temp_folder, "in.gguf"), *out = temp_path(temp_folder, "out.gguf");
    uint8_t payload[64];
    coffer__buffer keys = COFFER__BUFFER_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)i;
    const made_tensor tensors[] = {
        { "x", 0, 2, { 2, 4 }, payload, 32 },
        { "y", 0, 1, { 8 }, payload + 16, 32 },
        { "z", 24, 1, { 64 }, payload, 64 },
    };
    coffer__gguf_put_key(&keys, "general.name", strlen("general.name"), COFFER__GGUF_STRING);
    coffer__gguf_put_string(&keys, "n", 1);
    coffer__buffer bytes = gguf_make(tensors, 3, &keys, 1);
    for (size_t cut = 0; cut <= bytes.len; cut++) {
        size_t data = bytes.len - 128;
        temp_write(in, bytes.data, cut);
        repaired result = repair(in, out);
        if (cut < data + 32) {
            assert_int_not_equal(result.status, COFFER_OK);
            continue;
        }
        size_t kept = cut == bytes.len ? 3 : cut >= data + 64 ? 2 : 1;
        assert_int_equal(result.status, COFFER_OK);
        assert_int_equal(coffer_tensors_count(result.set), kept);
        assert_int_equal(result.errors, 3 - kept);
        assert_int_equal(result.check_errors, 3 - kept);
        assert_bytes(result.set, "x", payload, 32);
        coffer_node *metadata = NULL;
        assert_int_equal(coffer_node_new(&metadata, NULL), COFFER_OK);
        assert_int_equal(coffer_tensors_metadata(metadata, result.set, NULL), COFFER_OK);
        assert_string_equal(coffer_node_get_text(coffer_node_find(metadata, "general.name"), NULL), "n");
        coffer_node_free(metadata);
        coffer_tensors_close(result.set);
    }
    coffer__buffer_free(&bytes);
    coffer__buffer_free(&keys);
}

static void earlier_losses_are_not_forgotten(void **state)
{
    const char *in = temp_path(temp_folder, "in.safetensors"),
               *out = temp_path(temp_folder, "out.safetensors");
    const char *last = temp_path(temp_folder, "last.safetensors");
    size_t len;
    uint8_t *file = safetensors_make(&len, header, DATA_BYTES);
    (void)state;
    temp_write(in, file, len - 1);
    repaired first = repair(in, out);
    assert_int_equal(first.errors, 1);
    coffer_tensors_close(first.set);
    free(file);
    file = temp_read(out, &len);
    temp_write(in, file, len - 1);
    repaired second = repair(in, last);
    assert_int_equal(second.errors, 2);
    assert_int_equal(second.check_errors, 2);
    assert_int_equal(coffer_tensors_count(second.set), 1);
    coffer_tensors_close(second.set);
    free(file);
}

static void other_files_and_the_input_itself_are_refused(void **state)
{
    const char *in = temp_path(temp_folder, "in.safetensors"), *npy = temp_path(temp_folder, "x.npy");
    static const char array[] =
        "\x93NUMPY\x01\x00\x36\x00{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}";
    (void)state;
    safetensors_write(in, header, DATA_BYTES);
    assert_int_equal(repair(in, in).status, COFFER_E_INVALID_ARGUMENT);
    temp_write(npy, array, sizeof array - 1);
    assert_int_not_equal(repair(npy, in).status, COFFER_OK);
    assert_int_not_equal(repair(temp_folder, in).status, COFFER_E_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_truncated_file_keeps_its_complete_tensors_at_any_length, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(every_changed_bit_of_a_header_is_survived_and_reported, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(a_gguf_file_keeps_its_keys_and_complete_tensors, temp_setup,
                                        temp_teardown),
        cmocka_unit_test_setup_teardown(earlier_losses_are_not_forgotten, temp_setup, temp_teardown),
        cmocka_unit_test_setup_teardown(other_files_and_the_input_itself_are_refused, temp_setup,
                                        temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
