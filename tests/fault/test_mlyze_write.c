/* Every allocation and every file operation of writing, recording, recovering, rewriting and repairing a
 * trace fails once. */
#include "support/fault.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = COFFER__MLYZE_FLAG_BLOCKS, SUMS = COFFER__MLYZE_FLAG_CHECKSUMS, OLD = 7, PER_FLUSH = 40 };

/* A temporary file may stay when it cannot be removed: on a dead disk, or when the removal fails. */
static bool may_litter(const fault_case *which)
{
    return which->fault == SHIM_DEAD_DISK || strcmp(which->function, "coffer__os_unlink") == 0;
}

static void write_old(const char *folder, void *context)
{
    trace_builder made;
    (void)context;
    trace_sample(&made, 0, OLD, 0);
    trace_finish(&made);
    temp_write(temp_path(folder, "t.mlyze"), made.file.data, made.file.len);
    trace_dispose(&made);
}

/* ---- Writing ---- */

typedef struct writing {
    coffer_mlyze_writer_opts opts;
    size_t flushes, per_flush;
} writing;

static coffer_status add_names(coffer_mlyze_writer *writer, uint64_t number, uint64_t *stack,
                               uint64_t *function, coffer_error *err)
{
    char name[32];
    uint64_t file;
    coffer_status status;
    snprintf(name, sizeof name, "f%llu", (unsigned long long)number);
    if ((status = coffer_mlyze_writer_add_function(function, writer, name, err)) ||
        (status = coffer_mlyze_writer_add_file(&file, writer, name, err)))
        return status;
    coffer_mlyze_frame frame = { file, number, *function };
    return coffer_mlyze_writer_add_stack(stack, writer, &frame, 1, err);
}

static coffer_status add_events(coffer_mlyze_writer *writer, const writing *of, uint64_t round,
                                coffer_error *err)
{
    uint64_t stack, function;
    coffer_status status = add_names(writer, round, &stack, &function, err);
    if (status == COFFER_OK)
        status = coffer_mlyze_writer_put_marker(writer, round, function, err);
    for (uint64_t i = 1; status == COFFER_OK && i < of->per_flush; i++) {
        uint64_t address = ((round * of->per_flush + i) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
        status = coffer_mlyze_writer_put_alloc(writer, round, address, i, stack, 0, err);
    }
    return status ? status : coffer_mlyze_writer_flush(writer, true, err);
}

/* Commit frees the writer, and tells of what failed before it. */
static coffer_status write_trace(const char *folder, void *context, coffer_error *err)
{
    const writing *of = context;
    coffer_mlyze_writer *writer = NULL;
    coffer_status status = coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &of->opts, err),
                  end;
    if (status)
        return status;
    for (uint64_t i = 0; status == COFFER_OK && i < of->flushes; i++)
        status = add_events(writer, of, i, err);
    if (status && !of->opts.recording) {
        coffer_mlyze_writer_discard(writer);
        return status;
    }
    end = coffer_mlyze_writer_commit(writer, status ? NULL : err);
    return status ? status : end;
}

static const char *verify_written(const char *folder, void *context, const fault_case *which)
{
    const writing *of = context;
    int64_t now = trace_whole_events(temp_path(folder, "t.mlyze")),
            all = (int64_t)(of->flushes * of->per_flush);
    if (now != OLD && now != all)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && now != all)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "t.mlyze", "t.mlyze.idx", NULL);
    return NULL;
}

static void a_new_trace_survives_every_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 3, PER_FLUSH };
    of.opts.overwrite = true;
    fault_test test = { write_old, write_trace, verify_written, &of };
    (void)state;
    of.opts.no_index = true;
    of.opts.extra_json = "{\"command\": [\"a\", 1.5]}";
    fault_each(&test);
    of.opts.plain = true;
    fault_each(&test);
    of.opts.plain = false;
    of.opts.archive = true;
    fault_each(&test);
}

/* Random addresses do not shrink: these pass the megabyte that is kept in memory. */
static void a_trace_that_was_begun_before_its_metadata_survives_every_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 2, 50000 };
    of.opts.overwrite = true;
    fault_test test = { write_old, write_trace, verify_written, &of };
    (void)state;
    of.opts.no_index = true;
    fault_each(&test);
}

/* A name longer than the room that was left. */
static coffer_status write_and_move(const char *folder, void *context, coffer_error *err)
{
    static char name[40000];
    const writing *of = context;
    coffer_mlyze_writer *writer = NULL;
    uint64_t id;
    coffer_status status = coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &of->opts, err);
    if (status)
        return status;
    memset(name, 'x', sizeof name - 1);
    for (uint64_t i = 0; status == COFFER_OK && i < of->flushes; i++)
        status = add_events(writer, of, i, err);
    if (status == COFFER_OK)
        status = coffer_mlyze_writer_add_file(&id, writer, name, err);
    if (status == COFFER_OK)
        return coffer_mlyze_writer_commit(writer, err);
    coffer_mlyze_writer_discard(writer);
    return status;
}

static void a_trace_that_outgrows_its_room_survives_every_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 2, 50000 };
    of.opts.overwrite = true;
    fault_test test = { write_old, write_and_move, verify_written, &of };
    (void)state;
    of.opts.no_index = true;
    fault_each(&test);
}

static void an_index_that_cannot_be_written_is_not_a_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 1, PER_FLUSH };
    of.opts.overwrite = true;
    fault_test test = { write_old, write_trace, verify_written, &of };
    (void)state;
    fault_each(&test);
}

/* ---- Recording ---- */

/* Whatever failed, the trace is there or the parts give it. */
static const char *verify_recorded(const char *folder, void *context, const fault_case *which)
{
    const writing *of = context;
    const char *path = temp_path(folder, "t.mlyze");
    int64_t now = trace_whole_events(path), all = (int64_t)(of->flushes * of->per_flush);
    coffer_report *report = NULL;
    /* When names could not be added, the events before them must still be kept. */
    if (now != OLD && (now < 0 || now % (int64_t)of->per_flush != 0))
        return "neither the old state nor what was flushed";
    if (which->status == COFFER_OK && now != all)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "t.mlyze", "t.mlyze.part", "t.mlyze.strings", NULL);
    if (!temp_exists(temp_path(folder, "t.mlyze.part")))
        return NULL;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    coffer_status status = coffer_mlyze_recover(report, path, &of->opts, NULL);
    coffer_report_free(report);
    now = trace_whole_events(path);
    if (status)
        return "the parts cannot be recovered";
    return now >= 0 && now % (int64_t)of->per_flush == 0 ? NULL
                                                         : "what was recovered is not what was flushed";
}

static void a_recording_survives_every_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 3, PER_FLUSH };
    of.opts.overwrite = true;
    fault_test test = { write_old, write_trace, verify_recorded, &of };
    (void)state;
    of.opts.recording = of.opts.no_index = true;
    fault_each(&test);
    of.opts.plain = true;
    fault_each(&test);
    of.opts.plain = false;
    of.opts.archive = true;
    fault_each(&test);
}

/* ---- Recovering ---- */

static void leave_parts(const char *folder, void *context)
{
    writing *of = context;
    coffer_mlyze_writer *writer = NULL;
    write_old(folder, NULL);
    assert_int_equal(coffer_mlyze_writer_create(&writer, temp_path(folder, "t.mlyze"), &of->opts, NULL),
                     COFFER_OK);
    for (uint64_t i = 0; i < of->flushes; i++)
        assert_int_equal(add_events(writer, of, i, NULL), COFFER_OK);
    size_t part_len, strings_len;
    uint8_t *part = temp_read(temp_path(folder, "t.mlyze.part"), &part_len);
    uint8_t *strings = temp_read(temp_path(folder, "t.mlyze.strings"), &strings_len);
    coffer_mlyze_writer_discard(writer);
    temp_write(temp_path(folder, "t.mlyze.part"), part, part_len);
    temp_write(temp_path(folder, "t.mlyze.strings"), strings, strings_len);
    free(part);
    free(strings);
}

static coffer_status run_recover(const char *folder, void *context, coffer_error *err)
{
    const writing *of = context;
    coffer_report *report = NULL;
    coffer_status status = coffer_report_new(&report, 0, err);
    if (status == COFFER_OK)
        status = coffer_mlyze_recover(report, temp_path(folder, "t.mlyze"), &of->opts, err);
    coffer_report_free(report);
    return status;
}

static const char *verify_recovered(const char *folder, void *context, const fault_case *which)
{
    const writing *of = context;
    int64_t now = trace_whole_events(temp_path(folder, "t.mlyze")),
            all = (int64_t)(of->flushes * of->per_flush);
    bool parts = temp_exists(temp_path(folder, "t.mlyze.part"));
    if (now == OLD && (!parts || !temp_exists(temp_path(folder, "t.mlyze.strings"))))
        return "the parts are gone and the trace is not there";
    return verify_recorded(folder, context, which)                   ? verify_recorded(folder, context, which)
           : trace_whole_events(temp_path(folder, "t.mlyze")) == all ? NULL
                                                                     : "events were lost";
}

static void recovery_survives_every_failure(void **state)
{
    writing of = { COFFER_MLYZE_WRITER_OPTS_INIT, 3, PER_FLUSH };
    of.opts.overwrite = true;
    fault_test test = { leave_parts, run_recover, verify_recovered, &of };
    (void)state;
    of.opts.recording = of.opts.no_index = true;
    fault_each(&test);
}

/* ---- Rewriting and repairing ---- */

typedef struct copying {
    uint32_t flags;
    size_t cut; /* bytes of the input that are missing */
    coffer_mlyze_writer_opts opts;
} copying;

enum { SAMPLE = 60 };

static void write_input(const char *folder, void *context)
{
    const copying *of = context;
    trace_builder made;
    write_old(folder, NULL);
    trace_sample(&made, of->flags, SAMPLE, 20);
    trace_finish(&made);
    temp_write(temp_path(folder, "in.mlyze"), made.file.data, made.file.len - of->cut);
    trace_dispose(&made);
}

static coffer_status run_rewrite(const char *folder, void *context, coffer_error *err)
{
    const copying *of = context;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    coffer_status status;
    if ((status = coffer_source_open(&src, temp_path(folder, "in.mlyze"), NULL, err)) ||
        (status = coffer_mlyze_open(&trace, src, NULL, err)))
        goto out;
    status = coffer_mlyze_rewrite(trace, temp_path(folder, "t.mlyze"), &of->opts, err);
out:
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return status;
}

static coffer_status run_repair(const char *folder, void *context, coffer_error *err)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_status status;
    (void)context;
    opts.overwrite = true;
    if ((status = coffer_report_new(&report, 0, err)) ||
        (status = coffer_source_open(&src, temp_path(folder, "in.mlyze"), NULL, err)))
        goto out;
    status = coffer_repair(report, src, temp_path(folder, "t.mlyze"), &opts, err);
out:
    coffer_source_close(src);
    coffer_report_free(report);
    return status;
}

static const char *verify_copied(const char *folder, void *context, const fault_case *which)
{
    const copying *of = context;
    int64_t now = trace_whole_events(temp_path(folder, "t.mlyze"));
    int64_t expected = of->cut == 0 ? SAMPLE : SAMPLE - 1;
    if (now != OLD && now != expected)
        return "neither the old state nor the new one";
    if (which->status == COFFER_OK && now != expected)
        return "reported as done, and is not";
    if (!may_litter(which))
        temp_assert_no_litter(folder, "t.mlyze", "in.mlyze", NULL);
    return NULL;
}

static void rewriting_survives_every_failure(void **state)
{
    copying pack = { 0, 0, COFFER_MLYZE_WRITER_OPTS_INIT };
    pack.opts.overwrite = true;
    copying unpack = { BLOCKS | SUMS, 0, COFFER_MLYZE_WRITER_OPTS_INIT };
    unpack.opts.overwrite = true;
    fault_test test = { write_input, run_rewrite, verify_copied, &pack };
    (void)state;
    pack.opts.no_index = unpack.opts.no_index = unpack.opts.plain = true;
    fault_each(&test);
    test.context = &unpack;
    fault_each(&test);
}

static void repair_survives_every_failure(void **state)
{
    copying blocks = { BLOCKS | SUMS, 1, COFFER_MLYZE_WRITER_OPTS_INIT };
    blocks.opts.overwrite = true;
    copying plain = { 0, 1, COFFER_MLYZE_WRITER_OPTS_INIT };
    plain.opts.overwrite = true;
    fault_test test = { write_input, run_repair, verify_copied, &blocks };
    (void)state;
    fault_each(&test);
    test.context = &plain;
    fault_each(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_trace_survives_every_failure),
        cmocka_unit_test(a_trace_that_was_begun_before_its_metadata_survives_every_failure),
        cmocka_unit_test(a_trace_that_outgrows_its_room_survives_every_failure),
        cmocka_unit_test(an_index_that_cannot_be_written_is_not_a_failure),
        cmocka_unit_test(a_recording_survives_every_failure),
        cmocka_unit_test(recovery_survives_every_failure),
        cmocka_unit_test(rewriting_survives_every_failure),
        cmocka_unit_test(repair_survives_every_failure),
    };
    return cmocka_run_group_tests_name("mlyze_write", tests, NULL, NULL);
}
