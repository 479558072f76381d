#include "formats/mscan/mscan_layout.h"
#include "support/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t records_in(const char *path)
{
    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    uint64_t records = coffer_mscan_record_count(scan);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    return records;
}

static uint32_t area_of(const char *path)
{
    size_t len;
    uint8_t *bytes = temp_read(path, &len);
    uint32_t area = coffer__load_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT);
    free(bytes);
    return area;
}

static void a_sequence_is_appended_in_place(void **state)
{
    const char *path = temp_path(temp_folder, "place.mscan");
    coffer_mscan_record record;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 2, 3, NULL), COFFER_OK);
    uint32_t area = area_of(path);
    assert_int_equal(scan_append(path, "third", 4, NULL), COFFER_OK);
    assert_int_equal(area_of(path), area);
    scan_assert_clean(path);

    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 20);
    assert_int_equal(coffer_mscan_total_tokens(scan), 10);
    assert_int_equal(coffer_mscan_sequence_at(scan, 2)->sequence_id, 2);
    assert_string_equal(coffer_mscan_sequence_at(scan, 2)->source, "third");
    assert_int_equal(coffer_mscan_param_count(scan), 2);
    assert_int_equal(coffer_mscan_read(&record, scan, 12, 1, NULL), COFFER_OK);
    assert_int_equal(record.token_idx, 6);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    temp_assert_no_litter(temp_folder, "place.mscan", NULL);
}

static void many_appends_outgrow_the_room_and_move_the_file(void **state)
{
    const char *path = temp_path(temp_folder, "hundred.mscan");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    unsigned moves = 0;
    (void)state;
    opts.reserve_bytes = 64;
    assert_int_equal(scan_create(path, &opts, 1, 1, NULL), COFFER_OK);
    for (int i = 0; i < 300; i++) {
        uint32_t before = area_of(path);
        assert_int_equal(scan_append(path, "again", 1, NULL), COFFER_OK);
        moves += area_of(path) != before;
    }
    assert_true(moves >= 1 && moves <= 4);
    assert_int_equal(records_in(path), 602);
    scan_assert_clean(path);
}

static void unknown_keys_are_kept(void **state)
{
    const char *path = temp_path(temp_folder, "keys.mscan");
    static const char json[] =
        "{\"timestamp\": \"2025-07-12\", \"sequences\": [{\"sequence_id\": 4, \"num_tokens\": 1, \"mood\": "
        "[1, {\"x\": null}]}], \"id_to_param_name_map\": {\"9\": \"nine\", \"70000\": \"far\"}, \"z\": "
        "-1.5e300}";
    static const coffer_mscan_record record = { 0, 9, 0, 1, 1 };
    size_t len;
    uint8_t *bytes = scan_bytes(&len, json, &record, 1);
    (void)state;
    temp_write(path, bytes, len);
    free(bytes);
    for (int i = 0; i < 2; i++) { /* moved the first time, in place the second */
        assert_int_equal(scan_append(path, NULL, 1, NULL), COFFER_OK);
        coffer_source *src = scan_source(path);
        coffer_mscan *scan = scan_open(src);
        const char *text = coffer_mscan_metadata(scan, NULL);
        assert_memory_equal(text, "{\"timestamp\":\"2025-07-12\",\"sequences\":[{\"sequence_id\":4", 55);
        assert_non_null(strstr(text, "\"mood\":[1,{\"x\":null}]"));
        assert_non_null(strstr(text, "\"70000\":\"far\""));
        assert_non_null(strstr(text, "\"9\":\"nine\""));
        assert_non_null(strstr(text, "\"z\":-1.5e"));
        assert_int_equal(coffer_mscan_sequence_at(scan, 1)->sequence_id, 5);
        coffer_mscan_close(scan);
        coffer_source_close(src);
    }
}

static void bytes_of_an_unfinished_append_make_way(void **state)
{
    const char *path = temp_path(temp_folder, "tail.mscan");
    (void)state;
    temp_copy(COFFER_TEST_DATA "/vectors/mscan/trailing-bytes.mscan", path);
    assert_int_equal(scan_append(path, NULL, 2, NULL), COFFER_OK);
    scan_assert_clean(path);
    coffer_source *src = scan_source(path);
    coffer_report *report = scan_check(src, false);
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
    coffer_source_close(src);
    assert_int_equal(records_in(path), 292);
}

static void an_append_of_nothing_changes_nothing(void **state)
{
    const char *path = temp_path(temp_folder, "nothing.mscan");
    coffer_mscan_writer *writer;
    size_t len;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 1, 1, NULL), COFFER_OK);
    uint8_t *before = temp_read(path, &len);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);
    assert_true(temp_holds(path, before, len));
    free(before);
}

static void a_parameter_alone_can_be_appended(void **state)
{
    const char *path = temp_path(temp_folder, "param.mscan");
    coffer_mscan_writer *writer;
    uint16_t id;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 1, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_add_param(&id, writer, "c", NULL), COFFER_OK);
    assert_int_equal(id, 2);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);
    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_string_equal(coffer_mscan_param_name(scan, 2), "c");
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void what_is_discarded_leaves_the_file_as_it_was(void **state)
{
    const char *path = temp_path(temp_folder, "discard.mscan");
    coffer_mscan_writer *writer;
    size_t len;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 1, 1, NULL), COFFER_OK);
    uint8_t *before = temp_read(path, &len);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(scan_add_sequence(writer, NULL, 1000, NULL), COFFER_OK);
    assert_int_equal(records_in(path), 2); /* a reader beside it sees the old state */
    coffer_mscan_writer_discard(writer);
    assert_true(temp_holds(path, before, len));
    temp_assert_no_litter(temp_folder, "discard.mscan", "place.mscan", "hundred.mscan", "keys.mscan",
                          "tail.mscan", "nothing.mscan", "param.mscan", NULL);
    free(before);
}

static void a_reader_next_to_a_writer_reports_the_unfinished_update(void **state)
{
    const char *path = temp_path(temp_folder, "beside.mscan");
    coffer_mscan_writer *writer;
    coffer_node *info = NULL;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 1, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(scan_add_sequence(writer, NULL, 100000, NULL), COFFER_OK);
    coffer_source *src = scan_source(path);
    coffer_report *report = scan_check(src, true);
    assert_int_equal(coffer_report_count(report), 1);
    assert_true(scan_has(report, COFFER_E_INTERRUPTED_UPDATE, COFFER_NOTE));
    assert_int_equal(coffer_node_new(&info, NULL), COFFER_OK);
    assert_int_equal(coffer_describe(info, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_node_get_u64(coffer_node_find(info, "records")), 2);
    assert_string_equal(coffer_node_get_text(coffer_node_find(info, "state"), NULL),
                        "interrupted update, old state shown");
    coffer_node_free(info);
    coffer_report_free(report);
    coffer_source_close(src);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);
    assert_int_equal(records_in(path), 200002);
    scan_assert_clean(path);
}

static void there_is_one_writer_at_a_time(void **state)
{
    const char *path = temp_path(temp_folder, "locked.mscan");
    coffer_mscan_writer *writer, *second;
    (void)state;
    assert_int_equal(scan_create(path, NULL, 1, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_append_to(&second, path, NULL, NULL), COFFER_E_LOCKED);
    coffer_mscan_writer_discard(writer);
    assert_int_equal(coffer_mscan_writer_append_to(&second, path, NULL, NULL), COFFER_OK);
    coffer_mscan_writer_discard(second);
}

static void damaged_files_are_refused_with_a_hint(void **state)
{
    static const char *const names[] = { "truncated-records", "duplicate-sequence-id", "bad-json",
                                         "count-huge" };
    const char *path = temp_path(temp_folder, "damaged.mscan");
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer_mscan_writer *writer;
        char from[4096];
        snprintf(from, sizeof from, "%s/vectors/mscan/%s.mscan", COFFER_TEST_DATA, names[i]);
        temp_copy(from, path);
        assert_int_not_equal(coffer_mscan_writer_append_to(&writer, path, NULL, &err), COFFER_OK);
        if (!strstr(err.text, "repair"))
            fail_msg("%s: %s", names[i], err.text);
    }
}

static void records_without_a_sequence_are_not_appended_to(void **state)
{
    const char *path = temp_path(temp_folder, "orphans.mscan");
    static const coffer_mscan_record record = { 0, 9, 0, 1, 1 };
    coffer_mscan_writer *writer;
    size_t len;
    uint8_t *bytes = scan_bytes(&len, "{\"id_to_param_name_map\": {\"9\": \"n\"}}", &record, 1);
    (void)state;
    temp_write(path, bytes, len);
    free(bytes);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_E_INCONSISTENT);
}

static void the_last_sequence_id_of_all_has_no_next(void **state)
{
    const char *path = temp_path(temp_folder, "last.mscan");
    coffer_mscan_writer *writer;
    size_t len;
    uint8_t *bytes =
        scan_bytes(&len, "{\"sequences\": [{\"sequence_id\": 18446744073709551615, \"num_tokens\": 1}]}",
                   NULL, 0);
    (void)state;
    temp_write(path, bytes, len);
    free(bytes);
    assert_int_equal(coffer_mscan_writer_append_to(&writer, path, NULL, NULL), COFFER_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_is_appended_in_place),
        cmocka_unit_test(many_appends_outgrow_the_room_and_move_the_file),
        cmocka_unit_test(unknown_keys_are_kept),
        cmocka_unit_test(bytes_of_an_unfinished_append_make_way),
        cmocka_unit_test(an_append_of_nothing_changes_nothing),
        cmocka_unit_test(a_parameter_alone_can_be_appended),
        cmocka_unit_test(what_is_discarded_leaves_the_file_as_it_was),
        cmocka_unit_test(a_reader_next_to_a_writer_reports_the_unfinished_update),
        cmocka_unit_test(there_is_one_writer_at_a_time),
        cmocka_unit_test(damaged_files_are_refused_with_a_hint),
        cmocka_unit_test(records_without_a_sequence_are_not_appended_to),
        cmocka_unit_test(the_last_sequence_id_of_all_has_no_next),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
