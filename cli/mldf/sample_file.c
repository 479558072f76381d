#include "mldf/sample_file.h"

#include "base/fail.h"
#include "base/memory.h"
#include "coffer/convert.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { MODE_RAW, MODE_JPEG, MODE_PNG, CODEC_PCM = 0, JPEG_QUALITY = 95 };

static bool is_array(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_BYTES && (field->ndim > 0 || field->dtype != COFFER_DTYPE_NONE);
}

static bool can_become(const coffer_mldf_field *field, sample_file as)
{
    if (as == SAMPLE_FILE_NPY)
        return field->kind != COFFER_MLDF_ENTRY_OPAQUE && field->type != COFFER_MLDF_TEXT &&
               (field->kind != COFFER_MLDF_ENTRY_BYTES || is_array(field));
    return field->kind == (as == SAMPLE_FILE_WAV ? COFFER_MLDF_ENTRY_AUDIO : COFFER_MLDF_ENTRY_IMAGE);
}

sample_file sample_file_of_name(const char *path, const coffer_mldf_field *field)
{
    static const struct {
        const char *extension;
        sample_file as;
    } known[] = { { "npy", SAMPLE_FILE_NPY },
                  { "png", SAMPLE_FILE_PNG },
                  { "jpg", SAMPLE_FILE_JPG },
                  { "jpeg", SAMPLE_FILE_JPG },
                  { "wav", SAMPLE_FILE_WAV } };
    const char *dot = path ? strrchr(path, '.') : NULL;
    for (size_t i = 0; dot && i < sizeof known / sizeof known[0]; i++)
        if (strcasecmp(dot + 1, known[i].extension) == 0 && can_become(field, known[i].as))
            return known[i].as;
    return SAMPLE_FILE_VALUE;
}

const char *sample_file_extension(sample_file *out, const coffer_mldf_field *field,
                                  const coffer_mldf_entry *entry)
{
    static const char *const images[] = { "png", "jpg", "png" };
    static const char *const sounds[] = { "wav", "flac", "aac", "mp3", "ogg", "opus", "wav" };
    *out = SAMPLE_FILE_VALUE;
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE && entry->mode <= MODE_PNG) {
        *out = entry->mode == MODE_RAW ? SAMPLE_FILE_PNG : SAMPLE_FILE_VALUE;
        return images[entry->mode];
    }
    if (field->kind == COFFER_MLDF_ENTRY_AUDIO && entry->codec <= COFFER_MLDF_CODEC_FILE) {
        *out = entry->codec == CODEC_PCM ? SAMPLE_FILE_WAV : SAMPLE_FILE_VALUE;
        return sounds[entry->codec];
    }
    if (is_array(field) || (field->kind == COFFER_MLDF_ENTRY_TEXT && entry->encoding != 0)) {
        *out = SAMPLE_FILE_NPY;
        return "npy";
    }
    return field->kind == COFFER_MLDF_ENTRY_TEXT ? "txt" : field->type == COFFER_MLDF_JSON ? "json" : "bin";
}

static coffer_status fail_unsupported(const sample_reader *reader, size_t field, const char *what,
                                      coffer_error *err)
{
    sample_type_text type;
    const coffer_mldf_field *about = coffer_mldf_field_at(reader->set, field);
    return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                        "field \"%s\" is of type %s, which cannot become %s", about->name,
                        sample_type_name(type, about), what);
}

static coffer_status read_present(coffer_mldf_entry *entry, sample_reader *reader, uint64_t sample,
                                  size_t field, coffer_error *err)
{
    coffer_status status = coffer_mldf_read(&reader->bytes, entry, reader->set, sample, field, err);
    if (!status && !entry->present)
        status = coffer__fail(err, COFFER_E_MISSING, COFFER_OFFSET_NONE,
                              "sample %" PRIu64 " has no value for \"%s\"", sample,
                              coffer_mldf_field_at(reader->set, field)->name);
    return status;
}

/* ---- Pictures ---- */

static coffer_status take_raw(coffer_pixels *out, const sample_reader *reader, const coffer_mldf_entry *entry,
                              uint64_t sample, coffer_error *err)
{
    size_t size = (size_t)entry->width * entry->height * entry->channels;
    if (size != reader->bytes.size || size == 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, entry->offset,
                            "sample %" PRIu64 ": %u × %u × %u pixels take %zu bytes, the value has %zu",
                            sample, entry->width, entry->height, entry->channels, size, reader->bytes.size);
    if (out->capacity < size) {
        coffer_free(out->data);
        *out = (coffer_pixels)COFFER_PIXELS_INIT;
        out->data = coffer__malloc(size);
        if (!out->data)
            return coffer__fail_no_memory(err, size);
        out->capacity = size;
    }
    memcpy(out->data, reader->bytes.data, size);
    out->width = entry->width;
    out->height = entry->height;
    out->channels = entry->channels;
    out->depth = 8;
    return COFFER_OK;
}

coffer_status sample_pixels(coffer_pixels *out, coffer_image_decoder *decoder, sample_reader *reader,
                            uint64_t sample, size_t field, const coffer_image_decode_opts *opts,
                            coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    reader->decoding = false;
    coffer_status status = read_present(&entry, reader, sample, field, err);
    if (status)
        return status;
    if (entry.mode == MODE_RAW)
        return take_raw(out, reader, &entry, sample, err);
    reader->decoding = true;
    return coffer_image_decode(out, decoder, reader->bytes.data, reader->bytes.size, opts, err);
}

static coffer_status put_encoded(coffer__buffer *out, const coffer_pixels *pixels, sample_file as,
                                 coffer_error *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    bool alpha = pixels->channels == 2 || pixels->channels == 4;
    if (as == SAMPLE_FILE_JPG && (alpha || pixels->depth == 16))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "the picture has %s, which a JPEG cannot hold; a .png file keeps it",
                            alpha ? "an alpha channel" : "16 bits a channel");
    coffer_status status = as == SAMPLE_FILE_PNG
                               ? coffer_image_encode_png(&bytes, &size, pixels, err)
                               : coffer_image_encode_jpeg(&bytes, &size, pixels, JPEG_QUALITY, err);
    if (!status)
        coffer__buffer_append(out, bytes, size);
    coffer_free(bytes);
    return status;
}

/* ---- NumPy ---- */

static coffer_status put_npy(coffer__buffer *out, coffer_dtype dtype, const uint64_t *dims, size_t ndim,
                             const void *elements, size_t size, coffer_error *err)
{
    uint8_t *header = NULL;
    size_t len = 0;
    coffer_status status = coffer_npy_header(&header, &len, dtype, dims, ndim, err);
    if (status)
        return status;
    coffer__buffer_append(out, header, len);
    coffer_free(header);
    coffer__buffer_append(out, elements, size);
    return COFFER_OK;
}

static coffer_status put_picture(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                                 sample_file as, coffer_error *err)
{
    coffer_pixels pixels = COFFER_PIXELS_INIT;
    coffer_image_decoder *decoder = NULL;
    coffer_image_decode_opts opts = COFFER_IMAGE_DECODE_OPTS_INIT;
    opts.channels = 0;
    opts.depth = 0;
    coffer_status status = coffer_image_decoder_new(&decoder, NULL, err);
    if (!status)
        status = sample_pixels(&pixels, decoder, reader, sample, field, &opts, err);
    if (!status && as == SAMPLE_FILE_NPY) {
        const uint64_t dims[] = { pixels.height, pixels.width, pixels.channels };
        bool wide = pixels.depth == 16;
        status = put_npy(out, wide ? COFFER_DTYPE_U16 : COFFER_DTYPE_U8, dims, 3, pixels.data,
                         (size_t)pixels.height * pixels.width * pixels.channels * (wide ? 2 : 1), err);
    } else if (!status) {
        status = put_encoded(out, &pixels, as, err);
    }
    coffer_image_decoder_free(decoder);
    coffer_free(pixels.data);
    return status;
}

static coffer_status put_tokens(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                                coffer_error *err)
{
    coffer_status status = coffer_mldf_get_tokens(&reader->bytes, reader->set, sample, field, err);
    const uint64_t dims[] = { reader->bytes.size / 4 };
    if (!status)
        status = put_npy(out, COFFER_DTYPE_U32, dims, 1, reader->bytes.data, reader->bytes.size, err);
    return status;
}

static coffer_status put_array(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                               coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_status status = coffer_mldf_get_array(&reader->bytes, dims, reader->set, sample, index, err);
    if (!status)
        status = put_npy(out, field->dtype, dims, field->ndim, reader->bytes.data, reader->bytes.size, err);
    return status;
}

/* ---- Sound ---- */

/* Whole numbers of 8 (unsigned), 16, 24 or 32 bits, as WAV files have them. */
static float pcm_at(const uint8_t *at, unsigned bits)
{
    switch (bits) {
    case 8:
        return ((float)*at - 128.0F) / 128.0F;
    case 16:
        return (float)(int16_t)(at[0] | at[1] << 8) / 32768.0F;
    case 24:
        return (float)(int32_t)((uint32_t)at[0] << 8 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 24) /
               2147483648.0F;
    default:
        return (float)(int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                                (uint32_t)at[3] << 24) /
               2147483648.0F;
    }
}

static coffer_status sound_of_pcm(float **out, uint64_t *frames, const sample_reader *reader,
                                  const coffer_mldf_entry *entry, uint64_t sample, coffer_error *err)
{
    unsigned bits = entry->bit_depth;
    size_t each = bits / 8, per_frame = each * entry->channels;
    if ((bits != 8 && bits != 16 && bits != 24 && bits != 32) || entry->channels == 0)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, entry->offset,
                            "sample %" PRIu64 ": sound of %u bits in %u channels", sample, bits,
                            entry->channels);
    *frames = reader->bytes.size / per_frame;
    size_t count = (size_t)*frames * entry->channels;
    float *values = coffer__alloc_array(count + 1, sizeof *values);
    if (!values)
        return coffer__fail_no_memory(err, count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = pcm_at(reader->bytes.data + i * each, bits);
    *out = values;
    return COFFER_OK;
}

static coffer_status sound_of_file(float **out, const coffer_audio_info *info, const sample_reader *reader,
                                   coffer_error *err)
{
    size_t most = SIZE_MAX / sizeof(float) - 1;
    if (info->channels > 0 && info->frames > most / info->channels)
        return coffer__fail_no_memory(err, UINT64_MAX);
    size_t count = (size_t)info->frames * info->channels;
    float *values = coffer__alloc_array(count + 1, sizeof *values);
    if (!values)
        return coffer__fail_no_memory(err, count * sizeof *values);
    coffer_status status = coffer_audio_decode(values, count, reader->bytes.data, reader->bytes.size, err);
    if (!status)
        *out = values;
    else
        coffer__free(values);
    return status;
}

/* Some programs keep whole WAV files where bare samples are expected. */
static bool is_sound_file(const sample_reader *reader, const coffer_mldf_entry *entry)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    if (entry->codec == CODEC_PCM && (reader->bytes.size < 4 || memcmp(reader->bytes.data, "RIFF", 4) != 0))
        return false;
    return coffer_audio_probe(&info, reader->bytes.data, reader->bytes.size, NULL) == COFFER_OK;
}

coffer_status sample_sound(float **out, uint64_t *frames, uint32_t *channels, uint32_t *rate,
                           sample_reader *reader, uint64_t sample, size_t field, coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    reader->decoding = false;
    coffer_status status = read_present(&entry, reader, sample, field, err);
    if (status)
        return status;
    if (!is_sound_file(reader, &entry) && entry.codec == CODEC_PCM) {
        *channels = entry.channels;
        *rate = entry.sample_rate;
        return sound_of_pcm(out, frames, reader, &entry, sample, err);
    }
    reader->decoding = true;
    status = coffer_audio_probe(&info, reader->bytes.data, reader->bytes.size, err);
    if (!status)
        status = sound_of_file(out, &info, reader, err);
    *frames = info.frames;
    *channels = info.channels;
    *rate = info.sample_rate;
    return status;
}

/* Little-endian. */
static void put_number(uint8_t *out, size_t bytes, uint32_t number)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(number >> 8 * i);
}

/* RIFF | size | WAVE | fmt, 16 bytes | data */
static void put_wav_head(coffer__buffer *out, unsigned format, unsigned channels, uint32_t rate,
                         unsigned bits, size_t size)
{
    uint8_t head[44] = "RIFF....WAVEfmt ";
    uint32_t frame = channels * bits / 8;
    put_number(head + 4, 4, (uint32_t)(36 + size));
    put_number(head + 16, 4, 16);
    put_number(head + 20, 2, format);
    put_number(head + 22, 2, channels);
    put_number(head + 24, 4, rate);
    put_number(head + 28, 4, rate * frame);
    put_number(head + 32, 2, frame);
    put_number(head + 34, 2, bits);
    memcpy(head + 36, "data", 4);
    put_number(head + 40, 4, (uint32_t)size);
    coffer__buffer_append(out, head, sizeof head);
}

/* Bare samples get a head; what is a file of its own is decoded into floats. */
static coffer_status put_sound(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                               sample_file as, coffer_error *err)
{
    enum { WAV_WHOLE = 1, WAV_FLOAT = 3 };
    float *values = NULL;
    uint64_t frames = 0;
    uint32_t channels = 0, rate = 0;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = sample_sound(&values, &frames, &channels, &rate, reader, sample, field, err);
    if (!status)
        status = coffer_mldf_entry_at(&entry, reader->set, sample, field, err);
    if (status)
        goto out;
    size_t size = (size_t)frames * channels * sizeof *values;
    const uint64_t dims[] = { frames, channels };
    bool is_file = is_sound_file(reader, &entry);
    if (as == SAMPLE_FILE_NPY) {
        status = put_npy(out, COFFER_DTYPE_F32, dims, 2, values, size, err);
    } else if (is_file && memcmp(reader->bytes.data, "RIFF", 4) == 0) {
        coffer__buffer_append(out, reader->bytes.data, reader->bytes.size);
    } else if (!is_file) {
        put_wav_head(out, WAV_WHOLE, channels, rate, entry.bit_depth, reader->bytes.size);
        coffer__buffer_append(out, reader->bytes.data, reader->bytes.size);
    } else {
        put_wav_head(out, WAV_FLOAT, channels, rate, 32, size);
        coffer__buffer_append(out, values, size);
    }
out:
    coffer__free(values);
    return status;
}

/* ---- All ---- */

static coffer_status put_scalar(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                                coffer_error *err)
{
    bool is_int = coffer_mldf_field_at(reader->set, field)->kind == COFFER_MLDF_ENTRY_INT;
    coffer_status status = coffer_mldf_read(&reader->bytes, NULL, reader->set, sample, field, err);
    if (!status)
        status = put_npy(out, is_int ? COFFER_DTYPE_I64 : COFFER_DTYPE_F64, NULL, 0, reader->bytes.data,
                         reader->bytes.size, err);
    return status;
}

static coffer_status put_array_file(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                                    const coffer_mldf_entry *entry, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    switch (field->kind) {
    case COFFER_MLDF_ENTRY_INT:
    case COFFER_MLDF_ENTRY_FLOAT:
        return put_scalar(out, reader, sample, index, err);
    case COFFER_MLDF_ENTRY_IMAGE:
        return put_picture(out, reader, sample, index, SAMPLE_FILE_NPY, err);
    case COFFER_MLDF_ENTRY_AUDIO:
        return put_sound(out, reader, sample, index, SAMPLE_FILE_NPY, err);
    case COFFER_MLDF_ENTRY_TEXT:
        return entry->encoding ? put_tokens(out, reader, sample, index, err)
                               : fail_unsupported(reader, index, "an array", err);
    case COFFER_MLDF_ENTRY_BYTES:
    case COFFER_MLDF_ENTRY_OPAQUE:
        break;
    }
    return is_array(field) ? put_array(out, reader, sample, index, err)
                           : fail_unsupported(reader, index, "an array", err);
}

static coffer_status put_value(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                               coffer_error *err)
{
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = read_present(&entry, reader, sample, field, err);
    if (!status)
        coffer__buffer_append(out, reader->bytes.data, reader->bytes.size);
    return status;
}

coffer_status sample_put_file(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                              sample_file as, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, reader->set, sample, index, err);
    if (status)
        return status;
    bool is_image = field->kind == COFFER_MLDF_ENTRY_IMAGE;
    bool is_that = is_image && ((as == SAMPLE_FILE_JPG && entry.mode == MODE_JPEG) ||
                                (as == SAMPLE_FILE_PNG && entry.mode == MODE_PNG));
    if (as == SAMPLE_FILE_VALUE || is_that)
        status = put_value(out, reader, sample, index, err);
    else if (as == SAMPLE_FILE_NPY)
        status = put_array_file(out, reader, sample, index, &entry, err);
    else if (as == SAMPLE_FILE_WAV)
        status = field->kind == COFFER_MLDF_ENTRY_AUDIO ? put_sound(out, reader, sample, index, as, err)
                                                        : fail_unsupported(reader, index, "a WAV file", err);
    else
        status = is_image ? put_picture(out, reader, sample, index, as, err)
                          : fail_unsupported(reader, index, "a picture", err);
    return !status && out->failed ? coffer__fail_no_memory(err, entry.size) : status;
}
