/* The headers of WAV and FLAC files; audio_packed.c has the others. */
#include "base/bytes.h"
#include "base/fail.h"
#include "media/audio.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WAV_PCM = 1, WAV_FLOAT = 3, WAV_EXTENSIBLE = 0xfffe };

#define WAV_STREAMED UINT32_MAX /* written by programs that cannot seek back to the header */
#define CHANNELS_MAX 1024       /* as libsndfile has it */
#define FLAC_HEADER_SIZE 42     /* magic, block header and STREAMINFO */

typedef struct wav {
    const uint8_t *format, *data;
    size_t format_len;
    uint64_t data_len;
} wav;

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

static coffer_status probe_wav(coffer_audio_info *out, bool *known, const uint8_t *bytes, size_t size,
                               coffer_error *err)
{
    wav parts = { 0 };
    coffer_status status = find_chunks(&parts, bytes, size, err);
    if (status)
        return status;
    if (!parts.format || parts.format_len < 16)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "WAV: no format before the data");
    uint32_t tag = coffer__load_u16(parts.format), block = coffer__load_u16(parts.format + 12);
    uint32_t bits = coffer__load_u16(parts.format + 14);
    if (tag == WAV_EXTENSIBLE && parts.format_len >= 26)
        tag = coffer__load_u16(parts.format + 24);
    *out = (coffer_audio_info){ .struct_size = sizeof(coffer_audio_info),
                                .sample_rate = coffer__load_u32(parts.format + 4),
                                .channels = coffer__load_u16(parts.format + 2),
                                .bit_depth = tag == WAV_FLOAT ? 0 : bits,
                                .kind = COFFER_AUDIO_WAV };
    snprintf(out->codec, sizeof out->codec, "%s",
             tag == WAV_PCM     ? "pcm"
             : tag == WAV_FLOAT ? "float"
                                : "packed");
    if (out->channels == 0 || out->channels > CHANNELS_MAX || out->sample_rate == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, (uint64_t)(parts.format - bytes),
                            "WAV: %" PRIu32 " channels, %" PRIu32 " samples a second", out->channels,
                            out->sample_rate);
    *known = tag == WAV_PCM || tag == WAV_FLOAT;
    if (!*known)
        return COFFER_OK;
    if (bits == 0 || bits > 64 || block != out->channels * ((bits + 7) / 8))
        return coffer__fail(err, COFFER_E_BAD_VALUE, (uint64_t)(parts.format - bytes),
                            "WAV: %" PRIu32 " channels of %" PRIu32 " bits in %" PRIu32 " bytes",
                            out->channels, bits, block);
    out->frames = parts.data_len / block;
    return COFFER_OK;
}

static coffer_status probe_flac(coffer_audio_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    if (size < FLAC_HEADER_SIZE)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "FLAC: %zu bytes, the header has %d", size,
                            FLAC_HEADER_SIZE);
    if ((bytes[4] & 0x7f) != 0 || bytes[5] != 0 || bytes[6] != 0 || bytes[7] != 34)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 4, "FLAC: the first block is not STREAMINFO");
    /* 20 bits rate, 3 channels − 1, 5 bits of a sample − 1, 36 samples; big-endian. */
    uint64_t packed = 0;
    for (size_t i = 18; i < 26; i++)
        packed = packed << 8 | bytes[i];
    *out = (coffer_audio_info){ .struct_size = sizeof(coffer_audio_info),
                                .frames = packed & ((UINT64_C(1) << 36) - 1),
                                .sample_rate = (uint32_t)(packed >> 44),
                                .channels = (uint32_t)(packed >> 41 & 7) + 1,
                                .bit_depth = (uint32_t)(packed >> 36 & 31) + 1,
                                .flac = true,
                                .kind = COFFER_AUDIO_FLAC,
                                .codec = "flac" };
    if (out->sample_rate == 0)
        return coffer__fail(err, COFFER_E_BAD_VALUE, 18, "FLAC: 0 samples a second");
    if (out->frames == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, 21,
                            "FLAC: the header does not say how many samples there are");
    return COFFER_OK;
}

coffer_status coffer__audio_header(coffer_audio_info *out, bool *known, const uint8_t *bytes, size_t size,
                                   coffer_error *err)
{
    *known = true;
    if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WAVE", 4) == 0)
        return probe_wav(out, known, bytes, size, err);
    if (size >= 4 && memcmp(bytes, "fLaC", 4) == 0)
        return probe_flac(out, bytes, size, err);
    coffer_status status;
    if (coffer__audio_probe_packed(&status, out, bytes, size, err))
        return status;
    return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0,
                        "%zu bytes are not a sound of a known kind (WAV, FLAC, MP3, AAC, Ogg, M4A)", size);
}
