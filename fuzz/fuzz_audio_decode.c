/* A sound decodes to the number of samples in its header, or fails with a message. */
#include "coffer/media.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_audio_probe(&info, data, size, &err) != COFFER_OK) {
        MUST(err.text[0] != 0);
        return 0;
    }
    if (info.frames > (1 << 16) || info.channels > 16)
        return 0;
    size_t count = (size_t)info.frames * info.channels;
    float *out = malloc((count + 1) * sizeof *out);
    MUST(out);
    if (coffer_audio_decode(out, count, data, size, &err) != COFFER_OK)
        MUST(err.text[0] != 0);
    free(out);
    return 0;
}
