#include "support/picture_bytes.h"

#include "base/bytes.h"
#include "base/crc32.h"

static void put_big_u32(coffer__buffer *out, uint32_t value)
{
    uint8_t bytes[4] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
                         (uint8_t)value };
    coffer__buffer_append(out, bytes, sizeof bytes);
}

static void put_chunk(coffer__buffer *out, const char *name, const void *bytes, size_t len)
{
    uint32_t crc = coffer__crc32(coffer__crc32(0, name, 4), bytes, len);
    put_big_u32(out, (uint32_t)len);
    coffer__buffer_append(out, name, 4);
    coffer__buffer_append(out, bytes, len);
    put_big_u32(out, crc);
}

static uint32_t adler32(const uint8_t *bytes, size_t len)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < len; i++) {
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* Stored blocks. */
static coffer__buffer deflate_plain(const uint8_t *bytes, size_t len)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    coffer__buffer_append(&out, "\x78\x01", 2);
    for (size_t at = 0; at < len || at == 0;) {
        size_t part = len - at < 65535 ? len - at : 65535;
        uint8_t head[5] = { at + part == len };
        coffer__store_u16(head + 1, (uint16_t)part);
        coffer__store_u16(head + 3, (uint16_t)~part);
        coffer__buffer_append(&out, head, sizeof head);
        coffer__buffer_append(&out, bytes + at, part);
        at += part ? part : 1;
    }
    put_big_u32(&out, adler32(bytes, len));
    return out;
}

coffer__buffer png_build(const png_parts *parts)
{
    coffer__buffer out = COFFER__BUFFER_INIT, header = COFFER__BUFFER_INIT;
    uint8_t tail[5] = { parts->bit_depth, parts->color_type, 0, 0, parts->interlace };
    size_t len = parts->row_len ? parts->row_len * parts->height : parts->rows_len;
    coffer__buffer data = deflate_plain(parts->rows, len);
    coffer__buffer_append(&out, "\x89PNG\r\n\x1a\n", 8);
    put_big_u32(&header, parts->width);
    put_big_u32(&header, parts->height);
    coffer__buffer_append(&header, tail, sizeof tail);
    put_chunk(&out, "IHDR", header.data, header.len);
    if (parts->palette)
        put_chunk(&out, "PLTE", parts->palette, parts->palette_len);
    if (parts->transparency)
        put_chunk(&out, "tRNS", parts->transparency, parts->transparency_len);
    put_chunk(&out, "IDAT", data.data, data.len);
    put_chunk(&out, "IEND", "", 0);
    coffer__buffer_free(&data);
    coffer__buffer_free(&header);
    return out;
}

coffer__buffer wav_build(uint32_t sample_rate, uint16_t channels, const int16_t *samples, size_t count)
{
    coffer__buffer out = COFFER__BUFFER_INIT;
    uint32_t data_len = (uint32_t)(2 * count);
    uint8_t head[44] = "RIFF....WAVEfmt ....................data";
    coffer__store_u32(head + 4, 36 + data_len);
    coffer__store_u32(head + 16, 16);
    coffer__store_u16(head + 20, 1);
    coffer__store_u16(head + 22, channels);
    coffer__store_u32(head + 24, sample_rate);
    coffer__store_u32(head + 28, sample_rate * channels * 2);
    coffer__store_u16(head + 32, (uint16_t)(channels * 2));
    coffer__store_u16(head + 34, 16);
    coffer__store_u32(head + 40, data_len);
    coffer__buffer_append(&out, head, sizeof head);
    for (size_t i = 0; i < count; i++) {
        uint8_t sample[2];
        coffer__store_u16(sample, (uint16_t)samples[i]);
        coffer__buffer_append(&out, sample, sizeof sample);
    }
    return out;
}
