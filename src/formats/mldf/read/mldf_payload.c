/* From the stored bytes of one payload to its value: decrypted, then decompressed. */
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <sodium.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Encrypted payloads. */

coffer__mldf_binding coffer__mldf_bind(uint64_t sample, uint16_t field,
                                       const uint8_t id[COFFER__MLDF_ID_SIZE])
{
    static const uint8_t none[COFFER__MLDF_ID_SIZE];
    coffer__mldf_binding binding = { .size = 14 };
    memcpy(binding.bytes, "MLDF", 4);
    coffer__store_u64(binding.bytes + 4, sample);
    coffer__store_u16(binding.bytes + 12, field);
    if (memcmp(id, none, sizeof none) != 0) {
        memcpy(binding.bytes + binding.size, id, sizeof none);
        binding.size += sizeof none;
    }
    return binding;
}

bool coffer__mldf_open_sealed(uint8_t *out, const uint8_t *stored, size_t size,
                              const coffer__mldf_binding *binding, const uint8_t key[COFFER_MLDF_KEY_SIZE])
{
    if (size < COFFER__MLDF_SEAL_SIZE)
        return false;
    return crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
               out, NULL, stored + COFFER__MLDF_NONCE_SIZE, size - COFFER__MLDF_SEAL_SIZE,
               stored + size - COFFER__MLDF_TAG_SIZE, binding->bytes, binding->size, stored, key) == 0;
}

static bool open_value(uint8_t *out, const coffer_mldf *set, const coffer__mldf_value *value,
                       const uint8_t *stored)
{
    coffer__mldf_binding binding = coffer__mldf_bind(value->sample, (uint16_t)value->field, set->guard.id);
    return coffer__mldf_open_sealed(out, stored, value->size, &binding, set->key);
}

static coffer_status fail_authentication(const coffer_mldf *set, const coffer__mldf_value *value,
                                         const char *why, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_AUTHENTICATION_FAILED, value->offset,
                        "authentication failed for sample %" PRIu64 ", field %s: %s", value->sample,
                        set->schema.fields[value->field].name, why);
}

/* Fails when a payload of a field without the flag is encrypted: removing a flag must not make ciphertext
 * pass for a value. With the key it is tried; without it, a file that is marked as encrypted needs a field
 * that is. */
static coffer_status expect_not_sealed(const coffer_mldf *set, const coffer__mldf_value *value,
                                       const uint8_t *stored, coffer_error *err)
{
    if ((set->header.flags & COFFER_MLDF_ENCRYPTED) && !set->any_encrypted)
        return fail_authentication(set, value, "the file is encrypted, but no field says so", err);
    if (set->has_key && open_value(NULL, set, value, stored))
        return fail_authentication(set, value, "it is encrypted, but the field does not say so", err);
    return COFFER_OK;
}

static coffer_status expect_key(const coffer_mldf *set, const coffer__mldf_value *value, coffer_error *err)
{
    if (!(set->header.flags & COFFER_MLDF_ENCRYPTED))
        return fail_authentication(set, value, "the file does not say that it is encrypted", err);
    if (!set->has_key)
        return coffer__mldf_fail_decoding(err, COFFER_E_KEY_NEEDED, set, value,
                                          "encrypted, and no key was given");
    return COFFER_OK;
}

/* Decrypts into the room. */
static coffer_status mldf_decrypt(coffer__mldf_room *room, const coffer_mldf *set,
                                  const coffer__mldf_value *value, const uint8_t *stored, coffer_error *err)
{
    size_t plain = value->size < COFFER__MLDF_SEAL_SIZE ? 0 : value->size - COFFER__MLDF_SEAL_SIZE;
    coffer_status status = expect_key(set, value, err);
    if (!status)
        status = coffer__mldf_reserve(room, plain, err);
    if (status)
        return status;
    if (!open_value(room->data, set, value, stored))
        return fail_authentication(set, value, "another key, another file, or the bytes were changed", err);
    return COFFER_OK;
}

#define GROWTH_START 65536 /* room for a frame that does not say how much it holds */

struct coffer__mldf_decoder {
    ZSTD_DCtx *zstd;      /* made when first needed */
    coffer_bytes scratch; /* a decrypted frame */
};

struct coffer__mldf_dictionary {
    ZSTD_DDict *ready;
};

/* ---- Memory ---- */

coffer_status coffer__mldf_bytes_reserve(coffer_bytes *bytes, size_t size, coffer_error *err)
{
    size_t wanted = bytes->capacity + bytes->capacity / 2;
    uint8_t *data;
    if (size <= bytes->capacity && bytes->data)
        return COFFER_OK;
    if (wanted < size)
        wanted = size;
    data = coffer__malloc(wanted);
    if (!data)
        return coffer__fail_no_memory(err, wanted);
    coffer__free(bytes->data);
    bytes->data = data;
    bytes->capacity = wanted;
    bytes->size = 0;
    return COFFER_OK;
}

coffer_status coffer__mldf_reserve(coffer__mldf_room *room, size_t size, coffer_error *err)
{
    coffer_status status;
    if (room->grows) {
        status = coffer__mldf_bytes_reserve(room->grows, size + room->spare, err);
        if (status)
            return status;
        room->data = room->grows->data;
        room->capacity = room->grows->capacity - room->spare;
        return COFFER_OK;
    }
    room->too_small = size > room->capacity;
    if (room->too_small)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "the value takes %zu bytes, there is room for %zu", size, room->capacity);
    return COFFER_OK;
}

/* ---- Decoders ---- */

coffer__mldf_decoder *coffer__mldf_take_decoder(const coffer_mldf *set, coffer_error *err)
{
    _Atomic(coffer__mldf_decoder *) *idle = ((coffer_mldf *)(uintptr_t)set)->idle;
    coffer__mldf_decoder *decoder;
    for (size_t i = 0; i < COFFER__MLDF_IDLE_DECODERS; i++) {
        if (atomic_load_explicit(&idle[i], memory_order_relaxed) &&
            (decoder = atomic_exchange(&idle[i], NULL)))
            return decoder;
    }
    decoder = coffer__calloc(1, sizeof *decoder);
    if (!decoder)
        coffer__fail_no_memory(err, sizeof *decoder);
    return decoder;
}

void coffer__mldf_give_decoder(const coffer_mldf *set, coffer__mldf_decoder *decoder)
{
    _Atomic(coffer__mldf_decoder *) *idle = ((coffer_mldf *)(uintptr_t)set)->idle;
    for (size_t i = 0; decoder && i < COFFER__MLDF_IDLE_DECODERS; i++) {
        coffer__mldf_decoder *none = NULL;
        if (atomic_compare_exchange_strong(&idle[i], &none, decoder))
            return;
    }
    coffer__mldf_decoder_free(decoder);
}

void coffer__mldf_decoder_free(coffer__mldf_decoder *decoder)
{
    if (!decoder)
        return;
    ZSTD_freeDCtx(decoder->zstd);
    coffer_free(decoder->scratch.data);
    coffer__free(decoder);
}

/* ---- Compression ---- */

void coffer__mldf_dictionary_free(coffer__mldf_dictionary *dictionary)
{
    if (!dictionary)
        return;
    ZSTD_freeDDict(dictionary->ready);
    coffer__free(dictionary);
}

coffer_status coffer__mldf_verify_dictionary(const coffer_mldf *set, const coffer_mldf_field *field,
                                             const uint8_t *bytes, coffer_error *err)
{
    coffer__mldf_allocation found;
    bool is_there = false;
    if (!coffer__mldf_has_sums(set))
        return COFFER_OK;
    coffer_status status =
        coffer__mldf_find_allocation(&found, NULL, &is_there, set, field->dictionary_offset,
                                     field->dictionary_size, err);
    if (status)
        return status;
    if (!is_there || found.crc == coffer__crc32(0, bytes, field->dictionary_size))
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_BAD_CHECKSUM, field->dictionary_offset,
                        "field %s: the CRC-32 of its dictionary is not that of the allocation table",
                        field->name);
}

static coffer_status load_dictionary(coffer__mldf_dictionary **out, const coffer_mldf *set, size_t field,
                                     coffer_error *err)
{
    const coffer_mldf_field *descriptor = &set->schema.fields[field];
    coffer__mldf_dictionary *dictionary = NULL;
    uint8_t *bytes = NULL;
    coffer_status status;
    if (descriptor->dictionary_size > set->limits.memory_bytes)
        return coffer__fail(err, COFFER_E_LIMIT, descriptor->dictionary_offset,
                            "field %s: its dictionary has %lu bytes, the limit is %" PRIu64, descriptor->name,
                            (unsigned long)descriptor->dictionary_size, set->limits.memory_bytes);
    if (descriptor->dictionary_offset < set->header.data ||
        !coffer__range_fits(descriptor->dictionary_offset, descriptor->dictionary_size, set->header.table))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, descriptor->dictionary_offset,
                            "field %s: its dictionary, %lu bytes at %" PRIu64
                            ", is not in the data region, %" PRIu64 " to "
                            "%" PRIu64,
                            descriptor->name, (unsigned long)descriptor->dictionary_size,
                            descriptor->dictionary_offset, set->header.data, set->header.table);
    bytes = coffer__malloc(descriptor->dictionary_size);
    dictionary = coffer__calloc(1, sizeof *dictionary);
    if (!bytes || !dictionary) {
        coffer__free(bytes);
        coffer__free(dictionary);
        return coffer__fail_no_memory(err, descriptor->dictionary_size);
    }
    status = coffer_source_read_at(bytes, set->source, descriptor->dictionary_offset,
                                   descriptor->dictionary_size, err);
    if (!status && set->verify)
        status = coffer__mldf_verify_dictionary(set, descriptor, bytes, err);
    if (!status)
        dictionary->ready = ZSTD_createDDict(bytes, descriptor->dictionary_size);
    if (!status && !dictionary->ready)
        status = coffer__fail(err, COFFER_E_BAD_VALUE, descriptor->dictionary_offset,
                              "field %s: %lu bytes are not a zstd dictionary", descriptor->name,
                              (unsigned long)descriptor->dictionary_size);
    coffer__free(bytes);
    if (status)
        coffer__mldf_dictionary_free(dictionary);
    else
        *out = dictionary;
    return status;
}

/* When several threads load it at the same time, the first one wins. *out is NULL if the field has no
 * dictionary. */
static coffer_status dictionary_of(const ZSTD_DDict **out, const coffer_mldf *set, size_t field,
                                   coffer_error *err)
{
    coffer__mldf_dictionary *loaded, *made = NULL;
    coffer_status status;
    *out = NULL;
    if (set->schema.fields[field].dictionary_size == 0)
        return COFFER_OK;
    loaded = atomic_load(&set->dictionaries[field]);
    if (!loaded) {
        status = load_dictionary(&made, set, field, err);
        if (status)
            return status;
        if (!atomic_compare_exchange_strong(&set->dictionaries[field], &loaded, made))
            coffer__mldf_dictionary_free(made);
        else
            loaded = made;
    }
    *out = loaded ? loaded->ready : NULL;
    return COFFER_OK;
}

static coffer_status fail_zstd(const coffer_mldf *set, const coffer__mldf_value *value, size_t result,
                               coffer_error *err)
{
    bool sum = ZSTD_getErrorCode(result) == ZSTD_error_checksum_wrong;
    return coffer__mldf_fail_decoding(err, sum ? COFFER_E_BAD_CHECKSUM : COFFER_E_BAD_VALUE, set, value,
                                      "not a whole zstd frame: %s", ZSTD_getErrorName(result));
}

static coffer_status fail_trailing(const coffer_mldf *set, const coffer__mldf_value *value, size_t count,
                                   coffer_error *err)
{
    return coffer__mldf_fail_decoding(err, COFFER_E_TRAILING_BYTES, set, value,
                                      "%zu bytes after the zstd frame", count);
}

static coffer_status fail_cut(const coffer_mldf *set, const coffer__mldf_value *value, coffer_error *err)
{
    return coffer__mldf_fail_decoding(err, COFFER_E_TRUNCATED, set, value,
                                      "the zstd frame ends before its end");
}

static coffer_status fail_too_large(const coffer_mldf *set, const coffer__mldf_value *value, uint64_t size,
                                    coffer_error *err)
{
    return coffer__mldf_fail_decoding(err, COFFER_E_LIMIT, set, value,
                                      "decompressed it has %" PRIu64 " bytes or more, the limit is %" PRIu64,
                                      size, set->limits.memory_bytes);
}

/* The memory must keep what it holds. */
static coffer_status grow(coffer__mldf_room *room, size_t used, const coffer_mldf *set,
                          const coffer__mldf_value *value, coffer_error *err)
{
    size_t wanted = room->capacity < GROWTH_START ? GROWTH_START : room->capacity * 2;
    uint64_t limit = set->limits.memory_bytes;
    uint8_t *data;
    room->too_small = !room->grows;
    if (room->too_small)
        return coffer__mldf_fail_decoding(err, COFFER_E_LIMIT, set, value,
                                          "the value takes more than the %zu bytes there is room for",
                                          room->capacity);
    if (used >= limit)
        return fail_too_large(set, value, used, err);
    if (wanted > limit)
        wanted = (size_t)limit;
    data = coffer__realloc(room->grows->data, wanted + room->spare);
    if (!data)
        return coffer__fail_no_memory(err, wanted + room->spare);
    room->grows->data = room->data = data;
    room->grows->capacity = wanted + room->spare;
    room->capacity = wanted;
    return COFFER_OK;
}

/* A frame that does not say how much it holds. */
static coffer_status decompress_unsized(coffer__mldf_room *room, size_t *size, ZSTD_DCtx *zstd,
                                        const coffer_mldf *set, const coffer__mldf_value *value,
                                        const uint8_t *frame, size_t frame_len, coffer_error *err)
{
    ZSTD_inBuffer in = { frame, frame_len, 0 };
    size_t used = 0, result = 1;
    coffer_status status = COFFER_OK;
    while (!status && result != 0) {
        ZSTD_outBuffer to;
        if (used == room->capacity)
            status = grow(room, used, set, value, err);
        if (status)
            break;
        to = (ZSTD_outBuffer){ room->data, room->capacity, used };
        result = ZSTD_decompressStream(zstd, &to, &in);
        if (ZSTD_isError(result))
            status = fail_zstd(set, value, result, err);
        else if (result != 0 && in.pos == in.size && to.pos < to.size)
            status = fail_cut(set, value, err);
        used = to.pos;
    }
    if (!status && in.pos != in.size)
        status = fail_trailing(set, value, in.size - in.pos, err);
    *size = used;
    return status;
}

static coffer_status prepare_zstd(coffer__mldf_decoder *decoder, const coffer_mldf *set, size_t field,
                                  coffer_error *err)
{
    const ZSTD_DDict *dictionary;
    coffer_status status;
    if (!decoder->zstd && !(decoder->zstd = ZSTD_createDCtx()))
        return coffer__fail_no_memory(err, sizeof(void *));
    status = dictionary_of(&dictionary, set, field, err);
    if (status)
        return status;
    ZSTD_DCtx_reset(decoder->zstd, ZSTD_reset_session_only);
    ZSTD_DCtx_refDDict(decoder->zstd, dictionary);
    return COFFER_OK;
}

static coffer_status decompress(coffer__mldf_room *room, size_t *size, coffer__mldf_decoder *decoder,
                                const coffer_mldf *set, const coffer__mldf_value *value, const uint8_t *frame,
                                size_t frame_len, coffer_error *err)
{
    unsigned long long says = ZSTD_getFrameContentSize(frame, frame_len);
    coffer_status status;
    size_t result, whole;
    if (says == ZSTD_CONTENTSIZE_ERROR)
        return coffer__mldf_fail_decoding(err, COFFER_E_BAD_VALUE, set, value,
                                          "its %zu bytes are not a zstd frame", frame_len);
    status = prepare_zstd(decoder, set, value->field, err);
    if (status)
        return status;
    if (says == ZSTD_CONTENTSIZE_UNKNOWN)
        return decompress_unsized(room, size, decoder->zstd, set, value, frame, frame_len, err);
    if (says > set->limits.memory_bytes || says > SIZE_MAX - room->spare)
        return fail_too_large(set, value, says, err);
    /* One payload is one frame; the call below would also take several. */
    whole = ZSTD_findFrameCompressedSize(frame, frame_len);
    if (ZSTD_getErrorCode(whole) == ZSTD_error_srcSize_wrong)
        return fail_cut(set, value, err);
    if (!ZSTD_isError(whole) && whole < frame_len)
        return fail_trailing(set, value, frame_len - whole, err);
    status = coffer__mldf_reserve(room, (size_t)says, err);
    if (status)
        return status;
    result = ZSTD_decompressDCtx(decoder->zstd, room->data, (size_t)says, frame, frame_len);
    if (ZSTD_isError(result))
        return fail_zstd(set, value, result, err);
    *size = result;
    return COFFER_OK;
}

/* ---- Decoding ---- */

bool coffer__mldf_is_plain(const coffer_mldf *set, size_t field)
{
    return !(set->schema.fields[field].flags & (COFFER_MLDF_FIELD_ZSTD | COFFER_MLDF_FIELD_ENCRYPTED)) &&
           !set->has_key && (set->any_encrypted || !(set->header.flags & COFFER_MLDF_ENCRYPTED));
}

coffer_status coffer__mldf_decode(coffer__mldf_room *room, size_t *size, coffer__mldf_decoder *decoder,
                                  const coffer_mldf *set, const coffer__mldf_value *value,
                                  const uint8_t *stored, coffer_error *err)
{
    bool sealed = (set->schema.fields[value->field].flags & COFFER_MLDF_FIELD_ENCRYPTED) != 0;
    /* A value of length 0 has no payload, and so no frame. */
    bool zstd =
        set->schema.fields[value->field].flags & COFFER_MLDF_FIELD_ZSTD && (sealed || value->size > 0);
    coffer__mldf_room frame = { .grows = &decoder->scratch };
    size_t plain = value->size;
    coffer_status status;
    if (sealed) {
        status = mldf_decrypt(zstd ? &frame : room, set, value, stored, err);
        if (status)
            return status;
        plain -= COFFER__MLDF_SEAL_SIZE;
        stored = zstd ? frame.data : room->data;
    } else {
        status = expect_not_sealed(set, value, stored, err);
        if (status)
            return status;
    }
    if (zstd)
        return decompress(room, size, decoder, set, value, stored, plain, err);
    if (!sealed) {
        status = coffer__mldf_reserve(room, plain, err);
        if (status)
            return status;
        memcpy(room->data, stored, plain);
    }
    *size = plain;
    return COFFER_OK;
}

bool coffer__mldf_decoded_size(uint64_t *out, const coffer_mldf *set, const coffer__mldf_value *value,
                               const uint8_t *head, size_t head_len)
{
    uint16_t flags = set->schema.fields[value->field].flags;
    unsigned long long says;
    if (!(flags & COFFER_MLDF_FIELD_ZSTD)) {
        uint32_t seal = flags & COFFER_MLDF_FIELD_ENCRYPTED ? COFFER__MLDF_SEAL_SIZE : 0;
        *out = value->size < seal ? 0 : value->size - seal;
        return true;
    }
    if (flags & COFFER_MLDF_FIELD_ENCRYPTED)
        return false;
    if (value->size == 0) {
        *out = 0;
        return true;
    }
    says = ZSTD_getFrameContentSize(head, head_len);
    if (says == ZSTD_CONTENTSIZE_ERROR || says == ZSTD_CONTENTSIZE_UNKNOWN)
        return false;
    *out = says;
    return true;
}
