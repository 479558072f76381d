/* Node trees for people: names aligned, values with their units, lists of maps as tables. */
#include "cli.h"

#include "base/buffer.h"
#include "base/json_write.h"
#include "base/utf8.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

enum { NODE_DEPTH_MAX = 64, SHORT_LIST = 16, FIRST_ITEMS = 8, VALUE_MAX = 128 };
/* Longer texts are cut to the width of the terminal. */
enum { LONG_TEXT = 160, LEAST_SHOWN = 24 };

static bool is_scalar(const coffer_node *node)
{
    return coffer_node_get_kind(node) < COFFER_NODE_LIST;
}

/* "total_tokens" reads as "total tokens", "duration_us" followed by "4 ms" as "duration"; keys that come
 * from a file, such as "llama.block_count", stay. */
static void readable_name(char *out, size_t size, const coffer_node *node)
{
    const char *name = coffer_node_get_name(node);
    bool is_ours = name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
    snprintf(out, size, "%s", name);
    for (char *at = out; is_ours && *at; at++)
        if (*at == '_')
            *at = ' ';
    size_t len = strlen(out);
    if (is_scalar(node) && coffer_node_get_unit(node) == COFFER_UNIT_MICROSECONDS && len > 3 &&
        strcmp(out + len - 3, " us") == 0)
        out[len - 3] = '\0';
}

static void format_u64(char *out, size_t size, uint64_t value, coffer_unit unit)
{
    term_text text, exact;
    switch (unit) {
    case COFFER_UNIT_BYTES:
        if (value < 1024)
            snprintf(out, size, "%s", term_bytes(text, value));
        else
            snprintf(out, size, "%s (%s bytes)", term_bytes(text, value), term_count(exact, value));
        break;
    case COFFER_UNIT_MICROSECONDS:
        snprintf(out, size, "%s", term_duration(text, (double)value / 1e6));
        break;
    case COFFER_UNIT_OFFSET:
        snprintf(out, size, "%" PRIu64, value);
        break;
    case COFFER_UNIT_FLAGS:
        snprintf(out, size, "0x%" PRIx64, value);
        break;
    case COFFER_UNIT_NONE:
        snprintf(out, size, "%s", term_count(text, value));
        break;
    }
}

/* Numbers that may be negative, such as differences: "20.0 KiB", "-3 bytes", "-1,200", "-1.5 s". */
static void format_i64(char *out, size_t size, int64_t value, coffer_unit unit)
{
    term_text text;
    uint64_t amount = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    snprintf(out, size, "%s%s", value < 0 ? "-" : "",
             unit == COFFER_UNIT_BYTES          ? term_bytes(text, amount)
             : unit == COFFER_UNIT_MICROSECONDS ? term_duration(text, (double)amount / 1e6)
                                                : term_count(text, amount));
}

/* Formats any value but a text. */
static void format_scalar(char *out, size_t size, const coffer_node *node)
{
    term_text text;
    switch (coffer_node_get_kind(node)) {
    case COFFER_NODE_BOOL:
        snprintf(out, size, "%s", coffer_node_get_bool(node) ? "yes" : "no");
        break;
    case COFFER_NODE_U64:
        format_u64(out, size, coffer_node_get_u64(node), coffer_node_get_unit(node));
        break;
    case COFFER_NODE_I64:
        format_i64(out, size, coffer_node_get_i64(node), coffer_node_get_unit(node));
        break;
    case COFFER_NODE_F64:
        if (coffer_node_get_unit(node) == COFFER_UNIT_MICROSECONDS)
            snprintf(out, size, "%s", term_duration(text, coffer_node_get_f64(node) / 1e6));
        else
            snprintf(out, size, "%.6g", coffer_node_get_f64(node));
        break;
    case COFFER_NODE_NULL:
        snprintf(out, size, "–");
        break;
    case COFFER_NODE_TEXT:
    case COFFER_NODE_LIST:
    case COFFER_NODE_MAP:
        snprintf(out, size, "(%zu)", coffer_node_count(node));
        break;
    }
}

static bool is_number(const coffer_node *node)
{
    coffer_node_kind kind = coffer_node_get_kind(node);
    return kind == COFFER_NODE_U64 || kind == COFFER_NODE_I64 || kind == COFFER_NODE_F64;
}

/* The columns of a table: the names of the cells of all rows. */
typedef struct table_columns {
    const char *names[TERM_COLUMNS_MAX];
    size_t count;
} table_columns;

static size_t find_column(const table_columns *columns, const char *name)
{
    size_t i = 0;
    while (i < columns->count && strcmp(columns->names[i], name) != 0)
        i++;
    return i;
}

/* A cell that earlier rows do not have goes after the cell before it, in the order of names. */
static void add_row_names(table_columns *columns, const coffer_node *row)
{
    size_t next = 0;
    for (const coffer_node *cell = coffer_node_first(row); cell; cell = coffer_node_next(cell)) {
        const char *name = coffer_node_get_name(cell);
        if (next < columns->count && strcmp(columns->names[next], name) == 0) {
            next++;
            continue;
        }
        size_t column = find_column(columns, name);
        if (column == columns->count && columns->count < TERM_COLUMNS_MAX) {
            column = next;
            while (column < columns->count && strcmp(columns->names[column], name) < 0)
                column++;
            memmove(&columns->names[column + 1], &columns->names[column],
                    (columns->count++ - column) * sizeof columns->names[0]);
            columns->names[column] = name;
        }
        next = column + 1;
    }
}

/* The cell of a column, or NULL when the row does not have it. *next : the cell after the last one taken. */
static const coffer_node *take_cell(const coffer_node **next, const coffer_node *row, const char *name)
{
    const coffer_node *cell = *next;
    if (!cell || strcmp(coffer_node_get_name(cell), name) != 0)
        return coffer_node_find(row, name);
    *next = coffer_node_next(cell);
    return cell;
}

/* Numbers are aligned to the right, in a column that contains nothing else. */
static void add_columns(term_table *table, const table_columns *columns, const coffer_node *list)
{
    bool is_text[TERM_COLUMNS_MAX] = { false };
    for (const coffer_node *row = coffer_node_first(list); row; row = coffer_node_next(row)) {
        const coffer_node *next = coffer_node_first(row);
        for (size_t i = 0; i < columns->count; i++) {
            const coffer_node *cell = take_cell(&next, row, columns->names[i]);
            is_text[i] |= cell && !is_number(cell) && coffer_node_get_kind(cell) != COFFER_NODE_NULL;
        }
    }
    for (size_t i = 0; i < columns->count; i++)
        term_table_column(table, columns->names[i], is_text[i] ? TERM_LEFT : TERM_RIGHT);
}

/* "[4096, 32]": numbers, as many as fit, without commas inside them. */
static void format_list(char *out, size_t size, const coffer_node *list)
{
    size_t len = (size_t)snprintf(out, size, "[");
    for (const coffer_node *item = coffer_node_first(list); item && len < size;
         item = coffer_node_next(item)) {
        char number[VALUE_MAX];
        if (coffer_node_get_kind(item) == COFFER_NODE_U64)
            snprintf(number, sizeof number, "%" PRIu64, coffer_node_get_u64(item));
        else
            format_scalar(number, sizeof number, item);
        len += (size_t)snprintf(out + len, size - len, "%s%s", number, coffer_node_next(item) ? ", " : "");
    }
    if (len < size)
        snprintf(out + len, size - len, "]");
}

static bool is_number_list(const coffer_node *node)
{
    if (coffer_node_get_kind(node) != COFFER_NODE_LIST)
        return false;
    for (const coffer_node *item = coffer_node_first(node); item; item = coffer_node_next(item))
        if (!is_number(item))
            return false;
    return true;
}

/* Adds a map or a list on one line. */
static void add_json_cell(term_table *table, const coffer_node *cell)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    coffer__json_writer_init(&writer, &text, 0);
    coffer__json_write_node(&writer, cell);
    const char *whole = coffer__buffer_text(&text);
    term_table_cell_len(table, whole, text.len);
    coffer__buffer_free(&text);
}

static void add_cell(term_table *table, const coffer_node *cell)
{
    char text[VALUE_MAX] = "";
    term_text bytes;
    if (cell && coffer_node_get_kind(cell) == COFFER_NODE_TEXT) {
        size_t len;
        const char *whole = coffer_node_get_text(cell, &len);
        term_table_cell_len(table, whole, len);
        return;
    }
    if (cell && !is_scalar(cell) && !is_number_list(cell)) {
        add_json_cell(table, cell);
        return;
    }
    if (cell && is_number_list(cell))
        format_list(text, sizeof text, cell);
    else if (cell && coffer_node_get_kind(cell) == COFFER_NODE_U64 &&
             coffer_node_get_unit(cell) == COFFER_UNIT_BYTES)
        snprintf(text, sizeof text, "%s", term_bytes(bytes, coffer_node_get_u64(cell)));
    else if (cell)
        format_scalar(text, sizeof text, cell);
    term_table_cell(table, text);
}

static void print_table(FILE *out, const coffer_node *list, size_t indent)
{
    table_columns columns = { .count = 0 };
    for (const coffer_node *row = coffer_node_first(list); row; row = coffer_node_next(row))
        add_row_names(&columns, row);
    if (columns.count == 0)
        return;
    term_table *table = term_table_new();
    term_table_indent(table, indent);
    add_columns(table, &columns, list);
    for (const coffer_node *row = coffer_node_first(list); row; row = coffer_node_next(row)) {
        const coffer_node *next = coffer_node_first(row);
        for (size_t i = 0; i < columns.count; i++)
            add_cell(table, take_cell(&next, row, columns.names[i]));
    }
    term_table_print(table, out);
}

void cli_print_table(FILE *out, const coffer_node *list)
{
    print_table(out, list, 0);
}

/* Maps with the same names; each may lack one of them. */
static bool is_table(const coffer_node *list)
{
    table_columns columns = { .count = 0 };
    size_t fewest = SIZE_MAX;
    for (const coffer_node *row = coffer_node_first(list); row; row = coffer_node_next(row)) {
        if (coffer_node_get_kind(row) != COFFER_NODE_MAP)
            return false;
        size_t count = coffer_node_count(row);
        fewest = count < fewest ? count : fewest;
        add_row_names(&columns, row);
    }
    return columns.count > 0 && fewest > 0 && columns.count <= fewest + 1;
}

/* Lists of values do, and whatever is empty. */
static bool fits_line(const coffer_node *list)
{
    size_t count = coffer_node_count(list);
    if (count > 0 && coffer_node_get_kind(list) != COFFER_NODE_LIST)
        return false;
    for (const coffer_node *item = coffer_node_first(list); item; item = coffer_node_next(item))
        if (!is_scalar(item))
            return false;
    return true;
}

/* column : where the value begins. A long text is cut, and its length follows. */
static void print_scalar(FILE *out, const coffer_node *node, size_t column)
{
    char text[VALUE_MAX];
    size_t len;
    if (coffer_node_get_kind(node) == COFFER_NODE_TEXT) {
        const char *whole = coffer_node_get_text(node, &len);
        term_text size;
        size_t used = column + sizeof " (123,456,789 bytes)" - 1, width = term_width(out);
        bool cut = len > LONG_TEXT;
        term_print_text(out, whole, len, !cut ? 0 : width > used + LEAST_SHOWN ? width - used : LEAST_SHOWN);
        if (cut)
            fprintf(out, " (%s bytes)", term_count(size, len));
    } else {
        format_scalar(text, sizeof text, node);
        fputs(text, out);
    }
}

/* A list of values, or of the first ones when it has many. total : of a list that is longer than `list`. */
static void print_values(FILE *out, const coffer_node *list, uint64_t total, size_t column)
{
    const coffer_node *item = coffer_node_first(list);
    term_text count;
    size_t shown = 0, most = total > SHORT_LIST ? FIRST_ITEMS : SHORT_LIST;
    if (!item)
        fputs("none", out);
    for (; item && shown < most; item = coffer_node_next(item), shown++) {
        fputs(shown > 0 ? ", " : "", out);
        print_scalar(out, item, column);
    }
    if (total > shown)
        fprintf(out, ", … (%s in all)", term_count(count, total));
}

/* The first items of an array, as the library describes a long one: items, count, crc32, first. */
static const coffer_node *first_items(const coffer_node *node)
{
    const coffer_node *first =
        coffer_node_get_kind(node) == COFFER_NODE_MAP ? coffer_node_find(node, "first") : NULL;
    return first && coffer_node_get_kind(first) == COFFER_NODE_LIST && coffer_node_find(node, "items") &&
                   coffer_node_find(node, "count") && coffer_node_count(first)
               ? first
               : NULL;
}

static size_t name_width(const coffer_node *first, bool details)
{
    size_t widest = 0;
    for (const coffer_node *child = first; child; child = coffer_node_next(child)) {
        if (!details && coffer_node_is_detail(child))
            continue;
        const char *name = coffer_node_get_name(child);
        size_t width = coffer__utf8_width(name, strlen(name));
        if (width > widest)
            widest = width;
    }
    return widest > 32 ? 32 : widest;
}

static void print_nodes(FILE *out, const coffer_node *first, unsigned depth, bool details);

static void print_compound(FILE *out, const coffer_node *node, unsigned depth)
{
    fputc('\n', out);
    if (coffer_node_get_kind(node) == COFFER_NODE_LIST && is_table(node))
        print_table(out, node, 2 * ((size_t)depth + 1));
    else if (depth < NODE_DEPTH_MAX)
        print_nodes(out, coffer_node_first(node), depth + 1, true);
}

static void print_nodes(FILE *out, const coffer_node *first, unsigned depth, bool details)
{
    size_t widest = name_width(first, details);
    for (const coffer_node *child = first; child; child = coffer_node_next(child)) {
        if (!details && coffer_node_is_detail(child))
            continue;
        char name[128];
        readable_name(name, sizeof name, child);
        size_t width = coffer__utf8_width(name, strlen(name));
        fprintf(out, "%*s%s", (int)(2 * depth), "", term_on(out, TERM_DIM));
        term_print_text(out, name, strlen(name), 0);
        fputs(term_off(out), out);
        const coffer_node *few = first_items(child);
        if (!is_scalar(child) && !few && !fits_line(child)) {
            print_compound(out, child, depth);
            continue;
        }
        fprintf(out, "%*s", (int)(width < widest ? widest - width : 0) + 2, "");
        size_t column = 2 * (size_t)depth + (width < widest ? widest : width) + 2;
        if (is_scalar(child))
            print_scalar(out, child, column);
        else if (few)
            print_values(out, few, coffer_node_get_u64(coffer_node_find(child, "count")), column);
        else
            print_values(out, child, coffer_node_count(child), column);
        fputc('\n', out);
    }
}

void cli_print_nodes(FILE *out, const coffer_node *first)
{
    print_nodes(out, first, 1, true);
}

void cli_print_facts(FILE *out, const coffer_node *first)
{
    print_nodes(out, first, 1, false);
}

static int print_json(FILE *out, const coffer_node *root, unsigned indent)
{
    coffer__buffer buffer = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    int status = CLI_OK;
    coffer__json_writer_init(&writer, &buffer, indent);
    coffer__json_write_node(&writer, root);
    if (buffer.failed) {
        coffer_error err = { .status = COFFER_E_NO_MEMORY,
                             .offset = COFFER_OFFSET_NONE,
                             .text = "not enough memory for the JSON text" };
        status = cli_fail("standard output", &err, NULL);
    } else {
        term_put_safe(out, buffer.data, buffer.len);
        fputc('\n', out);
    }
    coffer__buffer_free(&buffer);
    return status;
}

int cli_print_json(FILE *out, const coffer_node *root)
{
    return print_json(out, root, term_is_terminal(out) ? 2 : 0);
}

int cli_print_json_line(FILE *out, const coffer_node *root)
{
    return print_json(out, root, 0);
}

void cli_print_line(FILE *out, const char *path, const char *text, const char *other)
{
    term_print_text(out, path, strlen(path), 0);
    fputs(text, out);
    if (other)
        term_print_text(out, other, strlen(other), 0);
    fputc('\n', out);
}

coffer_status cli_begin_rewrite(coffer_node **out, const char *path, const char *output, coffer_error *err)
{
    coffer_status status = coffer_node_new(out, err);
    if (status)
        return status;
    coffer_node_add_text(*out, "file", path);
    coffer_node_add_text(*out, "output", output ? output : path);
    return COFFER_OK;
}
