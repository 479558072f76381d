#ifndef COFFER_MEDIA_H
#define COFFER_MEDIA_H

#include "coffer/error.h"
#include "coffer/limits.h"

COFFER_BEGIN_DECLS

/* Pictures and sounds. JPEG needs libjpeg-turbo, PNG libpng, WebP libwebp, TIFF libtiff, and sound
 * libsndfile; GIF, BMP and PNM (.ppm, .pgm, .pbm) need nothing. When a library is missing, its functions
 * return COFFER_E_UNSUPPORTED with its name. Sizes in a file are checked against the limits before anything
 * is allocated. */

typedef enum coffer_image_kind {
    COFFER_IMAGE_UNKNOWN = 0,
    COFFER_IMAGE_JPEG = 1,
    COFFER_IMAGE_PNG = 2,
    COFFER_IMAGE_WEBP = 3,
    COFFER_IMAGE_GIF = 4,
    COFFER_IMAGE_BMP = 5,
    COFFER_IMAGE_TIFF = 6,
    COFFER_IMAGE_PNM = 7
} coffer_image_kind;

/* "JPEG", "WebP"; "picture" for an unknown kind. */
COFFER_API const char *coffer_image_kind_name(coffer_image_kind kind);

typedef struct coffer_image_info {
    uint32_t struct_size;
    coffer_image_kind kind;
    uint32_t width, height; /* as stored, before the orientation is applied */
    uint32_t channels;      /* in the file: 1 to 4 */
    uint32_t depth;         /* bits of a channel once decoded: 8 or 16 */
    uint32_t orientation;   /* EXIF: 1 = upright, 2 to 8 = mirrored or rotated */
    uint32_t frames;        /* pictures in the file: more than 1 in animations and in TIFF files with pages */
} coffer_image_info;

#define COFFER_IMAGE_INFO_INIT                                            \
    {                                                                     \
        sizeof(coffer_image_info), COFFER_IMAGE_UNKNOWN, 0, 0, 0, 8, 1, 1 \
    }

COFFER_API void coffer_image_info_init(coffer_image_info *out, uint32_t struct_size);

/* Recognizes a picture by its first bytes and reads only its headers. COFFER_E_NOT_RECOGNISED when it is of
 * no kind above. */
COFFER_API_STATUS coffer_image_probe(coffer_image_info *out, const void *bytes, size_t size,
                                     coffer_error *err);
/* Whether the file is complete, without decoding it: a JPEG has its end marker, a PNG all of its chunks with
 * the right checksums, a WebP, BMP or PNM file the bytes that its header announces. COFFER_E_TRUNCATED or
 * COFFER_E_BAD_CHECKSUM otherwise. Much faster than decoding, and does not need a library. */
COFFER_API_STATUS coffer_image_verify(const void *bytes, size_t size, coffer_error *err);

/* Pixels in rows of width × channels samples: bytes, or uint16_t of the machine when depth is 16. The memory
 * is reused and grows as needed; free it with coffer_free(pixels.data). */
typedef struct coffer_pixels {
    uint32_t struct_size;
    uint8_t *data;
    uint32_t width, height, channels;
    size_t capacity;
    uint32_t depth; /* 8 or 16; 0 counts as 8 */
} coffer_pixels;

#define COFFER_PIXELS_INIT                         \
    {                                              \
        sizeof(coffer_pixels), NULL, 0, 0, 0, 0, 8 \
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
    uint32_t depth;          /* 8 = reduce to bytes; 0 = as in the file: 8 or 16 */
    bool ignore_orientation; /* give the pixels as stored; otherwise they come out upright */
} coffer_image_decode_opts;

#define COFFER_IMAGE_DECODE_OPTS_INIT                       \
    {                                                       \
        sizeof(coffer_image_decode_opts), 3, 0, 0, 8, false \
    }

COFFER_API void coffer_image_decode_opts_init(coffer_image_decode_opts *out, uint32_t struct_size);

/* Decodes the first picture of a file. */
COFFER_API_STATUS coffer_image_decode(coffer_pixels *out, coffer_image_decoder *decoder, const void *bytes,
                                      size_t size, const coffer_image_decode_opts *opts, coffer_error *err);
/* Area average down, bilinear up. in and out must differ. */
COFFER_API_STATUS coffer_pixels_resize(coffer_pixels *out, const coffer_pixels *in, uint32_t width,
                                       uint32_t height, coffer_error *err);

/* *bytes is owned by the caller, coffer_free(). quality : 1 to 100. A JPEG has 8 bits and no alpha channel:
 * COFFER_E_INVALID_ARGUMENT for pixels of 16 bits; alpha is dropped. */
COFFER_API_STATUS coffer_image_encode_jpeg(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                           int quality, coffer_error *err);
COFFER_API_STATUS coffer_image_encode_png(uint8_t **bytes, size_t *size, const coffer_pixels *pixels,
                                          coffer_error *err);

typedef enum coffer_audio_kind {
    COFFER_AUDIO_UNKNOWN = 0,
    COFFER_AUDIO_WAV = 1,
    COFFER_AUDIO_FLAC = 2,
    COFFER_AUDIO_MP3 = 3,
    COFFER_AUDIO_AAC = 4,    /* ADTS, .aac */
    COFFER_AUDIO_VORBIS = 5, /* in Ogg */
    COFFER_AUDIO_OPUS = 6,   /* in Ogg */
    COFFER_AUDIO_MP4 = 7     /* .m4a */
} coffer_audio_kind;

/* "MP3"; "sound" for an unknown kind. */
COFFER_API const char *coffer_audio_kind_name(coffer_audio_kind kind);

typedef struct coffer_audio_info {
    uint32_t struct_size;
    uint64_t frames; /* samples per channel; 0 = the file does not say */
    uint32_t sample_rate, channels;
    uint32_t bit_depth; /* of the file; 0 = floating point or a codec without one */
    bool flac;          /* kind is COFFER_AUDIO_FLAC */
    coffer_audio_kind kind;
    char codec[8]; /* "pcm", "float", "flac", "mp3", "aac", "vorbis", "opus"; in .m4a what the file says:
                      "alac" */
} coffer_audio_info;

#define COFFER_AUDIO_INFO_INIT                                              \
    {                                                                       \
        sizeof(coffer_audio_info), 0, 0, 0, 0, false, COFFER_AUDIO_UNKNOWN, \
        {                                                                   \
            0                                                               \
        }                                                                   \
    }

COFFER_API void coffer_audio_info_init(coffer_audio_info *out, uint32_t struct_size);

/* Reads the headers, and counts the frames of files whose header does not contain the count. */
COFFER_API_STATUS coffer_audio_probe(coffer_audio_info *out, const void *bytes, size_t size,
                                     coffer_error *err);
/* Writes frames × channels interleaved samples from −1 to 1. out_count : length of out, checked.
 * COFFER_E_UNSUPPORTED for AAC and .m4a, and for Opus with a libsndfile that has no decoder for it. */
COFFER_API_STATUS coffer_audio_decode(float *out, size_t out_count, const void *bytes, size_t size,
                                      coffer_error *err);

/* ---- Videos ---- */

typedef struct coffer_video_info {
    uint32_t struct_size;
    uint32_t width, height; /* 0 = unknown */
    double seconds;         /* 0 = unknown */
    char container[12];     /* "mp4", "mov", "matroska", "webm", "avi", "mpeg" */
    char codec[12];         /* as the container names it, such as "avc1" or "V_VP9"; "" = unknown */
} coffer_video_info;

#define COFFER_VIDEO_INFO_INIT                     \
    {                                              \
        sizeof(coffer_video_info), 0, 0, 0, { 0 }, \
        {                                          \
            0                                      \
        }                                          \
    }

COFFER_API void coffer_video_info_init(coffer_video_info *out, uint32_t struct_size);
/* Container and codec of a video. Coffer stores videos byte for byte and does not decode them. */
COFFER_API_STATUS coffer_video_probe(coffer_video_info *out, const void *bytes, size_t size,
                                     coffer_error *err);

COFFER_END_DECLS

#endif
