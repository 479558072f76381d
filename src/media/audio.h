/* Sounds: the header, and the table of the module that decodes. */
#ifndef COFFER_MEDIA_AUDIO_H
#define COFFER_MEDIA_AUDIO_H

#include "base/buffer.h"
#include "base/module.h"
#include "coffer/media.h"

typedef struct coffer__sound_module {
    coffer__module common;
    /* out : room for frames × channels samples of the header. */
    coffer_status (*read_frames)(float *out, const coffer_audio_info *header, const void *bytes, size_t size,
                                 coffer_error *err);
} coffer__sound_module;

/* WAV files (audio_wav.c): PCM, floats, A-law and µ-law. */
bool coffer__wav_is(const uint8_t *bytes, size_t size);
coffer_status coffer__wav_probe(coffer_audio_info *out, const uint8_t *bytes, size_t size, coffer_error *err);
/* out : room for frames × channels samples of the header, which coffer__wav_probe filled in. */
coffer_status coffer__wav_decode(float *out, const coffer_audio_info *header, const uint8_t *bytes,
                                 size_t size, coffer_error *err);

/* The header of a WAV file, which `size` bytes of whole numbers follow. */
void coffer__wav_put_header(coffer__buffer *out, uint16_t channels, uint32_t rate, uint16_t bits,
                            size_t size);

/* The first track of sound or of pictures in an MP4 or QuickTime file. */
typedef struct coffer__mp4_track {
    char handler[5]; /* "soun", "vide" */
    char codec[5];   /* "mp4a", "avc1" */
    uint64_t duration;
    uint32_t timescale, channels, rate, width, height;
} coffer__mp4_track;

bool coffer__mp4_is(const uint8_t *bytes, size_t size);
bool coffer__mp4_find_track(coffer__mp4_track *out, const uint8_t *bytes, size_t size, const char *handler);

#endif
