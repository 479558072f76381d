/* Steps through a JSON text, correct for valid JSON only: the parser validates what they skip. */
#include "formats/mlyze/read/mlyze_metadata.h"

#include "formats/mlyze/mlyze_layout.h"

#include <string.h>

void coffer__mlyze_text_space(coffer__mlyze_text *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\r' || *in->at == '\t'))
        in->at++;
}

bool coffer__mlyze_text_take(coffer__mlyze_text *in, char c)
{
    coffer__mlyze_text_space(in);
    if (in->at == in->end || *in->at != c)
        return false;
    in->at++;
    return true;
}

/* Moves from the opening quote of a string past the closing one. */
static bool skip_string(coffer__mlyze_text *in, bool *escapes)
{
    in->at++;
    while (in->at < in->end) {
        char c = *in->at++;
        if (c == '"')
            return true;
        if (c == '\\') {
            *escapes = true;
            if (in->at == in->end)
                return false;
            in->at++;
        }
    }
    return false;
}

/* Decodes the escapes of a string into `room`, as far as it fits. */
static bool decode_key(size_t *len, char room[COFFER__MLYZE_KEY_ROOM], const char *text, size_t text_len,
                       const coffer_limits *limits)
{
    coffer__json *json = NULL;
    const coffer__json_value *value;
    if (coffer__json_parse(&json, text, text_len, 0, limits, NULL))
        return false;
    value = coffer__json_root(json);
    *len = value->string_len < COFFER__MLYZE_KEY_ROOM ? value->string_len : COFFER__MLYZE_KEY_ROOM;
    memcpy(room, value->as.string, *len);
    coffer__json_free(json);
    return true;
}

bool coffer__mlyze_text_key(const char **key, size_t *len, coffer__mlyze_text *in,
                            char room[COFFER__MLYZE_KEY_ROOM])
{
    const char *quote;
    bool escapes = false;
    coffer__mlyze_text_space(in);
    quote = in->at;
    if (in->at == in->end || *in->at != '"' || !skip_string(in, &escapes))
        return false;
    *key = quote + 1;
    *len = (size_t)(in->at - quote) - 2;
    if (escapes) {
        if (!decode_key(len, room, quote, (size_t)(in->at - quote), in->limits))
            return false;
        *key = room;
    }
    return coffer__mlyze_text_take(in, ':');
}

static bool ends_scalar(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool coffer__mlyze_text_skip(coffer__mlyze_text *in)
{
    uint64_t depth = 0;
    bool escapes = false;
    coffer__mlyze_text_space(in);
    do {
        if (in->at == in->end)
            return false;
        char c = *in->at;
        if (c == '"') {
            if (!skip_string(in, &escapes))
                return false;
        } else if (c == '{' || c == '[') {
            depth++;
            in->at++;
        } else if (depth > 0) {
            depth -= c == '}' || c == ']';
            in->at++;
        } else {
            while (in->at < in->end && !ends_scalar(*in->at))
                in->at++;
        }
    } while (depth > 0);
    return true;
}

/* ---- Writing ---- */

static uint8_t *copy(uint8_t *to, const char *text)
{
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

static uint8_t *put_u64(uint8_t *to, uint64_t value)
{
    uint8_t digits[20];
    size_t len = 0;
    do
        digits[len++] = (uint8_t)('0' + value % 10);
    while (value /= 10);
    while (len > 0)
        *to++ = digits[--len];
    return to;
}

void coffer__mlyze_text_frame(coffer__buffer *out, const coffer_mlyze_frame *frame, bool last)
{
    size_t before = out->len;
    uint8_t *start = coffer__buffer_extend(out, (COFFER__MLYZE_FRAME_TEXT_MIN + 3 * 20)), *to = start;
    if (!start)
        return;
    to = put_u64(copy(to, "{\"file_id\":"), frame->file_id);
    to = put_u64(copy(to, ",\"line\":"), frame->line);
    to = put_u64(copy(to, ",\"func_id\":"), frame->func_id);
    to = copy(to, last ? "}" : "},");
    out->len = before + (size_t)(to - start);
}
