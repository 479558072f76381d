/* Text that a terminal only shows: nothing in it moves the cursor, changes colors or turns the line around.
 */
#include "base/utf8.h"

#include <stdio.h>

bool coffer__utf8_is_harmful(uint32_t code_point)
{
    uint32_t c = code_point;
    return c < 0x20 || (c >= 0x7f && c < 0xa0)            /* controls */
           || (c >= 0x202a && c <= 0x202e)                /* direction overrides */
           || (c >= 0x2066 && c <= 0x2069) || c == 0x200e /* isolates and marks */
           || c == 0x200f || c == 0x061c || c == 0x2028   /* separators */
           || c == 0x2029 || c == 0xfeff;
}

bool coffer__utf8_is_noncharacter(uint32_t code_point)
{
    return (code_point & 0xfffe) == 0xfffe || (code_point >= 0xfdd0 && code_point <= 0xfdef);
}

static void put_escape(coffer__buffer *out, uint32_t c)
{
    coffer__buffer_printf(out, c < 0x20 ? "\\x%02x" : "\\u%04x", (unsigned)c);
}

size_t coffer__utf8_make_safe(coffer__buffer *out, const void *text, size_t len, bool is_last)
{
    const uint8_t *start = text, *at = start, *plain = start, *end = start + len;
    while (at < end) {
        uint32_t c = 0;
        size_t step = coffer__utf8_decode(&c, at, end);
        bool may_continue = step == 0 && *at >= 0xc2 && end - at < 4 && !is_last;
        if (may_continue)
            break;
        if (step > 0 && (c == '\n' || c == '\t' || !coffer__utf8_is_harmful(c))) {
            at += step;
            continue;
        }
        coffer__buffer_append(out, plain, (size_t)(at - plain));
        if (step > 0)
            put_escape(out, c);
        else
            coffer__buffer_printf(out, "\\x%02x", *at);
        at += step ? step : 1;
        plain = at;
    }
    coffer__buffer_append(out, plain, (size_t)(at - plain));
    return (size_t)(at - start);
}
