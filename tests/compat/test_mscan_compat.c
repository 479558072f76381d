/* Files that the format's first programs wrote. */
#include "support/scan.h"

#include <string.h>

#define FOLDER COFFER_TEST_DATA "/compat/mscan/"

static void the_io_modules_file_is_clean_and_complete(void **state)
{
    coffer_source *src = scan_source(FOLDER "scanner-io-two-appends.mscan");
    coffer_mscan *scan = scan_open(src);
    coffer_report *report = scan_check(src, false);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    assert_int_equal(coffer_mscan_record_count(scan), 256);
    assert_int_equal(coffer_mscan_total_tokens(scan), 8);
    assert_int_equal(coffer_mscan_sequence_count(scan), 2);
    assert_int_equal(coffer_mscan_param_count(scan), 8);
    assert_string_equal(coffer_mscan_model_name(scan), "test/tiny");
    assert_string_equal(coffer_mscan_sequence_at(scan, 1)->source, "Assistant: 8");
    coffer_report_free(report);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void the_io_modules_file_can_be_appended_to(void **state)
{
    const char *path = temp_path(temp_folder, "grown.mscan");
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    temp_copy(FOLDER "scanner-io-two-appends.mscan", path);
    assert_int_equal(scan_append(path, "more", 2, &err), COFFER_OK);
    scan_assert_clean(path);

    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 260);
    assert_int_equal(coffer_mscan_total_tokens(scan), 10);
    assert_int_equal(coffer_mscan_param_count(scan), 10);
    assert_int_equal(coffer_mscan_sequence_at(scan, 2)->sequence_id, 2);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void an_overwritten_head_is_named_and_the_rest_is_kept(void **state)
{
    const char *path = temp_path(temp_folder, "saved.mscan");
    coffer_source *src = scan_source(FOLDER "mscanwriter-overwritten-head.mscan");
    coffer_report *found = scan_check(src, false), *done = NULL;
    coffer_mscan_record record;
    (void)state;
    assert_true(scan_has(found, COFFER_E_TRUNCATED, COFFER_ERROR));
    assert_non_null(
        strstr(scan_text(found, COFFER_E_TRUNCATED), "written over the first records: 13 of 1280"));
    assert_int_equal(coffer_report_total(found, COFFER_ERROR), 1);

    assert_int_equal(coffer_report_new(&done, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(done, src, path, NULL, NULL), COFFER_OK);
    assert_non_null(strstr(scan_text(done, COFFER_E_TRUNCATED), "13; kept: 1267"));
    coffer_source_close(src);
    scan_assert_clean(path);

    src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 1267);
    assert_int_equal(coffer_mscan_read(&record, scan, 0, 1, NULL), COFFER_OK);
    assert_int_equal(record.token_idx, 0);
    assert_int_equal(record.param_id, 3);
    assert_int_equal(record.block_idx, 1);
    assert_int_equal(record.activation, 856);
    assert_int_equal(coffer_mscan_read(&record, scan, 1266, 1, NULL), COFFER_OK);
    assert_int_equal(record.token_idx, 39);
    assert_int_equal(record.activation, 364);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    coffer_report_free(found);
    coffer_report_free(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_io_modules_file_is_clean_and_complete),
        cmocka_unit_test(the_io_modules_file_can_be_appended_to),
        cmocka_unit_test(an_overwritten_head_is_named_and_the_rest_is_kept),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
