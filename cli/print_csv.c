/* Lists of maps as comma-separated values. */
#include "cli.h"

#include "base/buffer.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "term.h"

#include <string.h>

enum { DEPTH_MAX = 16 };

/* One value of a row, or a column without one. */
typedef struct csv_cell {
    char *name; /* "bytes.min" for a member of a map */
    const coffer_node *value;
    const char *text; /* instead of a value */
} csv_cell;

typedef struct csv_cells {
    csv_cell *at;
    size_t count, capacity;
    bool failed;
} csv_cells;

static bool has_room(csv_cells *cells)
{
    if (cells->count < cells->capacity)
        return true;
    size_t capacity = cells->capacity ? 2 * cells->capacity : 16;
    csv_cell *grown = coffer__realloc(cells->at, capacity * sizeof *grown);
    if (!grown)
        return false;
    cells->at = grown;
    cells->capacity = capacity;
    return true;
}

/* Takes name, which may be NULL after a failed allocation. */
static void insert_cell(csv_cells *cells, size_t index, char *name, const coffer_node *value)
{
    if (!name || !has_room(cells)) {
        coffer__free(name);
        cells->failed = true;
        return;
    }
    memmove(&cells->at[index + 1], &cells->at[index], (cells->count++ - index) * sizeof *cells->at);
    cells->at[index] = (csv_cell){ .name = name, .value = value };
}

static void clear_cells(csv_cells *cells)
{
    for (size_t i = 0; i < cells->count; i++)
        coffer__free(cells->at[i].name);
    cells->count = 0;
}

static void free_cells(csv_cells *cells)
{
    clear_cells(cells);
    coffer__free(cells->at);
}

static void add_members(csv_cells *cells, const coffer_node *map, const char *prefix, unsigned depth)
{
    for (const coffer_node *child = coffer_node_first(map); child; child = coffer_node_next(child)) {
        coffer__buffer name = COFFER__BUFFER_INIT;
        coffer__buffer_printf(&name, "%s%s%s", prefix, *prefix ? "." : "", coffer_node_get_name(child));
        if (coffer_node_get_kind(child) == COFFER_NODE_MAP && depth < DEPTH_MAX)
            add_members(cells, child, coffer__buffer_text(&name), depth + 1);
        else
            insert_cell(cells, cells->count, coffer__strndup(coffer__buffer_text(&name), name.len), child);
        cells->failed |= name.failed;
        coffer__buffer_free(&name);
    }
}

/* The index of a name, sought from `from` on and then before it; count when it is not there. */
static size_t find_cell(const csv_cells *cells, const char *name, size_t from)
{
    for (size_t i = from; i < cells->count; i++)
        if (strcmp(cells->at[i].name, name) == 0)
            return i;
    for (size_t i = 0; i < from && i < cells->count; i++)
        if (strcmp(cells->at[i].name, name) == 0)
            return i;
    return cells->count;
}

/* A name that only some rows have gets its column after the one before it in its row, or (several lists)
 * after all others. */
static void add_columns(csv_cells *columns, const csv_cells *row, bool at_end)
{
    size_t next = 0;
    for (size_t i = 0; i < row->count && !columns->failed; i++) {
        size_t column = find_cell(columns, row->at[i].name, next);
        if (column == columns->count) {
            column = at_end ? columns->count : next;
            insert_cell(columns, column, coffer__strdup(row->at[i].name), NULL);
        }
        next = column + 1;
    }
}

static void put_value(coffer__buffer *out, const coffer_node *value)
{
    coffer__json_writer json;
    size_t len;
    if (coffer_node_get_kind(value) == COFFER_NODE_NULL)
        return;
    if (coffer_node_get_kind(value) == COFFER_NODE_TEXT) {
        const char *text = coffer_node_get_text(value, &len);
        coffer__buffer_append(out, text, len);
        return;
    }
    coffer__json_writer_init(&json, out, 0);
    coffer__json_write_node(&json, value);
    /* JSON has no number for NaN. */
    if (out->len == 4 && memcmp(out->data, "null", 4) == 0)
        out->len = 0;
}

static bool needs_quotes(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr(",\"\n\r", text[i]) && text[i])
            return true;
    /* Spaces at the edges are part of the cell, but not every reader keeps them without quotes. */
    return len > 0 && (text[0] == ' ' || text[len - 1] == ' ');
}

void cli_put_csv_cell(coffer__buffer *out, const char *text, size_t len)
{
    bool quoted = needs_quotes(text, len);
    coffer__buffer_append(out, "\"", quoted);
    for (size_t i = 0; i < len; i++)
        coffer__buffer_append(out, text[i] == '"' ? "\"\"" : &text[i], text[i] == '"' ? 2 : 1);
    coffer__buffer_append(out, "\"", quoted);
}

void cli_print_csv_cell(FILE *out, const char *text, size_t len)
{
    bool quoted = needs_quotes(text, len);
    if (quoted)
        fputc('"', out);
    while (len > 0) {
        const char *quote = memchr(text, '"', len);
        size_t part = quote ? (size_t)(quote - text) + 1 : len;
        if (term_is_terminal(out))
            term_print_text(out, text, part, 0);
        else
            fwrite(text, 1, part, out);
        if (quote)
            fputc('"', out);
        text += part;
        len -= part;
    }
    if (quoted)
        fputc('"', out);
}

static void print_row(FILE *out, const csv_cells *columns, const csv_cells *row, coffer__buffer *text)
{
    size_t next = 0;
    for (size_t i = 0; i < columns->count; i++) {
        size_t found = find_cell(row, columns->at[i].name, next);
        text->len = 0;
        if (found < row->count && row->at[found].text)
            coffer__buffer_append(text, row->at[found].text, strlen(row->at[found].text));
        else if (found < row->count)
            put_value(text, row->at[found].value);
        if (found < row->count)
            next = found + 1;
        if (i)
            fputc(',', out);
        cli_print_csv_cell(out, coffer__buffer_text(text), text->len);
    }
    fputc('\n', out);
}

static void print_header(FILE *out, const csv_cells *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        if (i)
            fputc(',', out);
        cli_print_csv_cell(out, columns->at[i].name, strlen(columns->at[i].name));
    }
    fputc('\n', out);
}

/* label : text of a first column "list"; NULL = without it. */
static void read_row(csv_cells *row, const char *label, const coffer_node *node)
{
    clear_cells(row);
    if (label) {
        insert_cell(row, 0, coffer__strdup("list"), NULL);
        if (row->count)
            row->at[0].text = label;
    }
    if (coffer_node_get_kind(node) == COFFER_NODE_MAP)
        add_members(row, node, "", 0);
    else
        insert_cell(row, row->count, coffer__strdup("value"), node);
}

/* Adds the columns of a list, or (print) prints its rows. */
static void go_through(csv_cells *columns, FILE *out, const char *label, const coffer_node *list, bool print)
{
    csv_cells row = { .count = 0 };
    coffer__buffer text = COFFER__BUFFER_INIT;
    for (const coffer_node *node = coffer_node_first(list); node && !columns->failed;
         node = coffer_node_next(node)) {
        read_row(&row, label, node);
        if (print)
            print_row(out, columns, &row, &text);
        else
            add_columns(columns, &row, label != NULL);
        columns->failed |= row.failed || text.failed;
    }
    free_cells(&row);
    coffer__buffer_free(&text);
}

static int finish(csv_cells *columns)
{
    bool failed = columns->failed;
    free_cells(columns);
    if (!failed)
        return CLI_OK;
    coffer_error err = { .status = COFFER_E_NO_MEMORY,
                         .offset = COFFER_OFFSET_NONE,
                         .text = "not enough memory for the table" };
    return cli_fail("standard output", &err, NULL);
}

int cli_print_csv(FILE *out, const coffer_node *list)
{
    csv_cells columns = { .count = 0 };
    if (!list)
        return CLI_OK;
    go_through(&columns, out, NULL, list, false);
    if (!columns.failed && columns.count)
        print_header(out, &columns);
    go_through(&columns, out, NULL, list, true);
    return finish(&columns);
}

int cli_print_csv_lists(FILE *out, const coffer_node *root)
{
    csv_cells columns = { .count = 0 };
    for (int print = 0; print < 2; print++) {
        if (print && !columns.failed && columns.count)
            print_header(out, &columns);
        for (const coffer_node *list = coffer_node_first(root); list; list = coffer_node_next(list))
            if (coffer_node_get_kind(list) == COFFER_NODE_LIST)
                go_through(&columns, out, coffer_node_get_name(list), list, print);
    }
    return finish(&columns);
}

int cli_check_output(const cli_args *args)
{
    return cli_has(args, "csv") && cli_has(args, "json")
               ? cli_usage(args, "--csv and --json cannot be combined")
               : CLI_OK;
}
