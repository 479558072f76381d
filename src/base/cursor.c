#include "base/cursor.h"

#include "base/bytes.h"

coffer__cursor coffer__cursor_over(const void *bytes, size_t len, uint64_t base)
{
    static const uint8_t nothing[1];
    const uint8_t *start = len ? (const uint8_t *)bytes : nothing;
    return (coffer__cursor){ start, start, start + len, base, false };
}

uint64_t coffer__cursor_offset(const coffer__cursor *cursor)
{
    return cursor->base + (uint64_t)(cursor->at - cursor->start);
}

size_t coffer__cursor_left(const coffer__cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

const uint8_t *coffer__cursor_bytes(coffer__cursor *cursor, size_t len)
{
    if (cursor->failed || len > coffer__cursor_left(cursor)) {
        cursor->failed = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += len;
    return bytes;
}

void coffer__cursor_skip(coffer__cursor *cursor, size_t len)
{
    (void)coffer__cursor_bytes(cursor, len);
}

uint8_t coffer__cursor_u8(coffer__cursor *cursor)
{
    const uint8_t *bytes = coffer__cursor_bytes(cursor, sizeof(uint8_t));
    return bytes ? *bytes : 0;
}

uint16_t coffer__cursor_u16(coffer__cursor *cursor)
{
    const uint8_t *bytes = coffer__cursor_bytes(cursor, sizeof(uint16_t));
    return bytes ? coffer__load_u16(bytes) : 0;
}

uint32_t coffer__cursor_u32(coffer__cursor *cursor)
{
    const uint8_t *bytes = coffer__cursor_bytes(cursor, sizeof(uint32_t));
    return bytes ? coffer__load_u32(bytes) : 0;
}

uint64_t coffer__cursor_u64(coffer__cursor *cursor)
{
    const uint8_t *bytes = coffer__cursor_bytes(cursor, sizeof(uint64_t));
    return bytes ? coffer__load_u64(bytes) : 0;
}

float coffer__cursor_f32(coffer__cursor *cursor)
{
    uint32_t bits = coffer__cursor_u32(cursor);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

double coffer__cursor_f64(coffer__cursor *cursor)
{
    uint64_t bits = coffer__cursor_u64(cursor);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

coffer__varint_result coffer__varint_read(uint64_t *value, const uint8_t **at, const uint8_t *end)
{
    const uint8_t *next = *at;
    uint64_t sum = 0;
    for (unsigned shift = 0;; shift += 7) {
        if (next == end)
            return COFFER__VARINT_TRUNCATED;
        uint8_t byte = *next++;
        if (shift == 63 && byte > 1) /* one bit is left; this also limits a varint to ten bytes */
            return COFFER__VARINT_OVERFLOW;
        sum |= (uint64_t)(byte & 0x7F) << shift;
        if (byte >= 0x80)
            continue;
        *value = sum;
        *at = next;
        return byte == 0 && shift > 0 ? COFFER__VARINT_OVERLONG : COFFER__VARINT_OK;
    }
}

size_t coffer__varint_write(uint8_t out[COFFER__VARINT_MAX], uint64_t value)
{
    size_t len = 0;
    while (value >= 0x80) {
        out[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[len++] = (uint8_t)value;
    return len;
}
