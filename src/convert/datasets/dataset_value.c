/* Converts files to the values that a field stores. */
#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "convert/datasets/dataset_input.h"
#include "outside/arrays/npy.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

static coffer_status take_json(const coffer__dataset_value *value, const coffer_limits *limits,
                               coffer_error *err)
{
    coffer_limits known = coffer__limits(limits);
    coffer__json *json = NULL;
    coffer_status status = coffer__json_parse(&json, (const char *)value->bytes, value->size, 0, &known, err);
    coffer__json_free(json);
    return status;
}

static coffer_status take_text(const coffer__dataset_value *value, coffer_error *err)
{
    size_t valid = coffer__utf8_valid_prefix(value->bytes, value->size);
    if (valid != value->size)
        return coffer__fail(err, COFFER_E_BAD_TEXT, valid, "not UTF-8 at byte %zu", valid);
    return COFFER_OK;
}

/* The samples of a WAV file with whole numbers are stored bare, as the format has it; false when they are
 * floating-point numbers or packed by a codec. */
static bool strip_wav(coffer__dataset_value *value, const coffer_audio_info *info)
{
    size_t wanted = (size_t)info->frames * info->channels * (info->bit_depth / 8);
    const uint8_t *at = value->bytes + 12, *end = value->bytes + value->size;
    uint16_t tag = 0;
    if (info->bit_depth == 0 || info->bit_depth % 8)
        return false;
    while (end - at >= 8) {
        uint32_t len = coffer__load_u32(at + 4);
        size_t left = (size_t)(end - at) - 8;
        if (memcmp(at, "fmt ", 4) == 0 && len >= 16 && len <= left) {
            tag = coffer__load_u16(at + 8);
            if (tag == 0xfffe && len >= 26)
                tag = coffer__load_u16(at + 8 + 24);
        }
        if (memcmp(at, "data", 4) == 0) {
            value->bytes = at + 8;
            value->size = wanted;
            return tag == 1 && wanted <= left;
        }
        if (len > left)
            return false;
        at += 8 + (size_t)len + (len % 2 && len < left);
    }
    return false;
}

/* The codec of a sound that is stored as the file it is. */
static uint8_t codec_of(const coffer_audio_info *info)
{
    switch (info->kind) {
    case COFFER_AUDIO_FLAC:
        return COFFER_MLDF_CODEC_FLAC;
    case COFFER_AUDIO_MP3:
        return COFFER_MLDF_CODEC_MP3;
    case COFFER_AUDIO_AAC:
        return COFFER_MLDF_CODEC_AAC;
    case COFFER_AUDIO_VORBIS:
        return COFFER_MLDF_CODEC_VORBIS;
    case COFFER_AUDIO_OPUS:
        return COFFER_MLDF_CODEC_OPUS;
    case COFFER_AUDIO_MP4:
        return strcmp(info->codec, "aac") == 0 ? COFFER_MLDF_CODEC_AAC : COFFER_MLDF_CODEC_FILE;
    default:
        return COFFER_MLDF_CODEC_FILE;
    }
}

static coffer_status describe_sound(coffer_mldf_entry *out, const coffer_audio_info *info, coffer_error *err)
{
    enum { FLOAT_BITS = 32 };
    if (info->frames > UINT32_MAX || info->channels > UINT16_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "sound: %" PRIu64 " samples a channel, at most 4294967295 can be stored",
                            info->frames);
    uint32_t depth = info->kind == COFFER_AUDIO_WAV && info->bit_depth == 0 ? FLOAT_BITS : info->bit_depth;
    *out = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                .present = true,
                                .num_samples = (uint32_t)info->frames,
                                .sample_rate = info->sample_rate,
                                .channels = (uint16_t)info->channels,
                                .bit_depth = (uint8_t)depth,
                                .codec = codec_of(info) };
    return COFFER_OK;
}

coffer_status coffer_mldf_describe_sound(coffer_mldf_entry *out, const void *bytes, size_t size,
                                         coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_mldf_entry entry = COFFER_MLDF_ENTRY_INIT;
    coffer_status status = coffer_audio_probe(&info, bytes, size, err);
    if (!status)
        status = describe_sound(&entry, &info, err);
    return status ? status : coffer__give_struct(out, &entry, sizeof entry, err);
}

coffer_status coffer__dataset_try_sound(const void *bytes, size_t size, coffer__dataset_taker *taker,
                                        const coffer_limits *limits, coffer_error *err)
{
    coffer_limits known = coffer__limits(limits);
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    uint64_t count;
    coffer_status status = coffer_audio_probe(&info, bytes, size, err);
    if (status)
        return status;
    if (!coffer__mul_u64(&count, info.frames, info.channels) || count > known.memory_bytes / sizeof(float))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "sound: %" PRIu64 " samples of %" PRIu32 " channels need more than the limit of "
                            "%" PRIu64 " bytes",
                            info.frames, info.channels, known.memory_bytes);
    if (count > taker->sound_capacity) {
        coffer__free(taker->sound);
        taker->sound_capacity = 0;
        taker->sound = coffer__alloc_array((size_t)count, sizeof *taker->sound);
        if (!taker->sound)
            return coffer__fail_no_memory(err, count * sizeof *taker->sound);
        taker->sound_capacity = (size_t)count;
    }
    return coffer_audio_decode(taker->sound, (size_t)count, bytes, size, err);
}

static coffer_status check_sound(const coffer__dataset_value *value, coffer__dataset_taker *taker,
                                 coffer_error *err)
{
    const coffer_mldf_pack_opts *opts = taker->opts;
    if (!opts->decode)
        return COFFER_OK;
    coffer_status status = coffer__dataset_try_sound(value->bytes, value->size, taker,
                                                     opts->write ? opts->write->limits : NULL, err);
    if (status == COFFER_E_UNSUPPORTED) {
        taker->changes[COFFER__NOT_DECODED]++;
        return COFFER_OK;
    }
    if (!status || !opts->store_damaged)
        return status;
    taker->changes[COFFER__STORED_DAMAGED]++;
    return COFFER_OK;
}

/* Plain integers are stored bare, as the format has it; every other sound is stored as the file it is. */
static coffer_status take_audio(coffer__dataset_value *value, coffer__dataset_taker *taker, coffer_error *err)
{
    coffer_audio_info info = COFFER_AUDIO_INFO_INIT;
    coffer_status status = coffer_audio_probe(&info, value->bytes, value->size, err);
    if (!status)
        status = check_sound(value, taker, err);
    if (status)
        return status;
    coffer__dataset_value whole = *value;
    status = describe_sound(&value->entry, &info, err);
    if (status)
        return status;
    value->has_entry = true;
    if (info.kind != COFFER_AUDIO_WAV)
        return COFFER_OK;
    if (strip_wav(value, &info)) {
        value->entry.codec = COFFER_MLDF_CODEC_PCM;
        return COFFER_OK;
    }
    value->bytes = whole.bytes;
    value->size = whole.size;
    taker->changes[COFFER__STORED_WHOLE]++;
    return COFFER_OK;
}

/* Elements of an array that is stored column by column, put row by row. */
static coffer_status turn_round(coffer__dataset_value *value, const coffer__npy *npy, coffer_error *err)
{
    size_t size = (size_t)npy->item_size, count = (size_t)npy->count;
    uint64_t at[COFFER__NPY_MAX_DIMENSIONS] = { 0 };
    coffer__buffer out = COFFER__BUFFER_INIT;
    uint8_t *to = coffer__buffer_extend(&out, value->size);
    if (!to)
        return coffer__fail_no_memory(err, value->size);
    for (size_t i = 0; i < count; i++) {
        uint64_t from = 0;
        for (size_t d = npy->dimensions; d-- > 0;)
            from = from * npy->shape[d] + at[d];
        memcpy(to + i * size, value->bytes + from * size, size);
        for (size_t d = npy->dimensions; d-- > 0 && ++at[d] == npy->shape[d];)
            at[d] = 0;
    }
    coffer__buffer_free(&value->own);
    value->own = out;
    value->bytes = out.data;
    return COFFER_OK;
}

static coffer_status check_array(const coffer__npy *npy, const coffer_mldf_field *field, coffer_error *err)
{
    coffer_dtype dtype = npy->structured ? COFFER_DTYPE_NONE : coffer__npy_dtype(&npy->fields[0]);
    dtype = coffer__dataset_stored_dtype(dtype);
    if (dtype != field->dtype || npy->dimensions != field->ndim)
        return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                            "an array of type %s with %zu dimensions, the field has %s with %" PRIu32,
                            coffer_dtype_name(dtype), npy->dimensions, coffer_dtype_name(field->dtype),
                            field->ndim);
    for (size_t i = 0; i < npy->dimensions; i++) {
        if (field->dims[i] && field->dims[i] != npy->shape[i])
            return coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                                "an array with %" PRIu64 " in dimension %zu, the field has %" PRIu64,
                                npy->shape[i], i, field->dims[i]);
    }
    return COFFER_OK;
}

static coffer_status take_array_elements(coffer__dataset_value *value, const coffer__npy *npy,
                                         coffer_dtype dtype, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    value->bytes += npy->data_offset;
    value->size = (size_t)(npy->count * npy->item_size);
    bool turn = npy->fortran_order && npy->dimensions > 1, swap = npy->fields[0].big_endian;
    if (swap && !turn) {
        coffer__buffer copy = COFFER__BUFFER_INIT;
        if (!coffer__buffer_append(&copy, value->bytes, value->size))
            return coffer__fail_no_memory(err, value->size);
        coffer__buffer_free(&value->own);
        value->own = copy;
        value->bytes = copy.data;
    }
    if (turn)
        status = turn_round(value, npy, err);
    if (!status && swap)
        coffer__npy_swap(value->own.data, dtype, (size_t)npy->count);
    return status;
}

static coffer_status take_array(coffer__dataset_value *value, const coffer_mldf_field *field,
                                coffer_error *err)
{
    coffer_source *src = NULL;
    coffer__npy npy = { 0 };
    coffer_status status = coffer_source_from_memory(&src, value->bytes, value->size, err);
    if (!status)
        status = coffer__npy_read(&npy, src, err);
    if (!status)
        status = check_array(&npy, field, err);
    if (!status) {
        memcpy(value->dims, npy.shape, npy.dimensions * sizeof *value->dims);
        status = take_array_elements(value, &npy, field->dtype, err);
    }
    coffer__npy_free(&npy);
    coffer_source_close(src);
    return status;
}

/* Pixels and token ids come as arrays when a tar file holds them. */
static coffer_status take_raw_image(coffer__dataset_value *value, coffer_error *err)
{
    coffer_mldf_field as = COFFER_MLDF_FIELD_INIT;
    as.dtype = COFFER_DTYPE_U8;
    as.ndim = 3;
    coffer_status status = take_array(value, &as, err);
    if (status)
        return status;
    if (value->dims[0] > UINT16_MAX || value->dims[1] > UINT16_MAX || value->dims[2] > UINT8_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "pixels of %" PRIu64 " × %" PRIu64 " × %" PRIu64, value->dims[0], value->dims[1],
                            value->dims[2]);
    value->has_entry = true;
    value->entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                        .present = true,
                                        .height = (uint16_t)value->dims[0],
                                        .width = (uint16_t)value->dims[1],
                                        .channels = (uint16_t)value->dims[2] };
    return COFFER_OK;
}

static coffer_status take_tokens(coffer__dataset_value *value, coffer_error *err)
{
    coffer_mldf_field as = COFFER_MLDF_FIELD_INIT;
    bool wide = true;
    coffer__dataset_value before = *value;
    as.dtype = COFFER_DTYPE_I32;
    as.ndim = 1;
    coffer_status status = take_array(value, &as, NULL);
    if (status == COFFER_E_INCONSISTENT) {
        *value = before;
        as.dtype = COFFER_DTYPE_I16;
        wide = false;
        status = take_array(value, &as, err);
    }
    value->has_entry = true;
    value->entry = (coffer_mldf_entry){ .struct_size = sizeof(coffer_mldf_entry),
                                        .present = true,
                                        .num_tokens = (uint16_t)(value->dims[0] < UINT16_MAX ? value->dims[0]
                                                                                             : UINT16_MAX),
                                        .encoding = wide ? 1 : 2 };
    return status;
}

static coffer_status take_scalar(coffer__dataset_value *value, bool whole, coffer_error *err)
{
    coffer__number number;
    size_t len = value->size;
    while (len && (value->bytes[len - 1] == '\n' || value->bytes[len - 1] == '\r'))
        len--;
    value->form = COFFER__DATASET_SCALAR;
    if (!coffer__number_parse(&number, (const char *)value->bytes, len) ||
        (whole && !coffer__number_as_i64(&value->i64, &number)))
        return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "\"%.*s\" is not %s",
                            (int)(len < 40 ? len : 40), (const char *)value->bytes,
                            whole ? "an integer" : "a number");
    if (!whole)
        value->f64 = coffer__number_as_f64(&number);
    return COFFER_OK;
}

static coffer_status take_by_type(coffer__dataset_value *value, const coffer_mldf_field *field,
                                  coffer__dataset_taker *taker, coffer_error *err)
{
    value->form = COFFER__DATASET_READY;
    if (field->type == COFFER_MLDF_INT || field->type == COFFER_MLDF_FLOAT)
        return take_scalar(value, field->type == COFFER_MLDF_INT, err);
    if (coffer__dataset_is_image(field->type)) {
        if (value->size > 6 && coffer__npy_probe(value->bytes, value->size))
            return take_raw_image(value, err);
        return coffer__dataset_take_image(value, taker, err);
    }
    if (coffer__dataset_is_audio(field->type))
        return take_audio(value, taker, err);
    if (coffer__dataset_is_array(field->type))
        return take_array(value, field, err);
    if (field->type == COFFER_MLDF_TEXT)
        return take_text(value, err);
    if (field->type == COFFER_MLDF_JSON)
        return take_json(value, taker->opts->write ? taker->opts->write->limits : NULL, err);
    return field->type == COFFER_MLDF_TEXT_TOKENISED ? take_tokens(value, err) : COFFER_OK;
}

void coffer__dataset_taker_free(coffer__dataset_taker *taker)
{
    coffer_image_decoder_free(taker->decoder);
    coffer_free(taker->pixels.data);
    coffer_free(taker->scaled.data);
    coffer__free(taker->sound);
}

coffer_status coffer__dataset_take(coffer__dataset_value *value, const coffer_mldf_field *field,
                                   coffer__dataset_taker *taker, coffer_error *err)
{
    return value->form == COFFER__DATASET_FILE ? take_by_type(value, field, taker, err) : COFFER_OK;
}
