/* The timeline as a picture: live bytes large, blocks and rate small below, markers across all. */
#include "base/memory.h"
#include "draw/axis.h"
#include "draw/picture.h"
#include "term.h"
#include "timeline_view.h"
#include "trace_names.h"

#include <math.h>
#include <string.h>

static const picture_font title_font = { 16, true, { 20, 20, 26 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 110 } };
static const picture_font label_font = { 11, false, { 70, 70, 78 } };
static const picture_font mark_font = { 11, false, { 160, 60, 20 } };
static const rgb frame_color = { 150, 150, 158 }, grid_color = { 228, 228, 232 };
static const rgb high_color = { 190, 208, 236 }, live_color = { 60, 110, 190 };
static const rgb mark_color = { 214, 120, 60 }, collection_color = { 120, 170, 120 };

enum { LEFT = 86, RIGHT = 20, TOP = 78, BOTTOM = 46, SMALL = 70, GAP = 26, LONGEST_MARK = 80 };

typedef double point_value(const timeline_view *view, const coffer_mlyze_point *point);

static double live_of(const timeline_view *view, const coffer_mlyze_point *point)
{
    (void)view;
    return (double)point->live_bytes;
}

static double high_of(const timeline_view *view, const coffer_mlyze_point *point)
{
    (void)view;
    return (double)point->high_bytes;
}

static double blocks_of(const timeline_view *view, const coffer_mlyze_point *point)
{
    (void)view;
    return (double)point->high_allocs;
}

static void draw_area(picture *canvas, picture_box plot, const timeline_view *view, point_value *value,
                      double most, rgb color)
{
    size_t count = coffer_mlyze_timeline_count(view->timeline), used = 0;
    double step = plot.width / (double)count, bottom = plot.y + plot.height;
    picture_point *corners = coffer__alloc_array(2 * count + 2, sizeof *corners);
    if (!corners || !(most > 0)) {
        coffer__free(corners);
        return;
    }
    corners[used++] = (picture_point){ plot.x, bottom };
    for (size_t i = 0; i < count; i++) {
        double share = value(view, coffer_mlyze_timeline_at(view->timeline, i)) / most;
        double top = bottom - round(share * plot.height * 10) / 10;
        double left = round(plot.x + (double)i * step), right = round(plot.x + (double)(i + 1) * step);
        /* Points of one height are one line. */
        if (used > 1 && corners[used - 1].y == top) {
            corners[used - 1].x = right;
            continue;
        }
        corners[used++] = (picture_point){ left, top };
        corners[used++] = (picture_point){ right, top };
    }
    corners[used++] = (picture_point){ plot.x + plot.width, bottom };
    picture_polygon(canvas, corners, used, color);
    coffer__free(corners);
}

/* Sizes divide by powers of two, so their round numbers do too. */
static double byte_step(double most, double wanted)
{
    double step = 1;
    while (most / step > wanted)
        step *= 2;
    return step;
}

static void draw_byte_axis(picture *canvas, picture_box plot, double most)
{
    double step = byte_step(most, plot.height / 32);
    for (unsigned i = 0; i * step <= most; i++) {
        double at = i * step;
        double y = plot.y + plot.height - at / most * plot.height;
        term_text text;
        picture_line(canvas, plot.x, y, plot.x + plot.width, y, 1, grid_color);
        picture_text(canvas, plot.x - 8, y + 4, PICTURE_RIGHT, &label_font, term_bytes(text, (uint64_t)at));
    }
}

static void draw_time_axis(picture *canvas, picture_box plot, const timeline_view *view)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    const char *counted = trace_unit(view->trace);
    double low = (double)coffer_mlyze_timeline_begin_us(timeline) / 1e6,
           high = (double)coffer_mlyze_timeline_end_us(timeline) / 1e6;
    double unit = counted ? 1e-6 : high - low >= 2 ? 1 : high - low >= 0.002 ? 1e-3 : 1e-6;
    axis_ticks ticks;
    axis_find_ticks(&ticks, low / unit, high / unit, (size_t)(plot.width / 100), false);
    for (size_t i = 0; i < ticks.count && high > low; i++) {
        axis_label label;
        char text[48];
        double x = plot.x + (ticks.at[i] * unit - low) / (high - low) * plot.width;
        snprintf(text, sizeof text, "%s %s", axis_format(label, ticks.at[i], ticks.step),
                 counted        ? ""
                 : unit == 1    ? "s"
                 : unit == 1e-3 ? "ms"
                                : "µs");
        picture_line(canvas, x, plot.y + plot.height, x, plot.y + plot.height + 4, 1, frame_color);
        picture_text(canvas, x, plot.y + plot.height + 18, PICTURE_CENTER, &label_font, text);
    }
}

static void draw_small(picture *canvas, picture_box plot, const timeline_view *view, point_value *value,
                       double most, const char *title)
{
    char text[80];
    term_text number;
    draw_area(canvas, plot, view, value, most, live_color);
    picture_outline(canvas, plot, 1, frame_color);
    snprintf(text, sizeof text, "%s, up to %s", title, term_count(number, (uint64_t)most));
    picture_text(canvas, plot.x, plot.y - 6, PICTURE_LEFT, &label_font, text);
}

/* Names are next to their lines, unless they would overlap. */
static void draw_marks(picture *canvas, picture_box plot, double bottom, const timeline_view *view)
{
    const coffer_mlyze_timeline *timeline = view->timeline;
    double span = (double)(coffer_mlyze_timeline_end_us(timeline) - coffer_mlyze_timeline_begin_us(timeline)),
           free_from = plot.x;
    for (size_t i = 0; i < coffer_mlyze_timeline_mark_count(timeline) && span > 0; i++) {
        const coffer_mlyze_mark *mark = coffer_mlyze_timeline_mark_at(timeline, i);
        double x =
            plot.x + (double)(mark->time_us - coffer_mlyze_timeline_begin_us(timeline)) / span * plot.width;
        char name[LONGEST_MARK];
        if (mark->type == COFFER_MLYZE_GC) {
            picture_line(canvas, x, plot.y + plot.height - 5, x, plot.y + plot.height, 1, collection_color);
            continue;
        }
        picture_line(canvas, x, plot.y, x, bottom, 1, mark_color);
        picture_fit_text(name, sizeof name, canvas, &mark_font, PICTURE_CUT_END,
                         timeline_mark_name(view, mark), 160);
        double width = picture_text_width(canvas, &mark_font, name);
        if (x < free_from || x + width + 4 > plot.x + plot.width)
            continue;
        picture_text(canvas, x + 3, plot.y - 4, PICTURE_LEFT, &mark_font, name);
        free_from = x + width + 10;
    }
}

unsigned timeline_plot_width(unsigned width)
{
    return width - LEFT - RIGHT;
}

static void draw_heading(picture *canvas, const timeline_view *view)
{
    const char *slash = strrchr(view->path, '/');
    char text[160];
    term_text bytes, time;
    snprintf(text, sizeof text, "highest %s · %s%s", term_bytes(bytes, view->highest_bytes),
             trace_time(time, view->trace,
                        coffer_mlyze_timeline_end_us(view->timeline) -
                            coffer_mlyze_timeline_begin_us(view->timeline)),
             coffer_mlyze_timeline_is_exact(view->timeline) ? "" : " · drawn from the index");
    picture_text(canvas, LEFT, 28, PICTURE_LEFT, &title_font, slash ? slash + 1 : view->path);
    picture_text(canvas, LEFT, 48, PICTURE_LEFT, &subtitle_font, text);
}

coffer_status timeline_draw(const timeline_view *view, const char *path, unsigned width, unsigned height,
                            coffer_error *err)
{
    picture *canvas = NULL;
    coffer_status status = picture_new(&canvas, path, width, height, err);
    if (status)
        return status;
    double most = fmax((double)view->highest_bytes, 1);
    picture_box plot = { LEFT, TOP, width - LEFT - RIGHT, height - TOP - BOTTOM - 2 * (SMALL + GAP) };
    picture_box blocks = { plot.x, plot.y + plot.height + GAP, plot.width, SMALL };
    picture_box rate = { plot.x, blocks.y + SMALL + GAP, plot.width, SMALL };
    draw_byte_axis(canvas, plot, most);
    draw_area(canvas, plot, view, high_of, most, high_color);
    draw_area(canvas, plot, view, live_of, most, live_color);
    picture_outline(canvas, plot, 1, frame_color);
    draw_small(canvas, blocks, view, blocks_of, (double)view->highest_allocs, "live blocks");
    draw_small(canvas, rate, view, timeline_rate, view->highest_rate, timeline_rate_name(view));
    draw_time_axis(canvas, rate, view);
    draw_marks(canvas, plot, rate.y + rate.height, view);
    draw_heading(canvas, view);
    return picture_save(canvas, err);
}
