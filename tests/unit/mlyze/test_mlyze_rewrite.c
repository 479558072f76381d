/* Traces with other blocks, or with none: events and metadata stay the same bytes. */
#include "support/trace.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static coffer_status rewrite(const char *from, const char *to, const coffer_mlyze_writer_opts *opts,
                             coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    coffer_status status;
    if ((status = coffer_source_open(&src, from, NULL, err)) ||
        (status = coffer_mlyze_open(&trace, src, NULL, err)))
        goto out;
    status = coffer_mlyze_rewrite(trace, to, opts, err);
out:
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return status;
}

static void must_rewrite(const char *from, const char *to, const coffer_mlyze_writer_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (rewrite(from, to, opts, &err) != COFFER_OK)
        fail_msg("%s: %s", from, err.text);
}

static coffer_mlyze_writer_opts options(bool plain, int level)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.plain = plain;
    opts.level = level;
    opts.no_index = true;
    return opts;
}

/* Plain to compressed and back is the same file. */
static void expect_round_trip(const char *plain)
{
    const char *packed = temp_path(temp_folder, "packed.mlyze");
    const char *back = temp_path(temp_folder, "back.mlyze");
    size_t len;
    uint8_t *bytes = temp_read(plain, &len);
    for (int level = 0; level < 12; level += 9) {
        coffer_mlyze_writer_opts pack = options(false, level), unpack = options(true, 0);
        must_rewrite(plain, packed, &pack);
        must_rewrite(packed, back, &unpack);
        assert_true(temp_holds(back, bytes, len));
    }
    free(bytes);
}

/* The same through an archive, which keeps the events and the text, but not over-long varints. */
static void expect_archive_round_trip(const char *plain)
{
    const char *packed = temp_path(temp_folder, "packed.mlyze");
    const char *back = temp_path(temp_folder, "back.mlyze");
    size_t len;
    uint8_t *bytes = temp_read(plain, &len);
    coffer_mlyze_writer_opts pack = options(false, 0), unpack = options(true, 0), blocks = options(false, 0);
    pack.archive = true;
    must_rewrite(plain, packed, &pack);
    must_rewrite(packed, back, &unpack);
    assert_true(temp_holds(back, bytes, len));
    must_rewrite(packed, back, &blocks);
    must_rewrite(back, packed, &unpack);
    assert_true(temp_holds(packed, bytes, len));
    free(bytes);
}

static void save(trace_builder *made, const char *path)
{
    trace_finish(made);
    temp_write(path, made->file.data, made->file.len);
    trace_dispose(made);
}

static void a_plain_trace_comes_back_from_blocks_byte_for_byte(void **state)
{
    const char *path = temp_path(temp_folder, "plain.mlyze");
    trace_builder made;
    (void)state;
    for (uint32_t events = 0; events <= 20000; events += 10000) {
        trace_sample(&made, 0, events, 0);
        save(&made, path);
        expect_round_trip(path);
        expect_archive_round_trip(path);
    }
}

static void every_clean_plain_file_of_others_comes_back_byte_for_byte(void **state)
{
    static const char *const files[] = {
        "vectors/mlyze/mixed.mlyze",           "vectors/mlyze/no-events.mlyze",
        "vectors/mlyze/varint-overlong.mlyze", "vectors/mlyze/missing-stack.mlyze",
        "vectors/mlyze/double-alloc.mlyze",    "vectors/mlyze/memlyze-empty-tables.mlyze",
        "compat/mlyze/memlyze-0.1.mlyze"
    };
    char path[512];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", COFFER_TEST_DATA, files[i]);
        expect_round_trip(path);
        if (!strstr(path, "overlong"))
            expect_archive_round_trip(path);
    }
}

static void spaces_after_the_metadata_and_overlong_varints_stay(void **state)
{
    const char *path = temp_path(temp_folder, "plain.mlyze");
    static const uint8_t overlong[] = { 1, 0x85, 0x80, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    trace_builder made;
    (void)state;
    trace_begin(&made, 0, "{\"stack_traces\": {}, \"files\": {},\n\"functions\": {}}      ");
    trace_raw(&made, overlong, sizeof overlong, 1);
    trace_free(&made, 3, 9);
    save(&made, path);
    expect_round_trip(path);
}

static uint64_t *times_of(const char *path, size_t *count)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    uint64_t *times = malloc((all.count + 1) * sizeof *times);
    memcpy(times, all.time, all.count * sizeof *times);
    *count = all.count;
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return times;
}

static void set_block_time(trace_builder *made, size_t block, uint64_t time)
{
    uint8_t *at = made->file.data + made->area;
    while (block-- > 0)
        at += COFFER__MLYZE_BLOCK_HEADER + coffer__load_u32(at + COFFER__MLYZE_BLOCK_STORED_AT);
    coffer__store_u64(at + COFFER__MLYZE_BLOCK_TIME_AT, time);
}

/* Blocks of another writer may begin later than the event before them, or, wrongly, earlier. */
static void times_of_blocks_that_do_not_meet_are_kept_in_a_plain_trace(void **state)
{
    const char *blocks = temp_path(temp_folder, "blocks.mlyze");
    const char *plain = temp_path(temp_folder, "plain.mlyze");
    coffer_mlyze_writer_opts unpack = options(true, 0);
    static const uint64_t later[] = { 10, 20, 1005, 1010 }, earlier[] = { 10, 20, 20, 23 };
    trace_builder made;
    (void)state;
    for (int early = 0; early < 2; early++) {
        size_t count;
        trace_begin(&made, COFFER__MLYZE_FLAG_BLOCKS, NULL);
        trace_free(&made, 10, 1);
        trace_free(&made, 10, 2);
        trace_end_block(&made, false);
        trace_free(&made, 5, 3);
        trace_free(&made, 5, 4);
        trace_finish(&made);
        set_block_time(&made, 1, early ? 13 : 1000);
        temp_write(blocks, made.file.data, made.file.len);
        trace_dispose(&made);
        must_rewrite(blocks, plain, &unpack);
        uint64_t *times = times_of(plain, &count);
        assert_int_equal(count, 4);
        assert_memory_equal(times, early ? earlier : later, sizeof later);
        free(times);
    }
}

static void extension_events_are_carried_into_blocks_and_refused_by_a_plain_trace(void **state)
{
    const char *from = temp_path(temp_folder, "from.mlyze"), *to = temp_path(temp_folder, "to.mlyze");
    coffer_mlyze_writer_opts pack = options(false, 3), unpack = options(true, 0);
    coffer_error err = COFFER_ERROR_INIT;
    trace_builder made;
    size_t len;
    (void)state;
    trace_begin(&made, COFFER__MLYZE_FLAG_EXTENSIONS, NULL);
    trace_free(&made, 1, 5);
    trace_extension(&made, 2, 200, "unknown to us", 13);
    save(&made, from);
    must_rewrite(from, to, &pack);
    uint8_t *bytes = temp_read(to, &len);
    assert_int_equal(coffer__load_u32(bytes + 20) & 4, 4);
    assert_non_null(memmem(bytes, len, "unknown to us", 13));
    free(bytes);
    assert_int_equal(rewrite(to, temp_path(temp_folder, "none.mlyze"), &unpack, &err), COFFER_E_UNSUPPORTED);
    assert_string_equal(err.text,
                        "event 1 is an extension of type 200: a plain trace cannot have it (drop them with "
                        "\"drop-extensions\")");
    assert_false(temp_exists(temp_path(temp_folder, "none.mlyze")));
}

static void the_flag_of_extension_events_goes_with_the_last_of_them(void **state)
{
    const char *from = temp_path(temp_folder, "from.mlyze"), *to = temp_path(temp_folder, "to.mlyze");
    coffer_mlyze_writer_opts pack = options(false, 0);
    trace_builder made;
    (void)state;
    trace_begin(&made, COFFER__MLYZE_FLAG_EXTENSIONS, NULL);
    trace_free(&made, 1, 5);
    save(&made, from);
    must_rewrite(from, to, &pack);
    uint8_t *bytes = temp_read(to, NULL);
    assert_int_equal(coffer__load_u32(bytes + 20), 3 | 16 | 32);
    free(bytes);
}

static void an_event_that_no_block_can_hold_is_refused(void **state)
{
    const char *from = temp_path(temp_folder, "from.mlyze"), *to = temp_path(temp_folder, "large.mlyze");
    coffer_mlyze_writer_opts pack = options(false, 0);
    coffer_error err = COFFER_ERROR_INIT;
    uint8_t *body = calloc(1, 70000);
    trace_builder made;
    (void)state;
    trace_begin(&made, COFFER__MLYZE_FLAG_EXTENSIONS, NULL);
    trace_free(&made, 1, 5);
    trace_extension(&made, 2, 77, body, 70000);
    free(body);
    save(&made, from);
    assert_int_equal(rewrite(from, to, &pack, &err), COFFER_E_UNSUPPORTED);
    assert_string_equal(err.text, "event 1 takes 70005 bytes: a block of a compressed trace holds 65536");
    assert_false(temp_exists(to));
}

static void a_damaged_trace_is_not_rewritten_without_a_word(void **state)
{
    const char *from = temp_path(temp_folder, "from.mlyze"), *to = temp_path(temp_folder, "damaged.mlyze");
    coffer_mlyze_writer_opts pack = options(false, 0);
    trace_builder made;
    (void)state;
    trace_sample(&made, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS, 1000, 100);
    trace_finish(&made);
    made.file.data[made.file.len - 1] ^= 1;
    temp_write(from, made.file.data, made.file.len);
    assert_int_equal(rewrite(from, to, &pack, NULL), COFFER_E_BAD_CHECKSUM);
    temp_write(from, made.file.data, made.file.len - 1);
    assert_true(rewrite(from, to, &pack, NULL) < 0);
    assert_false(temp_exists(to));
    trace_dispose(&made);
}

static int stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context, (void)done, (void)total;
    return 1;
}

static void a_cancelled_copy_leaves_nothing(void **state)
{
    char *folder = temp_make();
    coffer_progress progress = { .struct_size = sizeof progress, .step = stop_at_once };
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    trace_builder made;
    (void)state;
    opts.progress = &progress;
    trace_sample(&made, 0, 100, 0);
    trace_finish(&made);
    coffer_source *src = trace_source(&made);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_rewrite(trace, temp_path(folder, "t.mlyze"), &opts, NULL),
                     COFFER_E_CANCELLED);
    temp_assert_only(folder, NULL);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_dispose(&made);
    temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_trace_comes_back_from_blocks_byte_for_byte),
        cmocka_unit_test(every_clean_plain_file_of_others_comes_back_byte_for_byte),
        cmocka_unit_test(spaces_after_the_metadata_and_overlong_varints_stay),
        cmocka_unit_test(times_of_blocks_that_do_not_meet_are_kept_in_a_plain_trace),
        cmocka_unit_test(extension_events_are_carried_into_blocks_and_refused_by_a_plain_trace),
        cmocka_unit_test(the_flag_of_extension_events_goes_with_the_last_of_them),
        cmocka_unit_test(an_event_that_no_block_can_hold_is_refused),
        cmocka_unit_test(a_damaged_trace_is_not_rewritten_without_a_word),
        cmocka_unit_test(a_cancelled_copy_leaves_nothing),
    };
    return cmocka_run_group_tests_name("mlyze_rewrite", tests, temp_setup, temp_teardown);
}
