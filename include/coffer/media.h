#ifndef COFFER_MEDIA_H
#define COFFER_MEDIA_H

#include "coffer/error.h"
#include "coffer/limits.h"

COFFER_BEGIN_DECLS

/* Pictures and sounds: JPEG (libjpeg-turbo), PNG (libpng), WAV and FLAC (libsndfile). When one of these
 * libraries is missing, its functions return COFFER_E_UNSUPPORTED with its name. Sizes in a file are checked
 * against the limits before anything is allocated. */

typedef enum coffer_image_kind {
    COFFER_IMAGE_UNKNOWN = 0,
    COFFER_IMAGE_JPEG = 1,
    COFFER_IMAGE_PNG = 2
} coffer_image_kind;

typedef struct coffer_image_info {
    uint32_t struct_size;
    coffer_image_kind kind;
    uint32_t width, height;
    uint32_t channels; /* in the file: 1 to 4 */
} coffer_image_info;

#define COFFER_IMAGE_INFO_INIT                                   \
    {                                                            \
        sizeof(coffer_image_info), COFFER_IMAGE_UNKNOWN, 0, 0, 0 \
    }

COFFER_API void coffer_image_info_init(coffer_image_info *out, uint32_t struct_size);

/* Recognizes a picture by its first bytes and reads only its header. COFFER_E_NOT_RECOGNISED when it is
 * neither JPEG nor PNG. */
COFFER_API_STATUS coffer_image_probe(coffer_image_info *out, const void *bytes, size_t size,
                                     coffer_error *err);

/* Pixels in rows of width × channels bytes. The memory is reused and grows as needed; free it with
 * coffer_free(pixels.data). */
typedef struct coffer_pixels {
    uint32_t struct_size;
    uint8_t *data;
    uint32_t width, height, channels;
    size_t capacity;
} coffer_pixels;

#define COFFER_PIXELS_INIT                      \
    {                                           \
        sizeof(coffer_pixels), NULL, 0, 0, 0, 0 \
    }

COFFER_API void coffer_pixels_init(coffer_pixels *out, uint32_t struct_size);

/* A decoder keeps the state of the codecs between pictures: use one per thread. */
typedef struct coffer_image_decoder coffer_image_decoder;

typedef struct coffer_image_decoder_opts {
    uint32_t struct_size;
    const coffer_limits *limits;
} coffer_image_decoder_opts;

#define COFFER_IMAGE_DECODER_OPTS_INIT          \
    {                                           \
        sizeof(coffer_image_decoder_opts), NULL \
    }

COFFER_API void coffer_image_decoder_opts_init(coffer_image_decoder_opts *out, uint32_t struct_size);

COFFER_API_STATUS coffer_image_decoder_new(coffer_image_decoder **out, const coffer_image_decoder_opts *opts,
                                           coffer_error *err);
COFFER_API void coffer_image_decoder_free(coffer_image_decoder *decoder);

typedef struct coffer_image_decode_opts {
    uint32_t struct_size;
    uint32_t channels; /* 3 = RGB, 1 = gray, 4 = RGBA; 0 = as in the file */
    /* Decode a JPEG at the smallest of 1/8, 1/4, 1/2 and 1/1 that is at least this large on both sides, which
     * is much faster when it is scaled down afterwards. 0 = full size. */
    uint32_t min_width, min_height;
} coffer_image_decode_opts;

#define COFFER_IMAGE_DECODE_OPTS_INIT             \
    {                                             \
        sizeof(coffer_image_decode_opts), 3, 0, 0 \
    }

COFFER_API void coffer_image_decode_opts_init(coffer_image_decode_opts *out, uint32_t struct_size);

COFFER_API_STATUS coffer_image_decode(coffer_pixels *out, coffer_image_decoder *decoder, const void *bytes,
                                      size_t size, const coffer_image_decode_opts *opts, coffer_error *err);
/* Area average down, bilinear up. in and out must differ. */
COFFER_API_STATUS coffer_pixels_resize(coffer_pixels *out, const coffer_pixels *in, uint32_t width,
                                       uint32_t height, coffer_error *err);

/* *bytes is owned by the caller, coffer_free(). quality : 1 to 100. */
COFFER_API_STATUS coffer_image_encode_jpeg(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                           int quality, coffer_error *err);
COFFER_API_STATUS coffer_image_encode_png(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                          coffer_error *err);

typedef struct coffer_audio_info {
    uint32_t struct_size;
    uint64_t frames; /* samples per channel */
    uint32_t sample_rate, channels;
    uint32_t bit_depth; /* of the file; 0 = floating point */
    bool flac;          /* otherwise WAV */
} coffer_audio_info;

#define COFFER_AUDIO_INFO_INIT                       \
    {                                                \
        sizeof(coffer_audio_info), 0, 0, 0, 0, false \
    }

COFFER_API void coffer_audio_info_init(coffer_audio_info *out, uint32_t struct_size);

COFFER_API_STATUS coffer_audio_probe(coffer_audio_info *out, const void *bytes, size_t size,
                                     coffer_error *err);
/* Writes frames × channels interleaved samples from −1 to 1. out_count : length of out, checked. */
COFFER_API_STATUS coffer_audio_decode(float *out, size_t out_count, const void *bytes, size_t size,
                                      coffer_error *err);

COFFER_END_DECLS

#endif
