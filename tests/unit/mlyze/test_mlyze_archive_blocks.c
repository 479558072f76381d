/* Archives of many small blocks: they answer as the plain trace does, and repair keeps every event of every
 * intact block. */
#include "formats/mlyze/archive/mlyze_archive.h"
#include "support/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { EVENTS = 2000, PER_BLOCK = 300, BLOCKS = 7 };

static const uint32_t archive_flags = COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS |
                                      COFFER__MLYZE_FLAG_FULL_SUMS | COFFER__MLYZE_FLAG_ARCHIVE |
                                      COFFER__MLYZE_FLAG_COMPLETE;

/* An archive with small blocks, and where they end. */
typedef struct small_archive {
    trace_builder made, plain;
    coffer_mlyze_events events;
    size_t ends[BLOCKS];
} small_archive;

static coffer_status append(void *context, const uint8_t *bytes, size_t len, coffer_error *err)
{
    (void)err;
    coffer__buffer_append(context, bytes, len);
    return COFFER_OK;
}

static void pack_events(small_archive *archive, coffer__mlyze_packer *packer)
{
    coffer__mlyze_bodies bodies = { .bytes = NULL };
    for (size_t i = 0; i < BLOCKS; i++) {
        coffer_mlyze_events some = archive->events;
        size_t from = i * PER_BLOCK;
        some.count = EVENTS - from < PER_BLOCK ? EVENTS - from : PER_BLOCK;
        some.time += from;
        some.address += from;
        some.size += from;
        some.id += from;
        some.thread += from;
        some.type += from;
        assert_int_equal(coffer__mlyze_packer_add(packer, &some, &bodies, NULL), COFFER_OK);
        assert_int_equal(coffer__mlyze_packer_end(packer, NULL), COFFER_OK);
        archive->ends[i] = archive->made.file.len;
    }
}

static void build(small_archive *archive)
{
    coffer__mlyze_packer packer;
    coffer_limits limits = COFFER_LIMITS_INIT;
    trace_sample(&archive->plain, 0, EVENTS, 0);
    coffer_source *src = trace_source(&archive->plain);
    coffer_mlyze *trace = trace_open(src, NULL);
    archive->events = trace_read_all(trace);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    trace_begin(&archive->made, archive_flags, NULL);
    assert_int_equal(coffer__mlyze_packer_init(&packer, append, &archive->made.file, 0, &limits, NULL),
                     COFFER_OK);
    pack_events(archive, &packer);
    coffer__mlyze_packer_free(&packer);
    uint8_t *header = archive->made.file.data;
    coffer__store_u64(header + COFFER__MLYZE_EVENT_COUNT_AT, EVENTS);
    coffer__store_u64(header + COFFER__MLYZE_EVENT_LENGTH_AT, archive->made.file.len - archive->made.area);
    trace_sum_header(&archive->made);
    coffer__store_u32(header + COFFER__MLYZE_HEADER_CRC_AT, coffer__mlyze_header_sum(header, archive_flags));
}

static void dispose(small_archive *archive)
{
    trace_columns_free(&archive->events);
    trace_dispose(&archive->made);
    trace_dispose(&archive->plain);
}

/* ---- Answers ---- */

static coffer_mlyze_stats *stats_of(const trace_builder *made, const coffer_mlyze_stats_opts *opts)
{
    coffer_mlyze_stats *stats = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = trace_source(made);
    coffer_mlyze *trace = trace_open(src, NULL);
    if (coffer_mlyze_stats_new(&stats, trace, opts, &err))
        fail_msg("%s", err.text);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return stats;
}

static void assert_same_rows(const coffer_mlyze_stats *a, const coffer_mlyze_stats *b)
{
    size_t count = coffer_mlyze_stats_stack_count(a), threads = coffer_mlyze_stats_thread_count(a);
    assert_int_equal(count, coffer_mlyze_stats_stack_count(b));
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(coffer_mlyze_stats_stack_at(a, i), coffer_mlyze_stats_stack_at(b, i),
                            sizeof(coffer_mlyze_stack_row));
    assert_int_equal(threads, coffer_mlyze_stats_thread_count(b));
    for (size_t i = 0; i < threads; i++) {
        const coffer_mlyze_thread_row *one = coffer_mlyze_stats_thread_at(a, i),
                                      *two = coffer_mlyze_stats_thread_at(b, i);
        assert_int_equal(one->thread, two->thread);
        assert_memory_equal(&one->allocs, &two->allocs, 5 * sizeof one->allocs);
    }
}

static void assert_same_answers(const small_archive *archive, const coffer_mlyze_stats_opts *opts)
{
    coffer_mlyze_stats *a = stats_of(&archive->plain, opts), *b = stats_of(&archive->made, opts);
    size_t phases = coffer_mlyze_stats_phase_count(a), marks = coffer_mlyze_stats_mark_count(a);
    assert_memory_equal(coffer_mlyze_stats_totals(a), coffer_mlyze_stats_totals(b),
                        sizeof(coffer_mlyze_totals));
    assert_memory_equal(coffer_mlyze_stats_sizes(a), coffer_mlyze_stats_sizes(b),
                        sizeof(coffer_mlyze_histogram));
    assert_memory_equal(coffer_mlyze_stats_lifetimes(a), coffer_mlyze_stats_lifetimes(b),
                        sizeof(coffer_mlyze_histogram));
    assert_same_rows(a, b);
    assert_int_equal(phases, coffer_mlyze_stats_phase_count(b));
    for (size_t i = 0; i < phases; i++)
        assert_memory_equal(coffer_mlyze_stats_phase_at(a, i), coffer_mlyze_stats_phase_at(b, i),
                            sizeof(coffer_mlyze_phase));
    assert_int_equal(marks, coffer_mlyze_stats_mark_count(b));
    for (size_t i = 0; i < marks; i++)
        assert_int_equal(coffer_mlyze_stats_mark_at(a, i)->live_bytes,
                         coffer_mlyze_stats_mark_at(b, i)->live_bytes);
    coffer_mlyze_stats_free(a);
    coffer_mlyze_stats_free(b);
}

static void an_archive_answers_as_the_plain_trace_does(void **state)
{
    static const uint64_t windows[][2] = { { 0, UINT64_MAX }, { 0, 300 },     { 1, 299 },  { 123, 1777 },
                                           { 300, 600 },      { 1999, 2000 }, { 700, 700 } };
    small_archive archive;
    (void)state;
    build(&archive);
    for (size_t i = 0; i < 8 * sizeof windows / sizeof windows[0]; i++) {
        coffer_mlyze_stats_opts opts = COFFER_MLYZE_STATS_OPTS_INIT;
        opts.begin = windows[i / 8][0];
        opts.end = windows[i / 8][1];
        opts.threads = 1 + i % 2;
        opts.temporary_allocs = i & 2 ? 5 : 0;
        opts.temporary_us = i & 4 ? 50 : 0;
        opts.growth_windows = i & 4 ? 7 : 0;
        opts.min_age_us = i & 2 ? 1000 : 0;
        assert_same_answers(&archive, &opts);
    }
    dispose(&archive);
}

/* ---- Repair ---- */

static coffer_report *repair(const uint8_t *bytes, size_t len)
{
    coffer_repair_opts opts = COFFER_REPAIR_OPTS_INIT;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    opts.overwrite = true;
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_source_from_memory(&src, bytes, len, NULL), COFFER_OK);
    if (coffer__mlyze_repair(report, src, temp_path(temp_folder, "saved.mlyze"), &opts, &err))
        fail_msg("%zu bytes: %s", len, err.text);
    coffer_source_close(src);
    return report;
}

/* The repaired file has exactly the first `count` events, and check finds nothing but the losses. */
static void assert_saved(const small_archive *archive, size_t count)
{
    const char *path = temp_path(temp_folder, "saved.mlyze");
    coffer_mlyze *trace = NULL;
    assert_int_equal(trace_whole_events(path), count);
    assert_int_equal(coffer_mlyze_open_path(&trace, path, NULL, NULL), COFFER_OK);
    coffer_mlyze_events saved = trace_read_all(trace);
    assert_memory_equal(saved.time, archive->events.time, count * sizeof *saved.time);
    assert_memory_equal(saved.address, archive->events.address, count * sizeof *saved.address);
    assert_memory_equal(saved.size, archive->events.size, count * sizeof *saved.size);
    assert_memory_equal(saved.id, archive->events.id, count * sizeof *saved.id);
    assert_memory_equal(saved.type, archive->events.type, count);
    trace_columns_free(&saved);
    coffer_mlyze_close(trace);
}

static void an_archive_cut_anywhere_keeps_every_complete_block(void **state)
{
    small_archive archive;
    (void)state;
    build(&archive);
    const size_t len = archive.made.file.len;
    for (size_t cut = COFFER__MLYZE_HEADER_SIZE; cut < len; cut += 97) {
        size_t complete = 0;
        while (complete < BLOCKS && archive.ends[complete] <= cut)
            complete++;
        coffer_report_free(repair(archive.made.file.data, cut));
        assert_saved(&archive, complete * PER_BLOCK);
    }
    dispose(&archive);
}

static void a_damaged_header_costs_no_events(void **state)
{
    static const uint32_t wrong[] = { 0, 1, UINT32_MAX, 0x10000, 300 };
    small_archive archive;
    (void)state;
    build(&archive);
    for (size_t at = COFFER__MLYZE_VERSION_AT; at < COFFER__MLYZE_EVENT_LENGTH_AT + 8; at += 4) {
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            uint32_t right = coffer__load_u32(archive.made.file.data + at);
            coffer__store_u32(archive.made.file.data + at, wrong[i]);
            coffer_report_free(repair(archive.made.file.data, archive.made.file.len));
            assert_saved(&archive, EVENTS);
            coffer__store_u32(archive.made.file.data + at, right);
        }
    }
    dispose(&archive);
}

static void damaged_header_and_metadata_cost_names_only(void **state)
{
    small_archive archive;
    (void)state;
    build(&archive);
    coffer__store_u32(archive.made.file.data + COFFER__MLYZE_METADATA_LENGTH_AT, 3000);
    memset(archive.made.file.data + COFFER__MLYZE_HEADER_SIZE, 0xee, 50);
    coffer_report_free(repair(archive.made.file.data, archive.made.file.len));
    assert_saved(&archive, EVENTS);
    dispose(&archive);
}

static const coffer_finding *find(const coffer_report *report, const char *text)
{
    for (size_t i = 0; i < coffer_report_count(report); i++)
        if (strstr(coffer_report_at(report, i)->text, text))
            return coffer_report_at(report, i);
    fail_msg("no finding says '%s'", text);
    return NULL;
}

static void check_says_which_names_were_lost_and_which_events_were_kept(void **state)
{
    small_archive archive;
    coffer_report *report = NULL;
    coffer_source *src = NULL;
    (void)state;
    build(&archive);
    memset(archive.made.file.data + COFFER__MLYZE_HEADER_SIZE, 0xee, 50);
    report = trace_check(&archive.made);
    find(report, "cannot be read; 'coffer repair' keeps the events without them: 2000");
    coffer_report_free(report);
    coffer_report_free(repair(archive.made.file.data, archive.made.file.len));
    dispose(&archive);
    assert_int_equal(coffer_source_open(&src, temp_path(temp_folder, "saved.mlyze"), NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_new(&report, 0, NULL), COFFER_OK);
    assert_int_equal(coffer_check(report, src, NULL, NULL), COFFER_OK);
    assert_int_equal(coffer_report_count(report), 2);
    assert_int_equal(
        find(report, "lost the tables of stacks, files and functions; events kept: 2000")->severity,
        COFFER_ERROR);
    assert_int_equal(find(report, "allocations without their stack: ")->severity, COFFER_NOTE);
    coffer_report_free(report);
    coffer_source_close(src);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive_answers_as_the_plain_trace_does),
        cmocka_unit_test(an_archive_cut_anywhere_keeps_every_complete_block),
        cmocka_unit_test(a_damaged_header_costs_no_events),
        cmocka_unit_test(damaged_header_and_metadata_cost_names_only),
        cmocka_unit_test(check_says_which_names_were_lost_and_which_events_were_kept),
    };
    return cmocka_run_group_tests_name("mlyze_archive_blocks", tests, temp_setup, temp_teardown);
}
