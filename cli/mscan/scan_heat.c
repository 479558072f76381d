/* The heat map of a scan: labels around the cells, as a picture or as text. */
#include "scan_heat.h"
#include "draw/axis.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Draws names of parameters, sequences and the title of a heat map. */

static const picture_font label_font = { 11, false, { 70, 70, 78 } };
static const rgb tick_color = { 150, 150, 158 };
static const rgb boundary_color = { 255, 255, 255 };

enum { LABEL_SPACING = 14, NARROWEST_SEQUENCE = 6, LONGEST_NAME = 200 };

/* bytes, over all parameters */
static size_t scan_heat_longest_name(const coffer_mscan *scan)
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

/* Prints the labels of rows and sequences of a heat map. */

enum { LABEL_ROOM = 1024 };

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

static void print_row_label(const heat_text *text, uint32_t row, FILE *out)
{
    const scan_heat *heat = text->context;
    if (heat->rows == COFFER_MSCAN_ROWS_BLOCK)
        fprintf(out, "%*" PRIu64 " ", (int)text->label - 1, scan_heat_row_key(heat, row));
    else if (heat->rows == COFFER_MSCAN_ROWS_LAYER)
        fprintf(out, "%*s ", (int)text->label - 1, scan_heat_row_name(heat, row));
    else
        print_name(scan_heat_row_name(heat, row), text->label, out);
}

/* Numbers of the sequences above the column they begin in, as far as they do not touch. */
static void print_sequences(const scan_heat *heat, unsigned label, unsigned cell, FILE *out)
{
    const coffer_mscan_grid *grid = heat->grid;
    char line[LABEL_ROOM];
    size_t width = (size_t)grid->width * cell, end = 0;
    size_t first = coffer_mscan_sequence_of_token(heat->scan, grid->token_begin);
    uint64_t tokens = grid->token_end - grid->token_begin;
    if (first == COFFER_INDEX_NONE || width >= sizeof line)
        return;
    memset(line, ' ', width);
    for (size_t i = first; i < coffer_mscan_sequence_count(heat->scan); i++) {
        char number[24];
        const coffer_mscan_sequence *sequence = coffer_mscan_sequence_at(heat->scan, i);
        uint64_t begin =
            sequence->first_token > grid->token_begin ? sequence->first_token : grid->token_begin;
        if (begin >= grid->token_end)
            break;
        size_t at = (size_t)((double)(begin - grid->token_begin) / (double)tokens * (double)width);
        size_t len = (size_t)snprintf(number, sizeof number, "#%" PRIu64, sequence->sequence_id);
        if ((end && at <= end) || at + len > width)
            continue;
        memcpy(line + at, number, len);
        end = at + len;
    }
    fprintf(out, "%*s%s%.*s%s\n", (int)label, "", term_on(out, TERM_DIM), (int)end, line, term_off(out));
}

heat_text_size scan_heat_text_size(const coffer_mscan *scan, coffer_mscan_rows rows, FILE *out)
{
    bool has_names = rows == COFFER_MSCAN_ROWS_PARAM;
    heat_text_size size = heat_text_size_of(has_names ? (unsigned)scan_heat_longest_name(scan) + 1 : 0, out);
    if (rows != COFFER_MSCAN_ROWS_BLOCK && term_has_color(out))
        size.rows /= 2; /* a line of its own, and so a name, for each row */
    return size;
}

void scan_heat_draw_text(const scan_heat *heat, FILE *out)
{
    heat_text_size size = scan_heat_text_size(heat->scan, heat->rows, out);
    heat_text text = { .map = &heat->map, .label = size.label, .print_label = print_row_label };
    text.every_row = heat->rows != COFFER_MSCAN_ROWS_BLOCK;
    text.cell = heat_cell_width(&heat->map, &size);
    text.context = heat;
    text.first = heat->grid->token_begin;
    text.last = scan_heat_last_token(heat);
    text.axis = "token";
    print_sequences(heat, size.label, text.cell, out);
    heat_draw_text(&text, out);
}
