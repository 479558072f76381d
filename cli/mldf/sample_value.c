#include "mldf/sample_value.h"

#include "coffer/media.h"

#include "base/memory.h"
#include "base/real.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

void sample_reader_free(sample_reader *reader)
{
    coffer__free(reader->fields);
    reader->fields = NULL;
    reader->field_count = 0;
    coffer_free(reader->bytes.data);
}

size_t sample_field_count(const sample_reader *reader)
{
    return reader->fields ? reader->field_count : coffer_mldf_field_count(reader->set);
}

size_t sample_field_at(const sample_reader *reader, size_t index)
{
    return reader->fields ? reader->fields[index] : index;
}

bool sample_is_readable(const coffer_mldf_field *field)
{
    return field->kind == COFFER_MLDF_ENTRY_INT || field->kind == COFFER_MLDF_ENTRY_FLOAT ||
           field->kind == COFFER_MLDF_ENTRY_TEXT || field->type == COFFER_MLDF_JSON ||
           sample_has_parts(field);
}

const char *sample_type_name(sample_type_text out, const coffer_mldf_field *field)
{
    const char *name = coffer_mldf_type_name(field->type);
    if (name)
        snprintf(out, sizeof(sample_type_text), "%s", name);
    else
        snprintf(out, sizeof(sample_type_text), "type %u", field->type);
    return out;
}

static bool has_array(const coffer_mldf_field *field)
{
    return field->ndim > 0 || field->dtype != COFFER_DTYPE_NONE;
}

/* True when the value is encrypted and no key was given. */
static bool is_locked(const sample_reader *reader, const coffer_mldf_field *field)
{
    return (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) && !reader->has_key;
}

static bool is_text(const coffer_mldf_field *field, const coffer_mldf_entry *entry)
{
    return field->type == COFFER_MLDF_JSON || (field->kind == COFFER_MLDF_ENTRY_TEXT && entry->encoding == 0);
}

/* Tokens are stored little-endian. */
static uint32_t token_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* ---- For people ---- */

static void put_number(coffer__buffer *out, double value)
{
    char text[COFFER__REAL_TEXT];
    coffer__buffer_append(out, text, (size_t)(coffer__put_f64(text, value) - text));
}

static void put_image(coffer__buffer *out, const coffer_mldf_entry *entry)
{
    static const char *const modes[] = { "raw", "jpeg", "png" };
    coffer__buffer_printf(out, "%s %u × %u", entry->mode < 3 ? modes[entry->mode] : "image", entry->width,
                          entry->height);
    if (entry->channels)
        coffer__buffer_printf(out, " × %u", entry->channels);
    coffer__buffer_printf(out, ", ");
}

static const char *codec_name(uint8_t codec)
{
    static const char *const codecs[] = { "pcm", "flac", "aac", "mp3", "vorbis", "opus", "file" };
    return codec < sizeof codecs / sizeof *codecs ? codecs[codec] : NULL;
}

static void put_audio(coffer__buffer *out, const coffer_mldf_entry *entry)
{
    const char *codec = codec_name(entry->codec);
    coffer__buffer_printf(out, "%s ", codec ? codec : "audio");
    if (entry->sample_rate && !entry->num_samples && entry->codec != COFFER_MLDF_CODEC_PCM)
        coffer__buffer_printf(out, "%" PRIu32 " Hz", entry->sample_rate);
    else if (entry->sample_rate)
        coffer__buffer_printf(out, "%.4g s at %" PRIu32 " Hz",
                              (double)entry->num_samples / entry->sample_rate, entry->sample_rate);
    else
        coffer__buffer_printf(out, "%" PRIu32 " frames", entry->num_samples);
    if (entry->channels)
        coffer__buffer_printf(out, ", %u channel%s", entry->channels, entry->channels == 1 ? "" : "s");
    coffer__buffer_printf(out, ", ");
}

static void put_array(coffer__buffer *out, const coffer_mldf_field *field)
{
    coffer__buffer_printf(out, "%s [", coffer_dtype_name(field->dtype));
    for (uint32_t i = 0; i < field->ndim; i++) {
        coffer__buffer_printf(out, "%s", i ? ", " : "");
        if (field->dims[i])
            coffer__buffer_printf(out, "%" PRIu64, field->dims[i]);
        else
            coffer__buffer_printf(out, "?");
    }
    coffer__buffer_printf(out, "], ");
}

/* Describes a payload without its bytes. */
static void put_description(coffer__buffer *out, const sample_reader *reader, const coffer_mldf_field *field,
                            const coffer_mldf_entry *entry)
{
    term_text size;
    if (is_locked(reader, field))
        coffer__buffer_printf(out, "encrypted, ");
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE)
        put_image(out, entry);
    else if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        put_audio(out, entry);
    else if (has_array(field))
        put_array(out, field);
    coffer__buffer_printf(out, "%s", term_bytes(size, entry->size));
}

static coffer_status put_tokens(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                                coffer_error *err)
{
    coffer_status status = coffer_mldf_get_tokens(&reader->bytes, reader->set, sample, field, err);
    for (size_t i = 0; !status && i + 4 <= reader->bytes.size; i += 4)
        coffer__buffer_printf(out, "%s%" PRIu32, i ? " " : "", token_at(reader->bytes.data + i));
    return status;
}

static coffer_status put_row_bytes(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t field,
                                   coffer_error *err)
{
    coffer_status status = coffer_mldf_read(&reader->bytes, NULL, reader->set, sample, field, err);
    for (size_t i = 0; !status && i < reader->bytes.size; i++)
        coffer__buffer_printf(out, "%02x", reader->bytes.data[i]);
    return status;
}

coffer_status sample_put_text(coffer__buffer *out, sample_reader *reader, uint64_t sample, size_t index,
                              coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, reader->set, sample, index, err);
    if (status)
        return status;
    if (field->kind == COFFER_MLDF_ENTRY_INT) {
        coffer__buffer_printf(out, "%" PRId64, entry.i64);
    } else if (field->kind == COFFER_MLDF_ENTRY_FLOAT) {
        put_number(out, entry.f64);
    } else if (field->kind == COFFER_MLDF_ENTRY_OPAQUE) {
        status = put_row_bytes(out, reader, sample, index, err);
    } else if (!entry.present) {
        coffer__buffer_printf(out, "–");
    } else if (is_locked(reader, field) || !sample_is_readable(field)) {
        put_description(out, reader, field, &entry);
    } else if (sample_has_parts(field)) {
        status = sample_put_parts_text(out, reader->set, sample, index, err);
    } else if (is_text(field, &entry)) {
        status = coffer_mldf_get_text(&reader->bytes, reader->set, sample, index, err);
        if (!status)
            coffer__buffer_append(out, reader->bytes.data, reader->bytes.size);
    } else {
        status = put_tokens(out, reader, sample, index, err);
    }
    return status;
}

/* ---- As JSON ---- */

static void put_u64(coffer__json_writer *json, const char *key, uint64_t value)
{
    coffer__json_key(json, key);
    coffer__json_write_u64(json, value);
}

static void put_image_members(coffer__json_writer *json, const coffer_mldf_entry *entry)
{
    static const char *const modes[] = { "raw", "jpeg", "png" };
    coffer__json_key(json, "mode");
    coffer__json_string(json, entry->mode < 3 ? modes[entry->mode] : NULL);
    put_u64(json, "width", entry->width);
    put_u64(json, "height", entry->height);
    put_u64(json, "channels", entry->channels);
}

static void put_audio_members(coffer__json_writer *json, const coffer_mldf_entry *entry)
{
    coffer__json_key(json, "codec");
    coffer__json_string(json, codec_name(entry->codec));
    put_u64(json, "num_samples", entry->num_samples);
    put_u64(json, "sample_rate", entry->sample_rate);
    put_u64(json, "channels", entry->channels);
    put_u64(json, "bit_depth", entry->bit_depth);
}

/* Numbers of any type, one after the other; a complex one is a pair. */
static void put_elements(coffer__json_writer *json, const coffer_bytes *bytes, coffer_dtype dtype)
{
    enum { AT_ONCE = 512 };
    double reals[2 * AT_ONCE];
    bool pairs = coffer_dtype_is_complex(dtype);
    size_t size = coffer_dtype_size(dtype), count = size ? bytes->size / size : 0;
    coffer_dtype to = pairs ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
    coffer__json_key(json, "values");
    if (!size || !coffer_dtype_can_convert(to, dtype)) {
        coffer__json_write_null(json);
        return;
    }
    coffer__json_open_array(json);
    for (size_t done = 0; done < count;) {
        size_t now = count - done < AT_ONCE ? count - done : AT_ONCE;
        coffer_dtype_convert(reals, to, bytes->data + done * size, dtype, now);
        for (size_t i = 0; i < now * (pairs ? 2 : 1); i++)
            coffer__json_write_f64(json, reals[i]);
        done += now;
    }
    coffer__json_close_array(json);
}

static coffer_status put_array_members(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                       size_t index, bool elements, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    uint64_t dims[COFFER_MLDF_MAX_DIMS];
    coffer_status status = COFFER_OK;
    memcpy(dims, field->dims, sizeof dims);
    coffer__json_key(json, "dtype");
    coffer__json_string(json, coffer_dtype_name(field->dtype));
    if (!is_locked(reader, field))
        status = coffer_mldf_get_array(&reader->bytes, dims, reader->set, sample, index, err);
    if (status)
        return status;
    coffer__json_key(json, "shape");
    coffer__json_open_array(json);
    for (uint32_t i = 0; i < field->ndim; i++)
        coffer__json_write_u64(json, dims[i]);
    coffer__json_close_array(json);
    if (elements && !is_locked(reader, field))
        put_elements(json, &reader->bytes, field->dtype);
    return COFFER_OK;
}

/* Container and codec are in the payload. What cannot be read or is not a video has only its size. */
static void put_video_members(coffer__json_writer *json, sample_reader *reader, uint64_t sample, size_t index)
{
    coffer_video_info info = COFFER_VIDEO_INFO_INIT;
    if (coffer_mldf_read(&reader->bytes, NULL, reader->set, sample, index, NULL) != COFFER_OK ||
        coffer_video_probe(&info, reader->bytes.data, reader->bytes.size, NULL) != COFFER_OK)
        return;
    coffer__json_key(json, "container");
    coffer__json_string(json, info.container);
    coffer__json_key(json, "codec");
    coffer__json_string(json, *info.codec ? info.codec : NULL);
    put_u64(json, "width", info.width);
    put_u64(json, "height", info.height);
    coffer__json_key(json, "seconds");
    coffer__json_write_f64(json, info.seconds);
}

static coffer_status put_members(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                 size_t index, const coffer_mldf_entry *entry, bool elements,
                                 coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    coffer_status status = COFFER_OK;
    coffer__json_open_object(json);
    put_u64(json, "size", entry->size);
    if (field->flags & COFFER_MLDF_FIELD_ENCRYPTED) {
        coffer__json_key(json, "encrypted");
        coffer__json_write_bool(json, true);
    }
    if (field->kind == COFFER_MLDF_ENTRY_IMAGE)
        put_image_members(json, entry);
    else if (field->kind == COFFER_MLDF_ENTRY_AUDIO)
        put_audio_members(json, entry);
    else if (field->type == COFFER_MLDF_VIDEO_COMPRESSED && elements && !is_locked(reader, field))
        put_video_members(json, reader, sample, index);
    else if (has_array(field))
        status = put_array_members(json, reader, sample, index, elements, err);
    coffer__json_close_object(json);
    return status;
}

static coffer_status put_token_list(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                    size_t field, coffer_error *err)
{
    coffer_status status = coffer_mldf_get_tokens(&reader->bytes, reader->set, sample, field, err);
    if (status)
        return status;
    coffer__json_open_array(json);
    for (size_t i = 0; i + 4 <= reader->bytes.size; i += 4)
        coffer__json_write_u64(json, token_at(reader->bytes.data + i));
    coffer__json_close_array(json);
    return COFFER_OK;
}

/* JSON goes in as what it is; what only claims to be JSON, as text. */
static coffer_status put_text_value(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                    size_t index, coffer_error *err)
{
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__json *parsed = NULL;
    coffer_status status = coffer_mldf_get_text(&reader->bytes, reader->set, sample, index, err);
    if (status)
        return status;
    const char *text = (const char *)reader->bytes.data;
    if (coffer_mldf_field_at(reader->set, index)->type == COFFER_MLDF_JSON &&
        coffer__json_parse(&parsed, text, reader->bytes.size, 0, &limits, NULL) == COFFER_OK)
        coffer__json_write_value(json, coffer__json_root(parsed));
    else
        coffer__json_string_len(json, text, reader->bytes.size);
    coffer__json_free(parsed);
    return COFFER_OK;
}

coffer_status sample_put_json(coffer__json_writer *json, sample_reader *reader, uint64_t sample, size_t index,
                              bool elements, coffer_error *err)
{
    const coffer_mldf_field *field = coffer_mldf_field_at(reader->set, index);
    coffer__buffer hex = COFFER__BUFFER_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_mldf_entry_at(&entry, reader->set, sample, index, err);
    if (status)
        return status;
    if (field->kind == COFFER_MLDF_ENTRY_INT) {
        coffer__json_write_i64(json, entry.i64);
    } else if (field->kind == COFFER_MLDF_ENTRY_FLOAT) {
        coffer__json_write_f64(json, entry.f64);
    } else if (field->kind == COFFER_MLDF_ENTRY_OPAQUE) {
        status = put_row_bytes(&hex, reader, sample, index, err);
        coffer__json_string_len(json, coffer__buffer_text(&hex), hex.len);
        coffer__buffer_free(&hex);
    } else if (!entry.present) {
        coffer__json_write_null(json);
    } else if (is_locked(reader, field) || !sample_is_readable(field)) {
        status = put_members(json, reader, sample, index, &entry, elements, err);
    } else if (sample_has_parts(field)) {
        status = sample_put_parts_json(json, reader->set, sample, index, err);
    } else if (is_text(field, &entry)) {
        status = put_text_value(json, reader, sample, index, err);
    } else {
        status = put_token_list(json, reader, sample, index, err);
    }
    return status;
}

coffer_status sample_put_object(coffer__json_writer *json, sample_reader *reader, uint64_t sample,
                                coffer_error *err)
{
    coffer_status status = COFFER_OK;
    coffer__json_open_object(json);
    put_u64(json, "sample", sample);
    for (size_t i = 0; !status && i < sample_field_count(reader); i++) {
        size_t field = sample_field_at(reader, i);
        coffer__json_key(json, coffer_mldf_field_at(reader->set, field)->name);
        status = sample_put_json(json, reader, sample, field, false, err);
    }
    coffer__json_close_object(json);
    return status;
}
