/* Opening a trace: its header. */
#include "support/trace.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define SUMS COFFER__MLYZE_FLAG_CHECKSUMS

/* Opens what the builder holds, which is then done with. */
static coffer_status open_status(trace_builder *t, coffer_error *err)
{
    coffer_source *src = trace_source(t);
    coffer_mlyze *trace = NULL;
    coffer_status status = coffer_mlyze_open(&trace, src, NULL, err);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(t);
    return status;
}

static void assert_refused(trace_builder *t, coffer_status expected, const char *words)
{
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(open_status(t, &err), expected);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void a_trace_says_what_its_header_and_tables_say(void **state)
{
    trace_builder t;
    size_t len = 0, depth = 0;
    (void)state;
    trace_sample(&t, SUMS | COFFER__MLYZE_FLAG_BLOCKS, 10, 5);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_version(trace), 1);
    assert_int_equal(coffer_mlyze_flags(trace), SUMS | COFFER__MLYZE_FLAG_BLOCKS);
    assert_int_equal(coffer_mlyze_start_time(trace), UINT64_C(1700000000000000));
    assert_true(coffer_mlyze_compressed(trace));
    assert_null(coffer_mlyze_profile_name(trace));
    assert_string_equal(coffer_mlyze_metadata(trace, &len), trace_tables);
    assert_int_equal(len, strlen(trace_tables));
    assert_string_equal(coffer_mlyze_file_name(trace, 1), "work.c");
    assert_null(coffer_mlyze_file_name(trace, 2));
    assert_string_equal(coffer_mlyze_function_name(trace, 2), "phase two");
    assert_null(coffer_mlyze_function_name(trace, UINT64_MAX));
    assert_null(coffer_mlyze_thread_name(trace, 0));
    assert_int_equal(coffer_mlyze_stack_count(trace), 2);
    assert_int_equal(coffer_mlyze_stack_id(trace, 1), 1);
    assert_int_equal(coffer_mlyze_find_stack(trace, 1), 1);
    assert_int_equal(coffer_mlyze_find_stack(trace, 2), SIZE_MAX);
    const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, 0);
    assert_int_equal(depth, 2);
    assert_int_equal(frames[0].line, 123); /* the file lists main.c:42, the outermost, first */
    assert_int_equal(frames[0].file_id, 1);
    assert_int_equal(frames[1].line, 42);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void version_0_is_refused_and_later_ones_may_have_extensions(void **state)
{
    static const uint8_t body[3] = { 1, 2, 3 };
    trace_builder t;
    (void)state;
    trace_sample(&t, 0, 10, 0);
    coffer__store_u32(t.file.data + COFFER__MLYZE_VERSION_AT, 0);
    assert_refused(&t, COFFER_E_UNSUPPORTED_VERSION, "version 0");
    for (uint32_t version = 1; version <= 3; version++) {
        uint64_t events = 0;
        trace_begin(&t, 0, NULL);
        coffer__store_u32(t.file.data + COFFER__MLYZE_VERSION_AT, version);
        trace_marker(&t, 1, 0);
        trace_extension(&t, 1, 200, body, sizeof body);
        trace_marker(&t, 1, 1);
        coffer_source *src = trace_source(&t);
        coffer_mlyze *trace = trace_open(src, NULL);
        assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
        assert_int_equal(events, version == 1 ? 1 : 3);
        assert_int_equal(coffer_mlyze_damage(trace, NULL), version == 1 ? COFFER_E_BAD_VALUE : COFFER_OK);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
        trace_dispose(&t);
    }
}

static void a_header_that_is_cut_or_promises_too_much_is_refused(void **state)
{
    trace_builder t;
    (void)state;
    for (size_t len = 4; len < COFFER__MLYZE_HEADER_SIZE; len += 13) {
        trace_sample(&t, 0, 1, 0);
        t.file.len = len;
        assert_refused(&t, COFFER_E_TRUNCATED, "takes 256 bytes");
    }
    trace_sample(&t, 0, 1, 0);
    t.file.len = t.area - 1;
    assert_refused(&t, COFFER_E_OUT_OF_BOUNDS, "metadata ends at");
    trace_sample(&t, 0, 1, 0);
    t.file.data[0] = 'X';
    assert_refused(&t, COFFER_E_NOT_RECOGNISED, "MTRC");
}

static void checksums_that_do_not_fit_are_refused(void **state)
{
    trace_builder t;
    (void)state;
    trace_sample(&t, SUMS, 5, 0);
    t.file.data[COFFER__MLYZE_START_AT] ^= 1;
    assert_refused(&t, COFFER_E_BAD_CHECKSUM, "the header's checksum");
    trace_sample(&t, SUMS, 5, 0);
    char *word = strstr((char *)t.file.data + COFFER__MLYZE_HEADER_SIZE, "work.c");
    word[0] = 'W';
    assert_refused(&t, COFFER_E_BAD_CHECKSUM, "the metadata's checksum");
}

static void metadata_over_the_limit_is_refused(void **state)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_mlyze *trace = NULL;
    trace_builder t;
    (void)state;
    trace_sample(&t, 0, 1, 0);
    coffer_source *src = trace_source(&t);
    limits.json_bytes = strlen(trace_tables) - 1;
    opts.limits = &limits;
    assert_int_equal(coffer_mlyze_open(&trace, src, &opts, NULL), COFFER_E_LIMIT);
    limits.json_bytes++;
    limits.entries = 1;
    assert_int_equal(coffer_mlyze_open(&trace, src, &opts, NULL), COFFER_E_LIMIT);
    limits.entries = 3;
    assert_int_equal(coffer_mlyze_open(&trace, src, &opts, NULL), COFFER_OK);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

/* The header's word on how much there is, against what there is. */
static void assert_damage(uint64_t count, int64_t longer, coffer_status expected)
{
    uint64_t events = 0;
    trace_builder t;
    trace_sample(&t, 0, 50, 0);
    coffer__store_u64(t.file.data + COFFER__MLYZE_EVENT_COUNT_AT, count);
    coffer__store_u64(t.file.data + COFFER__MLYZE_EVENT_LENGTH_AT, t.file.len - t.area + (uint64_t)longer);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_damage(trace, NULL), expected);
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(events, longer < 0 ? 49 : 50);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

static void counts_and_lengths_of_the_header_are_compared(void **state)
{
    (void)state;
    assert_damage(50, 0, COFFER_OK);
    assert_damage(0, 0, COFFER_OK);
    assert_damage(51, 0, COFFER_E_SIZE_MISMATCH);
    assert_damage(50, 1, COFFER_E_TRUNCATED);
    assert_damage(0, INT64_MAX, COFFER_E_TRUNCATED);
    assert_damage(0, -1, COFFER_E_TRUNCATED);
}

static void a_trace_opened_by_path_owns_its_source(void **state)
{
    char *folder = temp_make();
    trace_builder t;
    uint64_t events = 0;
    coffer_mlyze *trace = NULL;
    (void)state;
    trace_sample(&t, SUMS | COFFER__MLYZE_FLAG_BLOCKS, 10, 5);
    temp_write(temp_path(folder, "t.mlyze"), t.file.data, t.file.len);
    assert_int_equal(coffer_mlyze_open_path(&trace, temp_path(folder, "t.mlyze"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
    assert_int_equal(events, 10);
    coffer_mlyze_close(trace);
    trace = NULL;
    temp_write(temp_path(folder, "t.mlyze"), "MTRC", 4);
    assert_int_equal(coffer_mlyze_open_path(&trace, temp_path(folder, "t.mlyze"), NULL, NULL),
                     COFFER_E_TRUNCATED);
    assert_int_equal(coffer_mlyze_open_path(&trace, temp_path(folder, "none.mlyze"), NULL, NULL),
                     COFFER_E_IO);
    assert_null(trace);
    trace_dispose(&t);
    temp_remove(folder);
}

/* A caller built against a header whose structs ended earlier, or will end later. */
static void structs_of_other_versions_are_filled_as_far_as_they_go(void **state)
{
    struct {
        coffer_mlyze_block block;
        uint64_t later;
    } longer = { .later = 7 };
    trace_builder t;
    (void)state;
    trace_sample(&t, SUMS | COFFER__MLYZE_FLAG_BLOCKS, 10, 5);
    coffer_source *src = trace_source(&t);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_block shorter = { .time = 77 };
    shorter.struct_size = offsetof(coffer_mlyze_block, time);
    assert_int_equal(coffer_mlyze_get_block(&shorter, trace, 1, NULL), COFFER_OK);
    assert_int_equal(shorter.first_event, 5);
    assert_int_equal(shorter.time, 77);
    assert_int_equal(shorter.struct_size, offsetof(coffer_mlyze_block, time));
    coffer_mlyze_block_init(&longer.block, sizeof longer);
    assert_int_equal(longer.later, 0);
    longer.later = 7;
    assert_int_equal(coffer_mlyze_get_block(&longer.block, trace, 1, NULL), COFFER_OK);
    assert_int_equal(longer.block.event_count, 5);
    assert_int_equal(longer.later, 0);
    longer.block.struct_size = 0;
    assert_int_equal(coffer_mlyze_get_block(&longer.block, trace, 1, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mlyze_block_init(&longer.block, sizeof longer);
    assert_int_equal(coffer_mlyze_get_block(&longer.block, trace, 2, NULL), COFFER_E_INVALID_ARGUMENT);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_says_what_its_header_and_tables_say),
        cmocka_unit_test(version_0_is_refused_and_later_ones_may_have_extensions),
        cmocka_unit_test(a_header_that_is_cut_or_promises_too_much_is_refused),
        cmocka_unit_test(checksums_that_do_not_fit_are_refused),
        cmocka_unit_test(metadata_over_the_limit_is_refused),
        cmocka_unit_test(counts_and_lengths_of_the_header_are_compared),
        cmocka_unit_test(a_trace_opened_by_path_owns_its_source),
        cmocka_unit_test(structs_of_other_versions_are_filled_as_far_as_they_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
