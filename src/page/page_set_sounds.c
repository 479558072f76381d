/* Sounds of a set: waves to draw, and as many of their bytes as there is room for, to play. */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/media.h"
#include "media/audio.h"
#include "page/page_set.h"

#include <math.h>

enum { WAVE_COLUMNS = 128, LONGEST = 256 * 1024, ROOM = 4 * 1024 * 1024 };
/* A sound of more samples than this is not decoded for its wave. */
#define MOST_VALUES ((uint64_t)1 << 26)

typedef struct sounds {
    coffer__page_gallery *gallery;
    coffer__buffer file;  /* the sound as a file of its own */
    coffer__buffer files; /* those to play */
    coffer_audio_info info;
    float *values;
    uint8_t *waves; /* lowest and highest value of each column, from -1 to 1 as 0 to 255 */
    double *seconds;
    size_t left_out, cut;
} sounds;

/* Bare samples get the header of a WAV file; some programs store whole WAV files where bare samples are
 * expected. */
static coffer_status read_file(sounds *from, uint64_t sample, size_t field, coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_bytes *bytes = &from->gallery->bytes;
    coffer_status status = coffer_mldf_read(bytes, &entry, from->gallery->set, sample, field, err);
    if (status)
        return status;
    if (!entry.present)
        return coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE, "the value is absent");
    from->file.len = 0;
    if (entry.codec == COFFER_MLDF_CODEC_PCM && !coffer__wav_is(bytes->data, bytes->size))
        coffer__wav_put_header(&from->file, entry.channels, entry.sample_rate, entry.bit_depth, bytes->size);
    coffer__buffer_append(&from->file, bytes->data, bytes->size);
    return from->file.failed ? coffer__fail_no_memory(err, bytes->size) : COFFER_OK;
}

static coffer_status decode(sounds *from, coffer_error *err)
{
    from->info = (coffer_audio_info)COFFER_AUDIO_INFO_INIT;
    coffer_status status = coffer_audio_probe(&from->info, from->file.data, from->file.len, err);
    if (status)
        return status;
    if (from->info.channels == 0 || from->info.frames == 0 ||
        from->info.frames > MOST_VALUES / from->info.channels)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "the sound is empty or too long");
    size_t count = (size_t)from->info.frames * from->info.channels;
    coffer__free(from->values);
    from->values = coffer__alloc_array(count, sizeof *from->values);
    if (!from->values)
        return coffer__fail_no_memory(err, count * sizeof *from->values);
    return coffer_audio_decode(from->values, count, from->file.data, from->file.len, err);
}

static uint8_t level(float value)
{
    return (uint8_t)lrintf((fmaxf(-1, fminf(1, value)) + 1) * 127.5F);
}

/* All channels in one. */
static void add_wave(uint8_t *wave, const sounds *from)
{
    uint64_t frames = from->info.frames, channels = from->info.channels;
    for (uint64_t i = 0; i < WAVE_COLUMNS; i++) {
        uint64_t begin = frames * i / WAVE_COLUMNS, end = frames * (i + 1) / WAVE_COLUMNS;
        float low = from->values[begin * channels], high = low;
        for (uint64_t j = begin * channels; j < (end > begin ? end : begin + 1) * channels; j++) {
            low = fminf(low, from->values[j]);
            high = fmaxf(high, from->values[j]);
        }
        wave[2 * i] = level(low);
        wave[2 * i + 1] = level(high);
    }
}

/* The beginning of a long sound, in 16 bits and one channel. */
static void cut_sound(sounds *from)
{
    uint32_t channels = from->info.channels;
    size_t frames = LONGEST / 2 < from->info.frames ? LONGEST / 2 : (size_t)from->info.frames;
    from->file.len = 0;
    coffer__wav_put_header(&from->file, 1, from->info.sample_rate, 16, 2 * frames);
    uint8_t *out = coffer__buffer_extend(&from->file, 2 * frames);
    for (size_t i = 0; out && i < frames; i++) {
        float sum = 0;
        for (uint32_t j = 0; j < channels; j++)
            sum += from->values[i * channels + j];
        sum = fmaxf(-1, fminf(1, sum / (float)channels));
        coffer__store_u16(out + 2 * i, (uint16_t)(int16_t)lrintf(sum * 32767));
    }
    from->cut++;
}

static coffer_status add_sound(sounds *from, size_t index, size_t field, uint8_t *kind, coffer_error *err)
{
    coffer_status status = read_file(from, from->gallery->numbers[index], field, err);
    if (!status)
        status = decode(from, err);
    if (status)
        return status;
    add_wave(from->waves + index * 2 * WAVE_COLUMNS, from);
    from->seconds[index] = from->info.sample_rate ? (double)from->info.frames / from->info.sample_rate : 0.0;
    *kind = (uint8_t)from->info.kind;
    if (from->file.len > LONGEST) {
        cut_sound(from);
        *kind = COFFER_AUDIO_WAV;
    }
    if (from->file.len > ROOM / from->gallery->detail - from->files.len)
        from->left_out++;
    else
        coffer__buffer_append(&from->files, from->file.data, from->file.len);
    return from->file.failed || from->files.failed ? coffer__fail_no_memory(err, from->file.len) : COFFER_OK;
}

static void note_losses(const sounds *from, size_t bad, const coffer_error *err)
{
    coffer_chunks *chunks = from->gallery->chunks;
    if (bad)
        coffer__chunks_note(chunks, "%zu of %zu sounds cannot be drawn; the last: %s", bad,
                            from->gallery->count, err->text);
    if (from->cut)
        coffer__chunks_note(chunks, "sounds that play their beginning only, in one channel: %zu", from->cut);
    if (from->left_out)
        coffer__chunks_note(chunks,
                            "sounds that are drawn but cannot be played, for lack of room in the page: %zu",
                            from->left_out);
}

void coffer__page_add_sounds(coffer__page_gallery *gallery, size_t field)
{
    coffer_chunks *chunks = gallery->chunks;
    coffer_error err = COFFER_ERROR_INIT;
    sounds from = { .gallery = gallery, .file = COFFER__BUFFER_INIT, .files = COFFER__BUFFER_INIT };
    size_t bad = 0;
    uint32_t *ends = coffer__chunks_u32(chunks, "sounds.ends", gallery->count);
    uint8_t *kind = coffer__chunks_u8(chunks, "sounds.kind", gallery->count);
    from.seconds = coffer__chunks_f64(chunks, "sounds.seconds", gallery->count);
    from.waves = coffer__chunks_u8(chunks, "sounds.waves", gallery->count * 2 * WAVE_COLUMNS);
    for (size_t i = 0; from.waves && i < gallery->count; i++) {
        coffer_status status = add_sound(&from, i, field, &kind[i], &err);
        chunks->failed |= status == COFFER_E_NO_MEMORY;
        bad += status != COFFER_OK;
        ends[i] = (uint32_t)from.files.len;
    }
    coffer__chunks_bytes(chunks, "sounds.data", &from.files);
    coffer_node_add_u64(chunks->view, "sound_field", field, COFFER_UNIT_NONE);
    note_losses(&from, bad, &err);
    coffer__free(from.values);
    coffer__buffer_free(&from.file);
    coffer__buffer_free(&from.files);
}
