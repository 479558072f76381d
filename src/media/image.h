/* Shared by the picture codecs. JPEG and PNG are modules. */
#ifndef COFFER_MEDIA_IMAGE_H
#define COFFER_MEDIA_IMAGE_H

#include "base/module.h"
#include "coffer/media.h"

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
    coffer_status (*decode)(coffer_pixels *out, const void *bytes, size_t size, uint32_t channels,
                            uint64_t max_bytes, coffer_error *err);
    coffer_status (*encode)(uint8_t **bytes, size_t *size, const coffer_pixels *pixels, coffer_error *err);
} coffer__png_module;

/* Makes room for width × height × channels bytes and sets the numbers of `pixels`. COFFER_E_LIMIT past
 * max_bytes. */
coffer_status coffer__pixels_reserve(coffer_pixels *pixels, uint32_t width, uint32_t height,
                                     uint32_t channels, uint64_t max_bytes, coffer_error *err);

#endif
