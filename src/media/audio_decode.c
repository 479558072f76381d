/* Sounds to samples: the header by ourselves, the samples by a module. */
#include "base/checked.h"
#include "base/fail.h"
#include "base/options.h"
#include "media/audio.h"

#include <inttypes.h>

static const coffer__sound_module *load_sound(coffer_error *err)
{
    return coffer__module_load(COFFER__MODULE_SOUND, sizeof(coffer__sound_module), err);
}

COFFER__INIT_FUNCTION(coffer_audio_info, COFFER_AUDIO_INFO_INIT)

const char *coffer_audio_kind_name(coffer_audio_kind kind)
{
    static const char *const names[] = {
        "sound", "WAV", "FLAC", "MP3", "AAC", "Ogg Vorbis", "Ogg Opus", "M4A"
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : names[0];
}

coffer_status coffer_audio_probe(coffer_audio_info *out, const void *bytes, size_t size, coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    bool known = true;
    coffer_status status = coffer__audio_header(&info, &known, bytes, size, err);
    if (!status && !known) {
        const coffer__sound_module *sound = load_sound(err);
        status = sound ? sound->count_frames(&info, bytes, size, err) : COFFER_E_UNSUPPORTED;
    }
    return status ? status : coffer__give_struct(out, &info, sizeof info, err);
}

coffer_status coffer_audio_decode(float *out, size_t out_count, const void *bytes, size_t size,
                                  coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    uint64_t count;
    coffer_status status = coffer_audio_probe(&info, bytes, size, err);
    if (status)
        return status;
    if (!coffer__mul_u64(&count, info.frames, info.channels) || count != out_count)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "sound: room for %zu samples, there are %" PRIu64 " × %" PRIu32, out_count,
                            info.frames, info.channels);
    if (info.frames == 0 && info.kind <= COFFER_AUDIO_FLAC)
        return COFFER_OK;
    if (info.kind == COFFER_AUDIO_AAC || info.kind == COFFER_AUDIO_MP4)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "sound: Coffer has no decoder for %s (%s)", coffer_audio_kind_name(info.kind),
                            info.codec);
    const coffer__sound_module *sound = load_sound(err);
    return sound ? sound->read_frames(out, &info, bytes, size, err) : COFFER_E_UNSUPPORTED;
}
