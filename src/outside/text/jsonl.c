#include "outside/text/jsonl.h"

#include "base/fail.h"
#include "base/memory.h"
#include "outside/text/text_window.h"

#include <inttypes.h>
#include <string.h>

struct coffer__jsonl_reader {
    coffer__text_window window;
    coffer_limits limits;
    coffer__json *json; /* of the current line */
    const char *text;
    size_t text_len;
    uint64_t line, offset;
};

coffer_status coffer__jsonl_open(coffer__jsonl_reader **out, coffer_source *src, const coffer_limits *limits,
                                 coffer_error *err)
{
    coffer__jsonl_reader *reader = coffer__calloc(1, sizeof *reader);
    if (!reader)
        return coffer__fail_no_memory(err, sizeof *reader);
    coffer_status status = coffer__text_window_open(&reader->window, src, limits->json_bytes, err);
    if (status) {
        coffer__free(reader);
        return status;
    }
    reader->limits = *limits;
    *out = reader;
    return COFFER_OK;
}

void coffer__jsonl_close(coffer__jsonl_reader *reader)
{
    if (!reader)
        return;
    coffer__text_window_close(&reader->window);
    coffer__json_free(reader->json);
    coffer__free(reader);
}

uint64_t coffer__jsonl_line(const coffer__jsonl_reader *reader)
{
    return reader->line;
}

uint64_t coffer__jsonl_offset(const coffer__jsonl_reader *reader)
{
    return reader->offset;
}

static bool is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return false;
    }
    return true;
}

static coffer_status parse_line(coffer__jsonl_reader *reader, const char *line, size_t len, coffer_error *err)
{
    coffer_error inner = COFFER_ERROR_INIT;
    coffer__json_free(reader->json);
    reader->json = NULL;
    coffer_status status =
        coffer__json_parse(&reader->json, line, len, reader->offset, &reader->limits, &inner);
    if (status)
        return coffer__fail(err, status, inner.offset, "line %" PRIu64 ": %s", reader->line, inner.text);
    if (coffer__json_root(reader->json)->kind != COFFER__JSON_OBJECT)
        return coffer__fail(err, COFFER_E_BAD_JSON, reader->offset, "line %" PRIu64 " is not a JSON object",
                            reader->line);
    return COFFER_OK;
}

coffer_status coffer__jsonl_next(const coffer__json_value **object, coffer__jsonl_reader *reader,
                                 coffer_error *err)
{
    for (;;) {
        char *line;
        size_t len;
        coffer_status status = coffer__text_window_line(&line, &len, &reader->window, err);
        if (status)
            return status;
        if (!line) {
            *object = NULL;
            return COFFER_OK;
        }
        reader->line++;
        if (is_blank(line, len))
            continue;
        /* The window may have more bytes after the line: the offset is counted back from its end. */
        reader->offset = reader->window.next - (uint64_t)(reader->window.memory + reader->window.end - line);
        status = parse_line(reader, line, len, err);
        if (status)
            return status;
        reader->text = line;
        reader->text_len = len;
        *object = coffer__json_root(reader->json);
        return COFFER_OK;
    }
}

static size_t skip_space(const char *text, size_t len, size_t at)
{
    while (at < len && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n'))
        at++;
    return at;
}

static size_t skip_string(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < len ? at + 1 : len;
}

/* The line was parsed before, so that brackets match. */
static size_t skip_value(const char *text, size_t len, size_t at)
{
    size_t depth = 0;
    while (at < len) {
        char c = text[at];
        if (c == '"') {
            at = skip_string(text, len, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (depth && (c == '}' || c == ']')) {
            depth--;
            at++;
        } else if (depth || (c != ',' && c != '}' && c != ']' && skip_space(text, at + 1, at) == at)) {
            at++;
            continue; /* the middle of a number or a word */
        } else {
            return at;
        }
        if (depth == 0)
            return at;
    }
    return at;
}

bool coffer__jsonl_next_raw(const char **text, size_t *len, const coffer__jsonl_reader *reader, size_t *at)
{
    const char *line = reader->text;
    size_t size = reader->text_len, next = skip_space(line, size, *at);
    if (next < size && (line[next] == '{' || line[next] == ','))
        next = skip_space(line, size, next + 1);
    if (next >= size || line[next] != '"')
        return false;
    next = skip_space(line, size, skip_string(line, size, next));
    if (next >= size)
        return false;
    next = skip_space(line, size, next + 1); /* the colon */
    *at = skip_value(line, size, next);
    *text = line + next;
    *len = *at - next;
    return true;
}
