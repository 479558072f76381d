/* A timeline from the events themselves. */
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"
#include "formats/mlyze/analyze/mlyze_timeline.h"

#include <string.h>

typedef struct drawing {
    coffer__mlyze_pen pen;
    uint64_t begin;
} drawing;

/* The change of the number of live blocks by an event. */
static uint64_t count_change(uint8_t type)
{
    return type == COFFER__MLYZE_PAIRED_ALLOC ? 1 : type == COFFER__MLYZE_PAIRED_FREE ? UINT64_MAX : 0;
}

static bool is_alloc(uint8_t type)
{
    return type == COFFER__MLYZE_PAIRED_ALLOC || type == COFFER__MLYZE_REPLACING ||
           type == COFFER__MLYZE_NOWHERE;
}

static void draw_event(drawing *draw, const coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece,
                       size_t event)
{
    coffer__mlyze_pen *pen = &draw->pen;
    uint64_t time = piece->events.time[event];
    uint8_t type = piece->events.type[event];
    bool drawn = pen->timeline->count > 0 && (pen->begun || time >= draw->begin);
    if (drawn)
        coffer__mlyze_pen_move(pen, time);
    pen->live += coffer__mlyze_change(piece, event, pass);
    pen->allocs += count_change(type);
    if (!drawn)
        return;
    coffer_mlyze_point *point = &pen->timeline->points[pen->at];
    point->events++;
    if (pen->live > point->high_bytes)
        point->high_bytes = coffer__mlyze_narrow(pen->live);
    if (pen->allocs > point->high_allocs)
        point->high_allocs = pen->allocs;
    if (is_alloc(type)) {
        point->allocs++;
        point->allocated_bytes += piece->events.size[event];
    }
}

/* batch : NULL = from the first event again. */
static coffer_status draw_batch(void *context, const coffer__mlyze_pass *pass,
                                const coffer__mlyze_batch *batch, coffer_error *err)
{
    drawing *draw = context;
    (void)err;
    if (!batch) {
        coffer__mlyze_pen_set(&draw->pen, draw->pen.timeline);
        return COFFER_OK;
    }
    for (size_t i = 0; i < batch->count; i++) {
        const coffer__mlyze_piece *piece = &batch->pieces[i];
        for (size_t event = piece->begin; event < piece->end; event++)
            draw_event(draw, pass, piece, event);
    }
    return COFFER_OK;
}

static void keep_marks(coffer_mlyze_timeline *timeline, coffer__mlyze_pass *pass)
{
    size_t kept = 0;
    for (size_t i = 0; i < pass->results.mark_count; i++) {
        if (pass->results.marks[i].time_us >= timeline->begin_us &&
            pass->results.marks[i].time_us <= timeline->end_us)
            pass->results.marks[kept++] = pass->results.marks[i];
    }
    timeline->marks = pass->results.marks;
    timeline->mark_count = kept;
    pass->results.marks = NULL;
}

static coffer_status draw(coffer_mlyze_timeline *timeline, coffer__mlyze_pass *pass,
                          const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    drawing work = { .pen.timeline = timeline, .begin = opts->begin_us };
    coffer_status status = COFFER_OK;
    if (pass->course.end_event > 0) {
        uint64_t end = coffer__mlyze_time_of_event(pass, pass->course.end_event - 1);
        if (opts->end_us < end) {
            end = opts->end_us;
            pass->course.end_event = coffer__mlyze_event_after(pass, end);
        }
        status = coffer__mlyze_make_points(timeline, work.begin, end, opts->width, err);
    }
    pass->observe = draw_batch;
    pass->observe_context = &work;
    if (!status)
        status = coffer__mlyze_run(pass, err);
    if (status)
        return status;
    coffer__mlyze_pen_lift(&work.pen);
    keep_marks(timeline, pass);
    timeline->exact = true;
    return COFFER_OK;
}

static coffer_status draw_once(coffer_mlyze_timeline *timeline, bool *again, const coffer_mlyze *trace,
                               const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    coffer_mlyze_stats_opts query = COFFER_MLYZE_STATS_OPTS_INIT;
    coffer__mlyze_pass *pass = coffer__malloc(sizeof *pass);
    query.threads = opts->threads;
    query.limits = opts->limits;
    query.progress = opts->progress;
    coffer_status status =
        pass ? coffer__mlyze_pass_init(pass, trace, &query, err) : coffer__fail_no_memory(err, sizeof *pass);
    if (!status) {
        status = draw(timeline, pass, opts, err);
        *again = status != COFFER_E_CANCELLED && coffer__mlyze_pass_is_outdated(pass);
        coffer__mlyze_pass_free(pass);
    }
    coffer__free(pass);
    return status;
}

coffer_status coffer__mlyze_draw_exact(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                                       const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (bool again = true; again;) {
        again = false;
        coffer__mlyze_clear_timeline(timeline);
        status = draw_once(timeline, &again, trace, opts, err);
    }
    return status;
}
