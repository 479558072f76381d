/* Sets that were cut off, damaged or changed by another program, and the marks that a repair leaves. */
#include "base/bytes.h"
#include "formats/mldf/mldf_layout.h"
#include "formats/mldf/mldf_private.h"
#include "support/dataset_write.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 200

static const char *file(void)
{
    return temp_path(temp_folder, "set.mldf");
}

static const char *repaired(void)
{
    return temp_path(temp_folder, "repaired.mldf");
}

static coffer_report *repair(void)
{
    coffer_mldf_repair_opts opts = COFFER_MLDF_REPAIR_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_open(&src, file(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    opts.key = dataset_key;
    opts.overwrite = true;
    if (coffer_mldf_repair(report, src, repaired(), &opts, &err) != COFFER_OK)
        fail_msg("%d: %s", err.status, err.text);
    coffer_source_close(src);
    return report;
}

static uint64_t samples_of(const char *path)
{
    coffer_mldf *set = NULL;
    assert_int_equal(coffer_mldf_open_path(&set, path, NULL, NULL), COFFER_OK);
    uint64_t samples = coffer_mldf_sample_count(set);
    coffer_mldf_close(set);
    return samples;
}

static uint64_t header_number(const uint8_t *bytes, size_t at)
{
    return coffer__load_u64(bytes + COFFER__MLDF_HEADER_AT + at);
}

/* ---- Recovery ---- */

static void a_cut_set_keeps_the_samples_in_front_of_the_cut(void **state)
{
    static const uint16_t kinds[] = { 0, COFFER_MLDF_FIELD_ZSTD, COFFER_MLDF_FIELD_ENCRYPTED };
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        size_t len = 0;
        uint64_t last = 0;
        assert_int_equal(dataset_create(file(), SAMPLES, kinds[k], NULL, NULL), COFFER_OK);
        uint8_t *bytes = temp_read(file(), &len);
        uint64_t data = header_number(bytes, COFFER__MLDF_DATA_AT);
        for (size_t size = (size_t)data + 9000; size < len; size += (len - (size_t)data) / 5) {
            temp_write(file(), bytes, size);
            coffer_report *report = repair();
            uint64_t kept = samples_of(repaired());
            assert_int_equal(coffer_report_total(report, COFFER_ERROR) > 0, kept < SAMPLES);
            assert_true(kept >= last && kept > 0 && kept <= SAMPLES);
            coffer_report_free(report);
            dataset_expect(repaired(), NULL, kept);
            dataset_expect_clean(repaired());
            last = kept;
        }
        free(bytes);
    }
}

static void appended_samples_are_saved_as_well(void **state)
{
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), 50, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(dataset_append(file(), 50, 100, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    temp_write(file(), bytes, (size_t)header_number(bytes, COFFER__MLDF_METADATA_AT));
    coffer_report_free(repair());
    dataset_expect(repaired(), NULL, 150);
    dataset_expect_clean(repaired());
    free(bytes);
}

static void rows_of_a_deleted_state_do_not_come_back(void **state)
{
    static const uint64_t gone[] = { 0 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), 50, 0, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_update_delete(file(), gone, 1, &opts, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    temp_write(file(), bytes, (size_t)header_number(bytes, COFFER__MLDF_METADATA_AT));
    assert_int_equal(coffer_source_open(&src, file(), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_repair(report, src, repaired(), NULL, NULL), COFFER_E_TRUNCATED);
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
}

static void damaged_rows_are_restored(void **state)
{
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), SAMPLES, 0, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    memset(bytes + header_number(bytes, COFFER__MLDF_METADATA_AT) + 500, 0xee, 3000);
    temp_write(file(), bytes, len);
    coffer_report *report = repair();
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    dataset_expect(repaired(), NULL, SAMPLES);
    dataset_expect_clean(repaired());
    coffer_report_free(report);
    free(bytes);
}

static void a_damaged_header_is_replaced_by_its_copy(void **state)
{
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), SAMPLES, 0, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    for (size_t at = COFFER__MLDF_FLAGS_AT + 1; at < COFFER__MLDF_HEADER_SIZE; at += 5) {
        bytes[COFFER__MLDF_HEADER_AT + at] ^= 0x10;
        temp_write(file(), bytes, len);
        bytes[COFFER__MLDF_HEADER_AT + at] ^= 0x10;
        coffer_report_free(repair());
        dataset_expect(repaired(), NULL, SAMPLES);
        dataset_expect_clean(repaired());
    }
    free(bytes);
}

/* ---- A change by another program ---- */

/* Version 0.1 writes new tables after the old end and knows no guard. */
static void a_guard_that_another_program_left_behind_is_a_warning(void **state)
{
    size_t len = 0;
    (void)state;
    assert_int_equal(dataset_create(file(), 4, 0, NULL, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(file(), &len);
    uint64_t rows = header_number(bytes, COFFER__MLDF_METADATA_AT);
    uint64_t table = header_number(bytes, COFFER__MLDF_TABLE_AT), rows_len = table - 256 - rows;
    uint8_t *grown = calloc(1, 2 * len);
    assert_non_null(grown);
    memcpy(grown, bytes, len);
    memcpy(grown + len, bytes + rows, rows_len);
    memcpy(grown + len + rows_len, bytes + table, len - table);
    coffer__store_u64(grown + COFFER__MLDF_HEADER_AT + COFFER__MLDF_METADATA_AT, len);
    coffer__store_u64(grown + COFFER__MLDF_HEADER_AT + COFFER__MLDF_TABLE_AT, len + rows_len);
    coffer_source *src = dataset_source_of(grown, len + rows_len + len - table);
    coffer_report *report = dataset_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 0);
    assert_true(dataset_has(report, COFFER_E_INCONSISTENT, COFFER_WARNING));
    coffer_report_free(report);
    coffer_mldf_open_opts opts = COFFER_MLDF_OPEN_OPTS_INIT;
    coffer_mldf *set = NULL;
    opts.verify = true;
    assert_int_equal(coffer_mldf_open(&set, src, &opts, NULL), COFFER_OK);
    coffer_mldf_close(set);
    coffer_source_close(src);
    free(grown);
    free(bytes);
}

/* ---- Marks ---- */

/* The tables of a set of version 0.1 are cut off: all samples are kept with a mark. */
static void make_marked(void)
{
    dataset_places places;
    dataset_opts opts = { .checksummed = true };
    dataset *set = dataset_small(10, &opts);
    size_t len = 0;
    uint8_t *bytes = dataset_make(&len, &places, set);
    temp_write(file(), bytes, (size_t)places.table);
    coffer_report_free(repair());
    free(bytes);
    dataset_free(set);
}

static void expect_mark(const char *path, uint64_t first, uint64_t count)
{
    coffer_mldf *set = NULL;
    coffer_mldf_mark mark = COFFER_MLDF_MARK_INIT;
    assert_int_equal(coffer_mldf_open_path(&set, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mldf_mark_count(set), count ? 1 : 0);
    if (count) {
        assert_int_equal(coffer_mldf_mark_at(&mark, set, 0, NULL), COFFER_OK);
        assert_int_equal(mark.first, first);
        assert_int_equal(mark.count, count);
    }
    assert_int_equal(coffer_mldf_mark_at(&mark, set, 1, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_mldf_close(set);
}

static coffer_status fill_again(void *context, coffer_mldf_writer *writer, uint64_t sample, size_t field,
                                coffer_error *err)
{
    (void)context;
    (void)sample;
    return field == SMALL_LABEL   ? coffer_mldf_writer_set_int(writer, field, 1, err)
           : field == SMALL_SCORE ? coffer_mldf_writer_set_float(writer, field, 1, err)
                                  : COFFER_OK;
}

static void marks_follow_their_samples(void **state)
{
    static const uint64_t gone[] = { 0, 1, 9 }, taken[] = { 2, 3 }, all[] = { 6, 6, 6, 6, 6 };
    static const size_t fields[] = { 0, 1, 2, 3, 4 };
    coffer_mldf_update_opts opts = dataset_update_opts();
    coffer_mldf *set = NULL;
    (void)state;
    make_marked();
    expect_mark(repaired(), 0, 10);
    assert_int_equal(dataset_append(repaired(), 10, 3, NULL), COFFER_OK);
    expect_mark(repaired(), 0, 10);
    assert_int_equal(coffer_mldf_update_delete(repaired(), gone, 3, &opts, NULL), COFFER_OK);
    expect_mark(repaired(), 0, 7);
    assert_int_equal(coffer_mldf_update_replace(repaired(), all, fields, 1, fill_again, NULL, &opts, NULL),
                     COFFER_OK);
    expect_mark(repaired(), 0, 7);
    assert_int_equal(coffer_mldf_update_replace(repaired(), all, fields, 5, fill_again, NULL, &opts, NULL),
                     COFFER_OK);
    expect_mark(repaired(), 0, 6);
    assert_int_equal(coffer_mldf_open_path(&set, repaired(), NULL, NULL), COFFER_OK);
    coffer_mldf_writer_opts write = dataset_small_pages();
    assert_int_equal(dataset_extract(file(), set, taken, 2, NULL, 0, &write, NULL), COFFER_OK);
    coffer_mldf_close(set);
    expect_mark(file(), 0, 2);
}

/* Copying looks marks up for every sample, so a malicious file must not make that slow. */
static void marks_of_one_field_are_joined_and_sorted(void **state)
{
    (void)state;
    coffer__mldf_mark marks[] = { { 50, 5, 1, 1 },  { 7, UINT64_MAX, 2, 1 }, { 10, 5, 1, 1 },
                                  { 12, 20, 1, 1 }, { 32, 1, 1, 1 },         { 10, 5, 1, 2 },
                                  { 11, 1, 1, 1 },  { 100, 1, 0, 1 },        { 9, 3, 2, 1 } };
    const coffer__mldf_mark expected[] = {
        { 100, 1, 0, 1 }, { 10, 23, 1, 1 }, { 50, 5, 1, 1 }, { 10, 5, 1, 2 }, { 7, UINT64_MAX - 7, 2, 1 }
    };
    size_t count = sizeof marks / sizeof *marks, wanted = sizeof expected / sizeof *expected;
    coffer__mldf_sort_marks(marks, &count);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < wanted; i++) {
        assert_int_equal(marks[i].first, expected[i].first);
        assert_int_equal(marks[i].count, expected[i].count);
        assert_int_equal(marks[i].field, expected[i].field);
        assert_int_equal(marks[i].kind, expected[i].kind);
    }
    count = 0;
    coffer__mldf_sort_marks(NULL, &count);
    assert_int_equal(count, 0);
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
        cmocka_unit_test_setup(a_cut_set_keeps_the_samples_in_front_of_the_cut, empty_folder),
        cmocka_unit_test_setup(appended_samples_are_saved_as_well, empty_folder),
        cmocka_unit_test_setup(rows_of_a_deleted_state_do_not_come_back, empty_folder),
        cmocka_unit_test_setup(damaged_rows_are_restored, empty_folder),
        cmocka_unit_test_setup(a_damaged_header_is_replaced_by_its_copy, empty_folder),
        cmocka_unit_test_setup(a_guard_that_another_program_left_behind_is_a_warning, empty_folder),
        cmocka_unit_test_setup(marks_follow_their_samples, empty_folder),
        cmocka_unit_test(marks_of_one_field_are_joined_and_sorted),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
