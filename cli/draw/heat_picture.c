/* The heat map as a picture: cells, color bar, heading. */
#include "axis.h"
#include "base/fail.h"
#include "base/memory.h"
#include "heat.h"

#include <math.h>

static const picture_font title_font = { 16, true, { 20, 20, 26 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 110 } };
static const rgb frame_color = { 150, 150, 158 };

enum { TALLEST_ROW = 26, LONGEST_HEADING = 200, RIGHT_EDGE = 16 };

int heat_layout_of(heat_layout *out, const cli_args *args)
{
    uint64_t width, height;
    const char *output = cli_value(args, "output");
    if (!cli_number(&width, args, "width", 1200, 320, PICTURE_MAX_SIDE) ||
        !cli_number(&height, args, "height", 0, 200, PICTURE_MAX_SIDE))
        return CLI_USAGE;
    if (output && !picture_can_write(output))
        return cli_usage(args, "%s: pictures end in .png or .svg", output);
    *out = (heat_layout){ (unsigned)width, (unsigned)height, 66, 116, 84, 52 };
    return CLI_OK;
}

static unsigned room(unsigned all, double margins)
{
    return all > margins + 16 ? (unsigned)(all - margins) : 16;
}

unsigned heat_plot_width(const heat_layout *layout)
{
    return room(layout->width, layout->left + layout->right);
}

unsigned heat_plot_height(const heat_layout *layout)
{
    return layout->height ? room(layout->height, layout->top + layout->bottom) : HEAT_TALLEST_PLOT;
}

/* A height that the caller left open: whole pixels a row, within what looks good. */
static void choose_height(heat_layout *layout, uint32_t rows)
{
    uint32_t row = rows ? HEAT_TALLEST_PLOT / rows : 1;
    row = row > TALLEST_ROW ? TALLEST_ROW : row > 0 ? row : 1;
    double plot = fmax(rows * row, HEAT_SHORTEST_PLOT);
    layout->height = (unsigned)(layout->top + plot + layout->bottom);
}

static coffer_status draw_cells(picture *canvas, picture_box plot, const heat_map *map, coffer_error *err)
{
    size_t count = (size_t)map->columns * map->rows;
    rgb *cells = coffer__alloc_array(count, sizeof *cells);
    if (!cells)
        return coffer__fail_no_memory(err, count * sizeof *cells);
    for (size_t i = 0; i < count; i++)
        cells[i] = heat_color(map, map->cells[i]);
    picture_cells(canvas, plot, cells, map->columns, map->rows);
    picture_outline(canvas, plot, 1, frame_color);
    coffer__free(cells);
    return COFFER_OK;
}

static void draw_heading(picture *canvas, const heat_layout *layout, const char *title, const char *subtitle)
{
    char shown[LONGEST_HEADING];
    double width = layout->width - layout->left - RIGHT_EDGE;
    picture_fit_text(shown, sizeof shown, canvas, &title_font, PICTURE_CUT_MIDDLE, title, width);
    picture_text(canvas, layout->left, 28, PICTURE_LEFT, &title_font, shown);
    picture_fit_text(shown, sizeof shown, canvas, &subtitle_font, PICTURE_CUT_END, subtitle, width);
    picture_text(canvas, layout->left, 48, PICTURE_LEFT, &subtitle_font, shown);
}

coffer_status heat_begin_picture(heat_picture *out, const heat_map *map, const heat_layout *wanted,
                                 const char *path, const char *title, const char *subtitle, coffer_error *err)
{
    heat_layout layout = *wanted;
    picture *canvas = NULL;
    if (!layout.height)
        choose_height(&layout, map->rows);
    coffer_status status = picture_new(&canvas, path, layout.width, layout.height, err);
    if (status != COFFER_OK)
        return status;
    picture_box plot = { layout.left, layout.top, heat_plot_width(&layout), heat_plot_height(&layout) };
    status = draw_cells(canvas, plot, map, err);
    if (status != COFFER_OK) {
        picture_free(canvas);
        return status;
    }
    draw_heading(canvas, &layout, title, subtitle);
    picture_box bar = { plot.x + plot.width + 22, plot.y, 14, plot.height };
    axis_draw_color_bar(canvas, bar, map->palette, &map->scale, map->title);
    *out = (heat_picture){ canvas, plot };
    return COFFER_OK;
}
