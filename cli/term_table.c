/* Tables. Cells lie one after the other in one buffer, style byte, text, NUL: a row costs its text and no
 * more. */
#include "term.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <string.h>

/* Text from files on a terminal: nothing in it may move the cursor, change colors or turn the line around.
 */

static size_t escape(term_piece piece, uint32_t c)
{
    static const char names[] = "abtnvfr"; /* 7 … 13 */
    int len;
    if (c >= 7 && c <= 13)
        len = snprintf(piece, sizeof(term_piece), "\\%c", names[c - 7]);
    else
        len = snprintf(piece, sizeof(term_piece), c < 0x20 ? "\\x%02x" : "\\u%04x", (unsigned)c);
    return (size_t)len;
}

size_t term_next_piece(term_piece piece, const char **text, const char *end)
{
    uint32_t c;
    const uint8_t *at = (const uint8_t *)*text;
    size_t len = coffer__utf8_decode(&c, at, (const uint8_t *)end);
    if (len == 0) {
        *text += 1;
        return (size_t)snprintf(piece, sizeof(term_piece), "\\x%02x", at[0]);
    }
    *text += len;
    if (coffer__utf8_is_harmful(c))
        return escape(piece, c);
    memcpy(piece, at, len);
    piece[len] = '\0';
    return coffer__utf8_width(piece, len);
}

/* Whether the rest fits; stops as soon as it does not. */
static bool fits(const char *text, const char *end, size_t columns)
{
    term_piece piece;
    size_t used = 0;
    while (text < end && used <= columns)
        used += term_next_piece(piece, &text, end);
    return used <= columns;
}

void term_print_text(FILE *out, const char *text, size_t len, size_t columns)
{
    const char *end = text + len;
    bool cut = columns > 0 && !fits(text, end, columns);
    size_t room = cut ? columns - 1 : SIZE_MAX;
    while (text < end) {
        term_piece piece;
        size_t width = term_next_piece(piece, &text, end);
        if (width > room)
            break;
        room -= cut ? width : 0;
        fputs(piece, out);
    }
    if (cut)
        fputs("…", out);
}

void term_put_safe(FILE *out, const void *text, size_t len)
{
    coffer__buffer safe = COFFER__BUFFER_INIT;
    if (term_is_terminal(out)) {
        coffer__utf8_make_safe(&safe, text, len, true);
        fwrite(safe.data, 1, safe.len, out);
    } else {
        fwrite(text, 1, len, out);
    }
    coffer__buffer_free(&safe);
}

enum { NARROWEST = 8, GAP = 2 };
/* A single long name does not push the other columns off: longer texts are cut on a terminal, and elsewhere
 * only their own rows are longer. */
enum { WIDEST = 64 };

typedef struct table_column {
    const char *title; /* borrowed */
    term_align align;
    size_t width;
    size_t same; /* bytes that all cells begin with, which go first when the column is cut */
} table_column;

struct term_table {
    table_column columns[TERM_COLUMNS_MAX];
    size_t column_count;
    size_t cell_count;
    size_t indent;
    bool uncut;
    bool cuts; /* texts that are wider than their column */
    term_style next_style;
    coffer__buffer cells;
};

term_table *term_table_new(void)
{
    term_table *table = coffer__calloc(1, sizeof *table);
    if (table)
        coffer__buffer_init(&table->cells, SIZE_MAX);
    return table;
}

void term_table_column(term_table *table, const char *title, term_align align)
{
    if (!table || table->column_count == TERM_COLUMNS_MAX)
        return;
    size_t width = title ? coffer__utf8_width(title, strlen(title)) : 0;
    table->columns[table->column_count++] = (table_column){ .title = title, .align = align, .width = width };
}

void term_table_indent(term_table *table, size_t columns)
{
    if (table)
        table->indent = columns;
}

void term_table_uncut(term_table *table)
{
    if (table)
        table->uncut = true;
}

void term_table_style(term_table *table, term_style style)
{
    if (table)
        table->next_style = style;
}

void term_table_cell(term_table *table, const char *text)
{
    term_table_cell_len(table, text, strlen(text));
}

void term_table_cell_len(term_table *table, const char *text, size_t len)
{
    if (!table || table->column_count == 0)
        return;
    table_column *column = &table->columns[table->cell_count++ % table->column_count];
    uint8_t style = (uint8_t)table->next_style;
    const char *end = text + len;
    size_t width = 0;
    coffer__buffer_append(&table->cells, &style, 1);
    while (text < end) {
        term_piece piece;
        width += term_next_piece(piece, &text, end);
        coffer__buffer_append(&table->cells, piece, strlen(piece));
    }
    coffer__buffer_append(&table->cells, "", 1);
    if (width > column->width)
        column->width = width;
    table->next_style = TERM_PLAIN;
}

void term_table_cellf(term_table *table, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    term_table_cell(table, text);
}

static size_t total_width(const term_table *table)
{
    size_t total = table->indent;
    for (size_t i = 0; i < table->column_count; i++)
        total += table->columns[i].width + (i > 0 ? GAP : 0);
    return total;
}

static table_column *widest_text(term_table *table)
{
    table_column *widest = NULL;
    for (size_t i = 0; i < table->column_count; i++) {
        table_column *column = &table->columns[i];
        if (column->align == TERM_LEFT && column->width > NARROWEST &&
            (!widest || column->width > widest->width))
            widest = column;
    }
    return widest;
}

/* Takes columns off the widest text until the line fits the terminal. */
static void narrow(term_table *table, size_t width)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].align == TERM_LEFT && table->columns[i].width > width)
            table->columns[i].width = width;
    for (size_t excess = total_width(table); excess > width; excess--) {
        table_column *widest = widest_text(table);
        if (!widest)
            return;
        widest->width--;
    }
}

static size_t common_start(const char *a, const char *b, size_t len)
{
    size_t common = 0;
    while (common < len && a[common] == b[common])
        common++;
    return common;
}

/* Names such as model.layers.3.mlp differ behind what they have in common: finds how much of the text columns
 * is the same in all rows, up to a dot or slash. A number is worth keeping. */
static void find_same(term_table *table)
{
    const char *first[TERM_COLUMNS_MAX] = { NULL };
    const char *at = (const char *)table->cells.data;
    for (size_t i = 0; !table->cells.failed && i < table->cell_count; i++) {
        size_t index = i % table->column_count;
        table_column *column = &table->columns[index];
        if (!first[index])
            first[index] = at + 1;
        else if (i < 2 * table->column_count)
            column->same = common_start(first[index], at + 1, strlen(at + 1));
        else
            column->same = common_start(first[index], at + 1, column->same);
        at += strlen(at + 1) + 2;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        size_t *same = &table->columns[i].same;
        size_t plain = first[i] ? strcspn(first[i], "0123456789") : 0;
        if (*same > plain)
            *same = plain;
        while (*same > 0 && first[i][*same - 1] != '.' && first[i][*same - 1] != '/')
            --*same;
    }
}

/* column : NULL = the text fits. */
static void print_cut(FILE *out, const char *text, size_t len, const table_column *column)
{
    size_t room = column ? column->width : 0, same = column ? column->same : 0;
    if (same > 1 && same < len) {
        fputs("…", out);
        text += same;
        len -= same;
        room--;
        size_t width = coffer__utf8_width(text, len);
        if (width < room) {
            fprintf(out, "%s%*s", text, (int)(room - width), "");
            return;
        }
    }
    term_print_text(out, text, len, room);
}

/* Spaces are owed until text follows them, so that no line ends in any. */
static void print_cell(FILE *out, const term_table *table, size_t index, const char *text, term_style style,
                       size_t *owed)
{
    const table_column *column = &table->columns[index];
    size_t len = strlen(text), width = coffer__utf8_width(text, len);
    size_t pad = column->width > width ? column->width - width : 0;
    if (index == 0)
        *owed = table->indent;
    *owed += (index > 0 ? GAP : 0) + (column->align == TERM_RIGHT ? pad : 0);
    if (len > 0) {
        fprintf(out, "%*s%s", (int)*owed, "", style ? term_on(out, style) : "");
        print_cut(out, text, len, table->cuts && width > column->width ? column : NULL);
        fputs(style ? term_off(out) : "", out);
        *owed = 0;
    }
    *owed += column->align == TERM_LEFT ? pad : 0;
    if (index + 1 == table->column_count)
        fputc('\n', out);
}

static bool has_titles(const term_table *table)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].title)
            return true;
    return false;
}

/* All columns but the last, after which nothing has to line up. */
static void limit_columns(term_table *table)
{
    for (size_t i = 0; !table->uncut && i + 1 < table->column_count; i++)
        if (table->columns[i].align == TERM_LEFT && table->columns[i].width > WIDEST)
            table->columns[i].width = WIDEST;
}

void term_table_print(term_table *table, FILE *out)
{
    size_t owed = 0;
    if (!table)
        return;
    table->cuts = !table->uncut && term_is_terminal(out);
    if (table->cuts) {
        find_same(table);
        narrow(table, term_width(out));
    }
    limit_columns(table);
    if (has_titles(table))
        for (size_t i = 0; i < table->column_count; i++)
            print_cell(out, table, i, table->columns[i].title ? table->columns[i].title : "", TERM_BOLD,
                       &owed);
    if (table->cells.failed)
        fputs("(not enough memory for the table)\n", out);
    const char *at = (const char *)table->cells.data;
    size_t column = 0;
    for (size_t i = 0; !table->cells.failed && i < table->cell_count; i++) {
        print_cell(out, table, column, at + 1, (term_style)at[0], &owed);
        column = column + 1 < table->column_count ? column + 1 : 0;
        at += strlen(at + 1) + 2;
    }
    coffer__buffer_free(&table->cells);
    coffer__free(table);
}
