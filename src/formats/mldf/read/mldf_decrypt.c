/* Encrypted payloads. */
#include "formats/mldf/mldf_private.h"

#include "base/fail.h"

#include <inttypes.h>
#include <sodium.h>

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

coffer_status coffer__mldf_expect_not_sealed(const coffer_mldf *set, const coffer__mldf_value *value,
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

coffer_status coffer__mldf_decrypt(coffer__mldf_room *room, const coffer_mldf *set,
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
