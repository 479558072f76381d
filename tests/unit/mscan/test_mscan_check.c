#include "formats/mscan/mscan_private.h"
#include "support/scan.h"

#include <stdlib.h>
#include <string.h>

static const char one_param[] =
    "{\"format_version\": \"1.1\", \"model_name\": \"m\", \"id_to_param_name_map\": {\"1\": \"one\"}, "
    "\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 3}]}";

static coffer_report *check_bytes(const uint8_t *bytes, size_t len, bool full)
{
    coffer_source *src = scan_source_of(bytes, len);
    coffer_report *report = scan_check(src, full);
    coffer_source_close(src);
    return report;
}

static coffer_report *check_scan(const char *json, const coffer_mscan_record *records, size_t count,
                                 bool full)
{
    size_t len;
    uint8_t *bytes = scan_bytes(&len, json, records, count);
    coffer_report *report = check_bytes(bytes, len, full);
    free(bytes);
    return report;
}

static void assert_finds(const char *json, coffer_status code, coffer_severity severity)
{
    coffer_report *report = check_scan(json, NULL, 0, false);
    if (!scan_has(report, code, severity))
        fail_msg("%s: no %s", json, coffer_status_name(code));
    coffer_report_free(report);
}

static void a_good_scan_has_no_finding(void **state)
{
    static const coffer_mscan_record records[] = { { 0, 1, 0, 1, 2 }, { 2, 1, 0, 3, 4 } };
    coffer_report *report = check_scan(one_param, records, 2, true);
    (void)state;
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
}

static void wrong_metadata_is_reported_and_the_check_continues(void **state)
{
    (void)state;
    assert_finds("{\"sequences\": 1}", COFFER_E_BAD_VALUE, COFFER_ERROR);
    assert_finds("{\"sequences\": [{\"sequence_id\": 1}, 5]}", COFFER_E_BAD_VALUE, COFFER_ERROR);
    assert_finds("{\"id_to_param_name_map\": {\"x\": \"y\"}}", COFFER_E_BAD_VALUE, COFFER_ERROR);
    assert_finds("{\"id_to_param_name_map\": 1}", COFFER_E_BAD_VALUE, COFFER_ERROR);
    assert_finds("{}", COFFER_E_MISSING, COFFER_WARNING);
    assert_finds("{}", COFFER_E_MISSING, COFFER_NOTE);
    assert_finds("{\"format_version\": \"7\"}", COFFER_E_BAD_VALUE, COFFER_NOTE);
    assert_finds("{\"model_name\": 1}", COFFER_E_BAD_VALUE, COFFER_WARNING);
    assert_finds("{\"format_version\": \"1.1\"}", COFFER_E_MISSING, COFFER_NOTE);
    assert_finds("{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1, \"source\": 1}]}",
                 COFFER_E_BAD_VALUE, COFFER_WARNING);
    assert_finds("{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1}, "
                 "{\"sequence_id\": 2, \"num_tokens\": 1}]}",
                 COFFER_E_INCONSISTENT, COFFER_NOTE);
    assert_finds("{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 4294967297}]}", COFFER_E_BAD_VALUE,
                 COFFER_WARNING);
    assert_finds("{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1, \"first_record\": -1}]}",
                 COFFER_E_BAD_VALUE, COFFER_WARNING);
    assert_finds("{\"a\": 1, \"a\": 1}", COFFER_E_DUPLICATE, COFFER_ERROR);
    assert_finds("{\"sequences\": [{\"sequence_id\": 0, \"num_tokens\": 1, \"first_record\": 0, "
                 "\"num_records\": 1}]}",
                 COFFER_E_INCONSISTENT, COFFER_ERROR);
}

static void two_wrong_entries_are_two_findings(void **state)
{
    coffer_report *report =
        check_scan("{\"id_to_param_name_map\": {\"x\": \"y\", \"1\": 2}, \"sequences\": []}", NULL, 0, false);
    (void)state;
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 2);
    coffer_report_free(report);
}

static void sequence_ids_out_of_order_and_twice_are_errors(void **state)
{
    coffer_report *report = check_scan(
        "{\"sequences\": [{\"sequence_id\": 5, \"num_tokens\": 0}, {\"sequence_id\": 2, \"num_tokens\": 0}, "
        "{\"sequence_id\": 9, \"num_tokens\": 0}, {\"sequence_id\": 5, \"num_tokens\": 0}]}",
        NULL, 0, false);
    (void)state;
    assert_true(scan_has(report, COFFER_E_NOT_SORTED, COFFER_ERROR));
    assert_string_equal(scan_text(report, COFFER_E_NOT_SORTED),
                        "sequence_id 2 comes after 5 (2 out of order in all)");
    assert_string_equal(scan_text(report, COFFER_E_DUPLICATE),
                        "sequence_id 5 is used more than once (1 repeated in all)");
    coffer_report_free(report);
}

/* Enough records for several tasks, with the wrong ones in known places. */
static void wrong_records_are_counted_and_the_first_is_placed(void **state)
{
    size_t count = 5 * 262144, len;
    coffer_mscan_record *records = calloc(count, sizeof *records);
    (void)state;
    for (size_t i = 0; i < count; i++)
        records[i] = (coffer_mscan_record){ 1, 1, 0, 1, 1 };
    records[700000].param_id = 40000;
    records[300000].param_id = 3;
    records[262144].token_idx = 3;
    records[count - 1].token_idx = 4000000000;
    uint8_t *bytes = scan_bytes(&len, one_param, records, count);
    coffer_report *report = check_bytes(bytes, len, false);
    uint64_t area = len - count * 12;
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 2);
    assert_string_equal(scan_text(report, COFFER_E_DANGLING_REFERENCE),
                        "param_id not in the map: 3, 40000 (first in record 300000, in 2 of all)");
    assert_int_equal(coffer_report_at(report, 0)->offset, area + 300000 * 12 + 4);
    assert_string_equal(
        scan_text(report, COFFER_E_INCONSISTENT),
        "record 262144 has a token_idx past the 3 tokens of all sequences (so have 2 in all, up "
        "to token 4000000000)");
    coffer_report_free(report);
    free(bytes);
    free(records);
}

static void many_unknown_ids_are_cut_short(void **state)
{
    coffer_mscan_record records[20];
    (void)state;
    for (uint16_t i = 0; i < 20; i++)
        records[i] = (coffer_mscan_record){ 0, (uint16_t)(100 + i), 0, 0, 0 };
    coffer_report *report = check_scan(one_param, records, 20, false);
    assert_non_null(strstr(scan_text(report, COFFER_E_DANGLING_REFERENCE),
                           "100, 101, 102, 103, 104, 105, 106, 107 and 12 more"));
    coffer_report_free(report);
}

static void records_without_sequences_are_inconsistent(void **state)
{
    static const coffer_mscan_record record = { 0, 1, 0, 1, 1 };
    coffer_report *report = check_scan("{\"id_to_param_name_map\": {\"1\": \"one\"}}", &record, 1, false);
    (void)state;
    assert_true(scan_has(report, COFFER_E_INCONSISTENT, COFFER_ERROR));
    coffer_report_free(report);
}

static void a_full_check_looks_at_values_and_order(void **state)
{
    static const coffer_mscan_record records[] = { { 2, 1, 0, 65535, 0 }, { 1, 1, 0, 5, 0 } };
    coffer_report *quick = check_scan(one_param, records, 2, false);
    coffer_report *full = check_scan(one_param, records, 2, true);
    (void)state;
    assert_int_equal(coffer_report_count(quick), 0);
    assert_int_equal(coffer_report_total(full, COFFER_NOTE), 3);
    assert_int_equal(coffer_report_count(full), 3);
    assert_true(scan_has(full, COFFER_E_NOT_SORTED, COFFER_NOTE));
    coffer_report_free(quick);
    coffer_report_free(full);
}

static void a_scale_that_is_not_positive_is_noted(void **state)
{
    coffer_report *report =
        check_scan("{\"format_version\": \"1.1\", \"model_name\": \"m\", \"id_to_param_name_map\": {}, "
                   "\"quantization\": {\"activation\": "
                   "{\"kind\": \"linear\", \"scale\": 0, \"offset\": 0, \"scope\": \"file\"}}}",
                   NULL, 0, true);
    (void)state;
    assert_int_equal(coffer_report_count(report), 1);
    assert_true(scan_has(report, COFFER_E_BAD_VALUE, COFFER_NOTE));
    coffer_report_free(report);
}

static void a_changed_record_fails_its_sequences_checksum_in_a_full_check(void **state)
{
    char *folder = temp_make();
    const char *path = temp_path(folder, "crc.mscan");
    size_t len;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 3, 5, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path, &len);
    uint32_t area = coffer__load_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT);
    bytes[area + 12 * 12 + COFFER__MSCAN_ACTIVATION_AT] ^= 1; /* of the second sequence's ten records */
    coffer_report *quick = check_bytes(bytes, len, false), *full = check_bytes(bytes, len, true);
    assert_int_equal(coffer_report_total(quick, COFFER_ERROR), 0);
    assert_int_equal(coffer_report_total(full, COFFER_ERROR), 1);
    assert_true(scan_has(full, COFFER_E_BAD_CHECKSUM, COFFER_ERROR));
    assert_non_null(strstr(scan_text(full, COFFER_E_BAD_CHECKSUM), "sequence 1: CRC-32 of its 10 records"));
    coffer_report_free(quick);
    coffer_report_free(full);
    free(bytes);
    temp_remove(folder);
}

static int stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return 1;
}

static void a_check_can_be_cancelled(void **state)
{
    static const coffer_mscan_record record = { 0, 1, 0, 1, 1 };
    coffer_progress progress = { sizeof progress, stop, NULL };
    coffer_check_opts opts = COFFER_CHECK_OPTS_INIT;
    coffer_report *report = NULL;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, one_param, &record, 1);
    coffer_source *src = scan_source_of(bytes, len);
    (void)state;
    opts.progress = &progress;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, &opts, NULL), COFFER_E_CANCELLED);
    coffer_report_free(report);
    coffer_source_close(src);
    free(bytes);
}

static void info_and_ls_describe_the_content(void **state)
{
    coffer_source *src = scan_source(COFFER_TEST_DATA "/vectors/mscan/padded-json.mscan");
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *info = NULL, *sequences = NULL, *params = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&info, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&sequences, NULL), COFFER_OK);
    assert_int_equal(coffer_node_new(&params, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(info, src, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_node_get_name(coffer_node_first(info)), "records");
    assert_string_equal(coffer_node_get_text(coffer_node_find(info, "model_name"), NULL), "Qwen/Qwen3-1.7B");
    assert_int_equal(coffer_node_get_u64(coffer_node_find(info, "records_offset")), 4096);
    assert_true(coffer_node_get_u64(coffer_node_find(info, "metadata_room")) > 3000);

    assert_int_equal(coffer_list(sequences, src, &opts, NULL), COFFER_OK);
    const coffer_node *entries = coffer_node_find(sequences, "entries");
    assert_int_equal(coffer_node_count(entries), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(coffer_node_first(entries), "records")), 168);

    opts.what = "params";
    opts.glob = "*q_proj*";
    assert_int_equal(coffer_list(params, src, &opts, NULL), COFFER_OK);
    entries = coffer_node_find(params, "entries");
    assert_int_equal(coffer_node_count(entries), 2);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(coffer_node_first(entries), "id")), 0);

    opts.what = "tensors";
    assert_int_equal(coffer_list(params, src, &opts, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_node_free(info);
    coffer_node_free(sequences);
    coffer_node_free(params);
    coffer_source_close(src);
}

static void ls_counts_records_that_are_not_sorted(void **state)
{
    static const char json[] =
        "{\"id_to_param_name_map\": {\"1\": \"one\"}, \"sequences\": [{\"sequence_id\": 4, "
        "\"num_tokens\": 2}, {\"sequence_id\": 5, \"num_tokens\": 1}]}";
    static const coffer_mscan_record records[] = { { 2, 1, 0, 1, 1 }, { 0, 1, 0, 1, 1 }, { 1, 1, 0, 1, 1 } };
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_node *list = NULL;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, json, records, 3);
    coffer_source *src = scan_source_of(bytes, len);
    (void)state;
    assert_int_equal(coffer_node_new(&list, NULL), COFFER_OK);
    assert_int_equal(coffer_list(list, src, &opts, NULL), COFFER_OK);
    const coffer_node *entry = coffer_node_first(coffer_node_find(list, "entries"));
    assert_int_equal(coffer_node_get_u64(coffer_node_find(entry, "records")), 2);
    coffer_node_free(list);
    coffer_source_close(src);
    free(bytes);
}

static void info_of_a_damaged_scan_says_so(void **state)
{
    coffer_source *src = scan_source(COFFER_TEST_DATA "/vectors/mscan/truncated-records.mscan");
    coffer_node *info = NULL;
    (void)state;
    assert_int_equal(coffer_node_new(&info, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(info, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(info, "records")), 287);
    assert_string_equal(coffer_node_get_text(coffer_node_find(info, "damage"), NULL),
                        "header says 288 records; missing: 1");
    coffer_node_free(info);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_scan_has_no_finding),
        cmocka_unit_test(wrong_metadata_is_reported_and_the_check_continues),
        cmocka_unit_test(two_wrong_entries_are_two_findings),
        cmocka_unit_test(sequence_ids_out_of_order_and_twice_are_errors),
        cmocka_unit_test(wrong_records_are_counted_and_the_first_is_placed),
        cmocka_unit_test(many_unknown_ids_are_cut_short),
        cmocka_unit_test(records_without_sequences_are_inconsistent),
        cmocka_unit_test(a_full_check_looks_at_values_and_order),
        cmocka_unit_test(a_scale_that_is_not_positive_is_noted),
        cmocka_unit_test(a_changed_record_fails_its_sequences_checksum_in_a_full_check),
        cmocka_unit_test(a_check_can_be_cancelled),
        cmocka_unit_test(info_and_ls_describe_the_content),
        cmocka_unit_test(ls_counts_records_that_are_not_sorted),
        cmocka_unit_test(info_of_a_damaged_scan_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
