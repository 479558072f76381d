/* Every allocation and every file operation of reading a trace fails once. */
#include "support/fault.h"
#include "support/trace.h"

#include <string.h>

#define EVENTS 400

static void setup(const char *folder, void *context)
{
    const uint32_t *flags = context;
    const bool archive = *flags & COFFER__MLYZE_FLAG_ARCHIVE;
    trace_builder t;
    trace_sample(&t, archive ? 0 : *flags, EVENTS, 50);
    if (archive) {
        coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
        coffer_source *src = trace_source(&t);
        coffer_mlyze *trace = trace_open(src, NULL);
        opts.archive = opts.overwrite = opts.no_index = true;
        assert_int_equal(coffer_mlyze_rewrite(trace, temp_path(folder, "t.mlyze"), &opts, NULL), COFFER_OK);
        coffer_mlyze_close(trace);
        coffer_source_close(src);
    } else {
        temp_write(temp_path(folder, "t.mlyze"), t.file.data, t.file.len);
    }
    trace_dispose(&t);
}

static coffer_status read_all(const coffer_mlyze *trace, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t blocks = 0, entry_count = 0;
    uint64_t event = 0, count = 0;
    coffer_status status;
    if ((status = coffer_mlyze_load_index(&entry_count, trace, NULL, err)) ||
        (status = coffer_mlyze_block_count(&blocks, trace, err)) ||
        (status = coffer_mlyze_find_moment(&event, trace, "phase two", err)) ||
        (status = coffer_mlyze_find_moment(&event, trace, "2ms", err)))
        return status;
    assert_int_equal(entry_count, blocks);
    for (size_t i = 0; status == COFFER_OK && i < blocks; i++) {
        status = coffer_mlyze_read_block(&events, trace, i, err);
        count += events.count;
    }
    coffer_mlyze_events_free(&events);
    assert_true(status || count == EVENTS);
    return status;
}

static coffer_status run_reading(const char *folder, void *context, coffer_error *err)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_source *src = NULL;
    coffer_mlyze *trace = NULL;
    coffer_status status;
    (void)context;
    if ((status = coffer_source_open(&src, temp_path(folder, "t.mlyze"), NULL, err)))
        return status;
    opts.index_path = temp_path(folder, "t.mlyze.idx");
    if (!(status = coffer_mlyze_open(&trace, src, &opts, err)))
        status = read_all(trace, err);
    coffer_mlyze_close(trace);
    coffer_source_close(src);
    return status;
}

static coffer_status run_checking(const char *folder, void *context, coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_report *report = NULL;
    coffer_node *node = NULL;
    coffer_list_opts opts = COFFER_LIST_OPTS_INIT;
    coffer_status status;
    (void)context;
    opts.what = "threads";
    if ((status = coffer_source_open(&src, temp_path(folder, "t.mlyze"), NULL, err)) ||
        (status = coffer_report_new(&report, 0, err)) || (status = coffer_node_new(&node, err)) ||
        (status = coffer_check(report, src, NULL, err)) || (status = coffer_describe(node, src, NULL, err)) ||
        (status = coffer_list(node, src, &opts, err)))
        goto out;
    assert_int_equal(coffer_report_count(report), 0);
out:
    coffer_report_free(report);
    coffer_node_free(node);
    coffer_source_close(src);
    return status;
}

/* Whatever is left of an index misleads nobody. */
static const char *verify(const char *folder, void *context, const fault_case *which)
{
    coffer_error err = COFFER_ERROR_INIT;
    if (which->fault != SHIM_DEAD_DISK && strcmp(which->function, "coffer__os_unlink") != 0)
        temp_assert_no_litter(folder, "t.mlyze", "t.mlyze.idx", NULL);
    return run_reading(folder, context, &err) ? "it cannot be read any more" : NULL;
}

static void each(coffer_status (*run)(const char *, void *, coffer_error *), uint32_t flags)
{
    fault_test test = { .setup = setup, .run = run, .verify = verify, .context = &flags };
    fault_each(&test);
}

static void reading_a_compressed_trace_survives_every_failure(void **state)
{
    (void)state;
    each(run_reading, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS);
}

static coffer_status run_analyzing(const char *folder, void *context, coffer_error *err)
{
    coffer_mlyze_stats_opts opts = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_stats *stats = NULL;
    (void)context;
    opts.threads = 1;
    coffer_status status = coffer_mlyze_open_path(&trace, temp_path(folder, "t.mlyze"), NULL, err);
    if (!status)
        status = coffer_mlyze_stats_new(&stats, trace, &opts, err);
    assert_true(status || coffer_mlyze_stats_totals(stats)->events == EVENTS);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    return status;
}

static void reading_an_archive_survives_every_failure(void **state)
{
    (void)state;
    each(run_reading, COFFER__MLYZE_FLAG_ARCHIVE);
    each(run_checking, COFFER__MLYZE_FLAG_ARCHIVE);
    each(run_analyzing, COFFER__MLYZE_FLAG_ARCHIVE);
}

static void reading_a_plain_trace_survives_every_failure(void **state)
{
    (void)state;
    each(run_reading, 0);
}

static void checking_describing_and_listing_survive_every_failure(void **state)
{
    (void)state;
    each(run_checking, COFFER__MLYZE_FLAG_BLOCKS | COFFER__MLYZE_FLAG_CHECKSUMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_a_compressed_trace_survives_every_failure),
        cmocka_unit_test(reading_an_archive_survives_every_failure),
        cmocka_unit_test(reading_a_plain_trace_survives_every_failure),
        cmocka_unit_test(checking_describing_and_listing_survive_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
