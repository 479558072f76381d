/* Draws names of parameters, sequences and the title of a heat map. */
#include "draw/axis.h"
#include "scan_heat.h"

#include <inttypes.h>
#include <math.h>

static const picture_font label_font = { 11, false, { 70, 70, 78 } };
static const rgb tick_color = { 150, 150, 158 };
static const rgb boundary_color = { 255, 255, 255 };

enum { LABEL_SPACING = 14, NARROWEST_SEQUENCE = 6, LONGEST_NAME = 200 };

size_t scan_heat_longest_name(const coffer_mscan *scan)
{
    size_t longest = 0;
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        size_t len = coffer_mscan_param_at(scan, i)->name_len;
        longest = len > longest ? len : longest;
    }
    return longest;
}

void scan_heat_fit_names(heat_layout *layout, const coffer_mscan *scan)
{
    double wanted = (double)scan_heat_longest_name(scan) * 6.4 + 24;
    layout->left = fmin(fmax(layout->left, wanted), floor(layout->width * 0.3));
}

static void draw_names(picture *canvas, picture_box plot, const scan_heat *heat)
{
    double pitch = plot.height / heat->grid->height;
    uint32_t stride = pitch >= LABEL_SPACING ? 1 : (uint32_t)ceil(LABEL_SPACING / pitch);
    for (uint32_t row = 0; row < heat->grid->height; row += stride) {
        char shown[LONGEST_NAME];
        const char *name = scan_heat_row_name(heat, row);
        double y = plot.y + (row + 0.5) * pitch;
        picture_fit_text(shown, sizeof shown, canvas, &label_font, PICTURE_CUT_MIDDLE, name, plot.x - 20);
        picture_line(canvas, plot.x - 5, y, plot.x - 1, y, 1, tick_color);
        picture_text(canvas, plot.x - 9, y + 4, PICTURE_RIGHT, &label_font, shown);
    }
}

static void draw_sequence_label(picture *canvas, picture_box span, const coffer_mscan_sequence *sequence)
{
    char number[40], shown[LONGEST_NAME];
    snprintf(number, sizeof number, "#%" PRIu64, sequence->sequence_id);
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
static void draw_sequences(picture *canvas, picture_box plot, const scan_heat *heat)
{
    const coffer_mscan_grid *grid = heat->grid;
    double tokens = (double)(grid->token_end - grid->token_begin);
    size_t first = coffer_mscan_sequence_of_token(heat->scan, grid->token_begin);
    size_t last = coffer_mscan_sequence_of_token(heat->scan, scan_heat_last_token(heat));
    if (first == COFFER_INDEX_NONE || last == COFFER_INDEX_NONE ||
        (double)(last - first + 1) * NARROWEST_SEQUENCE > plot.width)
        return;
    for (size_t i = first; i <= last; i++) {
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(heat->scan, i);
        double begin = fmax((double)sequence->first_token, (double)grid->token_begin);
        double end = fmin((double)(sequence->first_token + sequence->num_tokens), (double)grid->token_end);
        double x = plot.x + (begin - (double)grid->token_begin) / tokens * plot.width;
        if (i > first)
            picture_line(canvas, x, plot.y, x, plot.y + plot.height, 1.5, boundary_color);
        picture_line(canvas, x, plot.y - 14, x, plot.y - 1, 1, tick_color);
        draw_sequence_label(canvas, (picture_box){ x, plot.y - 5, (end - begin) / tokens * plot.width, 0 },
                            sequence);
    }
}

static void describe(char *out, size_t capacity, const scan_heat *heat)
{
    static const char *const rows[] = { "parameter", "block", "layer" };
    snprintf(out, capacity, "%s by %s and token · tokens %" PRIu64 "–%" PRIu64 " of %" PRIu64,
             heat->map.title, rows[heat->rows], heat->grid->token_begin, scan_heat_last_token(heat),
             coffer_mscan_total_tokens(heat->scan));
}

coffer_status scan_heat_draw_picture(const scan_heat *heat, const heat_layout *layout, const char *path,
                                     coffer_error *err)
{
    const coffer_mscan_grid *grid = heat->grid;
    const char *model = coffer_mscan_model_name(heat->scan);
    char subtitle[160];
    heat_picture drawn;
    describe(subtitle, sizeof subtitle, heat);
    coffer_status status = heat_begin_picture(&drawn, &heat->map, layout, path,
                                              *model ? model : "scan without a model name", subtitle, err);
    if (status)
        return status;
    draw_sequences(drawn.canvas, drawn.plot, heat);
    axis_draw_below(drawn.canvas, drawn.plot, (double)grid->token_begin, (double)grid->token_end, "token");
    if (heat->rows != COFFER_MSCAN_ROWS_BLOCK)
        draw_names(drawn.canvas, drawn.plot, heat);
    else
        axis_draw_left(drawn.canvas, drawn.plot, (double)grid->row_begin, (double)grid->row_end, "block");
    return picture_save(drawn.canvas, err);
}
