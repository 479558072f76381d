/* Sets that are changed: appended to, a field more, other values, fewer samples, compacted. */
#include "base/bytes.h"
#include "base/crc32.h"
#include "support/dataset_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED };

static const char *path(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static void must(coffer_status status, const coffer_error *err)
{
    if (status != COFFER_OK)
        fail_msg("%s", err->text);
}

static void create(uint64_t samples, uint16_t flags)
{
    coffer_error err = COFFER_ERROR_INIT;
    must(dataset_create(path(), samples, flags, NULL, &err), &err);
}

static void append(uint64_t first, uint64_t count)
{
    coffer_error err = COFFER_ERROR_INIT;
    must(dataset_append(path(), first, count, &err), &err);
}

static void appended_samples_follow_the_old_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        create(10, kinds[i]);
        append(10, 5);
        append(15, 0);
        append(15, 1000);
        dataset_expect(path(), NULL, 1015);
        dataset_expect_clean(path());
    }
    create(0, 0);
    append(0, 3);
    dataset_expect(path(), NULL, 3);
    dataset_expect_clean(path());
}

static void sets_of_other_writers_are_appended_to(void **state)
{
    (void)state;
    for (int variant = 0; variant < 8; variant++) {
        dataset_opts opts = { .stride = variant & 1 ? 204 : 208,
                              .rows_last = (variant & 2) != 0,
                              .checksummed = (variant & 4) != 0 };
        dataset *set = dataset_small(12, &opts);
        size_t len = 0;
        uint8_t *bytes = dataset_make(&len, NULL, set);
        temp_write(path(), bytes, len);
        append(12, 4);
        append(16, 4);
        dataset_expect(path(), NULL, 20);
        dataset_expect_clean(path());
        free(bytes);
        dataset_free(set);
    }
}

/* The sum of the data may reach to the next part. */
static void sums_of_other_writers_are_continued(void **state)
{
    dataset_opts opts = { .rows_last = true, .checksummed = true };
    dataset *set = dataset_small(12, &opts);
    dataset_places places;
    size_t len = 0;
    uint8_t *bytes = dataset_make(&len, &places, set);
    uint32_t crc = coffer__crc32(0, bytes + places.data, (size_t)(places.rows - places.data));
    static const uint64_t last = 11;
    (void)state;
    coffer__store_u32(bytes + 9 + 56, crc);
    temp_write(path(), bytes, len);
    dataset_expect_clean(path());
    append(12, 4);
    dataset_expect(path(), NULL, 16);
    dataset_expect_clean(path());
    /* And when nothing but rows is new. */
    temp_write(path(), bytes, len);
    assert_int_equal(coffer_mldf_update_delete(path(), &last, 1, NULL, NULL), COFFER_OK);
    dataset_expect(path(), NULL, 11);
    dataset_expect_clean(path());
    free(bytes);
    dataset_free(set);
}

static void appending_nothing_leaves_the_file_as_it_was(void **state)
{
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    temp_empty(temp_folder);
    create(10, 0);
    bytes = temp_read(path(), &len);
    append(10, 0);
    assert_true(temp_holds(path(), bytes, len));
    temp_assert_only(temp_folder, "set.mldf", NULL);
    free(bytes);
}

static void a_discarded_append_leaves_the_file_as_it_was(void **state)
{
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    create(10, 0);
    bytes = temp_read(path(), &len);
    assert_int_equal(coffer_mldf_writer_append_to(&writer, path(), &opts, NULL), COFFER_OK);
    assert_int_equal(dataset_write_samples(writer, 10, 100000, NULL), COFFER_OK);
    dataset_expect(path(), NULL, 10); /* a reader beside the writer */
    coffer_mldf_writer_discard(writer);
    assert_true(temp_holds(path(), bytes, len));
    temp_assert_only(temp_folder, "set.mldf", NULL);
    free(bytes);
}

static void a_damaged_table_is_found_before_it_is_copied(void **state)
{
    coffer_error err = COFFER_ERROR_INIT;
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    create(10, 0);
    bytes = temp_read(path(), &len);
    bytes[len - 20] ^= 1;
    temp_write(path(), bytes, len);
    assert_int_not_equal(dataset_append(path(), 10, 1, &err), COFFER_OK);
    assert_non_null(strstr(err.text, "repair the file first"));
    assert_true(temp_holds(path(), bytes, len));
    free(bytes);
}

/* ---- A field more ---- */

static coffer_status fill_square(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                 coffer_error *err)
{
    char text[32];
    (void)context;
    assert_int_equal(coffer_mldf_writer_set_int(writer, SMALL_LABEL, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mldf_writer_end_sample(writer, NULL), COFFER_E_INVALID_ARGUMENT);
    if (sample % 4 == 3)
        return COFFER_OK;
    int len = snprintf(text, sizeof text, "%llu squared", (unsigned long long)sample);
    return coffer_mldf_writer_set_text(writer, field, text, (size_t)len, err);
}

static void expect_squares(uint64_t samples)
{
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set;
    size_t field;
    assert_int_equal(coffer_source_open(&src, path(), NULL, NULL), COFFER_OK);
    set = dataset_open(src);
    field = coffer_mldf_find_field(set, "square");
    for (uint64_t i = 0; i < samples; i++) {
        char text[32];
        coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
        snprintf(text, sizeof text, "%llu squared", (unsigned long long)i);
        assert_int_equal(coffer_mldf_read(&value, &entry, set, i, field, NULL), COFFER_OK);
        assert_int_equal(entry.present, i % 4 != 3);
        if (entry.present)
            assert_memory_equal(value.data, text, strlen(text));
    }
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void a_field_is_added_with_its_values(void **state)
{
    coffer_mldf_field field =
        dataset_field_of("square", COFFER_MLDF_TEXT, COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_OPTIONAL);
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        create(50, kinds[i]);
        must(coffer_mldf_update_add_field(path(), &field, fill_square, NULL, NULL, &err), &err);
        dataset_expect(path(), NULL, 50);
        expect_squares(50);
        dataset_expect_clean(path());
        /* The descriptors are after the data now. */
        append(50, 10);
        dataset_expect(path(), NULL, 60);
        dataset_expect_clean(path());
    }
    assert_int_equal(coffer_mldf_update_add_field(path(), &field, fill_square, NULL, NULL, &err),
                     COFFER_E_DUPLICATE);
}

static coffer_status fill_nothing(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                  coffer_error *err)
{
    (void)context;
    (void)writer;
    (void)field;
    if (sample < 5)
        return COFFER_OK;
    if (err)
        snprintf(err->text, sizeof err->text, "no value for sample %llu", (unsigned long long)sample);
    return COFFER_E_NOT_FOUND;
}

static void a_field_whose_values_cannot_be_had_is_not_added(void **state)
{
    coffer_mldf_field field = dataset_field_of("extra", COFFER_MLDF_INT, 0);
    coffer_error err = COFFER_ERROR_INIT;
    size_t len = 0;
    uint8_t *bytes;
    (void)state;
    create(10, 0);
    bytes = temp_read(path(), &len);
    assert_int_equal(coffer_mldf_update_add_field(path(), &field, fill_nothing, NULL, NULL, &err),
                     COFFER_E_NOT_FOUND);
    assert_string_equal(err.text, "no value for sample 5");
    assert_true(temp_holds(path(), bytes, len));
    temp_assert_only(temp_folder, "set.mldf", NULL);
    free(bytes);
}

/* ---- Other values ---- */

static coffer_status fill_other(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                coffer_error *err)
{
    const uint64_t *shift = context;
    uint8_t value[256];
    size_t len = dataset_small_value(value, sample + *shift, field);
    if (field != SMALL_LABEL)
        return len == SIZE_MAX ? COFFER_OK
                               : coffer_mldf_writer_set_bytes(writer, field, value, len, NULL, err);
    return coffer_mldf_writer_set_int(writer, field, (int64_t)coffer__load_u64(value), err);
}

static void values_are_replaced_in_one_go(void **state)
{
    uint64_t shift = 7, samples[] = { 9, 2, 2, 49 };
    size_t fields[] = { SMALL_CAPTION, SMALL_LABEL, SMALL_BLOB, SMALL_BLOB };
    coffer_mldf_update_opts opts = dataset_update_opts();
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        create(50, kinds[i]);
        must(coffer_mldf_update_replace(path(), samples, fields, 4, fill_other, &shift, &opts, &err), &err);
        dataset_expect_clean(path());
        shift = 0; /* and back */
        must(coffer_mldf_update_replace(path(), samples, fields, 4, fill_other, &shift, &opts, &err), &err);
        dataset_expect(path(), NULL, 50);
        dataset_expect_clean(path());
        shift = 7;
    }
    samples[1] = 50;
    assert_int_equal(coffer_mldf_update_replace(path(), samples, fields, 4, fill_other, &shift, &opts, &err),
                     COFFER_E_OUT_OF_BOUNDS);
    samples[1] = 2;
    fields[1] = SMALL_BLOB;
    assert_int_equal(coffer_mldf_update_replace(path(), samples, fields, 4, fill_other, &shift, &opts, &err),
                     COFFER_E_DUPLICATE);
    dataset_expect(path(), NULL, 50);
}

/* ---- Fewer samples ---- */

static void compact(void)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_node *out = NULL;
    assert_int_equal(coffer_node_new(&out, NULL), COFFER_OK);
    must(coffer_compact(out, path(), NULL, NULL, &err), &err);
    assert_true(coffer_node_get_u64(coffer_node_find(out, "size_after")) <
                coffer_node_get_u64(coffer_node_find(out, "size_before")));
    coffer_node_free(out);
}

static void deleted_samples_are_gone_and_the_others_move_up(void **state)
{
    static const uint64_t gone[] = { 3, 0, 9 }, left[] = { 1, 2, 4, 5, 6, 7, 8 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        create(10, kinds[i]);
        must(coffer_mldf_update_delete(path(), gone, 3, &opts, &err), &err);
        dataset_expect(path(), left, 7);
        dataset_expect_clean(path());
        compact();
        dataset_expect(path(), left, 7);
        dataset_expect_clean(path());
    }
}

static void a_set_may_lose_all_its_samples(void **state)
{
    static const uint64_t all[] = { 0, 1, 2 };
    (void)state;
    create(3, 0);
    assert_int_equal(coffer_mldf_update_delete(path(), all, 3, NULL, NULL), COFFER_OK);
    dataset_expect(path(), NULL, 0);
    dataset_expect_clean(path());
    append(0, 5);
    dataset_expect(path(), NULL, 5);
    dataset_expect_clean(path());
    compact();
    dataset_expect(path(), NULL, 5);
    dataset_expect_clean(path());
}

static void deleting_from_an_encrypted_set_needs_the_key(void **state)
{
    static const uint64_t first[] = { 0 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t wrong[COFFER_MLDF_KEY_SIZE] = { 7 };
    (void)state;
    create(10, COFFER_MLDF_FIELD_ENCRYPTED);
    opts.key = NULL;
    assert_int_equal(coffer_mldf_update_delete(path(), first, 1, &opts, &err), COFFER_E_KEY_NEEDED);
    opts.key = wrong;
    assert_int_equal(coffer_mldf_update_delete(path(), first, 1, &opts, &err),
                     COFFER_E_AUTHENTICATION_FAILED);
    assert_non_null(strstr(err.text, "authentication failed for sample 1"));
    dataset_expect(path(), NULL, 10);
    temp_assert_only(temp_folder, "set.mldf", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_samples_follow_the_old_ones),
        cmocka_unit_test(sets_of_other_writers_are_appended_to),
        cmocka_unit_test(sums_of_other_writers_are_continued),
        cmocka_unit_test(appending_nothing_leaves_the_file_as_it_was),
        cmocka_unit_test(a_discarded_append_leaves_the_file_as_it_was),
        cmocka_unit_test(a_damaged_table_is_found_before_it_is_copied),
        cmocka_unit_test(a_field_is_added_with_its_values),
        cmocka_unit_test(a_field_whose_values_cannot_be_had_is_not_added),
        cmocka_unit_test(values_are_replaced_in_one_go),
        cmocka_unit_test(deleted_samples_are_gone_and_the_others_move_up),
        cmocka_unit_test(a_set_may_lose_all_its_samples),
        cmocka_unit_test(deleting_from_an_encrypted_set_needs_the_key),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
