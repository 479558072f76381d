/* Repair saves every intact event of a damaged trace and reports the lost ones. */
#include "formats/mlyze/mlyze_private.h"
#include "support/trace.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = COFFER__MLYZE_FLAG_BLOCKS, SUMS = COFFER__MLYZE_FLAG_CHECKSUMS };

static coffer_report *repair_bytes(const void *bytes, size_t len)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    if (coffer__mlyze_repair(report, src, temp_path(temp_folder, "saved.mlyze"), &opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    coffer_source_close(src);
    return report;
}

static coffer_report *repair_file(const char *name)
{
    char path[512];
    size_t len;
    snprintf(path, sizeof path, "%s/%s", COFFER_TEST_DATA, name);
    uint8_t *bytes = temp_read(path, &len);
    assert_non_null(bytes);
    coffer_report *report = repair_bytes(bytes, len);
    free(bytes);
    return report;
}

static bool says(const coffer_report *report, coffer_status code, const char *words)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *finding = coffer_report_at(report, i);
        if (finding->code == code && strstr(finding->text, words))
            return true;
    }
    return false;
}

/* Opens the result, which must have no damage, and gives the number of its events. */
static uint64_t saved_events(void)
{
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "saved.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    if (coffer_mlyze_damage(trace, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    coffer_mlyze_events all = trace_read_all(trace);
    uint64_t count = all.count;
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return count;
}

/* The metadata of the result; free(). */
static char *saved_metadata(void)
{
    size_t len;
    uint8_t *bytes = temp_read(temp_path(temp_folder, "saved.mlyze"), &len);
    uint32_t metadata = coffer__load_u32(bytes + 16);
    memmove(bytes, bytes + 256, metadata);
    bytes[metadata] = 0;
    return (char *)bytes;
}

static void sample(trace_builder *made, uint32_t flags)
{
    trace_sample(made, flags, 1000, 100);
    trace_finish(made);
}

static uint8_t *block_at(trace_builder *made, size_t index)
{
    uint8_t *at = made->file.data + made->area;
    while (index-- > 0)
        at += COFFER__MLYZE_BLOCK_HEADER + coffer__load_u32(at + COFFER__MLYZE_BLOCK_STORED_AT);
    return at;
}

/* ---- Clean files ---- */

static void a_clean_trace_is_copied_as_it_is(void **state)
{
    static const uint32_t kinds[] = { 0, BLOCKS, BLOCKS | SUMS, COFFER__MLYZE_FLAG_EXTENSIONS };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        trace_builder made;
        sample(&made, kinds[i]);
        coffer_report *report = repair_bytes(made.file.data, made.file.len);
        assert_int_equal(coffer_report_count(report), 0);
        assert_true(temp_holds(temp_path(temp_folder, "saved.mlyze"), made.file.data, made.file.len));
        coffer_report_free(report);
        trace_dispose(&made);
    }
}

static void what_repair_wrote_needs_no_repair(void **state)
{
    trace_builder made;
    size_t len;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    coffer_report_free(repair_bytes(made.file.data, made.file.len - 7));
    trace_dispose(&made);
    uint8_t *once = temp_read(temp_path(temp_folder, "saved.mlyze"), &len);
    coffer_report *report = repair_bytes(once, len);
    assert_int_equal(coffer_report_count(report), 0);
    assert_true(temp_holds(temp_path(temp_folder, "saved.mlyze"), once, len));
    coffer_report_free(report);
    free(once);
}

/* ---- Cut off ---- */

static void a_compressed_trace_cut_anywhere_keeps_the_events_before_the_cut(void **state)
{
    trace_builder made;
    uint64_t before = 0;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    for (size_t cut = made.area; cut < made.file.len; cut += 13) {
        size_t whole = 0;
        while (whole < 10 && block_at(&made, whole + 1) <= made.file.data + cut)
            whole++;
        coffer_report *report = repair_bytes(made.file.data, cut);
        uint64_t events = saved_events();
        assert_true(coffer_report_count(report) > 0);
        assert_true(events >= before && events >= 100 * whole && events < 100 * whole + 100);
        assert_int_equal(says(report, COFFER_E_TRUNCATED, "no checksum covers"),
                         block_at(&made, whole) < made.file.data + cut);
        before = events;
        coffer_report_free(report);
    }
    assert_true(before >= 990);
    trace_dispose(&made);
}

static void a_plain_trace_cut_anywhere_keeps_the_events_before_the_cut(void **state)
{
    trace_builder made;
    uint64_t before = 0;
    (void)state;
    sample(&made, 0);
    for (size_t cut = made.area; cut < made.file.len; cut += 7) {
        coffer_report *report = repair_bytes(made.file.data, cut);
        uint64_t events = saved_events();
        assert_true(events >= before && events <= 1000);
        before = events;
        coffer_report_free(report);
    }
    assert_true(before >= 999);
    trace_dispose(&made);
}

static void a_trace_cut_in_its_front_becomes_an_empty_one(void **state)
{
    trace_builder made;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    for (size_t cut = 4; cut < made.area; cut += 5) {
        coffer_report *report = repair_bytes(made.file.data, cut);
        assert_true(coffer_report_count(report) > 0);
        assert_int_equal(saved_events(), 0);
        coffer_report_free(report);
    }
    trace_dispose(&made);
}

static void a_truncated_event_is_dropped(void **state)
{
    coffer_report *report = repair_file("vectors/mlyze/truncated-event.mlyze");
    (void)state;
    assert_true(says(report, COFFER_E_TRUNCATED, "truncated event at offset"));
    coffer_report_free(report);
    saved_events();
}

/* ---- Blocks ---- */

static void a_damaged_block_is_dropped_and_named(void **state)
{
    trace_builder made;
    char expected[64];
    (void)state;
    sample(&made, BLOCKS | SUMS);
    uint8_t *block = block_at(&made, 4);
    block[COFFER__MLYZE_BLOCK_HEADER + 10] ^= 1;
    coffer_report *report = repair_bytes(made.file.data, made.file.len);
    snprintf(expected, sizeof expected, "block at offset %zu with 100 events is dropped",
             (size_t)(block - made.file.data));
    assert_true(says(report, COFFER_E_BAD_CHECKSUM, expected));
    assert_true(says(report, COFFER_E_INCONSISTENT, "the header counts 1000 events, there are 900"));
    assert_int_equal(saved_events(), 900);
    coffer_report_free(report);
    trace_dispose(&made);
}

static void blocks_after_a_damaged_header_are_found_again(void **state)
{
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        trace_builder made;
        sample(&made, BLOCKS | (sums ? SUMS : 0));
        coffer__store_u32(block_at(&made, 2), 0xffffffff);
        coffer_report *report = repair_bytes(made.file.data, made.file.len);
        assert_true(says(report, COFFER_E_BAD_VALUE, "up to the next whole block are lost"));
        assert_int_equal(saved_events(), 900);
        coffer_report_free(report);
        trace_dispose(&made);
    }
}

static void blocks_that_overlap_in_time_are_put_in_order(void **state)
{
    static const uint64_t expected[] = { 10, 20, 20, 23, 40 };
    trace_builder made;
    coffer_source *src = NULL;
    (void)state;
    trace_begin(&made, BLOCKS | SUMS, NULL);
    trace_free(&made, 10, 1);
    trace_free(&made, 10, 2);
    trace_end_block(&made, false);
    trace_free(&made, 5, 3);
    trace_free(&made, 5, 4);
    trace_end_block(&made, false);
    trace_free(&made, 10, 5);
    trace_finish(&made);
    coffer__store_u64(block_at(&made, 1) + COFFER__MLYZE_BLOCK_TIME_AT, 13);
    coffer_report *report = repair_bytes(made.file.data, made.file.len);
    assert_true(
        says(report, COFFER_E_NOT_SORTED, "ends: 1; the times of their events are raised to its end"));
    assert_int_equal(saved_events(), 5);
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "saved.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    assert_memory_equal(all.time, expected, sizeof expected);
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    coffer_report_free(report);
    trace_dispose(&made);
}

/* ---- Header and metadata ---- */

static void wrong_counts_and_lengths_are_put_right(void **state)
{
    trace_builder made;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    coffer__store_u64(made.file.data + COFFER__MLYZE_EVENT_COUNT_AT, 5);
    coffer__store_u64(made.file.data + COFFER__MLYZE_EVENT_LENGTH_AT, UINT64_MAX);
    coffer_report *report = repair_bytes(made.file.data, made.file.len);
    assert_int_equal(saved_events(), 1000);
    uint8_t *bytes = temp_read(temp_path(temp_folder, "saved.mlyze"), NULL);
    assert_int_equal(coffer__load_u64(bytes + COFFER__MLYZE_EVENT_COUNT_AT), 1000);
    size_t len = 0;
    free(bytes);
    bytes = temp_read(temp_path(temp_folder, "saved.mlyze"), &len);
    assert_int_equal(coffer__load_u64(bytes + COFFER__MLYZE_EVENT_LENGTH_AT),
                     len - 256 - coffer__load_u32(bytes + COFFER__MLYZE_METADATA_LENGTH_AT));
    free(bytes);
    coffer_report_free(report);
    trace_dispose(&made);
}

static void bytes_after_the_events_are_dropped_and_reserved_ones_are_kept(void **state)
{
    trace_builder made;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    made.file.data[200] = 1;
    coffer__buffer_append(&made.file, "rest", 4);
    coffer_report *report = repair_bytes(made.file.data, made.file.len);
    assert_true(says(report, COFFER_E_TRAILING_BYTES, "bytes after the events, now dropped: 4"));
    assert_int_equal(saved_events(), 1000);
    uint8_t *bytes = temp_read(temp_path(temp_folder, "saved.mlyze"), NULL);
    assert_int_equal(bytes[200], 1);
    free(bytes);
    coffer_report_free(report);
    trace_dispose(&made);
}

static void metadata_that_is_not_json_is_replaced_by_empty_tables(void **state)
{
    coffer_report *report = repair_file("vectors/mlyze/bad-json.mlyze");
    (void)state;
    assert_true(says(report, COFFER_E_BAD_JSON, "the metadata is lost"));
    char *metadata = saved_metadata();
    assert_non_null(strstr(metadata, "{\"repaired\":{\"lost_metadata\":true},\"stack_traces\":{},"));
    assert_true(saved_events() > 0);
    free(metadata);
    coffer_report_free(report);
}

static void a_wrong_length_of_the_metadata_is_found_out(void **state)
{
    static const uint32_t lengths[] = { 3, 1000000 };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        trace_builder made;
        sample(&made, 0);
        coffer__store_u32(made.file.data + COFFER__MLYZE_METADATA_LENGTH_AT, lengths[i]);
        coffer_report *report = repair_bytes(made.file.data, made.file.len);
        char *metadata = saved_metadata();
        assert_memory_equal(metadata, trace_tables, strlen(trace_tables) - 1);
        assert_memory_equal(metadata + strlen(trace_tables) - 1, ",\"coffer_checksum\":\"crc32\"", 26);
        assert_int_equal(saved_events(), 1000);
        free(metadata);
        coffer_report_free(report);
        trace_dispose(&made);
    }
}

static void wrong_checksums_of_the_front_are_recomputed(void **state)
{
    trace_builder made;
    (void)state;
    sample(&made, BLOCKS | SUMS);
    made.file.data[COFFER__MLYZE_METADATA_CRC_AT] ^= 1;
    coffer_report *report = repair_bytes(made.file.data, made.file.len);
    assert_true(says(report, COFFER_E_BAD_CHECKSUM, "one bit of byte 24 of the header was flipped"));
    assert_int_equal(saved_events(), 1000);
    coffer_report_free(report);
    made.file.data[COFFER__MLYZE_METADATA_CRC_AT] ^= 0x33;
    report = repair_bytes(made.file.data, made.file.len);
    assert_true(says(report, COFFER_E_BAD_CHECKSUM, "the header's checksum"));
    assert_true(says(report, COFFER_E_BAD_CHECKSUM, "the metadata's checksum"));
    coffer_report_free(report);
    trace_dispose(&made);
}

static void version_0_becomes_version_1(void **state)
{
    coffer_report *report = repair_file("vectors/mlyze/version-0.mlyze");
    (void)state;
    assert_true(says(report, COFFER_E_UNSUPPORTED_VERSION, "version 0 is now 1"));
    saved_events();
    coffer_report_free(report);
}

static void every_damaged_vector_becomes_a_trace_that_opens(void **state)
{
    static const char *const names[] = { "meta-past-end",   "short-header",    "unknown-event-4",
                                         "varint-11-bytes", "varint-overflow", "version-2-extension-event" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "vectors/mlyze/%s.mlyze", names[i]);
        coffer_report_free(repair_file(path));
        saved_events();
    }
}

static void any_byte_may_be_wrong_and_the_result_opens(void **state)
{
    static const uint32_t kinds[] = { 0, BLOCKS, BLOCKS | SUMS };
    (void)state;
    for (size_t kind = 0; kind < 3; kind++) {
        trace_builder made;
        trace_sample(&made, kinds[kind], 30, 10);
        trace_finish(&made);
        for (size_t at = 4; at < made.file.len; at++) {
            made.file.data[at] ^= 0x81;
            coffer_report_free(repair_bytes(made.file.data, made.file.len));
            saved_events();
            made.file.data[at] ^= 0x81;
        }
        trace_dispose(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_trace_is_copied_as_it_is),
        cmocka_unit_test(what_repair_wrote_needs_no_repair),
        cmocka_unit_test(a_compressed_trace_cut_anywhere_keeps_the_events_before_the_cut),
        cmocka_unit_test(a_plain_trace_cut_anywhere_keeps_the_events_before_the_cut),
        cmocka_unit_test(a_trace_cut_in_its_front_becomes_an_empty_one),
        cmocka_unit_test(a_truncated_event_is_dropped),
        cmocka_unit_test(a_damaged_block_is_dropped_and_named),
        cmocka_unit_test(blocks_after_a_damaged_header_are_found_again),
        cmocka_unit_test(blocks_that_overlap_in_time_are_put_in_order),
        cmocka_unit_test(wrong_counts_and_lengths_are_put_right),
        cmocka_unit_test(bytes_after_the_events_are_dropped_and_reserved_ones_are_kept),
        cmocka_unit_test(metadata_that_is_not_json_is_replaced_by_empty_tables),
        cmocka_unit_test(a_wrong_length_of_the_metadata_is_found_out),
        cmocka_unit_test(wrong_checksums_of_the_front_are_recomputed),
        cmocka_unit_test(version_0_becomes_version_1),
        cmocka_unit_test(every_damaged_vector_becomes_a_trace_that_opens),
        cmocka_unit_test(any_byte_may_be_wrong_and_the_result_opens),
    };
    return cmocka_run_group_tests_name("mlyze_repair", tests, temp_setup, temp_teardown);
}
