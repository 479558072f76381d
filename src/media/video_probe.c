/* Container and codec of videos: MP4 and QuickTime, Matroska and WebM, AVI, MPEG. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/options.h"
#include "media/audio.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_video_info, COFFER_VIDEO_INFO_INIT)

static uint64_t big(const uint8_t *at, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | at[i];
    return value;
}

/* ---- MP4 and QuickTime: boxes of a size, a name and contents ---- */

typedef struct box {
    const uint8_t *data;
    size_t size;
} box;

/* The box at *at, which moves past it. */
static bool next_box(box *out, char name[5], const box *parent, size_t *at)
{
    size_t left = parent->size - *at, head = 8;
    const uint8_t *start = parent->data + *at;
    if (left < 8)
        return false;
    uint64_t size = big(start, 4);
    memcpy(name, start + 4, 4);
    name[4] = 0;
    if (size == 1 && left >= 16) {
        size = big(start + 8, 8);
        head = 16;
    }
    if (size == 0)
        size = left;
    if (size < head || size > left)
        return false;
    *out = (box){ start + head, (size_t)size - head };
    *at += (size_t)size;
    return true;
}

static bool find_box(box *out, const box *parent, const char *wanted)
{
    char name[5];
    for (size_t at = 0; next_box(out, name, parent, &at);)
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

static void read_media_header(coffer__mp4_track *track, const box *mdhd)
{
    bool wide = mdhd->size > 0 && mdhd->data[0] == 1;
    if (mdhd->size < (wide ? 32U : 20U))
        return;
    track->timescale = (uint32_t)big(mdhd->data + (wide ? 20 : 12), 4);
    track->duration = wide ? big(mdhd->data + 24, 8) : big(mdhd->data + 16, 4);
}

static void read_sample_entry(coffer__mp4_track *track, const box *stsd)
{
    const uint8_t *entry = stsd->data + 8;
    if (stsd->size < 8 + 36)
        return;
    memcpy(track->codec, entry + 4, 4);
    for (size_t i = 0; i < 4; i++)
        if (track->codec[i] < ' ' || track->codec[i] > '~')
            track->codec[i] = '?';
    if (strcmp(track->handler, "soun") == 0) {
        track->channels = (uint32_t)big(entry + 24, 2);
        track->rate = (uint32_t)big(entry + 32, 2);
    } else {
        track->width = (uint32_t)big(entry + 32, 2);
        track->height = (uint32_t)big(entry + 34, 2);
    }
}

static bool read_track(coffer__mp4_track *track, const box *trak)
{
    box mdia, part, minf, stbl;
    *track = (coffer__mp4_track){ .timescale = 0 };
    if (!find_box(&mdia, trak, "mdia") || !find_box(&part, &mdia, "hdlr") || part.size < 12)
        return false;
    memcpy(track->handler, part.data + 8, 4);
    if (find_box(&part, &mdia, "mdhd"))
        read_media_header(track, &part);
    if (find_box(&minf, &mdia, "minf") && find_box(&stbl, &minf, "stbl") && find_box(&part, &stbl, "stsd"))
        read_sample_entry(track, &part);
    return true;
}

bool coffer__mp4_is(const uint8_t *bytes, size_t size)
{
    return size >= 12 && memcmp(bytes + 4, "ftyp", 4) == 0;
}

bool coffer__mp4_find_track(coffer__mp4_track *out, const uint8_t *bytes, size_t size, const char *handler)
{
    box file = { bytes, size }, moov, trak;
    char name[5];
    if (!find_box(&moov, &file, "moov"))
        return false;
    for (size_t at = 0; next_box(&trak, name, &moov, &at);)
        if (strcmp(name, "trak") == 0 && read_track(out, &trak) && strcmp(out->handler, handler) == 0)
            return true;
    return false;
}

static coffer_status probe_mp4(coffer_video_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    coffer__mp4_track track;
    bool is_mov = memcmp(bytes + 8, "qt  ", 4) == 0;
    snprintf(out->container, sizeof out->container, "%s", is_mov ? "mov" : "mp4");
    if (!coffer__mp4_find_track(&track, bytes, size, "vide"))
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                            "%s: no video track in %zu bytes; the file may be truncated", out->container,
                            size);
    snprintf(out->codec, sizeof out->codec, "%s", track.codec);
    out->width = track.width;
    out->height = track.height;
    out->seconds = track.timescale ? (double)track.duration / track.timescale : 0;
    return COFFER_OK;
}

/* ---- Matroska and WebM: elements of an identifier, a size and contents ---- */

enum {
    EBML_DOCTYPE = 0x4282,
    EBML_HEAD = 0x1a45dfa3,
    SEGMENT = 0x18538067,
    TRACKS = 0x1654ae6b,
    TRACK = 0xae,
    TRACK_TYPE = 0x83,
    TRACK_CODEC = 0x86,
    TRACK_VIDEO = 0xe0,
    VIDEO_WIDTH = 0xb0,
    VIDEO_HEIGHT = 0xba
};

static bool read_vint(uint64_t *out, const box *parent, size_t *at, bool keep_marker)
{
    if (*at >= parent->size || parent->data[*at] == 0)
        return false;
    uint8_t first = parent->data[*at];
    size_t len = (size_t)__builtin_clz(first) - 23;
    if (parent->size - *at < len)
        return false;
    *out = big(parent->data + *at, len);
    uint64_t marker = UINT64_C(1) << (7 * len);
    if (!keep_marker)
        *out = *out == 2 * marker - 1 ? UINT64_MAX : *out & (marker - 1); /* all ones: unknown size */
    *at += len;
    return true;
}

static bool next_element(box *out, uint64_t *id, const box *parent, size_t *at)
{
    uint64_t size;
    if (!read_vint(id, parent, at, true) || !read_vint(&size, parent, at, false))
        return false;
    size_t left = parent->size - *at;
    *out = (box){ parent->data + *at, size < left ? (size_t)size : left };
    *at += out->size;
    return true;
}

static void copy_name(char *out, size_t room, const box *text)
{
    snprintf(out, room, "%.*s", (int)(text->size < room ? text->size : room - 1), (const char *)text->data);
}

/* True for a track of pictures. */
static bool read_matroska_track(coffer_video_info *out, const box *track)
{
    box part, inner;
    uint64_t id, type = 0;
    for (size_t at = 0; next_element(&part, &id, track, &at);) {
        if (id == TRACK_TYPE && part.size <= 8)
            type = big(part.data, part.size);
        if (id == TRACK_CODEC)
            copy_name(out->codec, sizeof out->codec, &part);
        for (size_t place = 0; id == TRACK_VIDEO && next_element(&inner, &id, &part, &place);
             id = TRACK_VIDEO) {
            if (id == VIDEO_WIDTH && inner.size <= 4)
                out->width = (uint32_t)big(inner.data, inner.size);
            if (id == VIDEO_HEIGHT && inner.size <= 4)
                out->height = (uint32_t)big(inner.data, inner.size);
        }
    }
    return type == 1;
}

static coffer_status probe_matroska(coffer_video_info *out, const uint8_t *bytes, size_t size,
                                    coffer_error *err)
{
    box file = { bytes, size }, part, inner, track;
    uint64_t id;
    strcpy(out->container, "matroska");
    for (size_t at = 0; next_element(&part, &id, &file, &at);) {
        for (size_t place = 0; id == EBML_HEAD && next_element(&inner, &id, &part, &place);) {
            if (id == EBML_DOCTYPE && inner.size == 4 && memcmp(inner.data, "webm", 4) == 0)
                strcpy(out->container, "webm");
            id = EBML_HEAD;
        }
        if (id != SEGMENT)
            continue;
        for (size_t place = 0; next_element(&inner, &id, &part, &place);) {
            for (size_t here = 0; id == TRACKS && next_element(&track, &id, &inner, &here); id = TRACKS)
                if (id == TRACK && read_matroska_track(out, &track))
                    return COFFER_OK;
        }
    }
    return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "%s: no video track in %zu bytes",
                        out->container, size);
}

/* ---- All ---- */

/* RIFF | size | AVI | LIST | size | hdrl | avih | size | the main header | LIST | size | strl | strh … */
static coffer_status probe_avi(coffer_video_info *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    enum { AVI_HEADERS = 120 };
    strcpy(out->container, "avi");
    if (size < AVI_HEADERS || memcmp(bytes + 24, "avih", 4) != 0)
        return coffer__fail(err, COFFER_E_TRUNCATED, size, "avi: no header in %zu bytes", size);
    const uint8_t *head = bytes + 32;
    out->width = coffer__load_u32(head + 32);
    out->height = coffer__load_u32(head + 36);
    out->seconds = (double)coffer__load_u32(head) * coffer__load_u32(head + 16) / 1e6;
    if (memcmp(bytes + 108, "vids", 4) == 0)
        copy_name(out->codec, 5, &(box){ bytes + 112, 4 });
    return COFFER_OK;
}

coffer_status coffer_video_probe(coffer_video_info *out, const void *bytes, size_t size, coffer_error *err)
{
    coffer_video_info info = COFFER_VIDEO_INFO_INIT;
    const uint8_t *head = bytes;
    coffer_status status = COFFER_OK;
    if (coffer__mp4_is(head, size))
        status = probe_mp4(&info, head, size, err);
    else if (size >= 4 && memcmp(head, "\x1a\x45\xdf\xa3", 4) == 0)
        status = probe_matroska(&info, head, size, err);
    else if (size >= 12 && memcmp(head, "RIFF", 4) == 0 && memcmp(head + 8, "AVI ", 4) == 0)
        status = probe_avi(&info, head, size, err);
    else if (size >= 4 && (memcmp(head, "\0\0\1\xba", 4) == 0 || memcmp(head, "\0\0\1\xb3", 4) == 0))
        strcpy(info.container, "mpeg");
    else
        status =
            coffer__fail(err, COFFER_E_NOT_RECOGNISED, 0,
                         "%zu bytes are not a video of a known kind (MP4, QuickTime, Matroska, WebM, AVI, "
                         "MPEG)",
                         size);
    return status ? status : coffer__give_struct(out, &info, sizeof info, err);
}
