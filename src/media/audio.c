/* Sounds: what their headers say, and decoding. */
#include "media/audio.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "media/media_helper.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t big_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- MP3 and AAC: a row of frames, each with a header of its own ---- */

typedef struct frame {
    size_t size;
    uint32_t samples, rate, channels;
    size_t side; /* MP3: where the frame that describes the file has its name */
} frame;

static bool read_mp3_frame(frame *out, const uint8_t *at, size_t left)
{
    static const uint16_t rates[3] = { 44100, 48000, 32000 };
    static const uint16_t kbits[2][15] = {
        { 0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320 },
        { 0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 },
    };
    if (left < 4 || at[0] != 0xff || (at[1] & 0xe6) != 0xe2) /* layer III only */
        return false;
    uint32_t version = at[1] >> 3 & 3, bitrate = at[2] >> 4, rate = at[2] >> 2 & 3;
    if (version == 1 || bitrate == 0 || bitrate == 15 || rate == 3)
        return false;
    bool first = version == 3;
    out->rate = rates[rate] >> (first ? 0 : version == 2 ? 1 : 2);
    out->samples = first ? 1152 : 576;
    out->channels = at[3] >> 6 == 3 ? 1 : 2;
    out->size = out->samples / 8 * kbits[!first][bitrate] * 1000 / out->rate + (at[2] >> 1 & 1U);
    out->side = 4U + (first ? (out->channels == 1 ? 17U : 32U) : (out->channels == 1 ? 9U : 17U));
    return true;
}

static bool read_aac_frame(frame *out, const uint8_t *at, size_t left)
{
    static const uint32_t rates[13] = { 96000, 88200, 64000, 48000, 44100, 32000, 24000,
                                        22050, 16000, 12000, 11025, 8000,  7350 };
    if (left < 7 || at[0] != 0xff || (at[1] & 0xf6) != 0xf0 || (at[2] >> 2 & 15) > 12)
        return false;
    *out = (frame){ .size = (size_t)(at[3] & 3) << 11 | (size_t)at[4] << 3 | at[5] >> 5,
                    .samples = 1024U * ((at[6] & 3U) + 1),
                    .rate = rates[at[2] >> 2 & 15],
                    .channels = (at[2] & 1U) << 2 | at[3] >> 6 };
    return out->size >= 7;
}

typedef bool (*read_frame)(frame *out, const uint8_t *at, size_t left);

/* Samples that the encoder added before and after the sound; the first frame says so. */
static bool read_mp3_tag(uint64_t *extra, const frame *first, const uint8_t *at, size_t left)
{
    *extra = 0;
    if (left < first->size || first->size < first->side + 8)
        return false;
    const uint8_t *tag = at + first->side;
    if (memcmp(tag, "Xing", 4) != 0 && memcmp(tag, "Info", 4) != 0)
        return false;
    uint32_t flags = big_u32(tag + 4);
    size_t place =
        8 + (flags & 1 ? 4U : 0) + (flags & 2 ? 4U : 0) + (flags & 4 ? 100U : 0) + (flags & 8 ? 4U : 0);
    if (first->size - first->side >= place + 24 &&
        (memcmp(tag + place, "LAME", 4) == 0 || memcmp(tag + place, "Lav", 3) == 0))
        *extra = ((uint64_t)tag[place + 21] << 4 | tag[place + 22] >> 4) +
                 ((uint64_t)(tag[place + 22] & 15) << 8 | tag[place + 23]);
    return true;
}

/* Two frames in a row tell frames from chance. */
static bool count_frames(coffer_audio_info *out, const uint8_t *bytes, size_t size, size_t begin,
                         read_frame read)
{
    frame first, next;
    if (begin >= size || !read(&first, bytes + begin, size - begin) || first.size == 0)
        return false;
    if (size - begin > first.size && !read(&next, bytes + begin + first.size, size - begin - first.size))
        return false;
    uint64_t samples = 0, extra = 0;
    size_t at = begin;
    if (read == read_mp3_frame && read_mp3_tag(&extra, &first, bytes + at, size - at))
        at += first.size;
    while (at < size && read(&next, bytes + at, size - at) && next.size && next.size <= size - at) {
        samples += next.samples;
        at += next.size;
    }
    out->frames = samples > extra ? samples - extra : 0;
    out->sample_rate = first.rate;
    out->channels = first.channels;
    return true;
}

static size_t skip_id3(const uint8_t *bytes, size_t size)
{
    if (size < 10 || memcmp(bytes, "ID3", 3) != 0)
        return 0;
    size_t len = (size_t)(bytes[6] & 127) << 21 | (size_t)(bytes[7] & 127) << 14 |
                 (size_t)(bytes[8] & 127) << 7 | (bytes[9] & 127U);
    return 10 + len + (bytes[5] & 16 ? 10U : 0);
}

/* ---- Ogg ---- */

enum { OGG_PAGE = 27 };

/* Opus decodes to one of five rates; libsndfile takes the lowest that is enough for the original. */
static uint32_t opus_rate(uint32_t original)
{
    static const uint32_t rates[] = { 8000, 12000, 16000, 24000 };
    for (size_t i = 0; original && i < sizeof rates / sizeof *rates; i++)
        if (original <= rates[i])
            return rates[i];
    return 48000;
}

static bool probe_ogg(coffer_audio_info *out, const uint8_t *bytes, size_t size)
{
    if (size < OGG_PAGE + 1 || size < OGG_PAGE + 1U + bytes[26])
        return false;
    const uint8_t *head = bytes + OGG_PAGE + bytes[26];
    size_t left = size - OGG_PAGE - bytes[26];
    uint64_t before = 0;
    if (left >= 30 && memcmp(head, "\x01vorbis", 7) == 0) {
        out->kind = COFFER_AUDIO_VORBIS;
        out->channels = head[11];
        out->sample_rate = coffer__load_u32(head + 12);
        strcpy(out->codec, "vorbis");
    } else if (left >= 19 && memcmp(head, "OpusHead", 8) == 0) {
        out->kind = COFFER_AUDIO_OPUS;
        out->channels = head[9];
        before = coffer__load_u16(head + 10);
        out->sample_rate = opus_rate(coffer__load_u32(head + 12));
        strcpy(out->codec, "opus");
    } else {
        return false;
    }
    uint64_t last = 0;
    for (size_t at = 0; size - at >= OGG_PAGE && memcmp(bytes + at, "OggS", 4) == 0;) {
        size_t segments = bytes[at + 26], len = OGG_PAGE + segments;
        if (size - at < len)
            break;
        for (size_t i = 0; i < segments; i++)
            len += bytes[at + OGG_PAGE + i];
        uint64_t position = coffer__load_u64(bytes + at + 6);
        if (position != UINT64_MAX && position > last)
            last = position;
        if (size - at < len)
            break;
        at += len;
    }
    out->frames = last > before ? last - before : 0;
    if (out->kind == COFFER_AUDIO_OPUS)
        out->frames = out->frames / (48000 / out->sample_rate); /* positions are at 48 kHz */
    return true;
}

/* ---- All ---- */

static bool probe_mp4(coffer_audio_info *out, const uint8_t *bytes, size_t size)
{
    coffer__mp4_track track;
    if (!coffer__mp4_find_track(&track, bytes, size, "soun"))
        return false;
    out->kind = COFFER_AUDIO_MP4;
    out->channels = track.channels;
    out->sample_rate = track.rate ? track.rate : track.timescale;
    out->frames = track.timescale == out->sample_rate ? track.duration : 0;
    snprintf(out->codec, sizeof out->codec, "%s", strcmp(track.codec, "mp4a") == 0 ? "aac" : track.codec);
    return true;
}

static bool probe(coffer_audio_info *out, const uint8_t *bytes, size_t size)
{
    if (size >= 4 && memcmp(bytes, "OggS", 4) == 0)
        return probe_ogg(out, bytes, size);
    if (coffer__mp4_is(bytes, size))
        return probe_mp4(out, bytes, size);
    size_t begin = skip_id3(bytes, size);
    if (count_frames(out, bytes, size, begin, read_mp3_frame)) {
        out->kind = COFFER_AUDIO_MP3;
        strcpy(out->codec, "mp3");
        return true;
    }
    if (count_frames(out, bytes, size, begin, read_aac_frame)) {
        out->kind = COFFER_AUDIO_AAC;
        strcpy(out->codec, "aac");
        return true;
    }
    return false;
}

/* MP3, ADTS, Ogg and MP4: false when the bytes are none of them. */
static bool audio_probe_packed(coffer_status *status, coffer_audio_info *out, const uint8_t *bytes,
                               size_t size, coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    if (!probe(&info, bytes, size))
        return false;
    *status = COFFER_OK;
    if (info.sample_rate == 0 || info.channels == 0 || info.channels > UINT16_MAX)
        *status = coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                               "%s: %" PRIu32 " channels, %" PRIu32 " samples a second",
                               coffer_audio_kind_name(info.kind), info.channels, info.sample_rate);
    else
        *out = info;
    return true;
}

#define FLAC_HEADER_SIZE 42 /* magic, block header and STREAMINFO */

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

static coffer_status audio_header(coffer_audio_info *out, const uint8_t *bytes, size_t size,
                                  coffer_error *err)
{
    if (coffer__wav_is(bytes, size))
        return coffer__wav_probe(out, bytes, size, err);
    if (size >= 4 && memcmp(bytes, "fLaC", 4) == 0)
        return probe_flac(out, bytes, size, err);
    coffer_status status;
    if (audio_probe_packed(&status, out, bytes, size, err))
        return status;
    return coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0,
                        "%zu bytes are not a sound of a known kind (WAV, FLAC, MP3, AAC, Ogg, M4A)", size);
}

/* Sounds to samples: headers and WAV files by ourselves, the other samples by a program. */

/* Programs that decode sounds and have nothing to do. They are taken and given back without a lock, so that a
 * fork at any time leaves them usable; a process does not use those that it has from its parent. */
typedef struct idle_helper {
    coffer__helper helper;
    pid_t owner;
    uint64_t most; /* bytes that it may allocate */
} idle_helper;

enum { MOST_IDLE = 16 };
#define LEAST_MEMORY ((uint64_t)64 << 20)

static _Atomic(idle_helper *) idle[MOST_IDLE];

static void drop_helper(idle_helper *helper)
{
    if (helper->helper.fd >= 0 && helper->owner == getpid())
        coffer__helper_stop(&helper->helper);
    else if (helper->helper.fd >= 0)
        close(helper->helper.fd);
    coffer__free(helper);
}

/* need : bytes of the file and of its samples. */
static idle_helper *take_helper(uint64_t need)
{
    for (size_t i = 0; i < MOST_IDLE; i++) {
        idle_helper *found = atomic_exchange(&idle[i], NULL);
        if (found && found->owner == getpid() && found->most >= need)
            return found;
        if (found)
            drop_helper(found);
    }
    idle_helper *made = coffer__calloc(1, sizeof *made);
    if (made)
        *made = (idle_helper){ { .fd = -1 }, getpid(), need < LEAST_MEMORY ? LEAST_MEMORY : need };
    return made;
}

static void give_helper(idle_helper *helper)
{
    for (size_t i = 0; helper->helper.fd >= 0 && i < MOST_IDLE; i++) {
        idle_helper *nothing = NULL;
        if (atomic_compare_exchange_strong(&idle[i], &nothing, helper))
            return;
    }
    drop_helper(helper);
}

/* out : floats, `count` of them. */
static coffer_status decode_remote(void *out, size_t count, const coffer_audio_info *info, const void *bytes,
                                   size_t size, coffer_error *err)
{
    uint8_t begin[28];
    uint64_t need = (uint64_t)size + (uint64_t)count * sizeof(float);
    idle_helper *taken = take_helper(need);
    if (!taken)
        return coffer__fail_no_memory(err, sizeof *taken);
    coffer__store_u64(begin, size);
    coffer__store_u64(begin + 8, taken->most);
    coffer__store_u64(begin + 16, info->frames);
    coffer__store_u32(begin + 24, info->channels);
    coffer__media_call call = { .helper = &taken->helper,
                                .name = "sound",
                                .begin = begin,
                                .begin_len = sizeof begin,
                                .bytes = bytes,
                                .size = size,
                                .out = out ? out : (void *)begin, /* no samples */
                                .out_size = count * sizeof(float) };
    coffer_status status = coffer__media_decode(&call, COFFER__MODULE_SOUND, err);
    give_helper(taken);
    return status;
}

COFFER__INIT_FUNCTION(coffer_audio_info, COFFER_AUDIO_INFO_INIT)

const char *coffer_audio_kind_name(coffer_audio_kind kind)
{
    static const char *const names[] = {
        "sound", "WAV", "FLAC", "MP3", "AAC", "Ogg Vorbis", "Ogg Opus", "M4A"
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : names[0];
}

coffer_status coffer_audio_probe(coffer_audio_info *out, const void *bytes, size_t size, coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_status status = audio_header(&info, bytes, size, err);
    return status ? status : coffer__give_struct(out, &info, sizeof info, err);
}

coffer_status coffer_audio_decode(float *out, size_t out_count, const void *bytes, size_t size,
                                  coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    uint64_t count;
    coffer_status status = coffer_audio_probe(&info, bytes, size, err);
    if (status)
        return status;
    if (!coffer__mul_u64(&count, info.frames, info.channels) || count != out_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "sound: room for %zu samples, there are %" PRIu64 " × %" PRIu32, out_count,
                            info.frames, info.channels);
    if (info.frames == 0 && info.kind <= COFFER_AUDIO_FLAC)
        return COFFER_OK;
    if (info.kind == COFFER_AUDIO_AAC || info.kind == COFFER_AUDIO_MP4)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "sound: Coffer has no decoder for %s (%s)", coffer_audio_kind_name(info.kind),
                            info.codec);
    if (info.kind == COFFER_AUDIO_WAV)
        return coffer__wav_decode(out, &info, bytes, size, err);
    const coffer__sound_module *linked = coffer__module_linked(COFFER__MODULE_SOUND);
    return linked ? linked->read_frames(out, &info, bytes, size, err)
                  : decode_remote(out, out_count, &info, bytes, size, err);
}
