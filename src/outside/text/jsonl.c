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
        *object = coffer__json_root(reader->json);
        return COFFER_OK;
    }
}
