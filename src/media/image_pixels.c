/* Memory for pixels. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "media/image.h"

#include <inttypes.h>

coffer_status coffer__pixels_reserve(coffer_pixels *pixels, uint32_t width, uint32_t height,
                                     uint32_t channels, uint64_t max_bytes, coffer_error *err)
{
    uint64_t bytes;
    size_t size;
    if (pixels->struct_size < sizeof *pixels)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "struct_size is %" PRIu32 ": initialize the pixels with COFFER_PIXELS_INIT",
                            pixels->struct_size);
    if (!coffer__mul_u64(&bytes, (uint64_t)width * channels, height) || bytes > max_bytes ||
        !coffer__to_size(&size, bytes))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu32 " × %" PRIu32 " × %" PRIu32
                            " bytes, more than the limit of %" PRIu64,
                            width, height, channels, max_bytes);
    if (size > pixels->capacity) {
        uint8_t *data = coffer__malloc(size);
        if (!data)
            return coffer__fail_no_memory(err, size);
        coffer__free(pixels->data);
        pixels->data = data;
        pixels->capacity = size;
    }
    pixels->width = width;
    pixels->height = height;
    pixels->channels = channels;
    return COFFER_OK;
}
