#include "timeline_view.h"

#include "base/utf8.h"
#include "term.h"
#include "trace_names.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* The timeline in a terminal: a curve of blocks, one line for the rate, one for markers. */

enum { LABEL = 11, PLOT_ROWS = 12, MARKS_LISTED = 12 };

static const char *const eighths[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

/* The part of a column that a value of 0 to 1 fills in the row that begins at `floor_of_row`. */
static const char *cell(double value, double rows, double row)
{
    double filled = value * rows - row;
    int eighth = (int)floor(filled * 8 + 0.5);
    if (row == 0 && value > 0 && eighth < 1)
        eighth = 1;
    return eighths[eighth < 0 ? 0 : eighth > 8 ? 8 : eighth];
}

static void print_label(FILE *out, const char *text)
{
    size_t width = coffer__utf8_width(text, strlen(text));
    fprintf(out, "%*s%s ", (int)(width < LABEL - 1 ? LABEL - 1 - width : 0), "", text);
}

static void print_curve(const timeline_view *view, FILE *out)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    term_text text;
    for (int row = PLOT_ROWS - 1; row >= 0; row--) {
        uint64_t top = (uint64_t)((double)view->highest_bytes * (row + 1) / PLOT_ROWS);
        print_label(out, row % 3 == 2 ? term_bytes(text, top) : "");
        fputs(term_on(out, TERM_BLUE), out);
        for (size_t i = 0; i < coffer_mlyze_timeline_count(timeline); i++) {
            double share =
                (double)coffer_mlyze_timeline_at(timeline, i)->high_bytes / (double)view->highest_bytes;
            fputs(cell(share, PLOT_ROWS, row), out);
        }
        fprintf(out, "%s\n", term_off(out));
    }
}

static void print_line(const timeline_view *view, const char *label,
                       double (*value)(const timeline_view *, size_t), double highest, const char *most,
                       FILE *out)
{
    print_label(out, label);
    for (size_t i = 0; i < coffer_mlyze_timeline_count(view->timeline); i++)
        fputs(highest > 0 ? cell(value(view, i) / highest, 1, 0) : " ", out);
    fprintf(out, " %sup to %s%s\n", term_on(out, TERM_DIM), most, term_off(out));
}

static double rate_at(const timeline_view *view, size_t point)
{
    return timeline_rate(view, coffer_mlyze_timeline_at(view->timeline, point));
}

static double blocks_at(const timeline_view *view, size_t point)
{
    return (double)coffer_mlyze_timeline_at(view->timeline, point)->high_allocs;
}

static size_t column_of(const coffer_mlyze_timeline *timeline, uint64_t time)
{
    uint64_t span = coffer_mlyze_timeline_end_us(timeline) - coffer_mlyze_timeline_begin_us(timeline);
    size_t column = span ? (size_t)((double)(time - coffer_mlyze_timeline_begin_us(timeline)) / (double)span *
                                    (double)coffer_mlyze_timeline_count(timeline))
                         : 0;
    return column < coffer_mlyze_timeline_count(timeline) ? column
                                                          : coffer_mlyze_timeline_count(timeline) - 1;
}

/* A letter under the column of each marker, a dot for a collection. */
static void print_marks(const timeline_view *view, FILE *out)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    char line[1024];
    size_t named = 0;
    if (coffer_mlyze_timeline_mark_count(timeline) == 0 ||
        coffer_mlyze_timeline_count(timeline) >= sizeof line)
        return;
    memset(line, ' ', coffer_mlyze_timeline_count(timeline));
    line[coffer_mlyze_timeline_count(timeline)] = '\0';
    for (size_t i = 0; i < coffer_mlyze_timeline_mark_count(timeline); i++) {
        char *at = &line[column_of(timeline, coffer_mlyze_timeline_mark_at(timeline, i)->time_us)];
        if (coffer_mlyze_timeline_mark_at(timeline, i)->type == COFFER_MLYZE_MARKER)
            *at = named < MARKS_LISTED ? (char)('A' + named++) : '|';
        else if (*at == ' ')
            *at = '.';
    }
    print_label(out, "marks");
    fprintf(out, "%s%s%s\n", term_on(out, TERM_YELLOW), line, term_off(out));
}

static void list_marks(const timeline_view *view, FILE *out)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    size_t markers = 0, collections = 0;
    term_text time;
    for (size_t i = 0; i < coffer_mlyze_timeline_mark_count(timeline); i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_timeline_mark_at(timeline, i);
        collections += mark->type == COFFER_MLYZE_GC;
        if (mark->type != COFFER_MLYZE_MARKER || markers++ >= MARKS_LISTED)
            continue;
        const char *name = timeline_mark_name(view, mark);
        fprintf(out, "  %s%c%s  ", term_on(out, TERM_YELLOW), (char)('A' + markers - 1), term_off(out));
        term_print_text(out, name, strlen(name), 60);
        fprintf(out, "  %s\n", trace_time(time, view->trace, mark->time_us));
    }
    if (markers > MARKS_LISTED)
        fprintf(out, "  … %zu more markers; --json lists all\n", markers - MARKS_LISTED);
    if (collections)
        fprintf(out, "  .  %zu collections\n", collections);
}

void timeline_print(const timeline_view *view, FILE *out)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    term_text text, most;
    if (view->highest_bytes == 0) {
        fputs("nothing was ever live\n", out);
        return;
    }
    print_curve(view, out);
    snprintf(most, sizeof most, "%s",
             trace_time(text, view->trace, coffer_mlyze_timeline_begin_us(timeline)));
    trace_time(text, view->trace, coffer_mlyze_timeline_end_us(timeline));
    int gap = (int)coffer_mlyze_timeline_count(timeline) - (int)coffer__utf8_width(most, strlen(most)) -
              (int)coffer__utf8_width(text, strlen(text));
    fprintf(out, "%*s%s%s%*s%s%s\n", LABEL, "", term_on(out, TERM_DIM), most, gap > 1 ? gap : 1, "", text,
            term_off(out));
    print_line(view, "blocks", blocks_at, (double)view->highest_allocs,
               term_count(text, view->highest_allocs), out);
    bool seconds = !trace_unit(view->trace);
    snprintf(most, sizeof most, "%.18s%s", term_count(text, (uint64_t)view->highest_rate),
             seconds ? "/s" : " per million");
    const char *what = coffer_mlyze_timeline_is_exact(timeline) ? (seconds ? "allocs/s" : "allocs")
                                                                : (seconds ? "events/s" : "events");
    print_line(view, what, rate_at, view->highest_rate, most, out);
    print_marks(view, out);
    list_marks(view, out);
}
