#include "support/matrix.h"
#include "support/temp.h"

#include "base/bytes.h"
#include "formats/pycauset/pycauset_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(coffer_status status, const coffer_error *err)
{
    if (status)
        fail_msg("%s: %s", coffer_status_name(status), err->text);
}

static coffer_pycauset_writer *create(const char *path, const coffer_pycauset_shape *shape,
                                      const coffer_pycauset_writer_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer *writer = NULL;
    must(coffer_pycauset_writer_create(&writer, path, shape, opts, &err), &err);
    return writer;
}

static size_t errors_in(const char *path, coffer_status *first)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report;
    coffer_source *src;
    opts.full = true;
    must(coffer_source_open(&src, path, NULL, &err), &err);
    must(coffer_report_new(&report, 0, &err), &err);
    must(coffer_check(report, src, &opts, &err), &err);
    size_t errors = (size_t)coffer_report_total(report, COFFER_ERROR);
    if (first)
        *first = coffer_report_count(report) ? coffer_report_at(report, 0)->code : COFFER_OK;
    coffer_report_free(report);
    coffer_source_close(src);
    return errors;
}

/* ---- Bytes of the file ---- */

static void a_fresh_file_has_two_slots_that_name_the_same(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(11, 3, 5);
    const char *path = temp_path(temp_folder, "f.pycauset");
    test_matrix matrix;
    size_t len;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, path, 1, NULL);
    uint8_t *bytes = temp_read(path, &len);
    assert_memory_equal(bytes, "PYCAUSET\x01\0\0\0\x01\x00\x10\0", 16);
    for (size_t slot = 0; slot < 2; slot++) {
        const uint8_t *at = bytes + 16 + 128 * slot;
        assert_int_equal(coffer__load_u64(at), 1 - slot);
        assert_int_equal(coffer__load_u64(at + 8), 4096);
        assert_int_equal(coffer__load_u64(at + 16), 3 * 5 * 8);
        assert_int_equal(coffer__load_u64(at + 24), 4096 + 128);
        assert_int_equal(coffer__load_u64(at + 24) + coffer__load_u64(at + 32), len);
    }
    for (size_t i = 272; i < 4096; i++)
        assert_int_equal(bytes[i], 0);
    coffer__swap_numbers(bytes + 4096, 8, 3 * 5);
    assert_memory_equal(bytes + 4096, matrix.rows, 3 * 5 * 8);
    for (size_t i = 4096 + 120; i < 4096 + 128; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(errors_in(path, NULL), 0);
    free(bytes);
    test_matrix_free(&matrix);
}

static void every_kind_that_is_written_checks_clean(void **state)
{
    (void)state;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *path = temp_path(temp_folder, "k.pycauset");
    opts.checksums = true;
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 40, 30);
        test_matrix matrix;
        shape.transposed = i % 2;
        shape.scalar_imag = i % 3 == 0 ? 2 : 0;
        test_matrix_make(&matrix, &shape, i);
        test_matrix_write(&matrix, path, 3, i % 5 ? &opts : NULL);
        assert_int_equal(errors_in(path, NULL), 0);
        test_matrix_free(&matrix);
    }
}

static void equal_input_gives_equal_bytes_however_it_is_cut(void **state)
{
    (void)state;
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    opts.checksums = true;
    for (size_t i = 0; i < test_matrix_kinds(); i++) {
        coffer_pycauset_shape shape = test_matrix_kind(i, 100, 70);
        test_matrix matrix;
        size_t len;
        test_matrix_make(&matrix, &shape, i);
        test_matrix_write(&matrix, a, 1, &opts);
        test_matrix_write(&matrix, b, 13, &opts);
        uint8_t *bytes = temp_read(a, &len);
        assert_true(temp_holds(b, bytes, len));
        free(bytes);
        test_matrix_free(&matrix);
    }
}

static char *uuid_of(const char *path, char out[33])
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src;
    coffer_pycauset *m;
    must(coffer_source_open(&src, path, NULL, &err), &err);
    must(coffer_pycauset_open(&m, src, NULL, &err), &err);
    const char *text =
        coffer_pycauset_value_text(coffer_pycauset_value_find(coffer_pycauset_metadata(m), "payload_uuid"),
                                   NULL);
    snprintf(out, 33, "%s", text);
    coffer_pycauset_close(m);
    coffer_source_close(src);
    return out;
}

static void the_payload_uuid_comes_from_the_content_alone(void **state)
{
    (void)state;
    char first[33], other[33];
    coffer_pycauset_shape shape = test_matrix_kind(11, 10, 10);
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *path = temp_path(temp_folder, "u.pycauset");
    test_matrix matrix;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, path, 1, NULL);
    assert_int_equal(strlen(uuid_of(path, first)), 32);
    matrix.shape.transposed = true; /* how it is seen does not count */
    test_matrix_write(&matrix, path, 1, NULL);
    assert_string_equal(uuid_of(path, other), first);
    matrix.rows[5] ^= 1;
    test_matrix_write(&matrix, path, 1, NULL);
    assert_string_not_equal(uuid_of(path, other), first);
    opts.payload_uuid = "0123456789abcdef0123456789ABCDEF";
    test_matrix_write(&matrix, path, 1, &opts);
    assert_string_equal(uuid_of(path, other), opts.payload_uuid);
    test_matrix_free(&matrix);
}

static void metadata_of_the_caller_is_in_the_file(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 1, 2);
    const char *path = temp_path(temp_folder, "m.pycauset");
    coffer_pycauset_changes *changes;
    coffer_source *src;
    coffer_pycauset *m;
    double row[2] = { 1, 2 };
    bool stale;
    coffer_pycauset_writer *writer = create(path, &shape, NULL);
    must(coffer_pycauset_changes_new(&changes, &err), &err);
    static const char json[] = "{\"label\": \"x\", \"list\": [1, {\"a\": -2}]}";
    must(coffer_pycauset_changes_set_json(changes, "properties", json, sizeof json - 1, &err), &err);
    must(coffer_pycauset_changes_set_cached(changes, "trace", 2.5, &err), &err);
    must(coffer_pycauset_writer_set_metadata(writer, changes, &err), &err);
    assert_int_equal(coffer_pycauset_writer_set_metadata(writer, changes, &err), COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_changes_free(changes); /* borrowed for the call only */
    must(coffer_pycauset_writer_put_rows(writer, row, 1, &err), &err);
    must(coffer_pycauset_writer_commit(writer, &err), &err);
    must(coffer_source_open(&src, path, NULL, &err), &err);
    must(coffer_pycauset_open(&m, src, NULL, &err), &err);
    const coffer_pycauset_value *root = coffer_pycauset_metadata(m);
    assert_int_equal(coffer_pycauset_value_i64(coffer_pycauset_value_find(root, "properties.list.1.a")), -2);
    assert_true(coffer_pycauset_value_f64(coffer_pycauset_cached(m, "trace", &stale)) == 2.5);
    coffer_pycauset_close(m);
    coffer_source_close(src);
}

/* ---- Checksums ---- */

static void a_flipped_bit_is_found_by_its_checksum(void **state)
{
    (void)state;
    coffer_pycauset_shape shape = test_matrix_kind(11, 600, 500); /* 2.3 MiB: three groups */
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *path = temp_path(temp_folder, "c.pycauset");
    static const size_t places[] = { 4096, 4096 + (1 << 20) - 1, 4096 + (1 << 20), 4096 + 600 * 500 * 8 - 1 };
    test_matrix matrix;
    coffer_status code;
    size_t len;
    opts.checksums = true;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, path, 7, &opts);
    assert_int_equal(errors_in(path, NULL), 0);
    uint8_t *bytes = temp_read(path, &len);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bytes[places[i]] ^= 0x10;
        temp_write(path, bytes, len);
        assert_int_equal(errors_in(path, &code), 1);
        assert_int_equal(code, COFFER_E_BAD_CHECKSUM);
        bytes[places[i]] ^= 0x10;
    }
    free(bytes);
    test_matrix_free(&matrix);
}

static void checksums_added_later_are_those_of_the_writer(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 600, 500);
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *a = temp_path(temp_folder, "a"), *b = temp_path(temp_folder, "b");
    coffer_pycauset_changes *changes;
    coffer_pycauset_editor *editor;
    coffer_source *src[2];
    coffer_pycauset *m[2];
    test_matrix matrix;
    opts.checksums = true;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, a, 7, &opts);
    test_matrix_write(&matrix, b, 7, NULL);
    must(coffer_pycauset_changes_new(&changes, &err), &err);
    must(coffer_pycauset_changes_set_checksums(changes, &err), &err);
    must(coffer_pycauset_editor_open(&editor, b, NULL, &err), &err);
    must(coffer_pycauset_editor_commit(NULL, editor, changes, &err), &err);
    coffer_pycauset_editor_close(editor);
    coffer_pycauset_changes_free(changes);
    for (int i = 0; i < 2; i++) {
        must(coffer_source_open(&src[i], i ? b : a, NULL, &err), &err);
        must(coffer_pycauset_open(&m[i], src[i], NULL, &err), &err);
    }
    assert_true(coffer__pycauset_equal(
        coffer__pycauset_get_key(coffer_pycauset_metadata(m[0]), COFFER__PYCAUSET_CHECKSUMS_KEY),
        coffer__pycauset_get_key(coffer_pycauset_metadata(m[1]), COFFER__PYCAUSET_CHECKSUMS_KEY)));
    for (int i = 0; i < 2; i++) {
        coffer_pycauset_close(m[i]);
        coffer_source_close(src[i]);
    }
    test_matrix_free(&matrix);
}

/* ---- Mistakes ---- */

static void what_the_layout_does_not_store_has_to_be_zero(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(2 * 15 + 11, 3, 3); /* strictly triangular */
    double rows[9] = { 0, 1, 2, 0, -0.0, 3, 0, 5, 0 };
    const char *path = temp_path(temp_folder, "t.pycauset");
    coffer_pycauset_writer *writer = create(path, &shape, NULL);
    must(coffer_pycauset_writer_put_rows(writer, rows, 2, &err), &err);
    assert_int_equal(coffer_pycauset_writer_put_rows(writer, rows + 6, 1, &err), COFFER_E_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "(2, 1)"));
    rows[7] = 0;
    must(coffer_pycauset_writer_put_rows(writer, rows + 6, 1, &err), &err); /* the mistake cost nothing */
    must(coffer_pycauset_writer_commit(writer, &err), &err);
    shape = test_matrix_kind(2 * 15 + 14, 2, 2); /* complex */
    double pairs[8] = { 0, 1, 5, 5, 0, 0, 0, 0 };
    writer = create(temp_path(temp_folder, "complex.pycauset"), &shape, NULL);
    assert_int_equal(coffer_pycauset_writer_put_rows(writer, pairs, 2, &err), COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_writer_discard(writer);
}

static void too_few_and_too_many_rows_are_refused(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(11, 3, 2);
    double rows[8] = { 0 };
    const char *path = temp_path(temp_folder, "few.pycauset");
    coffer_pycauset_writer *writer = create(path, &shape, NULL);
    assert_int_equal(coffer_pycauset_writer_put_rows(writer, rows, 4, &err), COFFER_E_INVALID_ARGUMENT);
    must(coffer_pycauset_writer_put_rows(writer, rows, 2, &err), &err);
    assert_int_equal(coffer_pycauset_writer_commit(writer, &err), COFFER_E_INVALID_ARGUMENT);
    assert_string_equal(err.text, "2 of 3 rows were written");
    assert_false(temp_exists(path));
}

static void shapes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shapes[7];
    coffer_pycauset_writer *writer = NULL;
    const char *path = temp_path(temp_folder, "x.pycauset");
    for (size_t i = 0; i < 7; i++)
        shapes[i] = test_matrix_kind(11, 3, 2);
    shapes[0].dtype = COFFER_DTYPE_BF16;
    shapes[1].type = COFFER_PYCAUSET_BLOCK;
    shapes[2].type = COFFER_PYCAUSET_SYMMETRIC; /* not square */
    shapes[3].rows = shapes[3].cols = UINT64_MAX / 4;
    shapes[4].type = COFFER_PYCAUSET_CAUSAL;
    shapes[5].type = COFFER_PYCAUSET_VECTOR;
    shapes[6].type = (coffer_pycauset_type)77;
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(coffer_pycauset_writer_create(&writer, path, &shapes[i], NULL, &err),
                         COFFER_E_INVALID_ARGUMENT);
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_shape good = test_matrix_kind(11, 3, 2);
    opts.payload_uuid = "abc";
    assert_int_equal(coffer_pycauset_writer_create(&writer, path, &good, &opts, &err),
                     COFFER_E_INVALID_ARGUMENT);
    assert_null(writer);
    temp_assert_no_litter(temp_folder, "f.pycauset", "k.pycauset", "a", "b", "u.pycauset", "m.pycauset",
                          "c.pycauset", "t.pycauset", NULL);
}

static void a_writer_replaces_a_file_only_when_asked_and_leaves_nothing_when_discarded(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(12, 3, 2); /* in two planes */
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    const char *path = temp_path(temp_folder, "d.pycauset");
    uint8_t rows[24] = { 0 };
    coffer_pycauset_writer *writer = create(path, &shape, NULL);
    must(coffer_pycauset_writer_put_rows(writer, rows, 2, &err), &err);
    coffer_pycauset_writer_discard(writer);
    coffer_pycauset_writer_discard(NULL);
    assert_false(temp_exists(path));
    temp_write(path, "old", 3);
    assert_int_equal(coffer_pycauset_writer_create(&writer, path, &shape, NULL, &err), COFFER_E_EXISTS);
    assert_true(temp_holds(path, "old", 3));
    opts.overwrite = true;
    writer = create(path, &shape, &opts);
    must(coffer_pycauset_writer_put_rows(writer, rows, 3, &err), &err);
    must(coffer_pycauset_writer_commit(writer, &err), &err);
    assert_int_equal(errors_in(path, NULL), 0);
}

static void what_has_no_payload_takes_no_rows(void **state)
{
    (void)state;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(8 * 15 + 11, 4, 4);
    const char *path = temp_path(temp_folder, "i.pycauset");
    double rows[16] = { 0 };
    coffer_pycauset_writer *writer = create(path, &shape, NULL);
    assert_int_equal(coffer_pycauset_writer_put_rows(writer, rows, 1, &err), COFFER_E_INVALID_ARGUMENT);
    must(coffer_pycauset_writer_commit(writer, &err), &err);
    assert_int_equal(errors_in(path, NULL), 0);
}

static void a_stream_gets_the_same_bytes_as_a_file(void **state)
{
    (void)state;
    char pipe_path[300], command[700];
    const char *copy = temp_path(temp_folder, "copy"), *path = temp_path(temp_folder, "s.pycauset");
    coffer_pycauset_writer_opts opts = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    coffer_pycauset_shape shape = test_matrix_kind(12, 30, 20);
    test_matrix matrix;
    size_t len;
    opts.checksums = true;
    test_matrix_make(&matrix, &shape, 1);
    test_matrix_write(&matrix, path, 7, &opts);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", temp_folder);
    snprintf(command, sizeof command, "mkfifo '%s' && (cat '%s' > '%s' &)", pipe_path, pipe_path, copy);
    assert_int_equal(system(command), 0);
    test_matrix_write(&matrix, pipe_path, 7, &opts);
    uint8_t *bytes = temp_read(path, &len);
    for (int i = 0; i < 200 && !temp_holds(copy, bytes, len); i++)
        assert_int_equal(system("sleep 0.01"), 0);
    assert_true(temp_holds(copy, bytes, len));
    free(bytes);
    test_matrix_free(&matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_file_has_two_slots_that_name_the_same),
        cmocka_unit_test(every_kind_that_is_written_checks_clean),
        cmocka_unit_test(equal_input_gives_equal_bytes_however_it_is_cut),
        cmocka_unit_test(the_payload_uuid_comes_from_the_content_alone),
        cmocka_unit_test(metadata_of_the_caller_is_in_the_file),
        cmocka_unit_test(a_flipped_bit_is_found_by_its_checksum),
        cmocka_unit_test(checksums_added_later_are_those_of_the_writer),
        cmocka_unit_test(what_the_layout_does_not_store_has_to_be_zero),
        cmocka_unit_test(too_few_and_too_many_rows_are_refused),
        cmocka_unit_test(shapes_that_cannot_be_are_refused),
        cmocka_unit_test(a_writer_replaces_a_file_only_when_asked_and_leaves_nothing_when_discarded),
        cmocka_unit_test(what_has_no_payload_takes_no_rows),
        cmocka_unit_test(a_stream_gets_the_same_bytes_as_a_file),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
