/* Text from files on a terminal: nothing in it may move the cursor, change colors or turn the line around.
 */
#include "term.h"

#include "base/utf8.h"

#include <string.h>

static size_t escape(term_piece piece, uint32_t c)
{
    static const char names[] = "abtnvfr"; /* 7 … 13 */
    int len;
    if (c >= 7 && c <= 13)
        len = snprintf(piece, sizeof(term_piece), "\\%c", names[c - 7]);
    else
        len = snprintf(piece, sizeof(term_piece), c < 0x20 ? "\\x%02x" : "\\u%04x", (unsigned)c);
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
    if (coffer__utf8_is_harmful(c))
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

void term_put_safe(FILE *out, const void *text, size_t len)
{
    coffer__buffer safe = COFFER__BUFFER_INIT;
    if (term_is_terminal(out)) {
        coffer__utf8_make_safe(&safe, text, len, true);
        fwrite(safe.data, 1, safe.len, out);
    } else {
        fwrite(text, 1, len, out);
    }
    coffer__buffer_free(&safe);
}
