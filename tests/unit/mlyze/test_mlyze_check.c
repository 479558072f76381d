/* Findings of check in traces. */
#include "support/trace.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUMS COFFER__MLYZE_FLAG_CHECKSUMS
#define BLOCKS COFFER__MLYZE_FLAG_BLOCKS
#define EXTENSIONS COFFER__MLYZE_FLAG_EXTENSIONS

/* Finishes and checks; the builder is done with. The findings are exactly `count`, and one of them has this
 * code, severity and words. */
static void assert_finds(trace_builder *t, size_t count, coffer_status code, coffer_severity severity,
                         const char *words)
{
    bool found = false;
    coffer_report *report = trace_check(t);
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        const coffer_finding *at = coffer_report_at(report, i);
        found |= at->code == code && at->severity == severity && strstr(at->text, words);
    }
    if (!found || coffer_report_count(report) != count) {
        for (size_t i = 0; i < coffer_report_count(report); i++)
            print_message("%s %s\n", coffer_status_name(coffer_report_at(report, i)->code),
                          coffer_report_at(report, i)->text);
        fail_msg("not \"%s\", or not alone", words);
    }
    coffer_report_free(report);
    trace_dispose(t);
}

static void assert_clean(trace_builder *t)
{
    coffer_report *report = trace_check(t);
    if (coffer_report_count(report) > 0)
        fail_msg("%s", coffer_report_at(report, 0)->text);
    coffer_report_free(report);
    trace_dispose(t);
}

static void good_traces_have_no_finding(void **state)
{
    trace_builder t;
    (void)state;
    for (uint32_t flags = 0; flags < 16; flags++) {
        trace_sample(&t, flags, 500, 100);
        assert_clean(&t);
        trace_sample(&t, flags, 0, 100);
        assert_clean(&t);
    }
}

static void nonzero_reserved_bytes_of_the_header_are_reported(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, 0, 5, 0);
    t.file.data[200] = 1;
    assert_finds(&t, 1, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "bytes 48 to 255");
    trace_sample(&t, 256, 5, 0);
    assert_finds(&t, 1, COFFER_E_RESERVED_NOT_ZERO, COFFER_WARNING, "100 is unknown");
    trace_sample(&t, 0, 5, 0);
    t.file.data[200] = 1;
    t.file.data[COFFER__MLYZE_VERSION_AT] = 2;
    assert_finds(&t, 2, COFFER_E_RESERVED_NOT_ZERO, COFFER_NOTE, "bytes 48 to 255");
    trace_sample(&t, 0, 5, 0);
    t.file.data[COFFER__MLYZE_VERSION_AT] = 3;
    assert_finds(&t, 1, COFFER_E_UNSUPPORTED_VERSION, COFFER_NOTE, "version 3 is newer than 1");
    trace_sample(&t, 0, 5, 0);
    t.file.data[COFFER__MLYZE_HEADER_CRC_AT] = 1;
    assert_finds(&t, 1, COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR, "the header has checksums");
}

static void checksums_are_verified_and_the_rest_is_checked_all_the_same(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, SUMS, 5, 0);
    t.file.data[COFFER__MLYZE_START_AT] ^= 1;
    assert_finds(&t, 1, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, "the header's checksum");
    trace_sample(&t, SUMS, 5, 0);
    memcpy(strstr((char *)t.file.data + COFFER__MLYZE_HEADER_SIZE, "work.c"), "WORK.c", 6);
    assert_finds(&t, 1, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, "the metadata's checksum");
    trace_sample(&t, SUMS | BLOCKS, 200, 40);
    t.file.data[t.file.len - 1] ^= 1;
    assert_finds(&t, 1, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, "events 160 to 199 are lost");
}

static void inconsistent_counts_are_reported(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, SUMS, 50, 0);
    coffer__store_u64(t.file.data + COFFER__MLYZE_EVENT_COUNT_AT, 60);
    assert_finds(&t, 1, COFFER_E_SIZE_MISMATCH, COFFER_ERROR, "says 60 events, file has 50");
    trace_sample(&t, SUMS, 50, 0);
    coffer__buffer_append(&t.file, "12345", 5);
    assert_finds(&t, 1, COFFER_E_TRAILING_BYTES, COFFER_WARNING, "5 bytes follow");
    trace_sample(&t, SUMS | BLOCKS, 50, 10);
    t.file.len -= 1;
    assert_finds(&t, 1, COFFER_E_TRUNCATED, COFFER_ERROR,
                 "(49 whole events before the cut, the last 9 unverified)");
    trace_sample(&t, BLOCKS, 50, 50);
    coffer__store_u32(t.file.data + t.area + COFFER__MLYZE_BLOCK_COUNT_AT, 51);
    assert_finds(&t, 1, COFFER_E_SIZE_MISMATCH, COFFER_ERROR, "says 51 events and has 50");
}

static void names_that_no_table_lists_are_reported_once_each(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, EXTENSIONS, NULL);
    for (uint64_t i = 1; i < 10; i++)
        trace_alloc(&t, 1, i * 16, 8, i, 0);
    trace_finish(&t);
    assert_finds(&t, 1, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR,
                 "event 1: stack 2 is not in stack_traces (events like it: 8)");
    trace_begin(&t, EXTENSIONS, NULL);
    trace_marker(&t, 1, 99);
    trace_extension(&t, 1, COFFER_MLYZE_THREAD, "\1\0\x55", 3);
    trace_extension(&t, 1, COFFER_MLYZE_OBJECT, "12345678\x05", 9);
    trace_finish(&t);
    assert_finds(&t, 2, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR,
                 "event 1: name 85 is not in functions (events like it: 2)");
    trace_begin(&t, 0,
                "{\"stack_traces\": {\"4\": [{\"file_id\": 1, \"line\": 1, \"func_id\": 8}, {\"file_id\": 2, "
                "\"line\": 1, \"func_id\": 9}]}, \"files\": {\"1\": \"a\"}, \"functions\": {\"8\": \"b\"}}");
    assert_finds(&t, 2, COFFER_E_DANGLING_REFERENCE, COFFER_ERROR, "stack 4: func_id 9 is not in functions");
}

static void frees_and_allocations_that_do_not_fit_are_warnings(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, NULL);
    trace_alloc(&t, 1, 16, 8, 0, 0);
    trace_free(&t, 1, 16);
    trace_free(&t, 1, 16);
    trace_free(&t, 1, 32);
    assert_finds(&t, 1, COFFER_E_INCONSISTENT, COFFER_WARNING,
                 "event 2: a free of an address that is not live (2 times in all)");
    trace_begin(&t, 0, NULL);
    trace_alloc(&t, 1, 16, 8, 0, 0);
    trace_alloc(&t, 1, 16, 8, 0, 0);
    assert_finds(&t, 1, COFFER_E_INCONSISTENT, COFFER_WARNING,
                 "event 1: an allocation at an address that is live");
    trace_begin(&t, 0, NULL);
    trace_alloc(&t, 1, 0, 8, 0, 0);
    trace_alloc(&t, 1, 0, 8, 0, 0);
    assert_finds(&t, 1, COFFER_E_INCONSISTENT, COFFER_WARNING, "at address 0");
}

static void snapshots_begin_before_they_end(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, EXTENSIONS, NULL);
    trace_extension(&t, 1, COFFER_MLYZE_SNAPSHOT, "\0\1", 2);
    trace_extension(&t, 1, COFFER_MLYZE_SNAPSHOT, "\1\1", 2);
    assert_clean(&t);
    trace_begin(&t, EXTENSIONS, NULL);
    trace_extension(&t, 1, COFFER_MLYZE_SNAPSHOT, "\1\1", 2);
    assert_finds(&t, 1, COFFER_E_INCONSISTENT, COFFER_WARNING, "a snapshot ends");
    trace_begin(&t, EXTENSIONS, NULL);
    trace_extension(&t, 1, COFFER_MLYZE_SNAPSHOT, "\0\1", 2);
    assert_finds(&t, 1, COFFER_E_INCONSISTENT, COFFER_WARNING, "do not end");
}

static void extensions_that_are_not_known_are_a_note(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, EXTENSIONS, NULL);
    trace_extension(&t, 1, 9, "abc", 3);
    trace_extension(&t, 1, 255, "", 0);
    assert_finds(&t, 1, COFFER_E_BAD_VALUE, COFFER_NOTE, "2 extension events");
    trace_begin(&t, 0, NULL);
    trace_extension(&t, 1, 9, "abc", 3);
    assert_finds(&t, 1, COFFER_E_BAD_VALUE, COFFER_ERROR, "unknown event type 9 at offset");
    trace_begin(&t, EXTENSIONS, NULL);
    trace_extension(&t, 1, COFFER_MLYZE_RSS, "", 0);
    assert_finds(&t, 1, COFFER_E_BAD_VALUE, COFFER_ERROR, "event of type 8");
}

static void blocks_that_go_back_in_time_are_reported(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, BLOCKS, NULL);
    trace_marker(&t, 100, 0);
    trace_end_block(&t, true);
    t.block_time = 50;
    trace_marker(&t, 1, 0);
    trace_finish(&t);
    assert_finds(&t, 1, COFFER_E_NOT_SORTED, COFFER_ERROR, "event 1: its block begins before");
}

static void over_long_numbers_are_one_warning(void **state)
{
    trace_builder t;
    (void)state;
    for (uint32_t flags = 0; flags < 2; flags++) {
        trace_begin(&t, flags, NULL);
        trace_marker(&t, 1, 0);
        trace_raw(&t, "\3\x80\0\x81\0", 5, 1);
        trace_finish(&t);
        assert_finds(&t, 1, COFFER_E_BAD_VARINT, COFFER_WARNING, "event 1: a number takes more");
    }
}

static void metadata_that_cannot_be_read_does_not_hide_the_events(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, "{");
    trace_alloc(&t, 1, 16, 8, 5, 0);
    trace_raw(&t, "\1\1", 2, 0);
    coffer_report *report = trace_check(&t);
    assert_int_equal(coffer_report_count(report), 3);
    assert_int_equal(coffer_report_at(report, 0)->code, COFFER_E_BAD_JSON);
    assert_int_equal(coffer_report_at(report, 1)->code, COFFER_E_MISSING);
    assert_non_null(strstr(coffer_report_at(report, 1)->text, "without them: 1"));
    assert_int_equal(coffer_report_at(report, 2)->code, COFFER_E_TRUNCATED);
    coffer_report_free(report);
    trace_dispose(&t);
}

static void memlyze_gets_a_warning_for_each_quirk(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, "{\"stack_traces\": {}, \"files\": {}, \"functions\": {}}");
    for (int i = 0; i < 1000; i++)
        trace_alloc(&t, 5, 0, 8, 0, 0);
    coffer_report *report = trace_check(&t);
    assert_int_equal(coffer_report_count(report), 3);
    assert_int_equal(coffer_report_total(report, COFFER_ERROR), 1);
    assert_non_null(strstr(coffer_report_at(report, 0)->text, "never again"));
    assert_non_null(strstr(coffer_report_at(report, 1)->text, "address 0"));
    assert_non_null(strstr(coffer_report_at(report, 2)->text, "same delta"));
    coffer_report_free(report);
    trace_dispose(&t);
}

static void sizes_that_add_up_past_64_bits_are_a_warning(void **state)
{
    trace_builder t;
    (void)state;
    trace_begin(&t, 0, NULL);
    trace_alloc(&t, 0, 16, UINT64_MAX, 0, 0);
    assert_clean(&t);
    trace_begin(&t, 0, NULL);
    trace_alloc(&t, 0, 16, UINT64_MAX, 0, 0);
    trace_alloc(&t, 0, 32, 1, 0, 0);
    assert_finds(&t, 1, COFFER_E_BAD_VALUE, COFFER_WARNING, "more than 64 bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_traces_have_no_finding),
        cmocka_unit_test(nonzero_reserved_bytes_of_the_header_are_reported),
        cmocka_unit_test(checksums_are_verified_and_the_rest_is_checked_all_the_same),
        cmocka_unit_test(inconsistent_counts_are_reported),
        cmocka_unit_test(names_that_no_table_lists_are_reported_once_each),
        cmocka_unit_test(frees_and_allocations_that_do_not_fit_are_warnings),
        cmocka_unit_test(snapshots_begin_before_they_end),
        cmocka_unit_test(extensions_that_are_not_known_are_a_note),
        cmocka_unit_test(blocks_that_go_back_in_time_are_reported),
        cmocka_unit_test(over_long_numbers_are_one_warning),
        cmocka_unit_test(metadata_that_cannot_be_read_does_not_hide_the_events),
        cmocka_unit_test(memlyze_gets_a_warning_for_each_quirk),
        cmocka_unit_test(sizes_that_add_up_past_64_bits_are_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
