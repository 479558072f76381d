/* Histograms of tensors as a picture: one below another, several in a row. */
#include "tensors/stats_picture.h"
#include "base/fail.h"
#include "draw/picture.h"
#include "term.h"

#include <math.h>
#include <stdio.h>

enum {
    MARGIN = 16,
    TOP = 60,
    CELL_WIDTH = 380,
    CELL_HEIGHT = 176,
    GAP = 24,
    PLOT_TOP = 36,
    PLOT_HEIGHT = 104
};

static const picture_font title_font = { 16, true, { 0, 0, 0 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 112 } };
static const picture_font name_font = { 12, true, { 30, 30, 36 } };
static const picture_font number_font = { 11, false, { 100, 100, 112 } };
static const rgb bar_color = { 49, 104, 142 }, line_color = { 200, 200, 206 };

static void draw_bars(picture *canvas, picture_box plot, const coffer_tensor_stats *stats)
{
    uint64_t most = 1;
    for (size_t i = 0; i < COFFER_TENSOR_HISTOGRAM_BINS; i++)
        most = stats->histogram[i] > most ? stats->histogram[i] : most;
    double step = plot.width / COFFER_TENSOR_HISTOGRAM_BINS;
    for (size_t i = 0; i < COFFER_TENSOR_HISTOGRAM_BINS; i++) {
        double height = plot.height * (double)stats->histogram[i] / (double)most;
        if (stats->histogram[i] > 0)
            picture_fill(canvas,
                         (picture_box){ plot.x + (double)i * step, plot.y + plot.height - fmax(height, 1),
                                        step - 0.6, fmax(height, 1) },
                         bar_color);
    }
    picture_line(canvas, plot.x, plot.y + plot.height + 0.5, plot.x + plot.width, plot.y + plot.height + 0.5,
                 1, line_color);
}

static void draw_tensor(picture *canvas, picture_box box, const coffer_tensor *tensor,
                        const coffer_tensor_stats *stats)
{
    const picture_box plot = { box.x, box.y + PLOT_TOP, box.width, PLOT_HEIGHT };
    char text[256];
    term_text count;
    picture_fit_text(text, sizeof text, canvas, &name_font, PICTURE_CUT_MIDDLE, tensor->name, box.width);
    picture_text(canvas, box.x, box.y + 12, PICTURE_LEFT, &name_font, text);
    snprintf(text, sizeof text, "%s, %s elements, mean %.3g, std %.3g", coffer_tensor_dtype_name(tensor),
             term_count(count, stats->elements), stats->mean, stats->std);
    picture_text(canvas, box.x, box.y + 28, PICTURE_LEFT, &number_font, text);
    draw_bars(canvas, plot, stats);
    if (!isfinite(stats->min))
        return;
    snprintf(text, sizeof text, "%.4g", stats->min);
    picture_text(canvas, plot.x, plot.y + plot.height + 15, PICTURE_LEFT, &number_font, text);
    snprintf(text, sizeof text, "%.4g", stats->max);
    picture_text(canvas, plot.x + plot.width, plot.y + plot.height + 15, PICTURE_RIGHT, &number_font, text);
}

coffer_status stats_draw(const char *path, const char *title, const stats_row *rows, size_t count,
                         size_t total, coffer_error *err)
{
    picture *canvas = NULL;
    char subtitle[96];
    term_text shown, all;
    size_t columns = count < STATS_PICTURE_COLUMNS ? count : STATS_PICTURE_COLUMNS;
    size_t lines = (count + columns - 1) / columns;
    coffer_status status =
        picture_new(&canvas, path, (unsigned)(2 * MARGIN + columns * (CELL_WIDTH + GAP) - GAP),
                    (unsigned)(TOP + MARGIN + lines * CELL_HEIGHT), err);
    if (status)
        return status;
    snprintf(subtitle, sizeof subtitle, "values of %s of %s tensors", term_count(shown, count),
             term_count(all, total));
    picture_text(canvas, MARGIN, 26, PICTURE_LEFT, &title_font, title);
    picture_text(canvas, MARGIN, 44, PICTURE_LEFT, &subtitle_font, subtitle);
    for (size_t i = 0; i < count; i++) {
        size_t column = i % columns, line = i / columns;
        const picture_box box = { MARGIN + (double)column * (CELL_WIDTH + GAP),
                                  TOP + (double)line * CELL_HEIGHT, CELL_WIDTH, CELL_HEIGHT };
        draw_tensor(canvas, box, rows[i].tensor, rows[i].stats);
    }
    return picture_save(canvas, err);
}
