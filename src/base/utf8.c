#include "base/utf8.h"

#include "base/bytes.h"

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
