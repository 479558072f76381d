/* PNG and WAV files for tests, put together byte by byte. */
#ifndef SUPPORT_PICTURE_BYTES_H
#define SUPPORT_PICTURE_BYTES_H

#include "base/buffer.h"

/* A PNG of these rows (each with its filter byte in front, `row_len` bytes in all), deflated without
 * compression. palette, transparency : chunks of that many bytes, left out when NULL. */
typedef struct png_parts {
    uint32_t width, height;
    uint8_t bit_depth, color_type, interlace;
    const uint8_t *palette, *transparency;
    size_t palette_len, transparency_len;
    const uint8_t *rows;
    size_t row_len; /* 0: `rows_len` says how many bytes there are in all */
    size_t rows_len;
} png_parts;

coffer__buffer png_build(const png_parts *parts);

/* A WAV file with 16-bit samples, interleaved. */
coffer__buffer wav_build(uint32_t sample_rate, uint16_t channels, const int16_t *samples, size_t count);

#endif
