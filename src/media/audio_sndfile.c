/* The module for sounds: FLAC, MP3 and Ogg to samples by libsndfile, which reads from memory through
 * callbacks. */
#include "base/fail.h"
#include "media/audio.h"

#include <inttypes.h>
#include <sndfile.h>
#include <string.h>

typedef struct memory_file {
    const uint8_t *bytes;
    sf_count_t size, at;
} memory_file;

static sf_count_t file_size(void *context)
{
    return ((const memory_file *)context)->size;
}

static sf_count_t file_tell(void *context)
{
    return ((const memory_file *)context)->at;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *context)
{
    memory_file *file = context;
    sf_count_t base = whence == SEEK_CUR ? file->at : whence == SEEK_END ? file->size : 0;
    if (offset >= -base && offset <= file->size - base)
        file->at = base + offset;
    return file->at;
}

static sf_count_t file_read(void *out, sf_count_t count, void *context)
{
    memory_file *file = context;
    sf_count_t left = file->size - file->at;
    if (count > left)
        count = left;
    if (count <= 0)
        return 0;
    memcpy(out, file->bytes + file->at, (size_t)count);
    file->at += count;
    return count;
}

static sf_count_t file_write(const void *bytes, sf_count_t count, void *context)
{
    (void)bytes, (void)count, (void)context;
    return 0;
}

static coffer_status open_sound(SNDFILE **out, SF_INFO *info, memory_file *file, coffer_error *err)
{
    SF_VIRTUAL_IO io = { file_size, file_seek, file_read, file_write, file_tell };
    memset(info, 0, sizeof *info);
    *out = sf_open_virtual(&io, SFM_READ, info, file);
    if (!*out)
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "sound: %s", sf_strerror(NULL));
    return COFFER_OK;
}

static coffer_status read_frames(float *out, const coffer_audio_info *header, const void *bytes, size_t size,
                                 coffer_error *err)
{
    memory_file file = { bytes, (sf_count_t)size, 0 };
    SNDFILE *sound = NULL;
    SF_INFO info;
    coffer_status status = open_sound(&sound, &info, &file, err);
    if (status)
        return status;
    if ((uint32_t)info.channels != header->channels) {
        status =
            coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                         "sound: %d channels, the header says %" PRIu32, info.channels, header->channels);
    } else {
        sf_count_t got = sf_readf_float(sound, out, (sf_count_t)header->frames);
        if (got != (sf_count_t)header->frames)
            status = coffer__fail(err, COFFER_E_TRUNCATED, COFFER_OFFSET_NONE,
                                  "sound: %" PRIu64 " of %" PRIu64 " samples a channel can be read",
                                  (uint64_t)got, header->frames);
        else if (sf_error(sound) != SF_ERR_NO_ERROR)
            status =
                coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "sound: %s", sf_strerror(sound));
    }
    sf_close(sound);
    return status;
}

static const char *library_version(void)
{
    const char *text = sf_version_string();
    const char *dash = strchr(text, '-'); /* "libsndfile-1.2.0" */
    return dash ? dash + 1 : text;
}

static const coffer__sound_module table = {
    COFFER__MODULE_INIT(coffer__sound_module, library_version),
    read_frames,
};
COFFER__MODULE_EXPORT(sound, table);
