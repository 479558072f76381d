/* Prints the labels of rows and sequences of a heat map. */
#include "scan_heat.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

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
