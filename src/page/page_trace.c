/* The page of a trace: the timeline, a flame graph for each kind of bytes, stacks, and histograms. */
#include "page/page_trace.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>

/* In the order of coffer_mlyze_measure; the words of --what. */
const char *const coffer__page_measures[COFFER__PAGE_MEASURES] = { "peak", "leaks", "total", "temporaries" };

enum { MOST_POINTS = 2048, MOST_MARKS = 4096, LEAST_POINTS = 64, GROWTH_WINDOWS = 20, MOST_ROWS = 500 };

/* ---- Opening ---- */

static coffer_status open_profile(coffer_mlyze **out, coffer__page_trace_file *file, coffer_chunks *chunks,
                                  const coffer_file *from, coffer_error *err)
{
    coffer_mlyze_profile_opts opts = COFFER_MLYZE_PROFILE_OPTS_INIT;
    opts.kind = coffer_file_kind(from);
    opts.merge = true;
    opts.limits = &chunks->limits;
    opts.progress = chunks->opts.progress;
    coffer_status status = coffer_mlyze_open_profile(out, coffer_file_source(from), &opts, err);
    if (status != COFFER_E_TRUNCATED)
        return status;
    opts.partial = true;
    file->truncated = true;
    return coffer_mlyze_open_profile(out, coffer_file_source(from), &opts, err);
}

static coffer_status open_file(coffer__page_trace_file *file, coffer_chunks *chunks, const coffer_file *from,
                               coffer_error *err)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    opts.limits = &chunks->limits;
    query.growth_windows = GROWTH_WINDOWS;
    query.threads = chunks->opts.threads;
    query.limits = &chunks->limits;
    query.progress = chunks->opts.progress;
    file->source = (coffer_mlyze_source_info)COFFER_MLYZE_SOURCE_INFO_INIT;
    coffer_status status = coffer_file_format(from)
                               ? coffer_mlyze_open(&file->trace, coffer_file_source(from), &opts, err)
                               : open_profile(&file->trace, file, chunks, from, err);
    if (!status)
        status = coffer_mlyze_source_of(&file->source, file->trace, err);
    if (!status)
        status = coffer_mlyze_stats_new(&file->stats, file->trace, &query, err);
    for (size_t i = 0; i < COFFER__PAGE_MEASURES && !status; i++) {
        coffer_mlyze_tree_opts tree = COFFER_MLYZE_TREE_OPTS_INIT;
        tree.measure = (coffer_mlyze_measure)i;
        status = coffer_mlyze_tree_new(&file->trees[i], file->trace, file->stats, &tree, err);
    }
    return status;
}

static void close_trace(void *state)
{
    coffer__page_trace_state *page = state;
    for (size_t i = 0; i < COFFER__PAGE_MEASURES; i++)
        coffer_mlyze_tree_free(page->both[i]);
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < COFFER__PAGE_MEASURES; j++)
            coffer_mlyze_tree_free(page->files[i].trees[j]);
        coffer__page_windows_free(&page->files[i].windows);
        coffer_mlyze_heap_free(page->files[i].heap);
        coffer_mlyze_stats_free(page->files[i].stats);
        coffer_mlyze_close(page->files[i].trace);
    }
    coffer__free(page);
}

static coffer_status open_trace(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer__page_trace_state *page = coffer__calloc(1, sizeof *page);
    if (!page)
        return coffer__fail_no_memory(err, sizeof *page);
    coffer_status status = COFFER_OK;
    page->count = chunks->file_count;
    for (size_t i = 0; i < page->count && !status; i++)
        status = open_file(&page->files[i], chunks, chunks->files[i], err);
    if (!status && page->count == 1)
        status = coffer__page_windows_new(&page->files[0].windows, &page->files[0], err);
    if (!status && page->count == 1)
        status = coffer__page_heap_new(&page->files[0].heap, &page->files[0], err);
    for (size_t i = 0; page->count == 2 && i < COFFER__PAGE_MEASURES && !status; i++)
        status =
            coffer_mlyze_tree_diff(&page->both[i], page->files[0].trees[i], page->files[1].trees[i], err);
    if (status) {
        close_trace(page);
        return status;
    }
    *state = page;
    return COFFER_OK;
}

static coffer_status compare(coffer_node *out, void *state, coffer_error *err)
{
    const coffer__page_trace_state *page = state;
    return coffer_mlyze_diff(out, page->files[0].trace, page->files[1].trace, NULL, err);
}

/* ---- Timeline ---- */

typedef struct timeline_columns {
    double *time, *live, *high, *blocks, *allocated, *allocs;
} timeline_columns;

static void add_marks(coffer_chunks *chunks, const coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                      uint32_t detail, const char *group)
{
    coffer__chunk_name name;
    size_t total = coffer_mlyze_timeline_mark_count(timeline), count = total;
    if (count > MOST_MARKS / detail) {
        count = MOST_MARKS / detail;
        coffer__chunks_note(chunks, "the first %zu of %zu markers and collections are shown", count, total);
    }
    double *time = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "mark_time"), count);
    double *live = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "mark_live"), count);
    uint32_t *label = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "mark_label"), count);
    uint8_t *type = coffer__chunks_u8(chunks, coffer__chunk_name_of(name, group, "mark_type"), count);
    for (size_t i = 0; type && i < count; i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_timeline_mark_at(timeline, i);
        const char *text =
            mark->type == COFFER_MLYZE_MARKER ? coffer_mlyze_function_name(trace, mark->id) : "";
        time[i] = (double)mark->time_us;
        live[i] = (double)mark->live_bytes;
        label[i] = coffer__chunks_text(chunks, text);
        type[i] = (uint8_t)mark->type;
    }
}

static void add_points(coffer_chunks *chunks, const coffer_mlyze_timeline *timeline, const char *group)
{
    coffer__chunk_name name;
    size_t count = coffer_mlyze_timeline_count(timeline);
    timeline_columns to;
    to.time = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "time"), count);
    to.live = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "live_bytes"), count);
    to.high = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "high_bytes"), count);
    to.blocks = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "live_allocs"), count);
    to.allocated = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "allocated_bytes"), count);
    to.allocs = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "allocs"), count);
    for (size_t i = 0; to.allocs && i < count; i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        to.time[i] = (double)point->time_us;
        to.live[i] = (double)point->live_bytes;
        to.high[i] = (double)point->high_bytes;
        to.blocks[i] = (double)point->live_allocs;
        to.allocated[i] = (double)point->allocated_bytes;
        to.allocs[i] = (double)point->allocs;
    }
}

static coffer_status add_timeline(coffer_chunks *chunks, coffer_node *view,
                                  const coffer__page_trace_file *file, uint32_t detail, const char *group,
                                  coffer_error *err)
{
    coffer_mlyze_timeline *timeline = NULL;
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    opts.width = MOST_POINTS / detail > LEAST_POINTS ? MOST_POINTS / detail : LEAST_POINTS;
    opts.exact = true;
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    coffer_status status = coffer_mlyze_timeline_new(&timeline, file->trace, &opts, err);
    if (status)
        return status;
    coffer_node_add_u64(view, "begin_us", coffer_mlyze_timeline_begin_us(timeline), COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(view, "end_us", coffer_mlyze_timeline_end_us(timeline), COFFER_UNIT_MICROSECONDS);
    add_points(chunks, timeline, group);
    add_marks(chunks, timeline, file->trace, detail, group);
    coffer_mlyze_timeline_free(timeline);
    return COFFER_OK;
}

/* ---- Totals and histograms ---- */

static void add_totals(coffer_node *view, const coffer__page_trace_file *file)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(file->stats);
    coffer_node_add_u64(view, "events", totals->events, COFFER_UNIT_NONE);
    coffer_node_add_u64(view, "allocs", totals->allocs, COFFER_UNIT_NONE);
    coffer_node_add_u64(view, "frees", totals->frees, COFFER_UNIT_NONE);
    coffer_node_add_u64(view, "duration_us", totals->duration_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(view, "peak_time_us", totals->peak_time_us, COFFER_UNIT_MICROSECONDS);
    coffer_node *measures = coffer_node_add_map(view, "measures");
    for (size_t i = 0; i < COFFER__PAGE_MEASURES; i++) {
        coffer_mlyze_measure measure = (coffer_mlyze_measure)i;
        const bool known[] = { file->source.has_peak, file->source.has_leaks, file->source.has_total,
                               file->source.has_order };
        coffer_node *map = coffer_node_add_map(measures, coffer__page_measures[i]);
        coffer_node_add_u64(map, "bytes", coffer_mlyze_totals_bytes(totals, measure), COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "allocs", coffer_mlyze_totals_allocs(totals, measure), COFFER_UNIT_NONE);
        coffer_node_add_bool(map, "known", !file->source.format || known[i]);
        coffer_node_add_u64(map, "error_bytes",
                            coffer_mlyze_sampling_error(file->trace,
                                                        coffer_mlyze_totals_allocs(totals, measure)),
                            COFFER_UNIT_BYTES);
    }
    coffer_node_add_u64(view, "sampling_bytes", coffer_mlyze_sampling_bytes(file->trace), COFFER_UNIT_BYTES);
    coffer_node_add_text(view, "profile", file->source.format);
    coffer_node_add_text(view, "time_unit", file->source.time_unit);
    coffer_node_add_bool(view, "has_order", !file->source.format || file->source.has_order);
}

/* ---- Phases and threads ---- */

static void add_phases(coffer_chunks *chunks, coffer_node *view, const coffer__page_trace_file *file,
                       size_t most)
{
    size_t total = coffer_mlyze_stats_phase_count(file->stats), count = total < most ? total : most;
    coffer_node *list = coffer_node_add_list(view, "phases");
    for (size_t i = 0; total > 1 && i < count; i++) {
        const coffer_mlyze_phase *phase = coffer_mlyze_stats_phase_at(file->stats, i);
        const char *name = coffer_mlyze_function_name(file->trace, phase->id);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "phase", i == 0 ? "start" : name ? name : "?");
        coffer_node_add_u64(map, "begin", phase->time_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "duration", phase->duration_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "peak", phase->peak_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_at_end", phase->live_bytes_at_end, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "allocated", phase->allocated_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "blocks", phase->allocs, COFFER_UNIT_NONE);
    }
    if (count < total)
        coffer__chunks_note(chunks, "the first %zu of %zu phases are listed", count, total);
}

static void add_threads(coffer_chunks *chunks, coffer_node *view, const coffer__page_trace_file *file,
                        size_t most)
{
    size_t total = coffer_mlyze_stats_thread_count(file->stats), count = total < most ? total : most;
    coffer_node *list = coffer_node_add_list(view, "threads");
    for (size_t i = 0; total > 1 && i < count; i++) {
        const coffer_mlyze_thread_row *row = coffer_mlyze_stats_thread_at(file->stats, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "thread", row->thread, COFFER_UNIT_NONE);
        coffer_node_add_text(map, "name", row->name ? row->name : "");
        coffer_node_add_u64(map, "peak", row->peak_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "leaks", row->live_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "allocated", row->allocated_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "blocks", row->allocs, COFFER_UNIT_NONE);
    }
    if (count < total)
        coffer__chunks_note(chunks, "the first %zu of %zu threads are listed", count, total);
}

static void add_histogram(coffer_chunks *chunks, const coffer_mlyze_histogram *from, const char *group)
{
    coffer__chunk_name name;
    double *count =
        coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "count"), COFFER_MLYZE_BUCKETS);
    double *bytes =
        coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "bytes"), COFFER_MLYZE_BUCKETS);
    for (size_t i = 0; bytes && i < COFFER_MLYZE_BUCKETS; i++) {
        count[i] = (double)from->count[i];
        bytes[i] = (double)from->bytes[i];
    }
}

static void note_losses(coffer_chunks *chunks, const coffer__page_trace_file *file)
{
    const coffer_mlyze_totals *totals = coffer_mlyze_stats_totals(file->stats);
    if (file->truncated)
        coffer__chunks_note(chunks, "the recording is truncated; the page shows the events before its end");
    if (totals->lost_events)
        coffer__chunks_note(chunks, "%" PRIu64 " events in %" PRIu64 " damaged blocks are not counted",
                            totals->lost_events, totals->lost_blocks);
    if (coffer_mlyze_sampling_bytes(file->trace))
        coffer__chunks_note(chunks,
                            "the trace is a sample, one block for every %" PRIu64
                            " bytes on average: bytes are estimates, and blocks are the recorded ones",
                            coffer_mlyze_sampling_bytes(file->trace));
    if (file->source.synthetic)
        coffer__chunks_note(chunks,
                            "a %s profile has sums, not single events; what it does not know is left out",
                            file->source.format);
}

static coffer_status emit_trace(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    const coffer__page_trace_state *page = state;
    coffer_node *list = coffer_node_add_list(chunks->view, "traces");
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < page->count && !status; i++) {
        coffer_node *view = coffer_node_add_map(list, NULL);
        add_totals(view, &page->files[i]);
        status = add_timeline(chunks, view, &page->files[i], detail, i == 0 ? "timeline" : "timeline_b", err);
        note_losses(chunks, &page->files[i]);
    }
    if (!status)
        status = coffer__page_add_flames(chunks, page, detail, err);
    if (!status && page->count == 1) {
        status = coffer__page_add_stacks(chunks, &page->files[0], detail, err);
        add_phases(chunks, chunks->view, &page->files[0], MOST_ROWS / detail);
        add_threads(chunks, chunks->view, &page->files[0], MOST_ROWS / detail);
        add_histogram(chunks, coffer_mlyze_stats_sizes(page->files[0].stats), "sizes");
        add_histogram(chunks, coffer_mlyze_stats_lifetimes(page->files[0].stats), "lifetimes");
        if (!status)
            status = coffer__page_add_heap(chunks, page->files[0].heap, detail, err);
    }
    return status;
}

const coffer__page_kind coffer__page_trace = {
    .page = "trace",
    .kinds = "mlyze, heaptrack, massif, dhat, pprof, collapsed",
    .open = open_trace,
    .emit = emit_trace,
    .close = close_trace,
    .diff = compare,
};
