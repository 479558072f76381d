/* Damaged sets: what is whole is saved, what is not is named. */
#include "formats/mldf/mldf_layout.h"
#include "support/dataset_write.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 30

static const char *broken(void)
{
    return temp_path(temp_folder, "broken.mldf");
}

static const char *repaired(void)
{
    return temp_path(temp_folder, "repaired.mldf");
}

static const char *second_copy(void)
{
    return temp_path(temp_folder, "copy.mldf");
}

/* Where sample and field of a file are stored. */
static coffer_mldf_entry entry_in(const uint8_t *bytes, size_t len, uint64_t sample, size_t field)
{
    coffer_source *src = dataset_source_of(bytes, len);
    coffer_mldf *set = dataset_open(src);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    assert_int_equal(coffer_mldf_entry_at(&entry, set, sample, field, NULL), COFFER_OK);
    coffer_mldf_close(set);
    coffer_source_close(src);
    return entry;
}

static uint8_t *make(size_t *len, uint16_t flags)
{
    assert_int_equal(dataset_create(broken(), SAMPLES, flags, NULL, NULL), COFFER_OK);
    return temp_read(broken(), len);
}

/* Repairs broken() into repaired(); the report is the caller's. */
static coffer_report *repair(const char *copy, const uint8_t *key, coffer_status expected)
{
    coffer_mldf_repair_opts opts = COFFER_MLDF_REPAIR_OPTS_INIT;
    coffer_mldf_open_opts open_opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_source *src = NULL, *copy_src = NULL;
    coffer_mldf *copy_set = NULL;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    open_opts.verify = true;
    assert_int_equal(coffer_source_open(&src, broken(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (copy) {
        assert_int_equal(coffer_source_open(&copy_src, copy, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_mldf_open(&copy_set, copy_src, &open_opts, NULL), COFFER_OK);
    }
    opts.copy = copy_set;
    opts.key = key;
    opts.overwrite = true;
    if (coffer_mldf_repair(report, src, repaired(), &opts, &err) != expected)
        fail_msg("%d: %s", err.status, err.text);
    coffer_mldf_close(copy_set);
    coffer_source_close(copy_src);
    coffer_source_close(src);
    return report;
}

static bool tells(const coffer_report *report, const char *words)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (strstr(coffer_report_at(report, i)->text, words))
            return true;
    }
    return false;
}

/* Samples 0 to count − 1 without those named. */
static void expect_without(uint64_t count, const uint64_t *gone, size_t gone_count)
{
    uint64_t left[SAMPLES];
    size_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool stays = true;
        for (size_t g = 0; g < gone_count; g++)
            stays = stays && gone[g] != i;
        if (stays)
            left[kept++] = i;
    }
    dataset_expect(repaired(), left, kept);
    dataset_expect_clean(repaired());
}

/* Nothing vouches for these samples: they are kept, and the file says so until they are replaced. */
static void expect_marked(uint64_t first, uint64_t count, size_t field, coffer_mldf_mark_kind kind)
{
    coffer_source *src = NULL;
    coffer_mldf_mark mark = COFFER_MLDF_MARK_INIT;
    assert_int_equal(coffer_source_open(&src, repaired(), NULL, NULL), COFFER_OK);
    coffer_mldf *set = dataset_open(src);
    coffer_report *report = dataset_check(src, true);
    assert_int_equal(coffer_mldf_mark_count(set), 1);
    assert_int_equal(coffer_mldf_mark_at(&mark, set, 0, NULL), COFFER_OK);
    assert_int_equal(mark.first, first);
    assert_int_equal(mark.count, count);
    assert_int_equal(mark.field, field);
    assert_int_equal(mark.kind, kind);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_true(dataset_has(report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR));
    coffer_report_free(report);
    coffer_mldf_close(set);
    coffer_source_close(src);
}

static void a_clean_set_is_copied_as_it_is(void **state)
{
    size_t len = 0;
    uint8_t *bytes = make(&len, 0);
    coffer_report *report = repair(NULL, NULL, COFFER_OK);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    assert_true(temp_holds(repaired(), bytes, len));
    coffer_report_free(report);
    free(bytes);
}

static void samples_with_flipped_bits_are_dropped_and_named(void **state)
{
    static const uint64_t gone[] = { 4, 17 };
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD, COFFER_MLDF_FIELD_ENCRYPTED };
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        size_t len = 0;
        uint8_t *bytes = make(&len, kinds[k]);
        bytes[entry_in(bytes, len, 4, SMALL_IMAGE).offset] ^= 1;
        bytes[entry_in(bytes, len, 17, SMALL_CAPTION).offset + 1] ^= 8;
        temp_write(broken(), bytes, len);
        coffer_report *report = repair(NULL, dataset_key, COFFER_OK);
        assert_true(tells(report, "sample 4, field image"));
        assert_true(tells(report, "sample 17, field caption"));
        assert_true(tells(report, "samples kept: 28 of 30"));
        expect_without(SAMPLES, gone, 2);
        coffer_report_free(report);
        free(bytes);
    }
}

static void encrypted_samples_keep_their_numbers_without_the_key(void **state)
{
    size_t len = 0;
    uint8_t *bytes = make(&len, COFFER_MLDF_FIELD_ENCRYPTED);
    coffer_bytes value = COFFER_BYTES_INIT;
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_source *src = NULL;
    coffer_mldf *set = NULL;
    (void)state;
    bytes[entry_in(bytes, len, 4, SMALL_CAPTION).offset + 30] ^= 1;
    temp_write(broken(), bytes, len);
    coffer_report *report = repair(NULL, NULL, COFFER_OK);
    assert_true(tells(report, "the value is lost"));
    opts.key = dataset_key;
    assert_int_equal(coffer_source_open(&src, repaired(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_sample_count(set), SAMPLES);
    assert_int_equal(coffer_mldf_read(&value, &entry, set, 4, SMALL_CAPTION, NULL), COFFER_OK);
    assert_false(entry.present);
    assert_int_equal(coffer_mldf_read(&value, &entry, set, 5, SMALL_CAPTION, NULL), COFFER_OK);
    assert_true(entry.present);
    coffer_free(value.data);
    coffer_mldf_close(set);
    coffer_source_close(src);
    expect_marked(4, 1, SMALL_CAPTION, COFFER_MLDF_MARK_LOST);
    coffer_report_free(report);
    free(bytes);
}

static void damaged_samples_are_fetched_from_a_copy(void **state)
{
    size_t len = 0;
    uint8_t *bytes = make(&len, COFFER_MLDF_FIELD_ZSTD);
    (void)state;
    temp_write(second_copy(), bytes, len);
    bytes[entry_in(bytes, len, 4, SMALL_IMAGE).offset] ^= 1;
    bytes[entry_in(bytes, len, 17, SMALL_CAPTION).offset + 1] ^= 8;
    temp_write(broken(), bytes, len);
    coffer_report *report = repair(second_copy(), NULL, COFFER_OK);
    assert_true(tells(report, "taken from the copy"));
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    dataset_expect(repaired(), NULL, SAMPLES);
    dataset_expect_clean(repaired());
    coffer_report_free(report);
    free(bytes);
}

static void a_copy_with_other_bytes_or_fields_is_not_used(void **state)
{
    static const uint64_t gone[] = { 4 };
    size_t len = 0;
    uint8_t *bytes = make(&len, 0);
    coffer_mldf_field field = dataset_field_of("image", COFFER_MLDF_INT, 0);
    coffer_mldf_writer_opts opts = dataset_small_pages();
    coffer_mldf_writer *writer = NULL;
    (void)state;
    bytes[entry_in(bytes, len, 4, SMALL_IMAGE).offset] ^= 1;
    temp_write(broken(), bytes, len);
    temp_write(second_copy(), bytes, len); /* damaged in the same place */
    coffer_report *report = repair(second_copy(), NULL, COFFER_OK);
    expect_without(SAMPLES, gone, 1);
    coffer_report_free(report);
    assert_int_equal(coffer_mldf_writer_create(&writer, second_copy(), &field, 1, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_writer_commit(writer, NULL), COFFER_OK);
    coffer_report_free(repair(second_copy(), NULL, COFFER_E_INCONSISTENT));
    free(bytes);
}

static void a_set_without_its_table_is_rebuilt_from_the_rows(void **state)
{
    dataset_places places;
    dataset_opts opts = { .checksummed = true };
    dataset *set = dataset_small(SAMPLES, &opts);
    size_t len = 0;
    uint8_t *bytes = dataset_make(&len, &places, set);
    (void)state;
    /* Cut in the middle of the table, and before it. */
    for (int i = 0; i < 2; i++) {
        temp_write(broken(), bytes, (size_t)places.table + (i == 0 ? 40 : 0));
        coffer_report *report = repair(NULL, NULL, COFFER_OK);
        dataset_expect(repaired(), NULL, SAMPLES);
        assert_true(tells(report, "samples that could not be verified: 30"));
        expect_marked(0, SAMPLES, COFFER_INDEX_NONE, COFFER_MLDF_MARK_UNVERIFIED);
        coffer_report_free(report);
    }
    free(bytes);
    dataset_free(set);
}

static void of_a_cut_set_the_samples_in_front_of_the_cut_are_saved(void **state)
{
    dataset_places places;
    dataset_opts opts = { .checksummed = true };
    dataset *set = dataset_small(SAMPLES, &opts);
    size_t len = 0;
    uint8_t *bytes = dataset_make(&len, &places, set);
    coffer_report *report;
    (void)state;
    temp_write(second_copy(), bytes, len);
    temp_write(broken(), bytes, (size_t)(places.data + places.table) / 2);
    report = repair(NULL, NULL, COFFER_OK);
    assert_true(tells(report, "the sample is lost"));
    assert_true(tells(report, "samples that could not be verified"));
    coffer_report_free(report);
    report = repair(second_copy(), NULL, COFFER_OK);
    dataset_expect(repaired(), NULL, SAMPLES);
    dataset_expect_clean(repaired());
    coffer_report_free(report);
    free(bytes);
    dataset_free(set);
}

static void a_cut_set_whose_rows_came_last_is_saved_by_a_copy_only(void **state)
{
    size_t len = 0;
    uint8_t *bytes = make(&len, 0);
    (void)state;
    temp_write(second_copy(), bytes, len);
    temp_write(broken(), bytes, 5000);
    coffer_report_free(repair(NULL, NULL, COFFER_E_TRUNCATED));
    assert_false(temp_exists(repaired()));
    coffer_report_free(repair(second_copy(), NULL, COFFER_OK));
    dataset_expect(repaired(), NULL, SAMPLES);
    dataset_expect_clean(repaired());
    free(bytes);
}

static void wrong_sums_and_flags_of_the_header_are_put_right(void **state)
{
    static const size_t places[] = { 9 + 56, 9 + 60, 9 + 4 };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t len = 0;
        uint8_t *bytes = make(&len, COFFER_MLDF_FIELD_ZSTD);
        bytes[places[i]] ^= 2;
        temp_write(broken(), bytes, len);
        coffer_report_free(repair(NULL, NULL, COFFER_OK));
        dataset_expect(repaired(), NULL, SAMPLES);
        dataset_expect_clean(repaired());
        free(bytes);
    }
}

static void arrays_whose_shape_is_lost_become_bytes(void **state)
{
    static const uint64_t dims[] = { 4 };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dataset *made = dataset_new(2, NULL);
        dataset_places places;
        size_t len;
        dataset_array_field(made, "a", COFFER_MLDF_NDARRAY, 0, 6, 1, dims);
        dataset_bytes(made, 0, 0, "1234", 4, NULL);
        dataset_bytes(made, 1, 0, "5678", 4, NULL);
        uint8_t *bytes = dataset_make(&len, &places, made);
        bytes[places.descriptors + COFFER__MLDF_ARGUMENTS_AT + i] = 99; /* element type, dimensions */
        temp_write(broken(), bytes, len);
        coffer_report *report = repair(NULL, NULL, COFFER_OK);
        assert_true(tells(report, "they are bytes now"));
        coffer_report_free(report);
        dataset_expect_clean(repaired());
        free(bytes);
        dataset_free(made);
    }
}

/* Whatever a repair makes of any file is clean. */
static void what_is_made_of_the_vectors_is_clean(void **state)
{
    coffer_mldf_repair_opts opts = COFFER_MLDF_REPAIR_OPTS_INIT;
    DIR *folder = opendir(COFFER_TEST_DATA "/vectors/mldf");
    size_t made = 0;
    opts.overwrite = true;
    (void)state;
    assert_non_null(folder);
    for (struct dirent *file; (file = readdir(folder));) {
        char from[512];
        coffer_source *src = NULL;
        coffer_report *report = NULL;
        if (!strstr(file->d_name, ".mldf"))
            continue;
        snprintf(from, sizeof from, COFFER_TEST_DATA "/vectors/mldf/%s", file->d_name);
        assert_int_equal(coffer_source_open(&src, from, NULL, NULL), COFFER_OK);
        assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
        if (coffer_mldf_repair(report, src, repaired(), &opts, NULL) == COFFER_OK) {
            coffer_source *result = NULL;
            assert_int_equal(coffer_source_open(&result, repaired(), NULL, NULL), COFFER_OK);
            coffer_report *after = dataset_check(result, true);
            if (coffer_report_total(after, COFFER_ERROR) > 0)
                fail_msg("%s: %s", file->d_name, coffer_report_at(after, 0)->text);
            coffer_report_free(after);
            coffer_source_close(result);
            made++;
        }
        coffer_report_free(report);
        coffer_source_close(src);
    }
    closedir(folder);
    assert_true(made >= 15);
}

static int empty_folder(void **state)
{
    (void)state;
    temp_empty(temp_folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_clean_set_is_copied_as_it_is, empty_folder),
        cmocka_unit_test_setup(samples_with_flipped_bits_are_dropped_and_named, empty_folder),
        cmocka_unit_test_setup(encrypted_samples_keep_their_numbers_without_the_key, empty_folder),
        cmocka_unit_test_setup(damaged_samples_are_fetched_from_a_copy, empty_folder),
        cmocka_unit_test_setup(a_copy_with_other_bytes_or_fields_is_not_used, empty_folder),
        cmocka_unit_test_setup(a_set_without_its_table_is_rebuilt_from_the_rows, empty_folder),
        cmocka_unit_test_setup(of_a_cut_set_the_samples_in_front_of_the_cut_are_saved, empty_folder),
        cmocka_unit_test_setup(a_cut_set_whose_rows_came_last_is_saved_by_a_copy_only, empty_folder),
        cmocka_unit_test_setup(wrong_sums_and_flags_of_the_header_are_put_right, empty_folder),
        cmocka_unit_test_setup(arrays_whose_shape_is_lost_become_bytes, empty_folder),
        cmocka_unit_test_setup(what_is_made_of_the_vectors_is_clean, empty_folder),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
