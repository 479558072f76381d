#include "formats/mlyze/analyze/mlyze_timeline.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <string.h>

/* ---- Points ---- */

coffer_status coffer__mlyze_make_points(coffer_mlyze_timeline *timeline, uint64_t begin, uint64_t end,
                                        uint32_t width, coffer_error *err)
{
    timeline->begin_us = begin;
    timeline->end_us = end > begin ? end : begin;
    if (end < begin)
        return COFFER_OK;
    uint64_t last = end - begin;
    size_t count = last < width ? (size_t)last + 1 : width;
    timeline->points = coffer__calloc(count, sizeof *timeline->points);
    if (!timeline->points)
        return coffer__fail_no_memory(err, count * sizeof *timeline->points);
    timeline->count = count;
    for (size_t i = 0; i < count; i++)
        timeline->points[i].time_us = begin + last / count * i + ((last % count + 1) * i + count - 1) / count;
    return COFFER_OK;
}

static void enter_point(coffer__mlyze_pen *pen, size_t at)
{
    const coffer_mlyze_timeline *timeline = pen->timeline;
    pen->at = at;
    pen->next = at + 1 < timeline->count ? timeline->points[at + 1].time_us : UINT64_MAX;
    timeline->points[at].high_bytes = coffer__mlyze_narrow(pen->live);
    timeline->points[at].high_allocs = pen->allocs;
}

static void leave_point(const coffer__mlyze_pen *pen)
{
    pen->timeline->points[pen->at].live_bytes = coffer__mlyze_narrow(pen->live);
    pen->timeline->points[pen->at].live_allocs = pen->allocs;
}

void coffer__mlyze_pen_set(coffer__mlyze_pen *pen, coffer_mlyze_timeline *timeline)
{
    *pen = (coffer__mlyze_pen){ .timeline = timeline };
    for (size_t i = 0; i < timeline->count; i++) {
        uint64_t time = timeline->points[i].time_us;
        timeline->points[i] = (coffer_mlyze_point){ .time_us = time };
    }
}

void coffer__mlyze_pen_move(coffer__mlyze_pen *pen, uint64_t time)
{
    if (!pen->begun) {
        pen->begun = true;
        enter_point(pen, 0);
    }
    while (time >= pen->next && pen->at + 1 < pen->timeline->count) {
        leave_point(pen);
        enter_point(pen, pen->at + 1);
    }
}

void coffer__mlyze_pen_lift(coffer__mlyze_pen *pen)
{
    if (pen->timeline->count == 0)
        return;
    coffer__mlyze_pen_move(pen, UINT64_MAX);
    leave_point(pen);
}

/* ---- Public function ---- */

void coffer_mlyze_timeline_free(coffer_mlyze_timeline *timeline)
{
    if (!timeline)
        return;
    coffer__free(timeline->points);
    coffer__free(timeline->marks);
    coffer__free(timeline);
}

/* With a block or more per point, the index gives the same picture as the events. */
static coffer_status index_will_do(bool *out, const coffer_mlyze *trace,
                                   const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    size_t blocks = 0;
    coffer_status status = COFFER_OK;
    *out = false;
    if (!opts->exact && coffer_mlyze_compressed(trace))
        status = coffer_mlyze_block_count(&blocks, trace, err);
    *out = !status && blocks >= opts->width;
    return status;
}

void coffer__mlyze_clear_timeline(coffer_mlyze_timeline *timeline)
{
    coffer__free(timeline->points);
    coffer__free(timeline->marks);
    memset(timeline, 0, sizeof *timeline);
}

coffer_status coffer_mlyze_timeline_new(coffer_mlyze_timeline **out, const coffer_mlyze *trace,
                                        const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    coffer_mlyze_timeline_opts options = COFFER_MLYZE_TIMELINE_OPTS_INIT;
    coffer_mlyze_timeline *timeline = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    bool from_index = false;
    if (!status && options.width == 0)
        status = coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                              "a timeline needs at least 1 point");
    if (!status)
        status = index_will_do(&from_index, trace, &options, err);
    if (status)
        return status;
    timeline = coffer__calloc(1, sizeof *timeline);
    if (!timeline)
        return coffer__fail_no_memory(err, sizeof *timeline);
    if (from_index) {
        status = coffer__mlyze_draw_index(timeline, trace, &options, err);
        /* The index does not fit into memory, but the events can spill. */
        from_index = status != COFFER_E_LIMIT;
    }
    if (!from_index)
        status = coffer__mlyze_draw_exact(timeline, trace, &options, err);
    if (status)
        coffer_mlyze_timeline_free(timeline);
    else
        *out = timeline;
    return status;
}

COFFER__INIT_FUNCTION(coffer_mlyze_timeline_opts, COFFER_MLYZE_TIMELINE_OPTS_INIT)

/* ---- Accessors ---- */

uint64_t coffer_mlyze_timeline_begin_us(const coffer_mlyze_timeline *timeline)
{
    return timeline->begin_us;
}

uint64_t coffer_mlyze_timeline_end_us(const coffer_mlyze_timeline *timeline)
{
    return timeline->end_us;
}

bool coffer_mlyze_timeline_is_exact(const coffer_mlyze_timeline *timeline)
{
    return timeline->exact;
}

size_t coffer_mlyze_timeline_count(const coffer_mlyze_timeline *timeline)
{
    return timeline->count;
}

const coffer_mlyze_point *coffer_mlyze_timeline_at(const coffer_mlyze_timeline *timeline, size_t index)
{
    return index < timeline->count ? &timeline->points[index] : NULL;
}

size_t coffer_mlyze_timeline_mark_count(const coffer_mlyze_timeline *timeline)
{
    return timeline->mark_count;
}

const coffer_mlyze_mark *coffer_mlyze_timeline_mark_at(const coffer_mlyze_timeline *timeline, size_t index)
{
    return index < timeline->mark_count ? &timeline->marks[index] : NULL;
}
