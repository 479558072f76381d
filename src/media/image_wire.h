/* What the library and the program coffer-tiff say to each other: for each picture a BEGIN and its BYTES;
 * then the SIZE and the PIXELS, unless decoding failed, and DONE. */
#ifndef COFFER_MEDIA_IMAGE_WIRE_H
#define COFFER_MEDIA_IMAGE_WIRE_H

#include "base/bytes.h"
#include "base/helper.h"
#include "media/image.h"

enum {
    COFFER__PICTURE_BEGIN =
        1, /* u64 size of the file, u64 limit of the pixels, u32 width, height, channels */
    COFFER__PICTURE_BYTES,
    COFFER__PICTURE_SIZE, /* u32 width, height, channels, depth */
    COFFER__PICTURE_PIXELS,
    COFFER__PICTURE_DONE, /* i32 status, text */
    COFFER__PICTURE_HEAD = 16
};

/* Decodes by the program. helper : started with the first picture. */
coffer_status coffer__image_decode_remote(coffer_pixels *out, coffer__helper *helper, const void *bytes,
                                          size_t size, const coffer_image_info *info, uint64_t max_bytes,
                                          coffer_error *err);

#endif
