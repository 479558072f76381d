/* A picture decodes within its limits, at any scale and depth, or fails with a message. */
#include "coffer/media.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t depths[] = { 0, 1, 3, 4 };
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer_image_decoder *decoder = NULL;
    coffer_pixels pixels = COFFER_PIXELS_INIT, small = COFFER_PIXELS_INIT;
    limits.memory_bytes = 1 << 22;
    MUST(coffer_image_decoder_new(&decoder,
                                  &(coffer_image_decoder_opts){ sizeof(coffer_image_decoder_opts), &limits },
                                  NULL) == COFFER_OK);
    for (uint32_t i = 0; i < 4; i++) {
        coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
        coffer_error err = COFFER_ERROR_INIT;
        opts.channels = depths[i];
        opts.min_width = i * (uint32_t)(size % 50);
        if (coffer_image_decode(&pixels, decoder, data, size, &opts, &err) != COFFER_OK) {
            MUST(err.text[0] != 0);
            continue;
        }
        MUST(pixels.width > 0 && pixels.height > 0);
        MUST((uint64_t)pixels.width * pixels.height * pixels.channels <= limits.memory_bytes);
        MUST(coffer_pixels_resize(&small, &pixels, 1 + (uint32_t)(size % 31), 1 + i * 7, NULL) == COFFER_OK);
    }
    coffer_free(small.data);
    coffer_free(pixels.data);
    coffer_image_decoder_free(decoder);
    return 0;
}
