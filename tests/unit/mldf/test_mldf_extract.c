/* Sets out of sets: splits, subsets, shuffled copies, several in one. */
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

static const char *path(const char *name)
{
    return temp_path(temp_folder, name);
}

static coffer_mldf *open_set(coffer_source **src, const char *name, const uint8_t *key)
{
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    opts.key = key;
    assert_int_equal(coffer_source_open(src, path(name), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open(&set, *src, &opts, NULL), COFFER_OK);
    return set;
}

static void must(coffer_status status, const coffer_error *err)
{
    if (status != COFFER_OK)
        fail_msg("%s", err->text);
}

static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD,
                                  COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED };

static void samples_are_taken_in_the_order_asked_for(void **state)
{
    static const uint64_t order[] = { 17, 3, 3, 0, 29, 4 };
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        coffer_source *src = NULL;
        assert_int_equal(dataset_create(path("a.mldf"), 30, kinds[k], NULL, NULL), COFFER_OK);
        coffer_mldf *set = open_set(&src, "a.mldf", dataset_key);
        must(dataset_extract(path("b.mldf"), set, order, 6, NULL, 0, &opts, &err), &err);
        dataset_expect(path("b.mldf"), order, 6);
        dataset_expect_clean(path("b.mldf"));
        must(dataset_extract(path("b.mldf"), set, NULL, 0, NULL, 0, &opts, &err), &err);
        dataset_expect(path("b.mldf"), NULL, 30);
        coffer_mldf_close(set);
        coffer_source_close(src);
    }
}

static void fields_are_taken_in_the_order_asked_for(void **state)
{
    static const size_t fields[] = { SMALL_BLOB, SMALL_LABEL };
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL;
    (void)state;
    assert_int_equal(dataset_create(path("a.mldf"), 30, COFFER_MLDF_FIELD_ENCRYPTED, NULL, NULL), COFFER_OK);
    coffer_mldf *set = open_set(&src, "a.mldf", dataset_key);
    must(dataset_extract(path("b.mldf"), set, NULL, 0, fields, 2, &opts, &err), &err);
    coffer_mldf_close(set);
    coffer_source_close(src);
    set = open_set(&src, "b.mldf", dataset_key);
    assert_int_equal(coffer_mldf_field_count(set), 2);
    for (uint64_t i = 0; i < 30; i++) {
        uint8_t expected[256];
        size_t len = dataset_small_value(expected, i, SMALL_BLOB);
        must(coffer_mldf_read(&value, NULL, set, i, 0, &err), &err);
        assert_int_equal(value.size, len == SIZE_MAX ? 0 : len);
        if (len != SIZE_MAX)
            assert_memory_equal(value.data, expected, len);
    }
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    dataset_expect_clean(path("b.mldf"));
}

static void samples_and_fields_that_are_not_there_are_refused(void **state)
{
    static const uint64_t sample = 30;
    static const size_t field = SMALL_FIELDS;
    coffer_source *src = NULL;
    (void)state;
    temp_empty(temp_folder);
    assert_int_equal(dataset_create(path("a.mldf"), 30, 0, NULL, NULL), COFFER_OK);
    coffer_mldf *set = open_set(&src, "a.mldf", NULL);
    assert_int_equal(dataset_extract(path("b.mldf"), set, &sample, 1, NULL, 0, NULL, NULL),
                     COFFER_E_OUT_OF_BOUNDS);
    assert_int_equal(dataset_extract(path("b.mldf"), set, NULL, 0, &field, 1, NULL, NULL),
                     COFFER_E_OUT_OF_BOUNDS);
    coffer_mldf_close(set);
    coffer_source_close(src);
    temp_assert_only(temp_folder, "a.mldf", NULL);
}

static void sets_are_concatenated(void **state)
{
    uint64_t which[35];
    coffer_mldf_writer_opts opts = dataset_small_pages();
    const coffer_mldf_concat_opts concat = { sizeof concat, &opts, NULL };
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (uint64_t i = 0; i < 35; i++)
        which[i] = i < 10 ? i : i < 30 ? i - 10 : i - 30;
    for (size_t k = 0; k < 3; k++) {
        coffer_source *src[3];
        coffer_mldf *sets[3];
        assert_int_equal(dataset_create(path("a.mldf"), 10, kinds[k], NULL, NULL), COFFER_OK);
        assert_int_equal(dataset_create(path("b.mldf"), 20, kinds[k], NULL, NULL), COFFER_OK);
        assert_int_equal(dataset_create(path("c.mldf"), 5, kinds[k], NULL, NULL), COFFER_OK);
        sets[0] = open_set(&src[0], "a.mldf", dataset_key);
        sets[1] = open_set(&src[1], "b.mldf", dataset_key);
        sets[2] = open_set(&src[2], "c.mldf", dataset_key);
        must(coffer_mldf_concat(path("d.mldf"), sets, 3, &concat, &err), &err);
        dataset_expect(path("d.mldf"), which, 35);
        dataset_expect_clean(path("d.mldf"));
        for (size_t i = 0; i < 3; i++) {
            coffer_mldf_close(sets[i]);
            coffer_source_close(src[i]);
        }
    }
}

static void sets_with_other_fields_are_refused_with_the_first_difference(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    const coffer_mldf_concat_opts concat = { sizeof concat, &opts, NULL };
    coffer_mldf_field fields[SMALL_FIELDS];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_writer *writer = NULL;
    coffer_source *src[2];
    coffer_mldf *sets[2];
    (void)state;
    temp_empty(temp_folder);
    assert_int_equal(dataset_create(path("a.mldf"), 10, 0, NULL, NULL), COFFER_OK);
    dataset_usual_fields(fields, 0);
    fields[SMALL_SCORE] = dataset_field_of("score", COFFER_MLDF_INT, 0);
    assert_int_equal(coffer_mldf_writer_create(&writer, path("b.mldf"), fields, SMALL_FIELDS, &opts, NULL),
                     COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    sets[0] = open_set(&src[0], "a.mldf", NULL);
    sets[1] = open_set(&src[1], "b.mldf", NULL);
    assert_int_equal(coffer_mldf_concat(path("c.mldf"), sets, 2, &concat, &err), COFFER_E_INCONSISTENT);
    assert_non_null(
        strstr(err.text, "b.mldf: field 2 is \"score\" (int), in the first set it is \"score\" (float)"));
    for (size_t i = 0; i < 2; i++) {
        coffer_mldf_close(sets[i]);
        coffer_source_close(src[i]);
    }
    temp_assert_only(temp_folder, "a.mldf", "b.mldf", NULL);
}

static void a_damaged_payload_stops_the_copy(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set;
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    temp_empty(temp_folder);
    assert_int_equal(dataset_create(path("a.mldf"), 10, 0, NULL, NULL), COFFER_OK);
    set = open_set(&src, "a.mldf", NULL);
    assert_int_equal(coffer_mldf_entry_at(&entry, set, 7, SMALL_CAPTION, NULL), COFFER_OK);
    coffer_mldf_close(set);
    coffer_source_close(src);
    bytes = temp_read(path("a.mldf"), &len);
    bytes[entry.offset] ^= 1;
    temp_write(path("a.mldf"), bytes, len);
    set = open_set(&src, "a.mldf", NULL);
    assert_int_equal(dataset_extract(path("b.mldf"), set, NULL, 0, NULL, 0, NULL, &err),
                     COFFER_E_BAD_CHECKSUM);
    assert_non_null(strstr(err.text, "sample 7, field caption"));
    coffer_mldf_close(set);
    coffer_source_close(src);
    temp_assert_only(temp_folder, "a.mldf", NULL);
    free(bytes);
}

static void moving_encrypted_samples_needs_the_key(void **state)
{
    static const uint64_t second = 1, first = 0;
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_source *src = NULL;
    (void)state;
    opts.key = NULL;
    assert_int_equal(dataset_create(path("a.mldf"), 10, COFFER_MLDF_FIELD_ENCRYPTED, NULL, NULL), COFFER_OK);
    coffer_mldf *set = open_set(&src, "a.mldf", NULL);
    assert_int_equal(dataset_extract(path("b.mldf"), set, &second, 1, NULL, 0, &opts, NULL),
                     COFFER_E_KEY_NEEDED);
    assert_int_equal(dataset_extract(path("b.mldf"), set, &first, 1, NULL, 0, &opts, NULL), COFFER_OK);
    dataset_expect(path("b.mldf"), NULL, 1);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void fields_of_unknown_types_are_carried_along(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    dataset *made = dataset_new(4, NULL);
    size_t field = dataset_foreign_field(made, "odd", 999, 12), number;
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_source *src = NULL;
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    number = dataset_field(made, "n", COFFER_MLDF_INT, 0);
    for (uint64_t i = 0; i < 4; i++) {
        char row[12] = "abcdefghijk";
        row[11] = (char)i;
        dataset_row(made, i, field, row, sizeof row);
        dataset_int(made, i, number, (int64_t)i);
    }
    bytes = dataset_make(&len, NULL, made);
    temp_write(path("a.mldf"), bytes, len);
    coffer_mldf *set = open_set(&src, "a.mldf", NULL);
    assert_int_equal(dataset_extract(path("b.mldf"), set, NULL, 0, NULL, 0, &opts, NULL), COFFER_OK);
    coffer_mldf_close(set);
    coffer_source_close(src);
    set = open_set(&src, "b.mldf", NULL);
    assert_int_equal(coffer_mldf_read(&value, NULL, set, 3, field, NULL), COFFER_OK);
    assert_int_equal(value.size, 12);
    assert_memory_equal(value.data, "abcdefghijk\3", 12);
    assert_int_equal(coffer_mldf_field_at(set, field)->type, 999);
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(bytes);
    dataset_free(made);
}

static void a_writer_takes_samples_of_another_set(void **state)
{
    static const uint64_t expected[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 4, 5, 6 };
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_copy_opts some = { sizeof some, 4, 3, NULL }, beyond = { sizeof beyond, 8, 3, NULL };
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        coffer_mldf_writer *writer = NULL;
        coffer_source *src = NULL;
        assert_int_equal(dataset_create(path("a.mldf"), 10, kinds[k], NULL, NULL), COFFER_OK);
        coffer_mldf *set = open_set(&src, "a.mldf", dataset_key);
        size_t count = coffer_mldf_field_count(set);
        coffer_mldf_field *fields = calloc(count, sizeof *fields);
        for (size_t i = 0; i < count; i++)
            fields[i] = *coffer_mldf_field_at(set, i);
        opts.key = dataset_key;
        must(coffer_mldf_writer_create(&writer, path("b.mldf"), fields, count, &opts, &err), &err);
        must(coffer_mldf_writer_copy(writer, set, NULL, &err), &err);
        must(coffer_mldf_writer_copy(writer, set, &some, &err), &err);
        assert_int_equal(coffer_mldf_writer_copy(writer, set, &beyond, &err), COFFER_E_OUT_OF_BOUNDS);
        must(coffer_mldf_writer_commit(writer, &err), &err);
        dataset_expect(path("b.mldf"), expected, 13);
        dataset_expect_clean(path("b.mldf"));
        must(coffer_mldf_writer_create(&writer, path("c.mldf"), fields, count - 1, &opts, &err), &err);
        assert_int_equal(coffer_mldf_writer_copy(writer, set, NULL, &err), COFFER_E_INCONSISTENT);
        coffer_mldf_writer_discard(writer);
        free(fields);
        coffer_mldf_close(set);
        coffer_source_close(src);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_taken_in_the_order_asked_for),
        cmocka_unit_test(fields_are_taken_in_the_order_asked_for),
        cmocka_unit_test(samples_and_fields_that_are_not_there_are_refused),
        cmocka_unit_test(sets_are_concatenated),
        cmocka_unit_test(a_writer_takes_samples_of_another_set),
        cmocka_unit_test(sets_with_other_fields_are_refused_with_the_first_difference),
        cmocka_unit_test(a_damaged_payload_stops_the_copy),
        cmocka_unit_test(moving_encrypted_samples_needs_the_key),
        cmocka_unit_test(fields_of_unknown_types_are_carried_along),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
