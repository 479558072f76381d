/* What the picture codecs share. */
#ifndef COFFER_MEDIA_IMAGE_H
#define COFFER_MEDIA_IMAGE_H

#include "coffer/media.h"

struct coffer_image_decoder {
    coffer_limits limits;
    void *jpeg; /* the handle of the library, made when the first JPEG comes */
};

/* Room for width × height × channels bytes, whose numbers become those of `pixels`. COFFER_E_LIMIT past
 * max_bytes. */
coffer_status coffer__pixels_reserve(coffer_pixels *pixels, uint32_t width, uint32_t height,
                                     uint32_t channels, uint64_t max_bytes, coffer_error *err);

/* info : what the header says, already held against the limits. */
coffer_status coffer__jpeg_decode(coffer_pixels *out, coffer_image_decoder *decoder, const void *bytes,
                                  size_t size, const coffer_image_info *info,
                                  const coffer_image_decode_opts *opts, coffer_error *err);
void coffer__jpeg_free(void *handle);
coffer_status coffer__png_decode(coffer_pixels *out, const coffer_image_decoder *decoder, const void *bytes,
                                 size_t size, uint32_t channels, coffer_error *err);

#endif
