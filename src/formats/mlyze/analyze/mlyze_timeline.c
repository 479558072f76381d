#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/analyze/mlyze_pass.h"
#include "formats/mlyze/mlyze_private.h"

#include <string.h>

/* The points of a timeline, and the two ways to fill them in. */

struct coffer_mlyze_timeline {
    uint64_t begin_us, end_us;
    size_t count;
    coffer_mlyze_point *points;
    size_t mark_count;
    coffer_mlyze_mark *marks;
    bool exact; /* events were decoded */
};

/* Moves from point to point with the time. */
typedef struct coffer__mlyze_pen {
    coffer_mlyze_timeline *timeline;
    size_t at;
    uint64_t next;     /* start of the next point */
    coffer__wide live; /* current level */
    uint64_t allocs;
    bool begun;
} coffer__mlyze_pen;

static coffer_status make_points(coffer_mlyze_timeline *timeline, uint64_t begin, uint64_t end,
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

static void pen_set(coffer__mlyze_pen *pen, coffer_mlyze_timeline *timeline)
{
    *pen = (coffer__mlyze_pen){ .timeline = timeline };
    for (size_t i = 0; i < timeline->count; i++) {
        uint64_t time = timeline->points[i].time_us;
        timeline->points[i] = (coffer_mlyze_point){ .time_us = time };
    }
}

/* Moves to the point of that time; points in between keep the current level. */
static void pen_move(coffer__mlyze_pen *pen, uint64_t time)
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

/* to the end */
static void pen_lift(coffer__mlyze_pen *pen)
{
    if (pen->timeline->count == 0)
        return;
    pen_move(pen, UINT64_MAX);
    leave_point(pen);
}

static void clear_timeline(coffer_mlyze_timeline *timeline)
{
    coffer__free(timeline->points);
    coffer__free(timeline->marks);
    memset(timeline, 0, sizeof *timeline);
}

/* ---- From the events themselves ---- */

typedef struct drawing {
    coffer__mlyze_pen pen;
    uint64_t begin;
} drawing;

static void restart_drawing(void *context)
{
    drawing *draw = context;
    pen_set(&draw->pen, draw->pen.timeline);
}

/* A stretch is part of one point, or before the first one. */
static uint64_t begin_stretch(void *context, uint64_t time)
{
    drawing *draw = context;
    if (draw->pen.timeline->count == 0)
        return UINT64_MAX;
    if (!draw->pen.begun && time < draw->begin)
        return draw->begin;
    pen_move(&draw->pen, time);
    return draw->pen.next;
}

static void end_stretch(void *context, const coffer__mlyze_stretch *stretch)
{
    coffer__mlyze_pen *pen = &((drawing *)context)->pen;
    pen->live = stretch->level;
    pen->allocs = stretch->live;
    if (!pen->begun)
        return;
    coffer_mlyze_point *point = &pen->timeline->points[pen->at];
    point->events += stretch->events;
    if (stretch->top > point->high_bytes)
        point->high_bytes = coffer__mlyze_narrow(stretch->top);
    if (stretch->top_live > point->high_allocs)
        point->high_allocs = stretch->top_live;
    point->allocs += stretch->allocs;
    point->allocated_bytes = coffer__mlyze_sum(point->allocated_bytes, stretch->allocated);
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
    const coffer__mlyze_watcher watcher = { &work, restart_drawing, begin_stretch, end_stretch };
    coffer_status status = COFFER_OK;
    if (pass->end_event > 0) {
        uint64_t end = coffer__mlyze_time_of_event(pass, pass->end_event - 1);
        if (opts->end_us < end) {
            end = opts->end_us;
            pass->end_event = coffer__mlyze_event_after(pass, end);
        }
        status = make_points(timeline, work.begin, end, opts->width, err);
    }
    pass->watcher = &watcher;
    if (!status)
        status = coffer__mlyze_run(pass, err);
    if (status)
        return status;
    pen_lift(&work.pen);
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

static coffer_status draw_exact(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                                const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (bool again = true; again;) {
        again = false;
        clear_timeline(timeline);
        status = draw_once(timeline, &again, trace, opts, err);
    }
    return status;
}

/* ---- From the index alone: no event is read ---- */

/* A block counts where it begins; the level after it is the level before the next one. */
static void draw_blocks(coffer_mlyze_timeline *timeline, const coffer_mlyze_index_entry *entries,
                        size_t count, uint64_t event_count)
{
    coffer__mlyze_pen pen;
    pen_set(&pen, timeline);
    for (size_t i = 0; i < count && timeline->count > 0; i++) {
        const coffer_mlyze_index_entry *entry = &entries[i];
        pen.live = entry->live_bytes;
        pen.allocs = entry->live_allocs;
        if (entry->time > timeline->end_us)
            break;
        if (!pen.begun && entry->time < timeline->begin_us)
            continue;
        pen_move(&pen, entry->time);
        coffer_mlyze_point *point = &timeline->points[pen.at];
        uint64_t next = i + 1 < count ? entries[i + 1].first_event : event_count;
        point->events += next > entry->first_event ? next - entry->first_event : 0;
        if (entry->high_bytes > point->high_bytes)
            point->high_bytes = entry->high_bytes;
        if (entry->high_allocs > point->high_allocs)
            point->high_allocs = entry->high_allocs;
    }
    pen_lift(&pen);
}

/* ---- Marks that the metadata lists ---- */

static size_t block_of_event(const coffer_mlyze_index_entry *entries, size_t count, uint64_t event)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries[middle].first_event <= event)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : 0;
}

/* [event, time] and, for markers, the name. */
static bool read_mark(coffer_mlyze_mark *out, const coffer__json_value *item, coffer_mlyze_type type)
{
    const coffer__json_value *event = item->kind == COFFER__JSON_ARRAY ? coffer__json_first(item) : NULL;
    const coffer__json_value *time = event ? coffer__json_next(item, event) : NULL;
    const coffer__json_value *name = time ? coffer__json_next(item, time) : NULL;
    *out = (coffer_mlyze_mark){ .type = type };
    if (!time || !coffer__json_u64(&out->event, event) || !coffer__json_u64(&out->time_us, time))
        return false;
    return type != COFFER_MLYZE_MARKER || (name && coffer__json_u64(&out->id, name));
}

typedef struct marking {
    coffer_mlyze_timeline *timeline;
    const coffer__json_value *list, *next; /* next : NULL = no more */
    coffer_mlyze_type type;
} marking;

/* The next valid mark of the list within the timeline. */
static bool next_mark(coffer_mlyze_mark *out, marking *from)
{
    while (from->next) {
        const coffer__json_value *item = from->next;
        from->next = coffer__json_next(from->list, item);
        if (read_mark(out, item, from->type) && out->time_us >= from->timeline->begin_us &&
            out->time_us <= from->timeline->end_us)
            return true;
    }
    return false;
}

static coffer_status add_marks(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                               const coffer_mlyze_index_entry *entries, size_t count, uint64_t max,
                               coffer_error *err)
{
    const coffer__json_value *root = coffer__json_root(trace->metadata.json);
    marking lists[2] = { { .timeline = timeline, .type = COFFER_MLYZE_MARKER },
                         { .timeline = timeline, .type = COFFER_MLYZE_GC } };
    coffer_mlyze_mark found[2];
    bool has[2];
    size_t capacity = 0;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < 2; i++) {
        lists[i].list = coffer__json_find(root, i == 0 ? "markers" : "collections");
        lists[i].next = coffer__json_first(lists[i].list);
        has[i] = next_mark(&found[i], &lists[i]);
    }
    while (!status && (has[0] || has[1]) && timeline->mark_count < max) {
        size_t which = !has[0] || (has[1] && found[1].event < found[0].event);
        found[which].live_bytes = entries[block_of_event(entries, count, found[which].event)].live_bytes;
        status = coffer__array_reserve_one(&timeline->marks, &capacity, timeline->mark_count,
                                           sizeof *timeline->marks, err);
        if (!status)
            timeline->marks[timeline->mark_count++] = found[which];
        has[which] = next_mark(&found[which], &lists[which]);
    }
    return status;
}

static coffer_status draw_index(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
                                const coffer_mlyze_timeline_opts *opts, coffer_error *err)
{
    const coffer_mlyze_index_entry *entries = NULL;
    coffer_limits limits = coffer__limits(opts->limits);
    uint64_t event_count = 0, end;
    size_t count = 0;
    coffer_status status = coffer__mlyze_get_index(&entries, &count, trace, opts->progress, err);
    if (!status)
        status = coffer_mlyze_event_count(&event_count, trace, err);
    if (status || count == 0)
        return status;
    end = entries[count - 1].time < opts->end_us ? entries[count - 1].time : opts->end_us;
    status = make_points(timeline, opts->begin_us, end, opts->width, err);
    if (status)
        return status;
    draw_blocks(timeline, entries, count, event_count);
    return add_marks(timeline, trace, entries, count, limits.entries, err);
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
        status = draw_index(timeline, trace, &options, err);
        /* The index does not fit into memory, but the events can spill. */
        from_index = status != COFFER_E_LIMIT;
    }
    if (!from_index)
        status = draw_exact(timeline, trace, &options, err);
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
