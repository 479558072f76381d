#include "axis.h"
#include "base/fail.h"
#include "base/memory.h"
#include "heat.h"

#include <math.h>
#include <string.h>

static const picture_font title_font = { 16, true, { 20, 20, 26 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 110 } };
static const picture_font label_font = { 11, false, { 70, 70, 78 } };
static const rgb frame_color = { 150, 150, 158 };
static const rgb boundary_color = { 255, 255, 255 };

enum {
    TALLEST_ROW = 26,
    TALLEST_PLOT = 680,
    SHORTEST_PLOT = 150,
    LABEL_SPACING = 14,
    NARROWEST_SEQUENCE = 6,
    LONGEST_NAME = 200
};

size_t heat_longest_name(const coffer_mscan *scan)
{
    size_t longest = 0;
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        size_t len = coffer_mscan_param_at(scan, i).name_len;
        longest = len > longest ? len : longest;
    }
    return longest;
}

heat_layout heat_layout_of(const coffer_mscan *scan, coffer_mscan_rows rows, unsigned width, unsigned height)
{
    heat_layout layout = { width, height, 66, 116, 84, 52 };
    if (rows == COFFER_MSCAN_ROWS_PARAM)
        layout.left = fmin(fmax(66, (double)heat_longest_name(scan) * 6.4 + 24), floor(width * 0.3));
    return layout;
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
    return layout->height ? room(layout->height, layout->top + layout->bottom) : TALLEST_PLOT;
}

/* A height that the caller left open: whole pixels a row, within what looks good. */
static void choose_height(heat_layout *layout, uint32_t rows)
{
    uint32_t row = rows ? TALLEST_PLOT / rows : 1;
    row = row > TALLEST_ROW ? TALLEST_ROW : row > 0 ? row : 1;
    double plot = fmax(rows * row, SHORTEST_PLOT);
    layout->height = (unsigned)(layout->top + plot + layout->bottom);
}

static coffer_status draw_cells(picture *canvas, picture_box plot, const heat_map *map, coffer_error *err)
{
    const coffer_mscan_grid *grid = map->grid;
    size_t count = (size_t)grid->width * grid->height;
    rgb *cells = coffer__alloc_array(count, sizeof *cells);
    if (!cells)
        return coffer__fail_no_memory(err, count * sizeof *cells);
    for (size_t i = 0; i < count; i++)
        cells[i] = heat_color(map, grid->mean[i]);
    picture_cells(canvas, plot, cells, grid->width, grid->height);
    picture_outline(canvas, plot, 1, frame_color);
    coffer__free(cells);
    return COFFER_OK;
}

static void draw_names(picture *canvas, picture_box plot, const heat_map *map)
{
    double pitch = plot.height / map->grid->height;
    uint32_t stride = pitch >= LABEL_SPACING ? 1 : (uint32_t)ceil(LABEL_SPACING / pitch);
    for (uint32_t row = 0; row < map->grid->height; row += stride) {
        char shown[LONGEST_NAME];
        const char *name = coffer_mscan_param_name(map->scan, (uint16_t)heat_row_key(map, row));
        double y = plot.y + (row + 0.5) * pitch;
        if (!name)
            continue;
        picture_fit_text(shown, sizeof shown, canvas, &label_font, PICTURE_CUT_MIDDLE, name, plot.x - 20);
        picture_line(canvas, plot.x - 5, y, plot.x - 1, y, 1, frame_color);
        picture_text(canvas, plot.x - 9, y + 4, PICTURE_RIGHT, &label_font, shown);
    }
}

static void draw_sequence_label(picture *canvas, picture_box span, const coffer_mscan_sequence *sequence)
{
    char number[40], shown[LONGEST_NAME];
    snprintf(number, sizeof number, "#%llu", (unsigned long long)sequence->sequence_id);
    double taken = picture_text_width(canvas, &label_font, number);
    if (taken + 6 > span.width)
        return;
    picture_font strong = label_font;
    strong.bold = true;
    picture_text(canvas, span.x + 3, span.y, PICTURE_LEFT, &strong, number);
    if (sequence->source && span.width > taken + 60) {
        picture_fit_text(shown, sizeof shown, canvas, &label_font, PICTURE_CUT_END, sequence->source,
                         span.width - taken - 20);
        picture_text(canvas, span.x + taken + 12, span.y, PICTURE_LEFT, &label_font, shown);
    }
}

/* Where sequences begin, as lines through the plot, with their names above it while there is room. */
static void draw_sequences(picture *canvas, picture_box plot, const heat_map *map)
{
    const coffer_mscan_grid *grid = map->grid;
    double tokens = (double)(grid->token_end - grid->token_begin);
    size_t first = coffer_mscan_sequence_of_token(map->scan, grid->token_begin);
    size_t last = coffer_mscan_sequence_of_token(map->scan, heat_last_token(map));
    if (first == SIZE_MAX || last == SIZE_MAX || (double)(last - first + 1) * NARROWEST_SEQUENCE > plot.width)
        return;
    for (size_t i = first; i <= last; i++) {
        coffer_mscan_sequence sequence = coffer_mscan_sequence_at(map->scan, i);
        double begin = fmax((double)sequence.first_token, (double)grid->token_begin);
        double end = fmin((double)(sequence.first_token + sequence.num_tokens), (double)grid->token_end);
        double x = plot.x + (begin - (double)grid->token_begin) / tokens * plot.width;
        if (i > first)
            picture_line(canvas, x, plot.y, x, plot.y + plot.height, 1.5, boundary_color);
        picture_line(canvas, x, plot.y - 14, x, plot.y - 1, 1, frame_color);
        draw_sequence_label(canvas, (picture_box){ x, plot.y - 5, (end - begin) / tokens * plot.width, 0 },
                            &sequence);
    }
}

static void draw_heading(picture *canvas, const heat_map *map, double left, double width)
{
    char shown[LONGEST_NAME], subtitle[160];
    const char *model = coffer_mscan_model_name(map->scan);
    picture_fit_text(shown, sizeof shown, canvas, &title_font, PICTURE_CUT_MIDDLE,
                     *model ? model : "scan without a model name", width);
    picture_text(canvas, left, 28, PICTURE_LEFT, &title_font, shown);
    snprintf(subtitle, sizeof subtitle, "%s by %s and token · tokens %llu–%llu of %llu", heat_title(map),
             map->rows == COFFER_MSCAN_ROWS_PARAM ? "parameter" : "block",
             (unsigned long long)map->grid->token_begin, (unsigned long long)heat_last_token(map),
             (unsigned long long)coffer_mscan_total_tokens(map->scan));
    picture_fit_text(shown, sizeof shown, canvas, &subtitle_font, PICTURE_CUT_END, subtitle, width);
    picture_text(canvas, left, 48, PICTURE_LEFT, &subtitle_font, shown);
}

coffer_status heat_draw_picture(const heat_map *map, heat_layout layout, const char *path, coffer_error *err)
{
    picture *canvas = NULL;
    if (!layout.height)
        choose_height(&layout, map->grid->height);
    coffer_status status = picture_new(&canvas, path, layout.width, layout.height, err);
    if (status != COFFER_OK)
        return status;
    picture_box plot = { layout.left, layout.top, heat_plot_width(&layout), heat_plot_height(&layout) };
    status = draw_cells(canvas, plot, map, err);
    if (status != COFFER_OK) {
        picture_free(canvas);
        return status;
    }
    draw_heading(canvas, map, layout.left, layout.width - layout.left - 16);
    draw_sequences(canvas, plot, map);
    axis_draw_below(canvas, plot, (double)map->grid->token_begin, (double)map->grid->token_end, "token");
    if (map->rows == COFFER_MSCAN_ROWS_PARAM)
        draw_names(canvas, plot, map);
    else
        axis_draw_left(canvas, plot, (double)map->grid->row_begin, (double)map->grid->row_end, "block");
    picture_box bar = { plot.x + plot.width + 22, plot.y, 14, plot.height };
    axis_draw_color_bar(canvas, bar, map->palette, &map->scale, heat_title(map));
    return picture_save(canvas, err);
}
