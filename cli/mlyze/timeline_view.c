#include "timeline_view.h"

#include "trace_names.h"

#include <inttypes.h>

static uint64_t rated_events(const timeline_view *view, const coffer_mlyze_point *point)
{
    return coffer_mlyze_timeline_is_exact(view->timeline) ? point->allocs : point->events;
}

double timeline_rate(const timeline_view *view, const coffer_mlyze_point *point)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    double seconds =
        (double)(coffer_mlyze_timeline_end_us(timeline) - coffer_mlyze_timeline_begin_us(timeline)) / 1e6;
    return seconds > 0
               ? (double)rated_events(view, point) * (double)coffer_mlyze_timeline_count(timeline) / seconds
               : 0;
}

const char *timeline_rate_name(const timeline_view *view)
{
    if (trace_unit(view->trace))
        return coffer_mlyze_timeline_is_exact(view->timeline) ? "allocations per million"
                                                              : "events per million";
    return coffer_mlyze_timeline_is_exact(view->timeline) ? "allocations/s" : "events/s";
}

const char *timeline_mark_name(const timeline_view *view, const coffer_mlyze_mark *mark)
{
    const char *name = coffer_mlyze_function_name(view->trace, mark->id);
    return mark->type == COFFER_MLYZE_GC ? "collection" : name && *name ? name : "?";
}

timeline_view timeline_view_of(const coffer_mlyze *trace, const coffer_mlyze_timeline *timeline,
                               const char *path)
{
    timeline_view view = { .trace = trace, .timeline = timeline, .path = path };
    for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        double rate = timeline_rate(&view, point);
        view.highest_bytes = point->high_bytes > view.highest_bytes ? point->high_bytes : view.highest_bytes;
        view.highest_allocs =
            point->high_allocs > view.highest_allocs ? point->high_allocs : view.highest_allocs;
        view.highest_rate = rate > view.highest_rate ? rate : view.highest_rate;
    }
    return view;
}

void timeline_put_csv(coffer__buffer *out, const timeline_view *view)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    coffer__buffer_printf(out, "time_us,live_bytes,high_bytes,live_allocs,high_allocs,events%s\r\n",
                          coffer_mlyze_timeline_is_exact(timeline) ? ",allocs,allocated_bytes" : "");
    for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        coffer__buffer_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                              point->time_us, point->live_bytes, point->high_bytes, point->live_allocs,
                              point->high_allocs, point->events);
        if (coffer_mlyze_timeline_is_exact(timeline))
            coffer__buffer_printf(out, ",%" PRIu64 ",%" PRIu64, point->allocs, point->allocated_bytes);
        coffer__buffer_printf(out, "\r\n");
    }
}

static void add_points(coffer_node *root, const coffer_mlyze_timeline *timeline)
{
    coffer_node *list = coffer_node_add_list(root, "points");
    for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
        const coffer_mlyze_point *point = coffer_mlyze_timeline_at(timeline, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "time_us", point->time_us, COFFER_UNIT_MICROSECONDS);
        coffer_node_add_u64(map, "live_bytes", point->live_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "high_bytes", point->high_bytes, COFFER_UNIT_BYTES);
        coffer_node_add_u64(map, "live_allocs", point->live_allocs, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "high_allocs", point->high_allocs, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "events", point->events, COFFER_UNIT_NONE);
        if (coffer_mlyze_timeline_is_exact(timeline)) {
            coffer_node_add_u64(map, "allocs", point->allocs, COFFER_UNIT_NONE);
            coffer_node_add_u64(map, "allocated_bytes", point->allocated_bytes, COFFER_UNIT_BYTES);
        }
    }
}

static void add_marks(coffer_node *root, const timeline_view *view)
{
    coffer_node *list = coffer_node_add_list(root, "marks");
    for (size_t i = 0; i < coffer_mlyze_timeline_mark_count(view->timeline); i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_timeline_mark_at(view->timeline, i);
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_text(map, "kind", mark->type == COFFER_MLYZE_GC ? "collection" : "marker");
        coffer_node_add_text(map, "name", timeline_mark_name(view, mark));
        coffer_node_add_u64(map, "event", mark->event, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "time_us", mark->time_us, COFFER_UNIT_MICROSECONDS);
    }
}

void timeline_add(coffer_node *root, const timeline_view *view)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    coffer_node_add_text(root, "file", view->path);
    coffer_node_add_text(root, "format", "mlyze");
    coffer_node_add_u64(root, "begin_us", coffer_mlyze_timeline_begin_us(timeline), COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(root, "end_us", coffer_mlyze_timeline_end_us(timeline), COFFER_UNIT_MICROSECONDS);
    coffer_node_add_bool(root, "exact", coffer_mlyze_timeline_is_exact(timeline));
    coffer_node_add_u64(root, "high_bytes", view->highest_bytes, COFFER_UNIT_BYTES);
    coffer_node_add_u64(root, "high_allocs", view->highest_allocs, COFFER_UNIT_NONE);
    trace_add_lost(root, view->trace);
    add_points(root, timeline);
    add_marks(root, view);
}
