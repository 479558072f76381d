#include "base/varint.h"

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
