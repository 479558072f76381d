/* A timeline from the index alone: no event is read. */
#include "base/buffer.h"
#include "base/options.h"
#include "formats/mlyze/analyze/mlyze_timeline.h"
#include "formats/mlyze/mlyze_private.h"

/* ---- Points ---- */

/* A block counts where it begins; the level after it is the level before the next one. */
static void draw_blocks(coffer_mlyze_timeline *timeline, const coffer_mlyze_index_entry *entries,
                        size_t count, uint64_t event_count)
{
    coffer__mlyze_pen pen;
    coffer__mlyze_pen_set(&pen, timeline);
    for (size_t i = 0; i < count && timeline->count > 0; i++) {
        const coffer_mlyze_index_entry *entry = &entries[i];
        pen.live = entry->live_bytes;
        pen.allocs = entry->live_allocs;
        if (entry->time > timeline->end_us)
            break;
        if (!pen.begun && entry->time < timeline->begin_us)
            continue;
        coffer__mlyze_pen_move(&pen, entry->time);
        coffer_mlyze_point *point = &timeline->points[pen.at];
        uint64_t next = i + 1 < count ? entries[i + 1].first_event : event_count;
        point->events += next > entry->first_event ? next - entry->first_event : 0;
        if (entry->high_bytes > point->high_bytes)
            point->high_bytes = entry->high_bytes;
        if (entry->high_allocs > point->high_allocs)
            point->high_allocs = entry->high_allocs;
    }
    coffer__mlyze_pen_lift(&pen);
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

coffer_status coffer__mlyze_draw_index(coffer_mlyze_timeline *timeline, const coffer_mlyze *trace,
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
    status = coffer__mlyze_make_points(timeline, opts->begin_us, end, opts->width, err);
    if (status)
        return status;
    draw_blocks(timeline, entries, count, event_count);
    return add_marks(timeline, trace, entries, count, limits.entries, err);
}
