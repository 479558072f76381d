/* Heat maps: as a picture, or as text. */
#include "heat.h"

#include "axis.h"
#include "base/fail.h"
#include "base/memory.h"
#include "term.h"

#include <math.h>
#include <string.h>

/* Colors and options that pictures and text share. */

static rgb heat_color(const heat_map *map, double value)
{
    static const rgb empty[] = {
        [COLORMAP_VIRIDIS] = { 226, 226, 230 },
        [COLORMAP_MAGMA] = { 226, 226, 230 },
        [COLORMAP_GRAY] = { 196, 212, 236 },
        [COLORMAP_COOLWARM] = { 150, 150, 150 },
    };
    if (isnan(value))
        return empty[map->palette];
    return colormap_at(map->palette, color_scale_position(&map->scale, value));
}

static double smallest_positive(const heat_map *map)
{
    size_t count = (size_t)map->columns * map->rows;
    double smallest = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (map->cells[i] > 0 && map->cells[i] < smallest)
            smallest = map->cells[i];
    return smallest;
}

int heat_choose_scale(heat_map *map, const cli_args *args, double low, double high)
{
    color_scale *scale = &map->scale;
    scale->logarithmic = cli_has(args, "log");
    low = isnan(low) ? 0 : low;
    high = isnan(high) ? 1 : high;
    if (scale->logarithmic && !(low > 0)) {
        low = smallest_positive(map);
        if (!isfinite(low))
            return cli_usage(args, "--log: no value is larger than 0");
    }
    if (!cli_real(&scale->low, args, "low", low) || !cli_real(&scale->high, args, "high", high))
        return CLI_USAGE;
    if (!(scale->low <= scale->high) || !isfinite(scale->high - scale->low))
        return cli_usage(args, "--low %g is above --high %g", scale->low, scale->high);
    if (scale->logarithmic && !(scale->low > 0))
        return cli_usage(args, "--log needs --low above 0, not %g", scale->low);
    return CLI_OK;
}

/* The heat map as a picture: cells, color bar, heading. */

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

/* The heat map as text: two rows a line in color, one shade a cell without it. */

enum { WIDEST_CELL = 4, LEGEND_CELLS = 32, LEAST_LEGEND = 4 };

/* From low to high; an empty cell is a space. */
static const char shades[] = ".:-=+*#%@";

static void print_cell(const heat_text *text, uint32_t row, uint32_t column, bool color, FILE *out)
{
    const heat_map *map = text->map;
    double upper = map->cells[(size_t)row * map->columns + column];
    if (color) {
        bool has_lower = !text->every_row && row + 1 < map->rows;
        double lower = has_lower ? map->cells[(size_t)(row + 1) * map->columns + column] : NAN;
        rgb above = heat_color(map, upper), below = heat_color(map, lower);
        term_foreground(out, above.red, above.green, above.blue);
        if (has_lower)
            term_background(out, below.red, below.green, below.blue);
        for (unsigned i = 0; i < text->cell; i++)
            fputs(text->every_row ? "█" : "▀", out);
        return;
    }
    double t = color_scale_position(&map->scale, upper);
    char shade = isnan(upper) ? ' ' : shades[(size_t)(t * (sizeof shades - 2) + 0.5)];
    for (unsigned i = 0; i < text->cell; i++)
        fputc(shade, out);
}

/* The two ends, and what they count: between them while there is room, so that no line gets wider than the
 * cells. */
static void print_axis(const heat_text *text, FILE *out)
{
    char first[24], last[24];
    size_t width = (size_t)text->map->columns * text->cell, name = strlen(text->axis);
    size_t first_len = (size_t)snprintf(first, sizeof first, "%llu", (unsigned long long)text->first);
    size_t last_len = (size_t)snprintf(last, sizeof last, "%llu", (unsigned long long)text->last);
    size_t ends = first_len + last_len;
    if (ends + name + 4 > width) {
        fprintf(out, "%*s%s%*s%s  %s\n", (int)text->label, "", first, (int)(width > ends ? width - ends : 1),
                "", last, text->axis);
        return;
    }
    size_t before = (width - name) / 2 - first_len;
    if (before + 2 > width - ends - name)
        before = width - ends - name - 2;
    fprintf(out, "%*s%s%*s%s%*s%s\n", (int)text->label, "", first, (int)before, "", text->axis,
            (int)(width - ends - name - before), "", last);
}

static void print_legend(const heat_map *map, unsigned label, FILE *out)
{
    axis_label low, high;
    double step = (map->scale.high - map->scale.low) / 1000;
    axis_format(low, map->scale.low, step);
    axis_format(high, map->scale.high, step);
    size_t texts = strlen(low) + strlen(high) + strlen(map->title) + 4, width = term_width(out);
    size_t bar = term_has_color(out) ? LEGEND_CELLS : strlen(shades);
    if (label + texts + bar > width)
        label = texts + bar < width ? (unsigned)(width - texts - bar) : 0;
    if (term_has_color(out) && texts + bar > width)
        bar = texts + LEAST_LEGEND < width ? width - texts : LEAST_LEGEND;
    fprintf(out, "%*s%s ", (int)label, "", low);
    if (term_has_color(out)) {
        for (size_t i = 0; i < bar; i++) {
            rgb color = colormap_at(map->palette, (double)i / (double)(bar - 1));
            term_background(out, color.red, color.green, color.blue);
            fputc(' ', out);
        }
        fputs(term_off(out), out);
    } else {
        fputs(shades, out);
    }
    fprintf(out, " %s  %s\n", high, map->title);
}

void heat_draw_text(const heat_text *text, FILE *out)
{
    const heat_map *map = text->map;
    bool color = term_has_color(out);
    for (uint32_t row = 0; row < map->rows; row += color && !text->every_row ? 2 : 1) {
        text->print_label(text, row, out);
        for (uint32_t column = 0; column < map->columns; column++)
            print_cell(text, row, column, color, out);
        fprintf(out, "%s\n", term_off(out));
    }
    print_axis(text, out);
    print_legend(map, text->label, out);
}

unsigned heat_cell_width(const heat_map *map, const heat_text_size *size)
{
    unsigned cell = size->columns / map->columns;
    return cell > WIDEST_CELL ? WIDEST_CELL : cell > 0 ? cell : 1;
}

heat_text_size heat_text_size_of(unsigned label, FILE *out)
{
    enum { NARROW_LABEL = 7, OTHER_LINES = 5, PIPE_ROWS = 40 };
    unsigned width = term_width(out), height = term_height(out);
    heat_text_size size = { .label = label < width / 2 ? label : width / 2 };
    size.label = size.label < NARROW_LABEL ? NARROW_LABEL : size.label;
    size.columns = width > size.label + 10 ? width - size.label - 1 : 10;
    unsigned lines = height > OTHER_LINES + 4 ? height - OTHER_LINES : 4;
    size.rows = term_has_color(out) ? 2 * lines : PIPE_ROWS;
    return size;
}
