/* What the header of a sound says, beside what its reader is told. */
#ifndef COFFER_MEDIA_AUDIO_H
#define COFFER_MEDIA_AUDIO_H

#include "coffer/media.h"

/* By the bytes alone. *known is false for a WAV file whose samples are packed in a way that only libsndfile
 * can count. */
coffer_status coffer__audio_header(coffer_audio_info *out, bool *known, const uint8_t *bytes, size_t size,
                                   coffer_error *err);

#endif
