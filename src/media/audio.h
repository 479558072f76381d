/* Sounds: the header, and the table of the module that decodes. */
#ifndef COFFER_MEDIA_AUDIO_H
#define COFFER_MEDIA_AUDIO_H

#include "base/module.h"
#include "coffer/media.h"

typedef struct coffer__sound_module {
    coffer__module common;
    /* Sets frames and channels. */
    coffer_status (*count_frames)(coffer_audio_info *out, const void *bytes, size_t size, coffer_error *err);
    /* out : room for frames × channels samples of the header. */
    coffer_status (*read_frames)(float *out, const coffer_audio_info *header, const void *bytes, size_t size,
                                 coffer_error *err);
} coffer__sound_module;

/* By the bytes alone. *known is false for a WAV file whose samples are packed in a way that only libsndfile
 * can count. */
coffer_status coffer__audio_header(coffer_audio_info *out, bool *known, const uint8_t *bytes, size_t size,
                                   coffer_error *err);

#endif
