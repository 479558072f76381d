#include "outside/models/gguf_input.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

coffer_status coffer__gguf_fail_short(const coffer__gguf_input *input, uint64_t wanted, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_TRUNCATED, input->at,
                        "%s needs %" PRIu64 " bytes at %" PRIu64 ", the file has %" PRIu64, input->what,
                        wanted, input->at, input->size);
}

coffer_status coffer__gguf_take(const uint8_t **out, coffer__gguf_input *input, size_t len, coffer_error *err)
{
    if (len > input->size - input->at)
        return coffer__gguf_fail_short(input, len, err);
    if (input->at < input->start || input->at + len > input->start + input->held) {
        uint64_t left = input->size - input->at;
        size_t held = left < COFFER__GGUF_WINDOW ? (size_t)left : COFFER__GGUF_WINDOW;
        coffer_status status = coffer_source_read_at(input->memory, input->src, input->at, held, err);
        if (status)
            return status;
        input->start = input->at;
        input->held = held;
    }
    *out = input->memory + (input->at - input->start);
    input->at += len;
    return COFFER_OK;
}

coffer_status coffer__gguf_take_u32(uint32_t *out, coffer__gguf_input *input, coffer_error *err)
{
    const uint8_t *bytes;
    coffer_status status = coffer__gguf_take(&bytes, input, sizeof *out, err);
    if (!status)
        *out = coffer__load_u32(bytes);
    return status;
}

coffer_status coffer__gguf_take_u64(uint64_t *out, coffer__gguf_input *input, coffer_error *err)
{
    const uint8_t *bytes;
    coffer_status status = coffer__gguf_take(&bytes, input, sizeof *out, err);
    if (!status)
        *out = coffer__load_u64(bytes);
    return status;
}

coffer_status coffer__gguf_take_string_length(uint64_t *len, coffer__gguf_input *input, coffer_error *err)
{
    coffer_status status = coffer__gguf_take_u64(len, input, err);
    if (status)
        return status;
    if (*len > input->size - input->at)
        return coffer__gguf_fail_short(input, *len, err);
    if (*len > input->string_max)
        return coffer__fail(err, COFFER_E_LIMIT, input->at,
                            "%s is a string of %" PRIu64 " bytes, over the limit of %" PRIu64, input->what,
                            *len, input->string_max);
    return COFFER_OK;
}

coffer_status coffer__gguf_take_name(char **out, size_t *out_len, coffer__gguf_input *input,
                                     coffer_error *err)
{
    uint64_t len, place;
    coffer_status status = coffer__gguf_take_string_length(&len, input, err);
    if (status)
        return status;
    char *name = len < SIZE_MAX ? coffer__malloc((size_t)len + 1) : NULL;
    if (!name)
        return coffer__fail_no_memory(err, len);
    place = input->at;
    if (len <= COFFER__GGUF_WINDOW) {
        const uint8_t *bytes = NULL;
        status = coffer__gguf_take(&bytes, input, (size_t)len, err);
        if (!status)
            memcpy(name, bytes, (size_t)len);
    } else {
        status = coffer_source_read_at(name, input->src, input->at, (size_t)len, err);
        input->at += len;
    }
    if (!status && (memchr(name, 0, (size_t)len) || !coffer__utf8_valid(name, (size_t)len)))
        status = coffer__fail(err, COFFER_E_BAD_TEXT, place,
                              "%s has a name that is not UTF-8 or contains a NUL", input->what);
    if (status) {
        coffer__free(name);
        return status;
    }
    name[len] = 0;
    *out = name;
    *out_len = (size_t)len;
    return COFFER_OK;
}
