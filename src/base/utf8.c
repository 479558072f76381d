#include "base/utf8.h"

#include "base/bytes.h"

#include <stdio.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Number of bytes of a character with this first byte; 0 when no character begins with it. */
static size_t length_of(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2) /* a continuation, or an over-long form of ASCII */
        return 0;
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF5 ? 4 : 0;
}

size_t coffer__utf8_decode(uint32_t *code_point, const uint8_t *at, const uint8_t *end)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (at >= end)
        return 0;
    size_t len = length_of(*at);
    if (len == 0 || len > (size_t)(end - at))
        return 0;
    uint32_t value = len == 1 ? *at : *at & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (!is_continuation(at[i]))
            return 0;
        value = value << 6 | (at[i] & 0x3F);
    }
    if (value < smallest[len] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        return 0;
    *code_point = value;
    return len;
}

size_t coffer__utf8_valid_prefix(const void *text, size_t len)
{
    const uint8_t *start = text;
    const uint8_t *at = start, *end = len ? start + len : start;
    while (at < end) {
        while (end - at >= 8 && (coffer__load_u64(at) & HIGH_BITS) == 0)
            at += 8;
        if (at == end)
            break;
        uint32_t code_point;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0)
            break;
        at += step;
    }
    return (size_t)(at - start);
}

/* Text that a terminal only shows: nothing in it moves the cursor, changes colors or turns the line around.
 */

bool coffer__utf8_is_harmful(uint32_t code_point)
{
    uint32_t c = code_point;
    return c < 0x20 || (c >= 0x7f && c < 0xa0)            /* controls */
           || (c >= 0x202a && c <= 0x202e)                /* direction overrides */
           || (c >= 0x2066 && c <= 0x2069) || c == 0x200e /* isolates and marks */
           || c == 0x200f || c == 0x061c || c == 0x2028   /* separators */
           || c == 0x2029 || c == 0xfeff;
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

typedef struct range {
    uint32_t first, last;
} range;

/* Characters that are drawn over the one before them, or not at all. */
static const range zero_width[] = {
    { 0x0300, 0x036F },   { 0x0483, 0x0489 },   { 0x0591, 0x05BD },   { 0x05BF, 0x05BF },
    { 0x05C1, 0x05C2 },   { 0x05C4, 0x05C5 },   { 0x05C7, 0x05C7 },   { 0x0610, 0x061A },
    { 0x064B, 0x065F },   { 0x0670, 0x0670 },   { 0x06D6, 0x06DC },   { 0x06DF, 0x06E4 },
    { 0x06E7, 0x06E8 },   { 0x06EA, 0x06ED },   { 0x0711, 0x0711 },   { 0x0730, 0x074A },
    { 0x07A6, 0x07B0 },   { 0x07EB, 0x07F3 },   { 0x0816, 0x0819 },   { 0x081B, 0x0823 },
    { 0x0825, 0x0827 },   { 0x0829, 0x082D },   { 0x0859, 0x085B },   { 0x08D3, 0x08E1 },
    { 0x08E3, 0x0902 },   { 0x093A, 0x093A },   { 0x093C, 0x093C },   { 0x0941, 0x0948 },
    { 0x094D, 0x094D },   { 0x0951, 0x0957 },   { 0x0962, 0x0963 },   { 0x0981, 0x0981 },
    { 0x09BC, 0x09BC },   { 0x09C1, 0x09C4 },   { 0x09CD, 0x09CD },   { 0x0A01, 0x0A02 },
    { 0x0A3C, 0x0A3C },   { 0x0A41, 0x0A51 },   { 0x0A70, 0x0A71 },   { 0x0A81, 0x0A82 },
    { 0x0ABC, 0x0ABC },   { 0x0AC1, 0x0AC8 },   { 0x0ACD, 0x0ACD },   { 0x0B01, 0x0B01 },
    { 0x0B3C, 0x0B3C },   { 0x0B41, 0x0B44 },   { 0x0B4D, 0x0B4D },   { 0x0B82, 0x0B82 },
    { 0x0BC0, 0x0BC0 },   { 0x0BCD, 0x0BCD },   { 0x0C3E, 0x0C40 },   { 0x0C46, 0x0C56 },
    { 0x0CBC, 0x0CBC },   { 0x0CCC, 0x0CCD },   { 0x0D41, 0x0D44 },   { 0x0D4D, 0x0D4D },
    { 0x0DCA, 0x0DCA },   { 0x0DD2, 0x0DD6 },   { 0x0E31, 0x0E31 },   { 0x0E34, 0x0E3A },
    { 0x0E47, 0x0E4E },   { 0x0EB1, 0x0EB1 },   { 0x0EB4, 0x0EBC },   { 0x0EC8, 0x0ECD },
    { 0x0F18, 0x0F19 },   { 0x0F35, 0x0F35 },   { 0x0F37, 0x0F37 },   { 0x0F39, 0x0F39 },
    { 0x0F71, 0x0F7E },   { 0x0F80, 0x0F84 },   { 0x0F86, 0x0F87 },   { 0x0F8D, 0x0FBC },
    { 0x102D, 0x1030 },   { 0x1032, 0x1037 },   { 0x1039, 0x103A },   { 0x1058, 0x1059 },
    { 0x1160, 0x11FF },   { 0x135D, 0x135F },   { 0x1712, 0x1714 },   { 0x17B4, 0x17B5 },
    { 0x17B7, 0x17BD },   { 0x17C6, 0x17C6 },   { 0x17C9, 0x17D3 },   { 0x180B, 0x180E },
    { 0x1920, 0x1922 },   { 0x1A17, 0x1A18 },   { 0x1AB0, 0x1AFF },   { 0x1B00, 0x1B03 },
    { 0x1B34, 0x1B34 },   { 0x1B36, 0x1B3A },   { 0x1DC0, 0x1DFF },   { 0x200B, 0x200F },
    { 0x202A, 0x202E },   { 0x2060, 0x2064 },   { 0x20D0, 0x20F0 },   { 0x2CEF, 0x2CF1 },
    { 0x302A, 0x302D },   { 0x3099, 0x309A },   { 0xA66F, 0xA672 },   { 0xA674, 0xA67D },
    { 0xA6F0, 0xA6F1 },   { 0xA802, 0xA802 },   { 0xA8C4, 0xA8C5 },   { 0xA8E0, 0xA8F1 },
    { 0xA926, 0xA92D },   { 0xAAB0, 0xAAB0 },   { 0xFB1E, 0xFB1E },   { 0xFE00, 0xFE0F },
    { 0xFE20, 0xFE2F },   { 0xFEFF, 0xFEFF },   { 0x101FD, 0x101FD }, { 0x1D167, 0x1D169 },
    { 0x1F3FB, 0x1F3FF }, { 0xE0001, 0xE007F }, { 0xE0100, 0xE01EF },
};

/* East Asian wide and full-width, and the emoji that are drawn as pictures by default. */
static const range double_width[] = {
    { 0x1100, 0x115F },   { 0x231A, 0x231B },   { 0x2329, 0x232A },   { 0x23E9, 0x23EC },
    { 0x23F0, 0x23F0 },   { 0x23F3, 0x23F3 },   { 0x25FD, 0x25FE },   { 0x2614, 0x2615 },
    { 0x2648, 0x2653 },   { 0x267F, 0x267F },   { 0x2693, 0x2693 },   { 0x26A1, 0x26A1 },
    { 0x26AA, 0x26AB },   { 0x26BD, 0x26BE },   { 0x26C4, 0x26C5 },   { 0x26CE, 0x26CE },
    { 0x26D4, 0x26D4 },   { 0x26EA, 0x26EA },   { 0x26F2, 0x26F3 },   { 0x26F5, 0x26F5 },
    { 0x26FA, 0x26FA },   { 0x26FD, 0x26FD },   { 0x2705, 0x2705 },   { 0x270A, 0x270B },
    { 0x2728, 0x2728 },   { 0x274C, 0x274C },   { 0x274E, 0x274E },   { 0x2753, 0x2755 },
    { 0x2757, 0x2757 },   { 0x2795, 0x2797 },   { 0x27B0, 0x27B0 },   { 0x27BF, 0x27BF },
    { 0x2B1B, 0x2B1C },   { 0x2B50, 0x2B50 },   { 0x2B55, 0x2B55 },   { 0x2E80, 0x303E },
    { 0x3041, 0x33FF },   { 0x3400, 0x4DBF },   { 0x4E00, 0xA4CF },   { 0xA960, 0xA97F },
    { 0xAC00, 0xD7A3 },   { 0xF900, 0xFAFF },   { 0xFE10, 0xFE19 },   { 0xFE30, 0xFE6F },
    { 0xFF01, 0xFF60 },   { 0xFFE0, 0xFFE6 },   { 0x16FE0, 0x18CFF }, { 0x1AFF0, 0x1B2FF },
    { 0x1F004, 0x1F004 }, { 0x1F0CF, 0x1F0CF }, { 0x1F18E, 0x1F18E }, { 0x1F191, 0x1F19A },
    { 0x1F200, 0x1F265 }, { 0x1F300, 0x1F320 }, { 0x1F32D, 0x1F335 }, { 0x1F337, 0x1F37C },
    { 0x1F37E, 0x1F393 }, { 0x1F3A0, 0x1F3CA }, { 0x1F3CF, 0x1F3D3 }, { 0x1F3E0, 0x1F3F0 },
    { 0x1F3F4, 0x1F3F4 }, { 0x1F3F8, 0x1F43E }, { 0x1F440, 0x1F440 }, { 0x1F442, 0x1F4FC },
    { 0x1F4FF, 0x1F53D }, { 0x1F54B, 0x1F54E }, { 0x1F550, 0x1F567 }, { 0x1F57A, 0x1F57A },
    { 0x1F595, 0x1F596 }, { 0x1F5A4, 0x1F5A4 }, { 0x1F5FB, 0x1F64F }, { 0x1F680, 0x1F6C5 },
    { 0x1F6CC, 0x1F6CC }, { 0x1F6D0, 0x1F6D2 }, { 0x1F6D5, 0x1F6D7 }, { 0x1F6DD, 0x1F6DF },
    { 0x1F6EB, 0x1F6EC }, { 0x1F6F4, 0x1F6FC }, { 0x1F7E0, 0x1F7EB }, { 0x1F7F0, 0x1F7F0 },
    { 0x1F90C, 0x1F93A }, { 0x1F93C, 0x1F945 }, { 0x1F947, 0x1F9FF }, { 0x1FA70, 0x1FAFF },
    { 0x20000, 0x2FFFD }, { 0x30000, 0x3FFFD },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool in_ranges(const range *ranges, size_t count, uint32_t code_point)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code_point > ranges[middle].last)
            low = middle + 1;
        else if (code_point < ranges[middle].first)
            high = middle;
        else
            return true;
    }
    return false;
}

size_t coffer__utf8_width(const char *text, size_t len)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + len;
    size_t width = 0;
    while (at < end) {
        uint32_t code_point;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        if (step == 0) { /* drawn as one replacement character */
            step = 1;
            code_point = 0xFFFD;
        }
        if (in_ranges(double_width, COUNT_OF(double_width), code_point))
            width += 2;
        else if (!in_ranges(zero_width, COUNT_OF(zero_width), code_point))
            width += 1;
        at += step;
    }
    return width;
}
