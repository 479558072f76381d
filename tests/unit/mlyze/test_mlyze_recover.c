/* A recording that is killed at any byte becomes a trace of everything that was flushed. */
#include "support/trace.h"

#include "base/bytes.h"
#include "base/crc32.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;

static int setup(void **state)
{
    (void)state;
    folder = temp_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    temp_remove(folder);
    return 0;
}

static const char *in_folder(const char *name)
{
    return temp_path(folder, name);
}

static coffer_mlyze_writer_opts options(void)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.recording = true;
    opts.no_index = true;
    opts.start_time_us = 77;
    opts.extra_json = "{\"pid\": 5}";
    return opts;
}

/* Three flushes of three events each, with a new stack and a marker in each. */
static void record(coffer_mlyze_writer *writer, size_t flushes, bool sync)
{
    for (size_t i = 0; i < flushes; i++) {
        char name[32];
        uint64_t function, file, stack;
        snprintf(name, sizeof name, "f%zu", i);
        assert_int_equal(coffer_mlyze_writer_add_function(&function, writer, name, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_add_file(&file, writer, name, NULL), COFFER_OK);
        coffer_mlyze_frame frame = { file, i, function };
        assert_int_equal(coffer_mlyze_writer_add_call(&stack, writer, i ? i - 1 : COFFER_MLYZE_NO_STACK,
                                                      &frame, NULL),
                         COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_put_alloc(writer, i, 4096 + i, 10, stack, 1, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_put_marker(writer, i, function, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_put_free(writer, i, 4096 + i, NULL), COFFER_OK);
        assert_int_equal(coffer_mlyze_writer_flush(writer, sync, NULL), COFFER_OK);
    }
}

/* Leaves the parts of a recording of three flushes, as if the process had been killed. */
static void leave_parts(void)
{
    coffer_mlyze_writer_opts opts = options();
    coffer_mlyze_writer *writer = NULL;
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, NULL), COFFER_OK);
    record(writer, 3, false);
    temp_copy(in_folder("t.mlyze.part"), in_folder("part"));
    temp_copy(in_folder("t.mlyze.strings"), in_folder("strings"));
    coffer_mlyze_writer_discard(writer);
    assert_int_equal(rename(in_folder("part"), in_folder("t.mlyze.part")), 0);
    assert_int_equal(rename(in_folder("strings"), in_folder("t.mlyze.strings")), 0);
}

static coffer_report *recover(const coffer_mlyze_writer_opts *opts)
{
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    if (coffer_mlyze_recover(report, in_folder("t.mlyze"), opts, &err) != COFFER_OK)
        fail_msg("%s", err.text);
    return report;
}

static bool says(const coffer_report *report, const char *words)
{
    for (size_t i = 0; i < coffer_report_count(report); i++) {
        if (strstr(coffer_report_at(report, i)->text, words))
            return true;
    }
    return false;
}

/* The trace with that many flushes of the recording above, all its names there. */
static void expect_trace(const char *name, size_t flushes)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, in_folder(name), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    coffer_mlyze_events all = trace_read_all(trace);
    assert_int_equal(all.count, 3 * flushes);
    assert_int_equal(coffer_mlyze_start_time(trace), 77);
    for (size_t i = 0; i < flushes; i++) {
        char expected[32];
        size_t depth, stack = coffer_mlyze_find_stack(trace, all.id[3 * i]);
        snprintf(expected, sizeof expected, "f%zu", i);
        assert_true(stack != SIZE_MAX);
        const coffer_mlyze_frame *frames = coffer_mlyze_frames(&depth, trace, stack);
        assert_int_equal(depth, i + 1);
        assert_string_equal(coffer_mlyze_function_name(trace, frames[0].func_id), expected);
        assert_string_equal(coffer_mlyze_file_name(trace, frames[0].file_id), expected);
        assert_string_equal(coffer_mlyze_function_name(trace, all.id[3 * i + 1]), expected);
    }
    if (flushes > 0)
        assert_non_null(strstr(coffer_mlyze_metadata(trace, NULL), "\"pid\":5"));
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

/* ---- Recovered traces ---- */

static void a_killed_recording_becomes_a_trace(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    (void)state;
    leave_parts();
    coffer_report *report = recover(&opts);
    assert_true(says(report, "the recording was interrupted: 9 events were saved"));
    coffer_report_free(report);
    temp_assert_only(folder, "t.mlyze", NULL);
    expect_trace("t.mlyze", 3);
}

static void a_process_that_is_really_killed_leaves_what_it_flushed(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    int ready[2], status;
    char byte;
    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        coffer_mlyze_writer *writer = NULL;
        if (coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, NULL) == COFFER_OK) {
            record(writer, 5, false);
            /* not flushed */
            assert_int_equal(coffer_mlyze_writer_put_free(writer, 99, 1, NULL), COFFER_OK);
            if (write(ready[1], "x", 1) == 1)
                pause();
        }
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    coffer_report *report = NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_recover(report, in_folder("t.mlyze"), &opts, NULL), COFFER_E_LOCKED);
    coffer_report_free(report);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    close(ready[0]);
    close(ready[1]);
    coffer_report_free(recover(&opts));
    expect_trace("t.mlyze", 5);
}

/* How many flushes are whole in the first `len` bytes of a part, and of the strings. */
static size_t whole_blocks(const uint8_t *bytes, size_t len)
{
    size_t count = 0;
    for (size_t at = 24; at + 24 <= len; count++) {
        at += 24 + coffer__load_u32(bytes + at + 4);
        if (at > len)
            break;
    }
    return count;
}

static void a_recording_cut_at_any_byte_keeps_every_whole_block(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    size_t len, strings_len;
    (void)state;
    leave_parts();
    uint8_t *part = temp_read(in_folder("t.mlyze.part"), &len);
    uint8_t *strings = temp_read(in_folder("t.mlyze.strings"), &strings_len);
    for (size_t cut = 0; cut <= len; cut++) {
        temp_write(in_folder("t.mlyze.part"), part, cut);
        temp_write(in_folder("t.mlyze.strings"), strings, strings_len);
        coffer_report *report = recover(&opts);
        assert_true(says(report, "was interrupted"));
        coffer_report_free(report);
        expect_trace("t.mlyze", whole_blocks(part, cut));
    }
    for (size_t cut = 0; cut <= strings_len; cut++) {
        temp_write(in_folder("t.mlyze.part"), part, len);
        temp_write(in_folder("t.mlyze.strings"), strings, cut);
        coffer_report_free(recover(&opts));
        coffer_source *src = NULL;
        assert_int_equal(coffer_source_open(&src, in_folder("t.mlyze"), NULL, NULL), COFFER_OK);
        coffer_mlyze *trace = trace_open(src, NULL);
        uint64_t events;
        assert_int_equal(coffer_mlyze_event_count(&events, trace, NULL), COFFER_OK);
        assert_int_equal(events, 9);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
    }
    free(part);
    free(strings);
}

static void any_byte_of_the_parts_may_be_wrong(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    size_t len[2];
    const char *const names[] = { "t.mlyze.part", "t.mlyze.strings" };
    uint8_t *bytes[2];
    (void)state;
    leave_parts();
    for (int i = 0; i < 2; i++)
        bytes[i] = temp_read(in_folder(names[i]), &len[i]);
    for (int which = 0; which < 2; which++) {
        for (size_t at = 0; at < len[which]; at++) {
            coffer_report *report = NULL;
            coffer_error err = COFFER_ERROR_INIT;
            bytes[which][at] ^= 0x41;
            for (int i = 0; i < 2; i++)
                temp_write(in_folder(names[i]), bytes[i], len[i]);
            bytes[which][at] ^= 0x41;
            assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
            if (coffer_mlyze_recover(report, in_folder("t.mlyze"), &opts, &err) != COFFER_OK)
                assert_true(which == 0 && at < 24); /* no longer known for what it is */
            coffer_report_free(report);
        }
    }
    free(bytes[0]);
    free(bytes[1]);
}

static void blocks_after_a_damaged_one_are_kept(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    size_t len;
    (void)state;
    for (int header = 0; header < 2; header++) {
        leave_parts();
        uint8_t *part = temp_read(in_folder("t.mlyze.part"), &len);
        part[header ? 24 + 2 : 24 + 24] ^= 0xff;
        temp_write(in_folder("t.mlyze.part"), part, len);
        free(part);
        coffer_report *report = recover(&opts);
        assert_true(says(report, "6 events were saved"));
        assert_true(says(report, header ? "up to the next whole block are lost" : "3 events is dropped"));
        coffer_report_free(report);
    }
}

static void blocks_that_were_not_compressed_are_and_a_plain_trace_can_be_asked_for(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    coffer_mlyze_writer *writer = NULL;
    size_t len, stored;
    (void)state;
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, NULL), COFFER_OK);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(coffer_mlyze_writer_put_free(writer, i, 4096, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_flush(writer, true, NULL), COFFER_OK);
    uint8_t *part = temp_read(in_folder("t.mlyze.part"), NULL);
    uint8_t *strings = temp_read(in_folder("t.mlyze.strings"), &stored);
    coffer_mlyze_writer_discard(writer);

    /* The same block as a program without LZ4 would write it. */
    uint8_t *plain = calloc(1, 24 + 24 + 10000), event[10] = { 1, 1, 0, 16 };
    memcpy(plain, part, 48);
    for (size_t i = 0; i < 1000; i++)
        memcpy(plain + 48 + 10 * i, event, 10);
    plain[48 + 1] = 0;
    coffer__store_u32(plain + 24 + 4, 10000);
    uint32_t sum = coffer__crc32(coffer__crc32(0, plain + 24, 12), plain + 24 + 16, 8);
    coffer__store_u32(plain + 24 + 12, coffer__crc32(sum, plain + 48, 10000));
    for (int as_plain = 0; as_plain < 2; as_plain++) {
        temp_write(in_folder("t.mlyze.part"), plain, 24 + 24 + 10000);
        temp_write(in_folder("t.mlyze.strings"), strings, stored);
        opts.plain = as_plain;
        coffer_report_free(recover(&opts));
        uint8_t *bytes = temp_read(in_folder("t.mlyze"), &len);
        assert_true(as_plain ? len > 10000 : len < 1000);
        free(bytes);
    }
    free(part);
    free(strings);
    free(plain);
}

/* ---- Both ends of a recording ---- */

static void another_recording_is_not_begun_over_the_parts_of_the_first(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    coffer_mlyze_writer *writer = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    leave_parts();
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, &err), COFFER_E_EXISTS);
    assert_non_null(strstr(err.text, "coffer repair"));
    assert_int_equal(remove(in_folder("t.mlyze.part")), 0);
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, &err), COFFER_E_EXISTS);
    temp_assert_only(folder, "t.mlyze.strings", NULL);
}

static void parts_whose_last_step_failed_are_known_to_be_complete(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    coffer_mlyze_writer *writer = NULL;
    (void)state;
    opts.overwrite = false;
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, NULL), COFFER_OK);
    record(writer, 3, true);
    temp_write(in_folder("t.mlyze"), "taken", 5);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_E_EXISTS);
    assert_true(temp_holds(in_folder("t.mlyze"), "taken", 5));
    temp_assert_only(folder, "t.mlyze", "t.mlyze.part", "t.mlyze.strings", NULL);
    opts.overwrite = true;
    coffer_report *report = recover(&opts);
    assert_int_equal(coffer_report_count(report), 0);
    coffer_report_free(report);
    expect_trace("t.mlyze", 3);
}

static void names_that_a_finished_trace_left_are_just_removed(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    coffer_mlyze_writer *writer = NULL;
    size_t len;
    (void)state;
    opts.overwrite = false;
    assert_int_equal(coffer_mlyze_writer_create(&writer, in_folder("t.mlyze"), &opts, NULL), COFFER_OK);
    record(writer, 3, true);
    temp_write(in_folder("t.mlyze"), "taken", 5);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_E_EXISTS);
    assert_int_equal(remove(in_folder("t.mlyze.part")), 0);
    uint8_t *before = temp_read(in_folder("t.mlyze"), &len);
    coffer_report_free(recover(&opts));
    assert_true(temp_holds(in_folder("t.mlyze"), before, len));
    free(before);
    temp_assert_only(folder, "t.mlyze", NULL);
}

static void without_parts_nothing_is_recovered(void **state)
{
    coffer_report *report = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    (void)state;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_recover(report, in_folder("t.mlyze"), NULL, &err), COFFER_E_NOT_FOUND);
    temp_write(in_folder("t.mlyze.part"), "this is the file of somebody else", 33);
    assert_int_equal(coffer_mlyze_recover(report, in_folder("t.mlyze"), NULL, &err), COFFER_E_BAD_MAGIC);
    assert_true(temp_holds(in_folder("t.mlyze.part"), "this is the file of somebody else", 33));
    coffer_report_free(report);
}

static void entries_of_later_versions_are_passed_over(void **state)
{
    coffer_mlyze_writer_opts opts = options();
    static const uint8_t entries[] = { 77, 3, 1, 2, 3, 2, 3, 9, 'h', 'i' };
    uint8_t chunk[8 + sizeof entries];
    size_t len;
    (void)state;
    leave_parts();
    uint8_t *strings = temp_read(in_folder("t.mlyze.strings"), &len);
    strings = realloc(strings, len + sizeof chunk);
    coffer__store_u32(chunk, sizeof entries);
    coffer__store_u32(chunk + 4, coffer__crc32(0, entries, sizeof entries));
    memcpy(chunk + 8, entries, sizeof entries);
    memcpy(strings + len, chunk, sizeof chunk);
    temp_write(in_folder("t.mlyze.strings"), strings, len + sizeof chunk);
    free(strings);
    coffer_report *report = recover(&opts);
    assert_true(says(report, "of unknown kinds, skipped: 1"));
    coffer_report_free(report);
    uint8_t *bytes = temp_read(in_folder("t.mlyze"), &len);
    assert_non_null(memmem(bytes, len, "\"9\":\"hi\"", 8));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_recording_becomes_a_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_process_that_is_really_killed_leaves_what_it_flushed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_recording_cut_at_any_byte_keeps_every_whole_block, setup, teardown),
        cmocka_unit_test_setup_teardown(any_byte_of_the_parts_may_be_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(blocks_after_a_damaged_one_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(
            blocks_that_were_not_compressed_are_and_a_plain_trace_can_be_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(another_recording_is_not_begun_over_the_parts_of_the_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(parts_whose_last_step_failed_are_known_to_be_complete, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_that_a_finished_trace_left_are_just_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(without_parts_nothing_is_recovered, setup, teardown),
        cmocka_unit_test_setup_teardown(entries_of_later_versions_are_passed_over, setup, teardown),
    };
    return cmocka_run_group_tests_name("mlyze_recover", tests, NULL, NULL);
}
