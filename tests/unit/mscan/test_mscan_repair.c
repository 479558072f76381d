#include "support/scan.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS COFFER_TEST_DATA "/vectors/mscan/"

/* Repairs into "out"; *report is coffer_report_free's, when asked for. */
static coffer_status repair(coffer_source *src, bool keep_tail, coffer_report **report)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *done = NULL;
    opts.keep_tail = keep_tail;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&done, 0, NULL), COFFER_OK);
    coffer_status status = coffer_repair(done, src, temp_path(temp_folder, "out"), &opts, NULL);
    if (report)
        *report = done;
    else
        coffer_report_free(done);
    return status;
}

static coffer_status repair_vector(const char *name, bool keep_tail, coffer_report **report)
{
    char path[4096];
    snprintf(path, sizeof path, VECTORS "%s", name);
    coffer_source *src = scan_source(path);
    coffer_status status = repair(src, keep_tail, report);
    coffer_source_close(src);
    return status;
}

/* Metadata that was lost stays marked. */
static void assert_no_error_but_marks(void)
{
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    coffer_report *report = scan_check(src, true);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->severity == COFFER_ERROR && !strstr(finding->text, "the file was repaired"))
            fail_msg("%s", finding->text);
    }
    coffer_report_free(report);
    coffer_source_close(src);
}

static void what_is_repaired_is_clean(void **state)
{
    DIR *list = opendir(VECTORS);
    size_t repaired = 0;
    (void)state;
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        for (int keep_tail = 0; entry->d_name[0] != '.' && keep_tail < 2; keep_tail++) {
            if (repair_vector(entry->d_name, keep_tail, NULL) != COFFER_OK)
                continue;
            if (strstr(entry->d_name, "json"))
                assert_no_error_but_marks();
            else
                scan_assert_clean(temp_path(temp_folder, "out"));
            repaired++;
        }
    }
    closedir(list);
    assert_true(repaired >= 26);
}

static void a_clean_file_is_copied_without_a_word(void **state)
{
    static const char *const names[] = { "two-sequences.mscan", "compact-json.mscan", "empty.mscan" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096];
        coffer_report *report;
        size_t len;
        snprintf(path, sizeof path, VECTORS "%s", names[i]);
        assert_int_equal(repair_vector(names[i], false, &report), COFFER_OK);
        assert_int_equal(coffer_report_count(report), 0);
        uint8_t *bytes = temp_read(path, &len);
        assert_true(temp_holds(temp_path(temp_folder, "out"), bytes, len));
        coffer_report_free(report);
        free(bytes);
    }
}

static void assert_out_has(uint64_t records, uint64_t tokens, size_t sequences)
{
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), records);
    assert_int_equal(coffer_mscan_total_tokens(scan), tokens);
    assert_int_equal(coffer_mscan_sequence_count(scan), sequences);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void whole_records_of_a_truncated_file_are_kept(void **state)
{
    (void)state;
    assert_int_equal(repair_vector("truncated-records.mscan", false, NULL), COFFER_OK);
    assert_out_has(287, 12, 2);
    assert_int_equal(repair_vector("count-huge.mscan", true, NULL), COFFER_OK);
    assert_out_has(288, 12, 2);
}

static void an_unfinished_append_is_dropped_or_taken_in(void **state)
{
    (void)state;
    assert_int_equal(repair_vector("trailing-bytes.mscan", false, NULL), COFFER_OK);
    assert_out_has(288, 12, 2);
    assert_int_equal(repair_vector("trailing-bytes.mscan", true, NULL), COFFER_OK);
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 290);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void a_tail_is_taken_in_as_far_as_it_makes_sense(void **state)
{
    static const char json[] =
        "{\"id_to_param_name_map\": {\"1\": \"one\"}, \"sequences\": [{\"sequence_id\": 7, "
        "\"num_tokens\": 1}]}";
    static const coffer_mscan_record records[] = {
        { 0, 1, 0, 1, 1 }, { 1, 1, 0, 2, 2 }, { 2, 1, 0, 3, 3 }, { 900, 1, 0, 4, 4 }, { 2, 1, 0, 5, 5 }
    };
    coffer_report *report;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, json, records, 5);
    (void)state;
    bytes[11] = 1; /* the header counts the first alone */
    coffer_source *src = scan_source_of(bytes, len);
    assert_int_equal(repair(src, true, &report), COFFER_OK);
    coffer_source_close(src);
    assert_out_has(3, 3, 2);
    assert_true(scan_has(report, COFFER_E_TRAILING_BYTES, COFFER_WARNING));

    src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_sequence_at(scan, 1)->sequence_id, 8);
    assert_string_equal(coffer_mscan_sequence_at(scan, 1)->source, "recovered");
    coffer_mscan_close(scan);
    coffer_source_close(src);
    coffer_report_free(report);
    free(bytes);
}

static void names_and_tokens_that_are_missing_are_made_up(void **state)
{
    (void)state;
    assert_int_equal(repair_vector("unknown-param.mscan", false, NULL), COFFER_OK);
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_string_equal(coffer_mscan_param_name(scan, 77), "unknown.77");
    assert_int_equal(coffer_mscan_param_count(scan), 7);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    assert_int_equal(repair_vector("token-past-total.mscan", false, NULL), COFFER_OK);
    assert_out_has(289, 13, 3);
}

static void records_survive_metadata_that_is_lost(void **state)
{
    (void)state;
    assert_int_equal(repair_vector("bad-json.mscan", false, NULL), COFFER_OK);
    assert_out_has(288, 12, 1);
    assert_int_equal(repair_vector("bad-utf8.mscan", false, NULL), COFFER_OK);
    assert_out_has(288, 12, 2);
}

#define NAMED "{\"id_to_param_name_map\": {\"1\": \"one {\\\"}\"}, \"sequences\": "

static void assert_named(const char *json, size_t json_len, size_t sequences)
{
    static const coffer_mscan_record records[] = { { 0, 1, 0, 1, 1 }, { 5, 1, 0, 2, 2 } };
    coffer_report *report;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, "", records, 2);
    uint8_t *whole = malloc(len + json_len);
    assert_non_null(whole);
    memcpy(whole, bytes, 15);
    whole[7] = (uint8_t)(15 + json_len);
    memcpy(whole + 15, json, json_len);
    memcpy(whole + 15 + json_len, bytes + 15, len - 15);
    coffer_source *src = scan_source_of(whole, len + json_len);
    assert_int_equal(repair(src, false, &report), COFFER_OK);
    coffer_source_close(src);
    coffer_report_free(report);
    free(whole);
    free(bytes);

    scan_assert_clean(temp_path(temp_folder, "out"));
    assert_out_has(2, 6, sequences);
    src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_string_equal(coffer_mscan_param_name(scan, 1), "one {\"}");
    assert_int_equal(coffer_mscan_sequence_at(scan, sequences - 1)->sequence_id, sequences - 1);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void metadata_is_kept_with_any_bytes_around_it(void **state)
{
    static const char zeros[] = NAMED "[{\"sequence_id\": 0, \"num_tokens\": 6}]}\0\0\0";
    static const char marked[] = "\xef\xbb\xbf " NAMED "[{\"sequence_id\": 0, \"num_tokens\": 6}]}";
    static const char twice[] = NAMED "[{\"sequence_id\": 0, \"num_tokens\": 6}]}{\"}";
    (void)state;
    assert_named(zeros, sizeof zeros, 1);
    assert_named(marked, sizeof marked - 1, 1);
    assert_named(twice, sizeof twice - 1, 1);
}

static void a_sequence_without_a_usable_id_keeps_its_tokens(void **state)
{
    static const char missing[] = NAMED "[{\"num_tokens\": 2}, {\"sequence_id\": \"x\", \"num_tokens\": 4}]}";
    (void)state;
    assert_named(missing, sizeof missing - 1, 2);
}

static void a_head_overwritten_by_names_is_found_too(void **state)
{
    static const char first[] = "{\"id_to_param_name_map\": {}, \"sequences\": []}";
    static const char last[] = "{\"id_to_param_name_map\": {\"1\": \"one\"}, "
                               "\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 12}]}";
    const uint64_t lost = (sizeof last - sizeof first + 11) / 12;
    coffer_mscan_record records[12];
    coffer_report *report;
    size_t len;
    (void)state;
    for (uint32_t i = 0; i < 12; i++)
        records[i] = (coffer_mscan_record){ i, 1, 7, (uint16_t)(100 + i), 9 };
    uint8_t *bytes = scan_bytes(&len, first, records, 12);
    bytes[7] = 15 + sizeof last - 1;
    memcpy(bytes + 15, last, sizeof last - 1);
    coffer_source *src = scan_source_of(bytes, len);
    assert_int_equal(repair(src, false, &report), COFFER_OK);
    coffer_source_close(src);
    coffer_report_free(report);
    free(bytes);

    scan_assert_clean(temp_path(temp_folder, "out"));
    assert_out_has(12 - lost, 12, 1);
    src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    coffer_mscan_record kept;
    assert_int_equal(coffer_mscan_read(&kept, scan, 0, 1, NULL), COFFER_OK);
    assert_int_equal(kept.token_idx, lost);
    assert_int_equal(kept.activation, 100 + lost);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void unordered_ids_are_renumbered(void **state)
{
    (void)state;
    assert_int_equal(repair_vector("duplicate-sequence-id.mscan", false, NULL), COFFER_OK);
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_sequence_at(scan, 0)->sequence_id, 0);
    assert_int_equal(coffer_mscan_sequence_at(scan, 1)->sequence_id, 1);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void places_of_records_that_are_gone_are_forgotten(void **state)
{
    const char *path = temp_path(temp_folder, "extents");
    coffer_report *report;
    size_t len;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 3, 5, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path, &len);
    coffer_source *src = scan_source_of(bytes, len - 15 * 12 - 1);
    assert_int_equal(repair(src, false, &report), COFFER_OK);
    coffer_source_close(src);
    assert_no_error_but_marks();
    assert_non_null(strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "records 10 to 13 of the new file"));
    assert_non_null(strstr(scan_text(report, COFFER_E_INCONSISTENT), "where their records are: 2"));
    src = scan_source(temp_path(temp_folder, "out"));
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 14);
    assert_non_null(strstr(coffer_mscan_metadata(scan, NULL), "\"crc32\""));
    coffer_mscan_close(scan);
    coffer_source_close(src);
    coffer_report_free(report);
    free(bytes);
}

/* Repairs a scan of three sequences after one change to its bytes. */
static coffer_report *repair_changed(size_t offset, uint8_t flip, bool from_records)
{
    const char *path = temp_path(temp_folder, "changed");
    coffer_report *report;
    size_t len;
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    opts.overwrite = true;
    assert_int_equal(scan_create(path, &opts, 3, 5, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path, &len);
    if (from_records)
        offset += (size_t)bytes[7] | (size_t)bytes[8] << 8;
    bytes[offset] ^= flip;
    coffer_source *src = scan_source_of(bytes, len);
    assert_int_equal(repair(src, false, &report), COFFER_OK);
    coffer_source_close(src);
    free(bytes);
    return report;
}

static void records_that_do_not_match_their_checksum_stay_marked(void **state)
{
    (void)state;
    coffer_report *report = repair_changed(12 * 12 + 8, 1, true);
    assert_non_null(
        strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "records 10 to 19 of the new file do not"));
    coffer_report_free(report);
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    report = scan_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_non_null(strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "records 10 to 19 were damaged"));
    coffer_report_free(report);

    coffer_mscan *scan = scan_open(src); /* the damage is known: reading is possible again */
    coffer_mscan_record records[30];
    assert_int_equal(coffer_mscan_read(records, scan, 0, 30, NULL), COFFER_OK);
    coffer_mscan_close(scan);

    report = NULL; /* and another repair does not forget it */
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, temp_path(temp_folder, "again"), NULL, NULL), COFFER_OK);
    coffer_report_free(report);
    coffer_source_close(src);
    src = scan_source(temp_path(temp_folder, "again"));
    report = scan_check(src, true);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    coffer_report_free(report);
    coffer_source_close(src);
}

static void metadata_that_does_not_match_its_checksum_stays_marked(void **state)
{
    (void)state;
    coffer_report *report = repair_changed(15 + 40, 1, false);
    assert_non_null(strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "metadata"));
    coffer_report_free(report);
    coffer_source *src = scan_source(temp_path(temp_folder, "out"));
    report = scan_check(src, true);
    assert_non_null(strstr(scan_text(report, COFFER_E_BAD_CHECKSUM), "the metadata was damaged"));
    coffer_report_free(report);
    coffer_source_close(src);
}

static void what_cannot_be_saved_is_an_error_and_writes_nothing(void **state)
{
    static const char *const names[] = { "short-header.mscan", "version-9.mscan",
                                         "header-len-too-small.mscan", "header-len-past-end.mscan",
                                         "json-deep.mscan" };
    (void)state;
    temp_empty(temp_folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_not_equal(repair_vector(names[i], false, NULL), COFFER_OK);
    temp_assert_only(temp_folder, NULL);
}

static void an_output_that_exists_is_replaced_only_when_asked(void **state)
{
    coffer_source *src = scan_source(VECTORS "truncated-records.mscan");
    const char *path = temp_path(temp_folder, "taken");
    coffer_report *report = NULL;
    (void)state;
    temp_write(path, "mine", 4);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, path, NULL, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(path, "mine", 4));
    coffer_report_free(report);
    coffer_source_close(src);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return 1;
}

static void a_repair_can_be_cancelled(void **state)
{
    coffer_source *src = scan_source(VECTORS "truncated-records.mscan");
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_progress progress = { sizeof progress, stop, NULL };
    coffer_report *report = NULL;
    (void)state;
    opts.progress = &progress;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, temp_path(temp_folder, "cancelled"), &opts, NULL),
                     COFFER_E_CANCELLED);
    assert_false(temp_exists(temp_path(temp_folder, "cancelled")));
    coffer_report_free(report);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_repaired_is_clean),
        cmocka_unit_test(a_clean_file_is_copied_without_a_word),
        cmocka_unit_test(whole_records_of_a_truncated_file_are_kept),
        cmocka_unit_test(an_unfinished_append_is_dropped_or_taken_in),
        cmocka_unit_test(a_tail_is_taken_in_as_far_as_it_makes_sense),
        cmocka_unit_test(names_and_tokens_that_are_missing_are_made_up),
        cmocka_unit_test(records_survive_metadata_that_is_lost),
        cmocka_unit_test(metadata_is_kept_with_any_bytes_around_it),
        cmocka_unit_test(a_sequence_without_a_usable_id_keeps_its_tokens),
        cmocka_unit_test(a_head_overwritten_by_names_is_found_too),
        cmocka_unit_test(unordered_ids_are_renumbered),
        cmocka_unit_test(places_of_records_that_are_gone_are_forgotten),
        cmocka_unit_test(records_that_do_not_match_their_checksum_stay_marked),
        cmocka_unit_test(metadata_that_does_not_match_its_checksum_stays_marked),
        cmocka_unit_test(what_cannot_be_saved_is_an_error_and_writes_nothing),
        cmocka_unit_test(an_output_that_exists_is_replaced_only_when_asked),
        cmocka_unit_test(a_repair_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
