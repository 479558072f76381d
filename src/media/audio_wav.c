/* WAV files by ourselves. The reader of libsndfile for them has a record of memory errors (see design.md),
 * and samples that are stored plainly need no library. */
#include "base/bytes.h"
#include "base/fail.h"
#include "media/audio.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WAV_PCM = 1, WAV_FLOAT = 3, WAV_A_LAW = 6, WAV_MU_LAW = 7, WAV_EXTENSIBLE = 0xfffe };

#define WAV_STREAMED UINT32_MAX /* written by programs that cannot seek back to the header */
#define CHANNELS_MAX 1024       /* as libsndfile has it */

typedef struct wav {
    const uint8_t *format, *data;
    size_t format_len;
    uint64_t data_len;
    uint32_t tag, bits;
} wav;

bool coffer__wav_is(const uint8_t *bytes, size_t size)
{
    return size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WAVE", 4) == 0;
}

void coffer__wav_put_header(coffer__buffer *out, uint16_t channels, uint32_t rate, uint16_t bits, size_t size)
{
    uint8_t head[44] = "RIFF....WAVEfmt ....................data";
    uint32_t frame = channels * (bits / 8u);
    coffer__store_u32(head + 4, 36 + (uint32_t)size);
    coffer__store_u32(head + 16, 16);
    coffer__store_u16(head + 20, WAV_PCM);
    coffer__store_u16(head + 22, channels);
    coffer__store_u32(head + 24, rate);
    coffer__store_u32(head + 28, rate * frame);
    coffer__store_u16(head + 32, (uint16_t)frame);
    coffer__store_u16(head + 34, bits);
    coffer__store_u32(head + 40, (uint32_t)size);
    coffer__buffer_append(out, head, sizeof head);
}

static coffer_status find_chunks(wav *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    size_t at = 12;
    while (size - at >= 8) {
        const uint8_t *chunk = bytes + at;
        uint32_t len = coffer__load_u32(chunk + 4);
        size_t left = size - at - 8;
        bool is_data = memcmp(chunk, "data", 4) == 0;
        if (is_data && len == WAV_STREAMED)
            len = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
        if (len > left)
            return coffer__fail(err, COFFER_E_TRUNCATED, at,
                                "WAV: a chunk of %" PRIu32 " bytes, %zu are left", len, left);
        if (memcmp(chunk, "fmt ", 4) == 0) {
            out->format = chunk + 8;
            out->format_len = len;
        }
        if (is_data) {
            out->data = chunk + 8;
            out->data_len = len;
            return COFFER_OK;
        }
        at += 8 + (size_t)len;
        if (len % 2 && at < size)
            at++;
    }
    return coffer__fail(err, COFFER_E_MISSING, size, "WAV: %zu bytes without a data chunk", size);
}

static coffer_status read_parts(wav *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    coffer_status status = find_chunks(out, bytes, size, err);
    if (status)
        return status;
    if (!out->format || out->format_len < 16)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "WAV: no format before the data");
    out->tag = coffer__load_u16(out->format);
    out->bits = coffer__load_u16(out->format + 14);
    if (out->tag == WAV_EXTENSIBLE && out->format_len >= 26)
        out->tag = coffer__load_u16(out->format + 24);
    return COFFER_OK;
}

/* Bytes of a sample; 0 for those that are not decoded. */
static uint32_t sample_size(const wav *parts)
{
    uint32_t size = (parts->bits + 7) / 8;
    switch (parts->tag) {
    case WAV_PCM:
        return size <= 4 ? size : 0;
    case WAV_FLOAT:
        return size == 4 || size == 8 ? size : 0;
    case WAV_A_LAW:
    case WAV_MU_LAW:
        return size == 1 ? 1 : 0;
    default:
        return 0;
    }
}

coffer_status coffer__wav_probe(coffer_audio_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    wav parts = { 0 };
    coffer_status status = read_parts(&parts, bytes, size, err);
    if (status)
        return status;
    uint32_t block = coffer__load_u16(parts.format + 12), tag = parts.tag;
    uint64_t place = (uint64_t)(parts.format - bytes);
    *out = (coffer_audio_info){ .struct_size = sizeof(coffer_audio_info),
                                .sample_rate = coffer__load_u32(parts.format + 4),
                                .channels = coffer__load_u16(parts.format + 2),
                                .bit_depth = tag == WAV_FLOAT ? 0 : parts.bits,
                                .kind = COFFER_AUDIO_WAV };
    snprintf(out->codec, sizeof out->codec, "%s",
             tag == WAV_PCM     ? "pcm"
             : tag == WAV_FLOAT ? "float"
                                : "packed");
    if (out->channels == 0 || out->channels > CHANNELS_MAX || out->sample_rate == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place,
                            "WAV: %" PRIu32 " channels, %" PRIu32 " samples a second", out->channels,
                            out->sample_rate);
    if (tag != WAV_PCM && tag != WAV_FLOAT && tag != WAV_A_LAW && tag != WAV_MU_LAW)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, place,
                            "WAV: encoding 0x%04" PRIx32
                            " is not decoded, only PCM, floats, A-law and µ-law; "
                            "convert it first, such as with ffmpeg -i IN.wav OUT.wav",
                            tag);
    uint32_t bytes_each = sample_size(&parts);
    if (bytes_each == 0 || block != out->channels * bytes_each)
        return coffer__fail(err, COFFER_E_BAD_VALUE, place,
                            "WAV: %" PRIu32 " channels of %" PRIu32 " bits in %" PRIu32 " bytes",
                            out->channels, parts.bits, block);
    out->frames = parts.data_len / block;
    return COFFER_OK;
}

/* ---- Samples ---- */

static float from_a_law(uint8_t code)
{
    uint8_t plain = code ^ 0x55;
    int exponent = plain >> 4 & 7, value = (plain & 15) << 4 | 8;
    if (exponent > 0)
        value = (value + 0x100) << (exponent - 1);
    return (float)(plain & 0x80 ? value : -value) / 32768;
}

static float from_mu_law(uint8_t code)
{
    uint8_t plain = (uint8_t)~code;
    int value = ((((plain & 15) << 3) + 0x84) << (plain >> 4 & 7)) - 0x84;
    return (float)(plain & 0x80 ? -value : value) / 32768;
}

/* Bytes of 8 bits are unsigned, longer samples are not; those between are in the upper bits of their bytes.
 */
static float from_pcm(const uint8_t *at, uint32_t size)
{
    uint32_t bits = 0;
    if (size == 1)
        return (float)(at[0] - 128) / 128;
    for (uint32_t i = 0; i < size; i++)
        bits |= (uint32_t)at[i] << (8 * (4 - size + i));
    return (float)(int32_t)bits / 2147483648.0F;
}

static float from_float(const uint8_t *at, uint32_t size)
{
    uint32_t bits = coffer__load_u32(at);
    float value;
    if (size == 8) {
        uint64_t wide = coffer__load_u64(at);
        double number;
        memcpy(&number, &wide, sizeof number);
        return (float)number;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

coffer_status coffer__wav_decode(float *out, const coffer_audio_info *header, const uint8_t *bytes,
                                 size_t size, coffer_error *err)
{
    wav parts = { 0 };
    coffer_status status = read_parts(&parts, bytes, size, err);
    if (status)
        return status;
    uint32_t each = sample_size(&parts);
    uint64_t count = header->frames * header->channels;
    if (each == 0 || count > parts.data_len / each)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "WAV: %" PRIu64 " bytes of data, the header says %" PRIu64 " samples",
                            parts.data_len, count);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *at = parts.data + i * each;
        out[i] = parts.tag == WAV_PCM     ? from_pcm(at, each)
                 : parts.tag == WAV_FLOAT ? from_float(at, each)
                 : parts.tag == WAV_A_LAW ? from_a_law(*at)
                                          : from_mu_law(*at);
    }
    return COFFER_OK;
}
