/* Text from files on a terminal: nothing in it may move the cursor, change colors or turn the line around.
 */
#include "term.h"

#include "base/utf8.h"

#include <string.h>

static bool is_harmful(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0)            /* controls */
           || (c >= 0x202a && c <= 0x202e)                /* direction overrides */
           || (c >= 0x2066 && c <= 0x2069) || c == 0x200e /* isolates and marks */
           || c == 0x200f || c == 0x061c || c == 0x2028   /* separators */
           || c == 0x2029 || c == 0xfeff;
}

static size_t escape(term_piece piece, uint32_t c)
{
    static const char names[] = "abtnvfr"; /* 7 … 13 */
    int len;
    if (c >= 7 && c <= 13)
        len = snprintf(piece, sizeof(term_piece), "\\%c", names[c - 7]);
    else
        len = snprintf(piece, sizeof(term_piece), c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
    return (size_t)len;
}

size_t term_next_piece(term_piece piece, const char **text, const char *end)
{
    uint32_t c;
    const uint8_t *at = (const uint8_t *)*text;
    size_t len = coffer__utf8_decode(&c, at, (const uint8_t *)end);
    if (len == 0) {
        *text += 1;
        return (size_t)snprintf(piece, sizeof(term_piece), "\\x%02x", at[0]);
    }
    *text += len;
    if (is_harmful(c))
        return escape(piece, c);
    memcpy(piece, at, len);
    piece[len] = '\0';
    return coffer__utf8_width(piece, len);
}

/* Whether the rest fits; stops as soon as it does not. */
static bool fits(const char *text, const char *end, size_t columns)
{
    term_piece piece;
    size_t used = 0;
    while (text < end && used <= columns)
        used += term_next_piece(piece, &text, end);
    return used <= columns;
}

void term_print_text(FILE *out, const char *text, size_t len, size_t columns)
{
    const char *end = text + len;
    bool cut = columns > 0 && !fits(text, end, columns);
    size_t room = cut ? columns - 1 : SIZE_MAX;
    while (text < end) {
        term_piece piece;
        size_t width = term_next_piece(piece, &text, end);
        if (width > room)
            break;
        room -= cut ? width : 0;
        fputs(piece, out);
    }
    if (cut)
        fputs("…", out);
}
