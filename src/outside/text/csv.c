#include "outside/text/csv.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "outside/text/text_window.h"

#include <inttypes.h>
#include <string.h>

struct coffer__csv_reader {
    coffer__text_window window;
    coffer__csv_field *fields;
    size_t capacity;
    uint64_t next_line;
    coffer__csv_row row;
};

coffer_status coffer__csv_open(coffer__csv_reader **out, coffer_source *src, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer__csv_reader *reader = coffer__calloc(1, sizeof *reader);
    if (!reader)
        return coffer__fail_no_memory(err, sizeof *reader);
    coffer_status status = coffer__text_window_open(&reader->window, src, limits->string_bytes, err);
    if (status) {
        coffer__free(reader);
        return status;
    }
    reader->next_line = 1;
    *out = reader;
    return COFFER_OK;
}

void coffer__csv_close(coffer__csv_reader *reader)
{
    if (!reader)
        return;
    coffer__text_window_close(&reader->window);
    coffer__free(reader->fields);
    coffer__free(reader);
}

static size_t count_bytes(const char *text, size_t len, char wanted)
{
    const char *end = text + len;
    size_t count = 0;
    while ((text = memchr(text, wanted, (size_t)(end - text))) != NULL) {
        count++;
        text++;
    }
    return count;
}

/* Finds the end of the row that begins at window->at: a line end outside quotes. The row, without its line
 * end, is then memory[at, at + *len), and *taken counts the line end in. */
static coffer_status find_row(size_t *len, size_t *taken, coffer__csv_reader *reader, coffer_error *err)
{
    coffer__text_window *window = &reader->window;
    bool inside_quotes = false;
    size_t seen = 0;
    reader->row.line = reader->next_line;
    for (;;) {
        const char *row = window->memory + window->at;
        size_t held = window->end - window->at;
        const char *line_end = memchr(row + seen, '\n', held - seen);
        size_t stop = line_end ? (size_t)(line_end - row) : held;
        if (count_bytes(row + seen, stop - seen, '"') % 2)
            inside_quotes = !inside_quotes;
        seen = stop;
        if (line_end) {
            reader->next_line++;
            seen++;
            if (inside_quotes)
                continue;
            *len = stop;
            *taken = seen;
            return COFFER_OK;
        }
        bool grew;
        coffer_status status = coffer__text_window_grow(&grew, window, err);
        if (status)
            return status;
        if (grew)
            continue;
        if (inside_quotes)
            return coffer__fail(err, COFFER_E_TRUNCATED, coffer__text_window_offset(window),
                                "line %" PRIu64 ": a quote is opened and never closed", reader->row.line);
        *len = *taken = held;
        return COFFER_OK;
    }
}

static coffer_status bad_quote(const coffer__csv_reader *reader, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_BAD_VALUE, reader->row.offset,
                        "line %" PRIu64 ", field %zu: unexpected quote (quotes must enclose the whole "
                        "field, doubled inside)",
                        reader->row.line, reader->row.count + 1);
}

/* Removes the quotes in place. *at is after the opening quote and moves past the closing one. */
static bool unquote(coffer__csv_field *field, char **at, char *end)
{
    char *from = *at, *to = *at;
    field->text = to;
    for (;;) {
        char *quote = memchr(from, '"', (size_t)(end - from));
        if (!quote)
            return false;
        memmove(to, from, (size_t)(quote - from));
        to += quote - from;
        from = quote + 1;
        if (from == end || *from != '"')
            break;
        *to++ = '"';
        from++;
    }
    field->len = (size_t)(to - field->text);
    *at = from;
    return from == end || *from == ',';
}

static coffer_status add_field(coffer__csv_reader *reader, coffer__csv_field field, coffer_error *err)
{
    if (reader->row.count == COFFER__CSV_MAX_FIELDS)
        return coffer__fail(err, COFFER_E_LIMIT, reader->row.offset,
                            "line %" PRIu64 " has more than %d fields", reader->row.line,
                            COFFER__CSV_MAX_FIELDS);
    coffer_status status = coffer__array_reserve_one(&reader->fields, &reader->capacity, reader->row.count,
                                                     sizeof *reader->fields, err);
    if (status)
        return status;
    reader->fields[reader->row.count++] = field;
    return COFFER_OK;
}

static coffer_status split_row(coffer__csv_reader *reader, char *at, size_t len, coffer_error *err)
{
    char *end = at + len;
    for (;;) {
        coffer__csv_field field;
        if (at < end && *at == '"') {
            at++;
            if (!unquote(&field, &at, end))
                return bad_quote(reader, err);
        } else {
            char *comma = memchr(at, ',', (size_t)(end - at));
            field.text = at;
            field.len = (size_t)((comma ? comma : end) - at);
            if (memchr(at, '"', field.len))
                return bad_quote(reader, err);
            at += field.len;
        }
        coffer_status status = add_field(reader, field, err);
        if (status)
            return status;
        if (at == end)
            return COFFER_OK;
        at++;
    }
}

coffer_status coffer__csv_next(const coffer__csv_row **row, coffer__csv_reader *reader, coffer_error *err)
{
    size_t len = 0, taken = 0;
    coffer_status status = find_row(&len, &taken, reader, err);
    if (status)
        return status;
    if (taken == 0) {
        *row = NULL;
        return COFFER_OK;
    }
    char *text = reader->window.memory + reader->window.at;
    if (len > 0 && text[len - 1] == '\r')
        len--;
    reader->row.offset = coffer__text_window_offset(&reader->window);
    reader->row.count = 0;
    reader->window.at += taken;
    status = split_row(reader, text, len, err);
    if (status)
        return status;
    reader->row.fields = reader->fields;
    *row = &reader->row;
    return COFFER_OK;
}

static bool needs_quotes(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r')
            return true;
    }
    /* Spaces at the edges are part of the field, but not every reader keeps them without quotes. */
    return len > 0 && (text[0] == ' ' || text[len - 1] == ' ');
}

void coffer__csv_put_text(coffer__buffer *out, const char *text, size_t len)
{
    if (!needs_quotes(text, len)) {
        coffer__buffer_append(out, text, len);
        return;
    }
    const char *end = text + len;
    coffer__buffer_append(out, "\"", 1);
    for (;;) {
        const char *quote = memchr(text, '"', (size_t)(end - text));
        if (!quote)
            break;
        coffer__buffer_append(out, text, (size_t)(quote - text) + 1);
        coffer__buffer_append(out, "\"", 1);
        text = quote + 1;
    }
    coffer__buffer_append(out, text, (size_t)(end - text));
    coffer__buffer_append(out, "\"", 1);
}
