#include "formats/mscan/mscan_writer.h"
#include "support/scan.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static coffer_mscan_writer *create(const char *name)
{
    coffer_mscan_writer *writer = NULL;
    assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, name), NULL, NULL),
                     COFFER_OK);
    return writer;
}

static void what_is_written_is_read_back(void **state)
{
    const char *path = temp_path(temp_folder, "back.mscan");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization activation = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_mscan_quantization grad_norm = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_mscan_record records[4];
    (void)state;
    opts.model_name = "Qwen \"3\"";
    grad_norm.scale = 0.1;
    grad_norm.offset = -2.0;
    opts.activation = &activation;
    opts.grad_norm = &grad_norm;
    opts.block_size = 64;
    opts.extra_json = "{\"run\": {\"seed\": 3}}";
    assert_int_equal(scan_create(path, &opts, 2, 2, NULL), COFFER_OK);
    scan_assert_clean(path);

    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 8);
    assert_int_equal(coffer_mscan_total_tokens(scan), 4);
    assert_string_equal(coffer_mscan_model_name(scan), "Qwen \"3\"");
    const coffer_mscan_quantization *scale = coffer_mscan_quantization_of(scan, COFFER_MSCAN_GRAD_NORM, 0, 0);
    assert_true(scale && scale->scale == 0.1 && scale->offset == -2.0);
    assert_non_null(strstr(coffer_mscan_metadata(scan, NULL), "\"run\":{\"seed\":3}"));
    assert_non_null(strstr(coffer_mscan_metadata(scan, NULL), "\"block_size\":64"));
    assert_int_equal(coffer_mscan_read(records, scan, 4, 4, NULL), COFFER_OK);
    assert_int_equal(records[0].token_idx, 2); /* the second sequence begins after the first's two tokens */
    assert_int_equal(records[3].token_idx, 3);
    assert_int_equal(records[3].activation, 3);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void records_start_at_a_multiple_of_64_after_the_room_asked_for(void **state)
{
    const char *path = temp_path(temp_folder, "room.mscan");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    size_t len;
    (void)state;
    opts.reserve_bytes = 100000;
    assert_int_equal(scan_create(path, &opts, 1, 1, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(path, &len);
    uint32_t area = coffer__load_u32(bytes + COFFER__MSCAN_HEADER_LEN_AT);
    assert_int_equal(area % 64, 0);
    assert_true(area > 100000 && area < 101000);
    assert_int_equal(len, area + 24);
    assert_int_equal(bytes[area - 1], ' ');
    free(bytes);
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    size_t len;
    (void)state;
    assert_int_equal(scan_create(temp_path(temp_folder, "one"), NULL, 3, 5, NULL), COFFER_OK);
    assert_int_equal(scan_create(temp_path(temp_folder, "two"), NULL, 3, 5, NULL), COFFER_OK);
    uint8_t *bytes = temp_read(temp_path(temp_folder, "one"), &len);
    assert_true(temp_holds(temp_path(temp_folder, "two"), bytes, len));
    free(bytes);
}

static void metadata_that_outgrows_its_room_moves_the_records(void **state)
{
    const char *path = temp_path(temp_folder, "moved.mscan");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    (void)state;
    opts.reserve_bytes = 1;
    assert_int_equal(scan_create(path, &opts, 40, 3, NULL), COFFER_OK);
    scan_assert_clean(path);
    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_record_count(scan), 240);
    assert_int_equal(coffer_mscan_sequence_count(scan), 40);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void a_scan_without_records_is_a_scan(void **state)
{
    const char *path = temp_path(temp_folder, "none.mscan");
    coffer_mscan_writer *writer = create("none.mscan");
    (void)state;
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, 12, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);
    scan_assert_clean(path);
    coffer_source *src = scan_source(path);
    coffer_mscan *scan = scan_open(src);
    assert_int_equal(coffer_mscan_total_tokens(scan), 12);
    assert_int_equal(coffer_mscan_record_count(scan), 0);
    coffer_mscan_close(scan);
    coffer_source_close(src);
}

static void a_stream_gets_a_whole_scan(void **state)
{
    const char *fifo = temp_path(temp_folder, "fifo");
    const size_t room = 65536; /* what a pipe holds without a reader */
    uint8_t *got = malloc(room);
    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int reading = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_true(reading >= 0);
    assert_int_equal(scan_create(fifo, NULL, 1, 3, NULL), COFFER_OK);
    ssize_t len = read(reading, got, room);
    assert_true(len > 0);
    coffer_source *src = scan_source_of(got, (size_t)len);
    coffer_mscan *scan = scan_open(src);
    coffer_report *report = scan_check(src, true);
    assert_int_equal(coffer_mscan_record_count(scan), 6);
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
    coffer_mscan_close(scan);
    coffer_source_close(src);
    close(reading);
    free(got);
}

static void parameters_have_one_id_each(void **state)
{
    coffer_mscan_writer *writer = create("params.mscan");
    uint16_t first, again, other;
    (void)state;
    assert_int_equal(coffer_mscan_writer_add_param_id(writer, 1, "x", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_add_param_id(writer, 1, "x", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_add_param_id(writer, 1, "y", NULL), COFFER_E_DUPLICATE);
    assert_int_equal(coffer_mscan_writer_add_param(&first, writer, "x", NULL), COFFER_OK);
    assert_int_equal(first, 1);
    assert_int_equal(coffer_mscan_writer_add_param(&again, writer, "new", NULL), COFFER_OK);
    assert_int_equal(again, 0);
    assert_int_equal(coffer_mscan_writer_add_param(&other, writer, "newer", NULL), COFFER_OK);
    assert_int_equal(other, 2);
    assert_int_equal(coffer_mscan_writer_add_param(&other, writer, "bad \xff", NULL), COFFER_E_BAD_TEXT);
    coffer_mscan_writer_discard(writer);
    assert_false(temp_exists(temp_path(temp_folder, "params.mscan")));
}

static void a_65537th_parameter_is_refused(void **state)
{
    coffer_mscan_writer *writer = create("many.mscan");
    uint16_t id;
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%u", i);
        assert_int_equal(coffer_mscan_writer_add_param(&id, writer, name, NULL), COFFER_OK);
        assert_int_equal(id, i);
    }
    assert_int_equal(coffer_mscan_writer_add_param(&id, writer, "p7", NULL), COFFER_OK);
    assert_int_equal(id, 7);
    assert_int_equal(coffer_mscan_writer_add_param(&id, writer, "one more", NULL), COFFER_E_LIMIT);
    coffer_mscan_writer_discard(writer);
}

static void wrong_records_are_refused_before_anything_is_written(void **state)
{
    coffer_mscan_writer *writer = create("wrong.mscan");
    coffer_mscan_record record = { 0, 0, 0, 0, 0 };
    uint16_t id;
    (void)state;
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, "bad \xff", NULL), COFFER_E_BAD_TEXT);
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL), COFFER_E_DANGLING_REFERENCE);
    assert_int_equal(coffer_mscan_writer_add_param(&id, writer, "a", NULL), COFFER_OK);
    record.token_idx = 9;
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, 9, NULL), COFFER_E_INCONSISTENT);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, 10, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);
    scan_assert_clean(temp_path(temp_folder, "wrong.mscan"));
}

static void counts_and_tokens_stop_at_what_the_file_can_say(void **state)
{
    coffer_mscan_writer *writer = create("limits.mscan");
    coffer_mscan_record record = { 0, 0, 0, 0, 0 };
    uint16_t id;
    (void)state;
    assert_int_equal(coffer_mscan_writer_add_param(&id, writer, "a", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, (UINT64_C(1) << 32) + 1, NULL), COFFER_E_LIMIT);
    assert_int_equal(coffer_mscan_writer_end_sequence(writer, (UINT64_C(1) << 32) - 1, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL),
                     COFFER_OK); /* token 2^32 - 1 */
    record.token_idx = 1;
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL), COFFER_E_LIMIT);
    record.token_idx = 0;
    writer->record_count = UINT32_MAX;
    assert_int_equal(coffer_mscan_writer_put_records(writer, &record, 1, NULL), COFFER_E_LIMIT);
    coffer_mscan_writer_discard(writer);
}

static void a_sequence_left_open_is_not_committed(void **state)
{
    coffer_mscan_writer *writer = create("open.mscan");
    (void)state;
    assert_int_equal(coffer_mscan_writer_begin_sequence(writer, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_E_INVALID_ARGUMENT);
    assert_false(temp_exists(temp_path(temp_folder, "open.mscan")));
}

static void options_that_make_no_sense_are_refused(void **state)
{
    static const char *const extras[] = { "[1]", "{\"sequences\": []}", "{\"format_version\": 2}",
                                          "{\"block_size\": 1}" };
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_quantization not_finite = COFFER_MSCAN_QUANTIZATION_INIT;
    coffer_mscan_writer *writer;
    (void)state;
    not_finite.scale = NAN;
    opts.block_size = 64;
    for (size_t i = 0; i < sizeof extras / sizeof extras[0]; i++) {
        opts.extra_json = extras[i];
        assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, "no"), &opts, NULL),
                         COFFER_E_INVALID_ARGUMENT);
    }
    opts.extra_json = "{";
    assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, "no"), &opts, NULL),
                     COFFER_E_BAD_JSON);
    opts.extra_json = NULL;
    opts.grad_norm = &not_finite;
    assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, "no"), &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    opts.grad_norm = NULL;
    opts.model_name = "\xc3";
    assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, "no"), &opts, NULL),
                     COFFER_E_BAD_TEXT);
    assert_false(temp_exists(temp_path(temp_folder, "no")));
}

static void records_with_global_tokens_go_under_given_metadata(void **state)
{
    static const char metadata[] =
        "{\"note\": 1, \"id_to_param_name_map\": {\"3\": \"w\"}, \"sequences\": [{\"sequence_id\": 4, "
        "\"num_tokens\": 2, \"first_record\": 5, \"num_records\": 9, \"crc32\": 1}, {\"sequence_id\": 6, "
        "\"num_tokens\": 3}]}";
    const coffer_mscan_record records[2] = { { 4, 3, 0, 1, 2 }, { 0, 9, 1, 3, 4 } };
    const coffer_mscan_record past = { 5, 3, 0, 0, 0 };
    const char *path = temp_path(temp_folder, "global");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    coffer_mscan_record found[2];
    (void)state;
    opts.metadata_json = metadata;
    assert_int_equal(coffer_mscan_writer_create(&writer, path, &opts, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_put_global(writer, records, 2, NULL), COFFER_E_DANGLING_REFERENCE);
    assert_int_equal(coffer_mscan_writer_add_param_id(writer, 9, "v", NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_put_global(writer, &past, 1, NULL), COFFER_E_INCONSISTENT);
    assert_int_equal(coffer_mscan_writer_put_global(writer, records, 2, NULL), COFFER_OK);
    assert_int_equal(coffer_mscan_writer_commit(writer, NULL), COFFER_OK);

    coffer_mscan *scan = NULL;
    assert_int_equal(coffer_mscan_open_path(&scan, path, NULL, NULL), COFFER_OK);
    assert_string_equal(coffer_mscan_metadata(scan, NULL),
                        "{\"note\":1,\"id_to_param_name_map\":{\"3\":\"w\",\"9\":\"v\"},\"sequences\":[{"
                        "\"sequence_id\":4,\"num_tokens\":2},{\"sequence_id\":6,\"num_tokens\":3}],"
                        "\"checksums\":{\"chunk_bytes\":1048576,\"records\":\"88a2eeed\"},"
                        "\"front_crc32\":\"94e373b9\"}");
    assert_int_equal(coffer_mscan_read(found, scan, 0, 2, NULL), COFFER_OK);
    assert_memory_equal(found, records, sizeof records);
    coffer_mscan_close(scan);
}

static void metadata_of_another_scan_excludes_other_settings(void **state)
{
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    coffer_mscan_writer *writer = NULL;
    (void)state;
    opts.metadata_json = "{}";
    opts.model_name = "other";
    assert_int_equal(coffer_mscan_writer_create(&writer, temp_path(temp_folder, "no"), &opts, NULL),
                     COFFER_E_INVALID_ARGUMENT);
    assert_null(writer);
}

static void an_old_file_is_replaced_only_when_asked(void **state)
{
    const char *path = temp_path(temp_folder, "taken");
    coffer_mscan_writer_opts opts = COFFER_MSCAN_WRITER_OPTS_INIT;
    (void)state;
    temp_write(path, "mine", 4);
    assert_int_equal(scan_create(path, &opts, 1, 1, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(path, "mine", 4));
    opts.overwrite = true;
    assert_int_equal(scan_create(path, &opts, 1, 1, NULL), COFFER_OK);
    scan_assert_clean(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(records_start_at_a_multiple_of_64_after_the_room_asked_for),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
        cmocka_unit_test(metadata_that_outgrows_its_room_moves_the_records),
        cmocka_unit_test(a_scan_without_records_is_a_scan),
        cmocka_unit_test(a_stream_gets_a_whole_scan),
        cmocka_unit_test(parameters_have_one_id_each),
        cmocka_unit_test(a_65537th_parameter_is_refused),
        cmocka_unit_test(wrong_records_are_refused_before_anything_is_written),
        cmocka_unit_test(counts_and_tokens_stop_at_what_the_file_can_say),
        cmocka_unit_test(a_sequence_left_open_is_not_committed),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(records_with_global_tokens_go_under_given_metadata),
        cmocka_unit_test(metadata_of_another_scan_excludes_other_settings),
        cmocka_unit_test(an_old_file_is_replaced_only_when_asked),
    };
    return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
