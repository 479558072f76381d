/* Questions about a trace: the timeline, the flame graphs and the stacks of a part of the run. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_trace.h"
#include "view/view_private.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_POINTS = 4096 };

static void close_traces(void *state)
{
    coffer__page_trace_state *traces = state;
    for (size_t i = 0; i < 2; i++)
        coffer_mlyze_close(traces->files[i].trace);
    coffer__free(traces);
}

static coffer_status open_traces(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer__page_trace_state *traces = coffer__calloc(1, sizeof *traces);
    coffer_status status = traces ? COFFER_OK : coffer__fail_no_memory(err, sizeof *traces);
    for (size_t i = 0; i < chunks->file_count && !status; i++)
        status = coffer__page_open_trace(&traces->files[i], chunks, chunks->files[i], err);
    if (status) {
        if (traces)
            close_traces(traces);
        return status;
    }
    *state = traces;
    return COFFER_OK;
}

/* "from" and "to" in microseconds. */
static coffer_status read_times(uint64_t *from, uint64_t *to, const coffer__question *question,
                                coffer_error *err)
{
    coffer_status status = coffer__question_number(from, question, "from", 0, 0, INT64_MAX, err);
    return status ? status : coffer__question_number(to, question, "to", INT64_MAX, *from, INT64_MAX, err);
}

/* The index has the level at each block: decode events only where points are closer than blocks. */
static coffer_status needs_events(bool *out, const coffer_mlyze *trace, uint64_t from, uint64_t to,
                                  uint64_t width, coffer_error *err)
{
    size_t first = 0, last = 0;
    *out = true;
    if (!coffer_mlyze_compressed(trace))
        return COFFER_OK;
    coffer_status status = coffer_mlyze_block_of_time(&first, trace, from, err);
    if (!status)
        status = coffer_mlyze_block_of_time(&last, trace, to, err);
    *out = last - first < width;
    return status;
}

static coffer_status answer_timeline(coffer_chunks *chunks, void *state, const coffer__question *question,
                                     coffer_error *err)
{
    const coffer__page_trace_state *traces = state;
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    uint64_t width = 0;
    size_t file = 0;
    coffer_status status = coffer__question_file(&file, question, chunks, err);
    if (!status)
        status = read_times(&opts.begin_us, &opts.end_us, question, err);
    if (!status)
        status = coffer__question_number(&width, question, "width", 1024, 1, MOST_POINTS, err);
    const coffer_mlyze *trace = traces->files[file].trace;
    if (!status)
        status = needs_events(&opts.exact, trace, opts.begin_us, opts.end_us, width, err);
    if (status)
        return status;
    opts.width = (uint32_t)width;
    opts.threads = chunks->opts.threads;
    opts.progress = chunks->opts.progress;
    opts.limits = &chunks->limits;
    status = coffer_mlyze_timeline_new(&timeline, trace, &opts, err);
    if (status)
        return status;
    coffer__page_add_points(chunks, timeline, trace, 1, "timeline");
    coffer__page_add_span(chunks->view, timeline);
    coffer_node_add_bool(chunks->view, "exact", coffer_mlyze_timeline_is_exact(timeline));
    coffer_mlyze_timeline_free(timeline);
    return COFFER_OK;
}

static coffer_status find_event(uint64_t *event, const coffer_mlyze *trace, uint64_t time, coffer_error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 "us", time);
    return coffer_mlyze_find_moment(event, trace, text, err);
}

/* The chunks of the flame graphs and of the table of stacks, for the events between two times. */
static coffer_status answer_window(coffer_chunks *chunks, void *state, const coffer__question *question,
                                   coffer_error *err)
{
    const coffer__page_trace_state *traces = state;
    coffer__page_trace_state part = { .count = 1 };
    uint64_t from, to, begin = 0, end = 0;
    part.files[0] = traces->files[0];
    coffer_status status = read_times(&from, &to, question, err);
    if (!status)
        status = find_event(&begin, part.files[0].trace, from, err);
    if (!status)
        status = find_event(&end, part.files[0].trace, to, err);
    if (!status)
        status = coffer__page_read_trace(&part.files[0], chunks, begin, end, err);
    if (!status)
        status = coffer__page_add_flames(chunks, &part, 1, err);
    if (!status)
        status = coffer__page_add_stacks(chunks, &part.files[0], 1, err);
    coffer_node_add_u64(chunks->view, "events", end - begin, COFFER_UNIT_NONE);
    coffer__page_forget_trace(&part.files[0]);
    return status;
}

static const coffer__view_question questions[] = {
    { "timeline", answer_timeline },
    { "window", answer_window },
    { NULL, NULL },
};

const coffer__view_kind coffer__view_trace = { "trace", open_traces, close_traces, questions };
