/* The heat map as text: two rows a line in color, one shade a cell without it. */
#include "axis.h"
#include "heat.h"
#include "term.h"

#include <math.h>
#include <string.h>

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
