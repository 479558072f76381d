#include "outside/profiles/heaptrack.h"

#include <string.h>

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* "v 10400 3": nothing else begins like this. */
bool coffer__heaptrack_probe(const uint8_t *head, size_t len)
{
    coffer__heaptrack_line line;
    uint64_t version, format = 0;
    const uint8_t *end = len > 0 ? memchr(head, '\n', len) : NULL;
    if (!end || end - head < 3 || head[0] != 'v' || head[1] != ' ')
        return false;
    line = (coffer__heaptrack_line){ (const char *)head + 2, (const char *)end };
    if (!coffer__heaptrack_hex(&version, &line) || version < 0x10000 || version > 0xffffff)
        return false;
    return line.at == line.end || (coffer__heaptrack_hex(&format, &line) && line.at == line.end);
}

coffer__heaptrack_line coffer__heaptrack_fields(const coffer__import_lines *lines)
{
    size_t skipped = lines->len < 2 ? lines->len : 2;
    return (coffer__heaptrack_line){ lines->text + skipped, lines->text + lines->len };
}

bool coffer__heaptrack_hex(uint64_t *out, coffer__heaptrack_line *line)
{
    const char *at = line->at;
    uint64_t value = 0;
    for (; at < line->end && *at != ' '; at++) {
        int digit = digit_of(*at);
        if (digit < 0 || value >> 60)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    if (at == line->at)
        return false;
    line->at = at < line->end ? at + 1 : at;
    *out = value;
    return true;
}

bool coffer__heaptrack_text(const char **text, size_t *len, coffer__heaptrack_line *line, bool sized)
{
    uint64_t size = 0;
    if (sized) {
        if (!coffer__heaptrack_hex(&size, line) || size > (uint64_t)(line->end - line->at))
            return false;
    } else {
        while (line->at + size < line->end && line->at[size] != ' ')
            size++;
    }
    *text = line->at;
    *len = (size_t)size;
    line->at += size;
    if (line->at < line->end)
        line->at++;
    return sized || *len > 0;
}
