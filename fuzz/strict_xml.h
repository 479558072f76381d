/* A strict parser for the pictures that the command writes. It accepts the part of XML that a drawing needs,
 * so whatever a name could smuggle in (an element, an attribute, an entity, a script, a control character) is
 * an error. */
#ifndef COFFER_FUZZ_STRICT_XML_H
#define COFFER_FUZZ_STRICT_XML_H

#include "base/utf8.h"
#include "must.h"

#include <string.h>

enum { STRICT_XML_DEPTH = 32 };

typedef struct strict_xml {
    const char *at, *end;
    size_t depth;
    struct {
        const char *name;
        size_t len;
    } open[STRICT_XML_DEPTH];
} strict_xml;

static bool strict_xml_is(const char *name, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

static bool strict_xml_skip(strict_xml *xml, const char *wanted)
{
    size_t len = strlen(wanted);
    if ((size_t)(xml->end - xml->at) < len || memcmp(xml->at, wanted, len) != 0)
        return false;
    xml->at += len;
    return true;
}

static void strict_xml_spaces(strict_xml *xml)
{
    while (xml->at < xml->end && (*xml->at == ' ' || *xml->at == '\n'))
        xml->at++;
}

static size_t strict_xml_name(strict_xml *xml, const char **name)
{
    *name = xml->at;
    while (xml->at < xml->end && *xml->at &&
           strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-", *xml->at))
        xml->at++;
    MUST(xml->at > *name);
    return (size_t)(xml->at - *name);
}

/* An entity of the five that XML knows. Others, and numbers, are not needed. */
static void strict_xml_entity(strict_xml *xml)
{
    MUST(strict_xml_skip(xml, "&lt;") || strict_xml_skip(xml, "&gt;") || strict_xml_skip(xml, "&amp;") ||
         strict_xml_skip(xml, "&quot;") || strict_xml_skip(xml, "&apos;"));
}

static bool strict_xml_allowed(uint32_t code_point)
{
    return code_point == '\n' ||
           (!coffer__utf8_is_harmful(code_point) && !coffer__utf8_is_noncharacter(code_point));
}

/* Text up to a character; a "<" inside is an error. */
static void strict_xml_text(strict_xml *xml, char end)
{
    while (xml->at < xml->end && *xml->at != end) {
        uint32_t code_point = 0;
        size_t step = coffer__utf8_decode(&code_point, (const uint8_t *)xml->at, (const uint8_t *)xml->end);
        MUST(step > 0 && strict_xml_allowed(code_point) && code_point != '<');
        if (code_point == '&')
            strict_xml_entity(xml);
        else
            xml->at += step;
    }
}

static void strict_xml_attribute(strict_xml *xml)
{
    const char *name, *value;
    size_t len = strict_xml_name(xml, &name);
    MUST(strict_xml_skip(xml, "=\""));
    value = xml->at;
    strict_xml_text(xml, '"');
    size_t value_len = (size_t)(xml->at - value);
    MUST(strict_xml_skip(xml, "\""));
    MUST(len < 2 || strncmp(name, "on", 2) != 0);
    if (strict_xml_is(name, len, "href") || strict_xml_is(name, len, "xlink:href"))
        MUST((value_len > 0 && *value == '#') ||
             (value_len > 22 && strncmp(value, "data:image/png;base64,", 22) == 0));
}

static void strict_xml_start(strict_xml *xml)
{
    static const char *const drawing[] = { "svg",  "g",     "title", "rect",     "text",   "path",   "use",
                                           "defs", "image", "mask",  "clipPath", "symbol", "pattern" };
    const char *name;
    size_t len = strict_xml_name(xml, &name);
    bool known = false;
    for (size_t i = 0; i < sizeof drawing / sizeof *drawing; i++)
        known |= strict_xml_is(name, len, drawing[i]);
    MUST(known);
    for (;;) {
        strict_xml_spaces(xml);
        if (strict_xml_skip(xml, "/>"))
            return;
        if (strict_xml_skip(xml, ">"))
            break;
        strict_xml_attribute(xml);
    }
    MUST(xml->depth < STRICT_XML_DEPTH);
    xml->open[xml->depth].name = name;
    xml->open[xml->depth++].len = len;
}

static void strict_xml_end(strict_xml *xml)
{
    const char *name;
    size_t len = strict_xml_name(xml, &name);
    MUST(xml->depth > 0);
    xml->depth--;
    MUST(len == xml->open[xml->depth].len && memcmp(name, xml->open[xml->depth].name, len) == 0);
    MUST(strict_xml_skip(xml, ">"));
}

/* Aborts unless the bytes are one inert drawing. */
static void strict_xml_check(const void *bytes, size_t len)
{
    strict_xml xml = { .at = bytes, .end = (const char *)bytes + len };
    MUST(len > 0);
    if (strict_xml_skip(&xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")) {
    }
    MUST((size_t)(xml.end - xml.at) > 5 && memcmp(xml.at, "<svg ", 5) == 0);
    do {
        MUST(strict_xml_skip(&xml, "<"));
        if (strict_xml_skip(&xml, "/"))
            strict_xml_end(&xml);
        else
            strict_xml_start(&xml);
        if (xml.depth > 0)
            strict_xml_text(&xml, '<');
    } while (xml.depth > 0);
    strict_xml_spaces(&xml);
    MUST(xml.at == xml.end);
}

#endif
