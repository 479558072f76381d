#include "base/json_write.h"

#include "base/real.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void coffer__json_writer_init(coffer__json_writer *writer, coffer__buffer *out, unsigned indent)
{
    memset(writer, 0, sizeof *writer);
    writer->out = out;
    writer->indent = indent;
}

static void put(coffer__json_writer *writer, const char *text)
{
    coffer__buffer_append(writer->out, text, strlen(text));
}

static void new_line(coffer__json_writer *writer)
{
    if (writer->indent == 0)
        return;
    put(writer, "\n");
    coffer__buffer_fill(writer->out, ' ', (size_t)writer->indent * writer->depth);
}

static uint64_t level_bit(const coffer__json_writer *writer)
{
    return UINT64_C(1) << (writer->depth % 64);
}

/* Writes the comma and the indentation before a value or a key, except at the top and after a key. */
static void begin_item(coffer__json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0 || writer->out->failed)
        return;
    uint64_t *has_items = &writer->has_items[writer->depth / 64];
    if (*has_items & level_bit(writer))
        put(writer, ",");
    *has_items |= level_bit(writer);
    new_line(writer);
}

static void open_container(coffer__json_writer *writer, const char *bracket)
{
    begin_item(writer);
    put(writer, bracket);
    if (++writer->depth < COFFER__JSON_WRITE_DEPTH)
        writer->has_items[writer->depth / 64] &= ~level_bit(writer);
    else
        writer->out->failed = true;
}

static void close_container(coffer__json_writer *writer, const char *bracket)
{
    bool had_items = !writer->out->failed && writer->has_items[writer->depth / 64] & level_bit(writer);
    writer->depth--;
    if (had_items)
        new_line(writer);
    put(writer, bracket);
}

void coffer__json_open_object(coffer__json_writer *writer)
{
    open_container(writer, "{");
}

void coffer__json_close_object(coffer__json_writer *writer)
{
    close_container(writer, "}");
}

void coffer__json_open_array(coffer__json_writer *writer)
{
    open_container(writer, "[");
}

void coffer__json_close_array(coffer__json_writer *writer)
{
    close_container(writer, "]");
}

static void put_escaped(coffer__json_writer *writer, uint8_t c)
{
    static const char short_forms[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *form = short_forms; *form; form += 2) {
        if (c == (uint8_t)form[0]) {
            const char escape[] = { '\\', form[1], '\0' };
            put(writer, escape);
            return;
        }
    }
    coffer__buffer_printf(writer->out, "\\u%04x", c);
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Appends what needs no escape in one piece. */
static void put_quoted(coffer__json_writer *writer, const char *text, size_t len)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + len, *pending = at;
    put(writer, "\"");
    while (at < end) {
        uint32_t code_point;
        size_t step = is_plain(*at) ? 1 : coffer__utf8_decode(&code_point, at, end);
        if (step > 1 || is_plain(*at)) {
            at += step;
            continue;
        }
        coffer__buffer_append(writer->out, pending, (size_t)(at - pending));
        if (step == 0)
            put(writer, "\xEF\xBF\xBD");
        else
            put_escaped(writer, *at);
        pending = ++at;
    }
    coffer__buffer_append(writer->out, pending, (size_t)(at - pending));
    put(writer, "\"");
}

void coffer__json_key(coffer__json_writer *writer, const char *key)
{
    coffer__json_key_len(writer, key, strlen(key));
}

void coffer__json_key_len(coffer__json_writer *writer, const char *key, size_t len)
{
    begin_item(writer);
    put_quoted(writer, key, len);
    put(writer, writer->indent ? ": " : ":");
    writer->after_key = true;
}

void coffer__json_string(coffer__json_writer *writer, const char *text)
{
    if (text)
        coffer__json_string_len(writer, text, strlen(text));
    else
        coffer__json_write_null(writer);
}

void coffer__json_string_len(coffer__json_writer *writer, const char *text, size_t len)
{
    begin_item(writer);
    put_quoted(writer, text, len);
}

void coffer__json_write_u64(coffer__json_writer *writer, uint64_t value)
{
    begin_item(writer);
    coffer__buffer_printf(writer->out, "%" PRIu64, value);
}

void coffer__json_write_i64(coffer__json_writer *writer, int64_t value)
{
    begin_item(writer);
    coffer__buffer_printf(writer->out, "%" PRIi64, value);
}

void coffer__json_write_f64(coffer__json_writer *writer, double value)
{
    char text[COFFER__REAL_TEXT];
    if (!isfinite(value)) {
        coffer__json_write_null(writer);
        return;
    }
    begin_item(writer);
    coffer__buffer_append(writer->out, text, (size_t)(coffer__put_f64(text, value) - text));
}

void coffer__json_write_number(coffer__json_writer *writer, const char *text, size_t len)
{
    begin_item(writer);
    coffer__buffer_append(writer->out, text, len);
}

void coffer__json_write_bool(coffer__json_writer *writer, bool value)
{
    begin_item(writer);
    put(writer, value ? "true" : "false");
}

void coffer__json_write_null(coffer__json_writer *writer)
{
    begin_item(writer);
    put(writer, "null");
}
