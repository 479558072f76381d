/* Shared by the picture codecs. JPEG and PNG are modules, WebP and TIFF programs. */
#ifndef COFFER_MEDIA_IMAGE_H
#define COFFER_MEDIA_IMAGE_H

#include "base/bytes.h"
#include "base/helper.h"
#include "base/module.h"
#include "coffer/media.h"
#include "media/media_helper.h"

typedef struct coffer__jpeg_module {
    coffer__module common;
    /* handle : of the library, created with the first picture, free_handle(). info : of the header, within
     * the limits. */
    coffer_status (*decode)(coffer_pixels *out, void **handle, const void *bytes, size_t size,
                            const coffer_image_info *info, const coffer_image_decode_opts *opts,
                            uint64_t max_bytes, coffer_error *err);
    void (*free_handle)(void *handle);
    coffer_status (*encode)(uint8_t **bytes, size_t *size, const coffer_pixels *pixels, int quality,
                            coffer_error *err);
} coffer__jpeg_module;

typedef struct coffer__png_module {
    coffer__module common;
    coffer_status (*decode)(coffer_pixels *out, const void *bytes, size_t size,
                            const coffer_image_decode_opts *opts, uint64_t max_bytes, coffer_error *err);
    coffer_status (*encode)(uint8_t **bytes, size_t *size, const coffer_pixels *pixels, coffer_error *err);
} coffer__png_module;

/* Decodes the first picture of a file whose header says `info`, with the channels of the file. Also the type
 * of the decoders that need no library. */
typedef coffer_status (*coffer__image_decode)(coffer_pixels *out, const void *bytes, size_t size,
                                              const coffer_image_info *info,
                                              const coffer_image_decode_opts *opts, uint64_t max_bytes,
                                              coffer_error *err);

/* WebP, TIFF. */
typedef struct coffer__picture_module {
    coffer__module common;
    coffer__image_decode decode;
} coffer__picture_module;

coffer_status coffer__image_decode_gif(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err);
coffer_status coffer__image_decode_bmp(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err);
coffer_status coffer__image_decode_pnm(coffer_pixels *out, const void *bytes, size_t size,
                                       const coffer_image_info *info, const coffer_image_decode_opts *opts,
                                       uint64_t max_bytes, coffer_error *err);

/* The headers of the kinds that have a file of their own; `bytes` begin with their magic. */
coffer_status coffer__image_probe_webp(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                       coffer_error *err);
coffer_status coffer__image_probe_gif(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err);
coffer_status coffer__image_probe_bmp(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err);
coffer_status coffer__image_probe_tiff(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                       coffer_error *err);
coffer_status coffer__image_probe_pnm(coffer_image_info *out, const uint8_t *bytes, size_t size,
                                      coffer_error *err);
/* The orientation of EXIF data, which is a TIFF header with tags; 1 when it does not say. */
uint32_t coffer__image_exif_orientation(const uint8_t *exif, size_t size);

/* Makes room for width × height × channels samples of 8 or 16 bits and sets the numbers of `pixels`.
 * COFFER_E_LIMIT past max_bytes. */
coffer_status coffer__pixels_reserve(coffer_pixels *pixels, uint32_t width, uint32_t height,
                                     uint32_t channels, uint32_t depth, uint64_t max_bytes,
                                     coffer_error *err);
/* 8 or 16, also for callers whose struct has no depth. */
uint32_t coffer__pixels_depth(const coffer_pixels *pixels);
static inline size_t coffer__pixels_bytes(const coffer_pixels *pixels)
{
    return (size_t)pixels->width * pixels->height * pixels->channels * (coffer__pixels_depth(pixels) / 8);
}
/* Gives the pixels 1, 3 or 4 channels, and 8 bits when `depth` is 8. 0 leaves them. */
coffer_status coffer__pixels_adapt(coffer_pixels *pixels, uint32_t channels, uint32_t depth,
                                   uint64_t max_bytes, coffer_error *err);
/* Turns pixels that are stored in an EXIF orientation upright. */
coffer_status coffer__pixels_orient(coffer_pixels *pixels, uint32_t orientation, coffer_error *err);

/* A picture that a program decodes: BEGIN has the u64 size of the file, u64 limit of the pixels, u32 width,
 * height and channels; the answer begins with a SIZE (media.h). */
enum {
    COFFER__PICTURE_SIZE = COFFER__MEDIA_OWN, /* u32 width, height, channels, depth */
    COFFER__PICTURE_HEAD = 16
};

#endif
