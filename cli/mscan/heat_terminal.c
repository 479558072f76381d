/* The heat map as text: two rows a line in colour, one shade a cell without it. */
#include "axis.h"
#include "heat.h"
#include "term.h"

#include <math.h>
#include <string.h>

enum { WIDEST_CELL = 4, LABEL_ROOM = 1024, LEGEND_CELLS = 32, LEAST_LEGEND = 4 };

/* From low to high; an empty cell is a space. */
static const char shades[] = ".:-=+*#%@";

static size_t text_width(const char *at, const char *end)
{
    term_piece piece;
    size_t width = 0;
    while (at < end)
        width += term_next_piece(piece, &at, end);
    return width;
}

/* The end of a name says more than its beginning: what does not fit goes from the front. */
static void print_name(const char *name, unsigned columns, FILE *out)
{
    const char *end = name + strlen(name);
    size_t width = text_width(name, end);
    bool cut = width > columns - 1;
    while (cut && width > columns - 2) {
        term_piece piece;
        width -= term_next_piece(piece, &name, end);
    }
    fputs(cut ? "…" : "", out);
    term_print_text(out, name, (size_t)(end - name), 0);
    fprintf(out, "%*s", (int)(columns - width - cut), "");
}

static void print_row_label(const heat_map *map, uint32_t row, unsigned columns, FILE *out)
{
    uint64_t first = heat_row_key(map, row);
    if (map->rows == COFFER_MSCAN_ROWS_BLOCK) {
        fprintf(out, "%*llu ", (int)columns - 1, (unsigned long long)first);
        return;
    }
    const char *name = coffer_mscan_param_name(map->scan, (uint16_t)first);
    print_name(name ? name : "", columns, out);
}

static void print_cell(const heat_map *map, uint32_t row, uint32_t column, unsigned width, bool color,
                       FILE *out)
{
    const coffer_mscan_grid *grid = map->grid;
    double upper = grid->mean[(size_t)row * grid->width + column];
    if (color) {
        double lower = row + 1 < grid->height ? grid->mean[(size_t)(row + 1) * grid->width + column] : NAN;
        rgb above = heat_color(map, upper), below = heat_color(map, lower);
        term_foreground(out, above.red, above.green, above.blue);
        if (row + 1 < grid->height)
            term_background(out, below.red, below.green, below.blue);
        for (unsigned i = 0; i < width; i++)
            fputs("▀", out);
        return;
    }
    double t = color_scale_position(&map->scale, upper);
    char shade = isnan(upper) ? ' ' : shades[(size_t)(t * (sizeof shades - 2) + 0.5)];
    for (unsigned i = 0; i < width; i++)
        fputc(shade, out);
}

/* Numbers of the sequences above the column they begin in, as far as they do not touch. */
static void print_sequences(const heat_map *map, unsigned label, unsigned cell, FILE *out)
{
    const coffer_mscan_grid *grid = map->grid;
    char line[LABEL_ROOM];
    size_t width = (size_t)grid->width * cell, end = 0;
    size_t first = coffer_mscan_sequence_of_token(map->scan, grid->token_begin);
    uint64_t tokens = grid->token_end - grid->token_begin;
    if (first == SIZE_MAX || width >= sizeof line)
        return;
    memset(line, ' ', width);
    for (size_t i = first; i < coffer_mscan_sequence_count(map->scan); i++) {
        char number[24];
        coffer_mscan_sequence sequence = coffer_mscan_sequence_at(map->scan, i);
        uint64_t begin = sequence.first_token > grid->token_begin ? sequence.first_token : grid->token_begin;
        if (begin >= grid->token_end)
            break;
        size_t at = (size_t)((double)(begin - grid->token_begin) / (double)tokens * (double)width);
        size_t len =
            (size_t)snprintf(number, sizeof number, "#%llu", (unsigned long long)sequence.sequence_id);
        if ((end && at <= end) || at + len > width)
            continue;
        memcpy(line + at, number, len);
        end = at + len;
    }
    fprintf(out, "%*s%s%.*s%s\n", (int)label, "", term_on(out, TERM_DIM), (int)end, line, term_off(out));
}

static void print_legend(const heat_map *map, unsigned label, FILE *out)
{
    axis_label low, high;
    double step = (map->scale.high - map->scale.low) / 1000;
    axis_format(low, map->scale.low, step);
    axis_format(high, map->scale.high, step);
    size_t texts = strlen(low) + strlen(high) + strlen(heat_title(map)) + 4, width = term_width(out);
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
    fprintf(out, " %s  %s\n", high, heat_title(map));
}

void heat_draw_text(const heat_map *map, FILE *out)
{
    const coffer_mscan_grid *grid = map->grid;
    bool color = term_has_color(out);
    heat_text_size size = heat_text_size_of(map->scan, map->rows, out);
    unsigned cell = size.columns / grid->width;
    cell = cell > WIDEST_CELL ? WIDEST_CELL : cell > 0 ? cell : 1;
    print_sequences(map, size.label, cell, out);
    for (uint32_t row = 0; row < grid->height; row += color ? 2 : 1) {
        print_row_label(map, row, size.label, out);
        for (uint32_t column = 0; column < grid->width; column++)
            print_cell(map, row, column, cell, color, out);
        fprintf(out, "%s\n", term_off(out));
    }
    char last[24];
    snprintf(last, sizeof last, "%llu", (unsigned long long)heat_last_token(map));
    fprintf(out, "%*s%-*llu%s  token\n", (int)size.label, "",
            (int)(grid->width * cell > strlen(last) ? grid->width * cell - strlen(last) : 1),
            (unsigned long long)grid->token_begin, last);
    print_legend(map, size.label, out);
}

heat_text_size heat_text_size_of(const coffer_mscan *scan, coffer_mscan_rows rows, FILE *out)
{
    enum { NARROW_LABEL = 7, OTHER_LINES = 5, PIPE_ROWS = 40 };
    unsigned width = term_width(out), height = term_height(out);
    heat_text_size size = { .label = NARROW_LABEL };
    if (rows == COFFER_MSCAN_ROWS_PARAM) {
        unsigned longest = (unsigned)heat_longest_name(scan) + 1;
        size.label = longest < width / 2 ? longest : width / 2;
    }
    size.label = size.label < NARROW_LABEL ? NARROW_LABEL : size.label;
    size.columns = width > size.label + 10 ? width - size.label - 1 : 10;
    unsigned lines = height > OTHER_LINES + 4 ? height - OTHER_LINES : 4;
    size.rows = term_has_color(out) ? 2 * lines : PIPE_ROWS;
    return size;
}
