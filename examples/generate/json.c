/* A small reader of JSON, for the files of a model. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    char *at;
    const char *name;
    int depth;
} reader;

static void skip_space(reader *r)
{
    while (*r->at && strchr(" \t\r\n", *r->at))
        r->at++;
}

static _Noreturn void fail(const reader *r)
{
    die("%s is not valid JSON near \"%.20s\"", r->name, r->at);
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = { 0, 0xC0, 0xE0, 0xF0 };
    *out++ = (char)(first[more] | code >> (6 * more));
    while (more-- > 0)
        *out++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return out;
}

static unsigned read_hex(reader *r)
{
    char digits[5] = { 0 }, *end;
    strncpy(digits, r->at, 4);
    unsigned code = (unsigned)strtoul(digits, &end, 16);
    if (end != digits + 4)
        fail(r);
    r->at += 4;
    return code;
}

/* Unescapes in place: the result is never longer. */
static char *read_text(reader *r)
{
    char *text = ++r->at, *out = text;
    while (*r->at != '"') {
        if (!*r->at)
            fail(r);
        if (*r->at != '\\') {
            *out++ = *r->at++;
            continue;
        }
        char escape = *++r->at;
        r->at++;
        const char *known = escape ? strchr("n\nt\tr\rb\bf\f", escape) : NULL;
        if (escape == 'u') {
            unsigned code = read_hex(r);
            if (code >= 0xD800 && code < 0xDC00 && r->at[0] == '\\' && r->at[1] == 'u') {
                r->at += 2;
                code = 0x10000 + ((code - 0xD800) << 10) + (read_hex(r) - 0xDC00);
            }
            out = put_utf8(out, code);
        } else {
            *out++ = known ? known[1] : escape;
        }
    }
    r->at++;
    *out = 0;
    return text;
}

static json *read_value(reader *r);

static void read_members(reader *r, json *parent)
{
    json **last = &parent->first;
    char close = parent->kind == JSON_MAP ? '}' : ']';
    r->at++;
    skip_space(r);
    while (*r->at != close) {
        char *key = NULL;
        if (parent->kind == JSON_MAP) {
            if (*r->at != '"')
                fail(r);
            key = read_text(r);
            skip_space(r);
            if (*r->at++ != ':')
                fail(r);
        }
        *last = read_value(r);
        (*last)->key = key;
        last = &(*last)->next;
        skip_space(r);
        if (*r->at == ',')
            r->at++;
        else if (*r->at != close)
            fail(r);
        skip_space(r);
    }
    r->at++;
}

static json *read_value(reader *r)
{
    json *value = allocate(1, sizeof *value);
    skip_space(r);
    if (++r->depth > 100)
        fail(r);
    if (*r->at == '{' || *r->at == '[') {
        value->kind = *r->at == '{' ? JSON_MAP : JSON_LIST;
        read_members(r, value);
    } else if (*r->at == '"') {
        value->kind = JSON_TEXT;
        value->text = read_text(r);
    } else if (strncmp(r->at, "true", 4) == 0 || strncmp(r->at, "null", 4) == 0) {
        value->kind = *r->at == 't' ? JSON_BOOL : JSON_NULL;
        value->number = *r->at == 't';
        r->at += 4;
    } else if (strncmp(r->at, "false", 5) == 0) {
        value->kind = JSON_BOOL;
        r->at += 5;
    } else {
        char *end;
        value->kind = JSON_NUMBER;
        value->number = strtod(r->at, &end);
        if (end == r->at)
            fail(r);
        r->at = end;
    }
    r->depth--;
    return value;
}

json *json_parse(char *text, const char *name)
{
    reader r = { text, name, 0 };
    return read_value(&r);
}

const json *json_get(const json *map, const char *key)
{
    if (!map || map->kind != JSON_MAP)
        return NULL;
    for (const json *member = map->first; member; member = member->next) {
        if (strcmp(member->key, key) == 0)
            return member->kind == JSON_NULL ? NULL : member;
    }
    return NULL;
}

double json_number(const json *map, const char *key, double missing)
{
    const json *value = json_get(map, key);
    return value && value->kind == JSON_NUMBER ? value->number : missing;
}

bool json_true(const json *map, const char *key)
{
    const json *value = json_get(map, key);
    return value && value->kind == JSON_BOOL && value->number != 0;
}

const char *json_text(const json *map, const char *key)
{
    const json *value = json_get(map, key);
    return value && value->kind == JSON_TEXT ? value->text : "";
}

json *json_section(const coffer_mcf *file, uint32_t section)
{
    uint8_t *text = NULL;
    size_t len;
    coffer_error err = COFFER_ERROR_INIT;
    if (!coffer_mcf_find_section(file, section))
        return NULL;
    if (coffer_mcf_read_section(&text, &len, file, section, &err))
        die("%s: %s", coffer_mcf_section_name(section), err.text);
    char *copy = allocate(len + 1, 1);
    memcpy(copy, text, len);
    coffer_free(text);
    return json_parse(copy, coffer_mcf_section_name(section));
}
