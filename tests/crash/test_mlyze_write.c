/* A crash at any point of writing a trace leaves the old one or the new one; of a recording, everything that
 * was flushed. */
#include "io/file.h"
#include "io/os.h"
#include "support/crash.h"
#include "support/trace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = COFFER__MLYZE_FLAG_BLOCKS, SUMS = COFFER__MLYZE_FLAG_CHECKSUMS, OLD = 7, PER_FLUSH = 30 };

static void write_sample(const char *path, uint32_t flags, uint32_t events, size_t cut)
{
    trace_builder made;
    trace_sample(&made, flags, events, 20);
    trace_finish(&made);
    temp_write(path, made.file.data, made.file.len - cut);
    trace_dispose(&made);
}

static void write_old(const char *folder, void *context)
{
    (void)context;
    write_sample(temp_path(folder, "t.mlyze"), 0, OLD, 0);
}

static coffer_mlyze_writer_opts options(bool recording)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    opts.no_index = true;
    opts.recording = recording;
    return opts;
}

static void add_events(coffer_mlyze_writer *writer, uint64_t round)
{
    char name[32];
    uint64_t function, stack;
    coffer_mlyze_frame frame = { 0, round, 0 };
    uint64_t file;
    snprintf(name, sizeof name, "f%llu", (unsigned long long)round);
    assert_int_equal(coffer_mlyze_writer_add_file(&file, writer, "file", NULL), COFFER_OK);
    assert_int_equal(coffer_mlyze_writer_add_function(&function, writer, name, NULL), COFFER_OK);
    frame.file_id = file;
    frame.func_id = function;
    assert_int_equal(coffer_mlyze_writer_add_stack(&stack, writer, &frame, 1, NULL), COFFER_OK);
    for (uint64_t i = 0; i < PER_FLUSH; i++) {
        uint64_t address = ((round * PER_FLUSH + i) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
        assert_int_equal(coffer_mlyze_writer_put_alloc(writer, round, address, i, stack, 0, NULL), COFFER_OK);
    }
}

static void write_trace(const char *folder, void *context)
{
    coffer_mlyze_writer_opts opts = options(false);
    coffer_mlyze_writer *writer = NULL;
    (void)context;
    assert_int_equal(coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &opts, NULL),
                     COFFER_OK);
    for (uint64_t i = 0; i < 3; i++)
        add_events(writer, i);
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
}

static const char *verify_written(const char *folder, void *context, bool finished)
{
    int64_t now = trace_whole_events(temp_path(folder, "t.mlyze"));
    (void)context;
    if (now != 3 * PER_FLUSH && (finished || now != OLD))
        return "neither the old trace nor the new one";
    return NULL;
}

static void a_trace_that_is_replaced_stays_until_the_new_one_is_whole(void **state)
{
    crash_test test = { write_old, write_trace, verify_written, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

/* ---- Recording ---- */

/* After each flush a file appears, durably: so the folder tells how many the disk has promised to keep. */
static const char *const promises[] = { "promise-1", "promise-2", "promise-3" };

static void promise(const char *folder, uint64_t round)
{
    const char *path = temp_path(folder, promises[round]);
    int fd = coffer__os_open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    coffer__os_close(fd);
    assert_int_equal(coffer__file_sync_folder(path, NULL), COFFER_OK);
}

static int64_t promised_events(const char *folder)
{
    int64_t count = 0;
    for (size_t i = 0; i < 3; i++)
        count += temp_exists(temp_path(folder, promises[i]));
    return count * PER_FLUSH;
}

static void record_and_commit(const char *folder, void *context)
{
    coffer_mlyze_writer_opts opts = options(true);
    coffer_mlyze_writer *writer = NULL;
    (void)context;
    assert_int_equal(coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &opts, NULL),
                     COFFER_OK);
    for (uint64_t i = 0; i < 3; i++) {
        add_events(writer, i);
        assert_int_equal(coffer_mlyze_writer_flush(writer, true, NULL), COFFER_OK);
        promise(folder, i);
    }
    assert_int_equal(coffer_mlyze_writer_commit(writer, NULL), COFFER_OK);
}

static coffer_status recover(const char *path)
{
    coffer_mlyze_writer_opts opts = options(false);
    coffer_report *report = NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    coffer_status status = coffer_mlyze_recover(report, path, &opts, NULL);
    coffer_report_free(report);
    return status;
}

/* How many events there are; −1 when one of the first `promised` has a stack that is not known. Later ones
 * may: a crash can take the names and leave the events. */
static int64_t recovered_events(const char *path, int64_t promised)
{
    coffer_source *src = NULL;
    assert_int_equal(coffer_source_open(&src, path, NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_damage(trace, NULL), COFFER_OK);
    coffer_mlyze_events all = trace_read_all(trace);
    int64_t count = (int64_t)all.count;
    for (int64_t i = 0; i < promised && i < (int64_t)all.count; i++) {
        if (coffer_mlyze_find_stack(trace, all.id[i]) == SIZE_MAX)
            count = -1;
    }
    trace_columns_free(&all);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return count;
}

static const char *verify_recorded(const char *folder, void *context, bool finished)
{
    int64_t promised = promised_events(folder);
    const char *path = temp_path(folder, "t.mlyze");
    bool parts = temp_exists(temp_path(folder, "t.mlyze.part"));
    int64_t now = trace_whole_events(path);
    (void)context;
    if (now != 3 * PER_FLUSH && (finished || now != OLD))
        return "neither the old trace nor the new one";
    if (finished && parts)
        return "the parts are still there";
    if (!parts)
        return now == OLD && promised > 0 ? "what was flushed is gone" : NULL;
    if (recover(path) != COFFER_OK)
        return "the parts cannot be recovered";
    int64_t recovered = recovered_events(path, promised);
    if (recovered < promised)
        return "some of what was flushed is lost";
    if (recovered % PER_FLUSH != 0)
        return "what was recovered is not what was flushed";
    return temp_exists(temp_path(folder, "t.mlyze.part")) ? "the parts were not removed" : NULL;
}

static void a_recording_gives_all_that_was_flushed_wherever_it_ends(void **state)
{
    crash_test test = { write_old, record_and_commit, verify_recorded, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 20);
}

/* ---- Recovering ---- */

static void leave_parts(const char *folder, uint64_t flushes)
{
    coffer_mlyze_writer_opts opts = options(true);
    coffer_mlyze_writer *writer = NULL;
    size_t part_len, strings_len;
    assert_int_equal(coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &opts, NULL),
                     COFFER_OK);
    for (uint64_t i = 0; i < flushes; i++) {
        add_events(writer, i);
        assert_int_equal(coffer_mlyze_writer_flush(writer, true, NULL), COFFER_OK);
    }
    uint8_t *part = temp_read(temp_path(folder, "t.mlyze.part"), &part_len);
    uint8_t *strings = temp_read(temp_path(folder, "t.mlyze.strings"), &strings_len);
    coffer_mlyze_writer_discard(writer);
    temp_write(temp_path(folder, "t.mlyze.part"), part, part_len);
    temp_write(temp_path(folder, "t.mlyze.strings"), strings, strings_len);
    free(part);
    free(strings);
}

static void setup_parts(const char *folder, void *context)
{
    (void)context;
    write_old(folder, NULL);
    leave_parts(folder, 3);
}

static void run_recover(const char *folder, void *context)
{
    (void)context;
    assert_int_equal(recover(temp_path(folder, "t.mlyze")), COFFER_OK);
}

static const char *verify_recovered(const char *folder, void *context, bool finished)
{
    const char *path = temp_path(folder, "t.mlyze");
    int64_t now = trace_whole_events(path);
    (void)context;
    if (now != 3 * PER_FLUSH && (finished || now != OLD))
        return "neither the old trace nor the recovered one";
    if (!temp_exists(temp_path(folder, "t.mlyze.part")))
        return now == OLD ? "the parts are gone and the trace is not there" : NULL;
    if (recover(path) != COFFER_OK || trace_whole_events(path) != 3 * PER_FLUSH)
        return "a second recovery does not give the trace";
    return NULL;
}

static void recovery_can_be_cut_short_and_done_again(void **state)
{
    crash_test test = { setup_parts, run_recover, verify_recovered, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

/* ---- Rewriting and repairing ---- */

static void write_plain_input(const char *folder, void *context)
{
    (void)context;
    write_old(folder, NULL);
    write_sample(temp_path(folder, "in.mlyze"), 0, 3 * PER_FLUSH, 0);
}

static void run_rewrite(const char *folder, void *context)
{
    coffer_mlyze_writer_opts opts = options(false);
    coffer_source *src = NULL;
    (void)context;
    assert_int_equal(coffer_source_open(&src, temp_path(folder, "in.mlyze"), NULL, NULL), COFFER_OK);
    coffer_mlyze *trace = trace_open(src, NULL);
    assert_int_equal(coffer_mlyze_rewrite(trace, temp_path(folder, "t.mlyze"), &opts, NULL), COFFER_OK);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
}

static void rewriting_is_all_or_nothing(void **state)
{
    crash_test test = { write_plain_input, run_rewrite, verify_written, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

/* Of five blocks the last is cut off, in its last event. */
static void write_damaged_input(const char *folder, void *context)
{
    (void)context;
    write_old(folder, NULL);
    write_sample(temp_path(folder, "in.mlyze"), BLOCKS | SUMS, 100, 1);
}

static void run_repair(const char *folder, void *context)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    (void)context;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_open(&src, temp_path(folder, "in.mlyze"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_repair(report, src, temp_path(folder, "t.mlyze"), &opts, NULL), COFFER_OK);
    coffer_source_close(src);
    coffer_report_free(report);
}

static const char *verify_repaired(const char *folder, void *context, bool finished)
{
    int64_t now = trace_whole_events(temp_path(folder, "t.mlyze"));
    (void)context;
    if (now != 99 && (finished || now != OLD))
        return "neither the old trace nor the repaired one";
    return NULL;
}

static void repair_is_all_or_nothing(void **state)
{
    crash_test test = { write_damaged_input, run_repair, verify_repaired, NULL };
    (void)state;
    assert_true(crash_enumerate(&test) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_that_is_replaced_stays_until_the_new_one_is_whole),
        cmocka_unit_test(a_recording_gives_all_that_was_flushed_wherever_it_ends),
        cmocka_unit_test(recovery_can_be_cut_short_and_done_again),
        cmocka_unit_test(rewriting_is_all_or_nothing),
        cmocka_unit_test(repair_is_all_or_nothing),
    };
    return cmocka_run_group_tests_name("mlyze_write", tests, NULL, NULL);
}
