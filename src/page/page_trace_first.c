/* The first picture of a trace, without decoding its events. */
#include "base/fail.h"
#include "page/page_trace.h"

enum { ACTIVITY_POINTS = 96, MOST_POINTS = 2048, LEAST_BLOCKS = 64 };

static int refuse(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    (void)done;
    (void)total;
    return 1;
}

/* An index that is stored is loaded without progress; building one would be a pass, and is cancelled at its
 * first step. */
static bool has_index(size_t *blocks, const coffer_mlyze *trace)
{
    coffer_mlyze_index_opts opts = COFFER_MLYZE_INDEX_OPTS_INIT;
    coffer_progress progress = COFFER_PROGRESS_INIT;
    coffer_error ignored = COFFER_ERROR_INIT;
    progress.step = refuse;
    opts.progress = &progress;
    return coffer_mlyze_load_index(blocks, trace, &opts, &ignored) == COFFER_OK && *blocks >= LEAST_BLOCKS;
}

/* The level at each block. */
static coffer_status add_index(coffer_chunks *chunks, const coffer_mlyze *trace, size_t blocks,
                               coffer_error *err)
{
    coffer_mlyze_timeline *timeline = NULL;
    coffer_mlyze_timeline_opts opts = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    opts.width = blocks < MOST_POINTS ? (uint32_t)blocks : MOST_POINTS;
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    coffer_status status = coffer_mlyze_timeline_new(&timeline, trace, &opts, err);
    if (status)
        return status;
    coffer__page_add_span(chunks->view, timeline);
    coffer__page_add_points(chunks, timeline, trace, 1, "timeline");
    coffer_mlyze_timeline_free(timeline);
    return COFFER_OK;
}

/* The blocks of a compressed trace say when they begin and how many events they have, without decoding any.
 */
static coffer_status add_activity(coffer_chunks *chunks, const coffer_mlyze *trace, coffer_error *err)
{
    coffer_mlyze_block block = COFFER_MLYZE_BLOCK_INIT;
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, trace, err);
    if (!status && count > 0)
        status = coffer_mlyze_get_block(&block, trace, count - 1, err);
    if (status || count == 0 || block.time == 0)
        return status;
    uint64_t end = block.time + 1;
    double *time = coffer__chunks_f64(chunks, "activity.time", ACTIVITY_POINTS);
    double *events = coffer__chunks_f64(chunks, "activity.events", ACTIVITY_POINTS);
    for (size_t i = 0; events && i < ACTIVITY_POINTS; i++)
        time[i] = (double)end / ACTIVITY_POINTS * (double)i;
    for (size_t i = 0; events && i < count && !status; i++) {
        status = coffer_mlyze_get_block(&block, trace, i, err);
        uint64_t place = (uint64_t)((double)block.time / (double)end * ACTIVITY_POINTS);
        events[place < ACTIVITY_POINTS ? place : ACTIVITY_POINTS - 1] += block.event_count;
    }
    return status;
}

coffer_status coffer__page_add_first_trace(coffer_chunks *chunks, const coffer_mlyze *trace,
                                           coffer_error *err)
{
    size_t blocks = 0;
    if (!trace || !coffer_mlyze_compressed(trace))
        return COFFER_OK;
    return has_index(&blocks, trace) ? add_index(chunks, trace, blocks, err)
                                     : add_activity(chunks, trace, err);
}
