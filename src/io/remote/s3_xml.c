#include "io/remote/s3_xml.h"

#include "base/buffer.h"

#include <stdio.h>
#include <string.h>

#define MAX_TAG 48

/* Where `wanted` begins in the part; NULL when it does not occur. */
static const char *find(coffer__xml_part part, const char *wanted)
{
    return part.len ? memmem(part.text, part.len, wanted, strlen(wanted)) : NULL;
}

bool coffer__xml_next(coffer__xml_part *out, coffer__xml_part *part, const char *name)
{
    char open[MAX_TAG], close[MAX_TAG];
    snprintf(open, sizeof open, "<%s>", name);
    snprintf(close, sizeof close, "</%s>", name);
    const char *from = find(*part, open);
    if (!from)
        return false;
    from += strlen(open);
    const char *end = part->text + part->len;
    const char *to = find((coffer__xml_part){ from, (size_t)(end - from) }, close);
    if (!to)
        return false;
    *out = (coffer__xml_part){ from, (size_t)(to - from) };
    to += strlen(close);
    *part = (coffer__xml_part){ to, (size_t)(end - to) };
    return true;
}

bool coffer__xml_find(coffer__xml_part *out, coffer__xml_part part, const char *name)
{
    return coffer__xml_next(out, &part, name);
}

/* The character of an entity after its '&', up to the ';'; 0 for one that is not known. */
static char resolve(const char *entity, size_t len)
{
    static const struct {
        const char *name;
        char character;
    } known[] = { { "amp", '&' },  { "lt", '<' },   { "gt", '>' },    { "quot", '"' }, { "apos", '\'' },
                  { "#34", '"' },  { "#38", '&' },  { "#39", '\'' },  { "#60", '<' },  { "#62", '>' },
                  { "#x22", '"' }, { "#x26", '&' }, { "#x27", '\'' }, { "#43", '+' },  { "#x2B", '+' } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == len && memcmp(known[i].name, entity, len) == 0)
            return known[i].character;
    return 0;
}

bool coffer__xml_text(char *out, size_t size, coffer__xml_part part, const char *name)
{
    coffer__xml_part found;
    size_t to = 0;
    out[0] = '\0';
    if (!coffer__xml_find(&found, part, name))
        return true;
    for (size_t i = 0; i < found.len; i++) {
        char c = found.text[i];
        if (c == '&') {
            const char *end = memchr(found.text + i, ';', found.len - i);
            size_t len = end ? (size_t)(end - found.text) - i - 1 : 0;
            c = end ? resolve(found.text + i + 1, len) : 0;
            i += len + 1;
        }
        if ((unsigned char)c < ' ' || to + 1 >= size) {
            out[0] = '\0';
            return false;
        }
        out[to++] = c;
    }
    out[to] = '\0';
    return true;
}

bool coffer__xml_number(uint64_t *out, coffer__xml_part part, const char *name)
{
    char text[24];
    uint64_t value = 0;
    if (!coffer__xml_text(text, sizeof text, part, name) || !text[0] || strlen(text) > 19)
        return false;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9')
            return false;
        value = value * 10 + (uint64_t)(*c - '0');
    }
    *out = value;
    return true;
}

bool coffer__xml_is_true(coffer__xml_part part, const char *name)
{
    char text[8];
    return coffer__xml_text(text, sizeof text, part, name) && strcmp(text, "true") == 0;
}

void coffer__xml_escape(struct coffer__buffer *out, const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c == '&' || *c == '<' || *c == '>')
            coffer__buffer_printf(out, "&%s;", *c == '&' ? "amp" : *c == '<' ? "lt" : "gt");
        else
            coffer__buffer_append(out, c, 1);
}
