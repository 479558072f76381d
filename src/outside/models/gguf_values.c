/* Keys and values of GGUF metadata: read, checked and written. */
#include "outside/models/gguf.h"

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* COFFER_E_TRUNCATED with the number of bytes needed at the current offset. */
static coffer_status gguf_fail_short(const coffer__gguf_input *input, uint64_t wanted, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_TRUNCATED, input->at,
                        "%s needs %" PRIu64 " bytes at %" PRIu64 ", the file has %" PRIu64, input->what,
                        wanted, input->at, input->size);
}

coffer_status coffer__gguf_take(const uint8_t **out, coffer__gguf_input *input, size_t len, coffer_error *err)
{
    *out = input->memory;
    if (len > input->size - input->at)
        return gguf_fail_short(input, len, err);
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

/* The length of a string; fails if it is longer than the limit or than the rest of the file. */
static coffer_status gguf_take_string_length(uint64_t *len, coffer__gguf_input *input, coffer_error *err)
{
    coffer_status status = coffer__gguf_take_u64(len, input, err);
    if (status)
        return status;
    if (*len > input->size - input->at)
        return gguf_fail_short(input, *len, err);
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
    coffer_status status = gguf_take_string_length(&len, input, err);
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

/* Keys and values of GGUF metadata. */

static const struct {
    const char *name;
    size_t size;
} values[COFFER__GGUF_VALUE_COUNT] = {
    { "u8", 1 },   { "i8", 1 },     { "u16", 2 },   { "i16", 2 }, { "u32", 4 }, { "i32", 4 }, { "f32", 4 },
    { "bool", 1 }, { "string", 0 }, { "array", 0 }, { "u64", 8 }, { "i64", 8 }, { "f64", 8 },
};

const char *coffer__gguf_value_name(uint32_t type)
{
    return type < COFFER__GGUF_VALUE_COUNT ? values[type].name : NULL;
}

size_t coffer__gguf_value_size(uint32_t type)
{
    return type < COFFER__GGUF_VALUE_COUNT ? values[type].size : 0;
}

coffer__number coffer__gguf_number(coffer__cursor *cursor, uint32_t type)
{
    switch (type) {
    case COFFER__GGUF_I8:
        return coffer__number_i64((int8_t)coffer__cursor_u8(cursor));
    case COFFER__GGUF_U16:
        return coffer__number_u64(coffer__cursor_u16(cursor));
    case COFFER__GGUF_I16:
        return coffer__number_i64((int16_t)coffer__cursor_u16(cursor));
    case COFFER__GGUF_U32:
        return coffer__number_u64(coffer__cursor_u32(cursor));
    case COFFER__GGUF_I32:
        return coffer__number_i64((int32_t)coffer__cursor_u32(cursor));
    case COFFER__GGUF_U64:
        return coffer__number_u64(coffer__cursor_u64(cursor));
    case COFFER__GGUF_I64:
        return coffer__number_i64((int64_t)coffer__cursor_u64(cursor));
    case COFFER__GGUF_F32:
        return coffer__number_f64((double)coffer__cursor_f32(cursor));
    case COFFER__GGUF_F64:
        return coffer__number_f64(coffer__cursor_f64(cursor));
    default:
        return coffer__number_u64(coffer__cursor_u8(cursor));
    }
}

/* ---- Reading ---- */

static coffer_status check_value_type(const coffer__gguf_input *input, uint32_t type, coffer_error *err)
{
    if (type >= COFFER__GGUF_VALUE_COUNT)
        return coffer__fail(err, COFFER_E_BAD_VALUE, input->at - 4,
                            "%s has the value type %" PRIu32 ", which is unknown", input->what, type);
    return COFFER_OK;
}

static coffer_status pass_bools(coffer__gguf_input *input, uint64_t count, coffer_error *err)
{
    while (count) {
        const uint8_t *bytes;
        size_t len = count < COFFER__GGUF_WINDOW ? (size_t)count : COFFER__GGUF_WINDOW;
        coffer_status status = coffer__gguf_take(&bytes, input, len, err);
        if (status)
            return status;
        for (size_t i = 0; i < len; i++) {
            if (bytes[i] > 1)
                return coffer__fail(err, COFFER_E_BAD_VALUE, input->at - len + i, "%s has the bool %u",
                                    input->what, bytes[i]);
        }
        count -= len;
    }
    return COFFER_OK;
}

static coffer_status pass_string(coffer__gguf_input *input, coffer_error *err)
{
    uint64_t len;
    coffer_status status = gguf_take_string_length(&len, input, err);
    if (!status)
        input->at += len;
    return status;
}

static coffer_status take_array_head(uint32_t *item_type, uint64_t *count, coffer__gguf_input *input,
                                     coffer_error *err)
{
    uint64_t least, left;
    coffer_status status = coffer__gguf_take_u32(item_type, input, err);
    if (!status)
        status = check_value_type(input, *item_type, err);
    if (!status)
        status = coffer__gguf_take_u64(count, input, err);
    if (status)
        return status;
    least = coffer__gguf_value_size(*item_type);
    if (!least)
        least = *item_type == COFFER__GGUF_STRING ? COFFER__GGUF_MIN_STRING : COFFER__GGUF_MIN_ARRAY;
    left = input->size - input->at;
    if (*count > left / least)
        return coffer__fail(err, COFFER_E_TRUNCATED, input->at,
                            "%s has %" PRIu64 " items of %s, %" PRIu64 " bytes are left", input->what, *count,
                            coffer__gguf_value_name(*item_type), left);
    return COFFER_OK;
}

static coffer_status pass_value(coffer__gguf_input *input, uint32_t type, unsigned depth, coffer_error *err);

static coffer_status pass_items(coffer__gguf_input *input, uint32_t type, uint64_t count, unsigned depth,
                                coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (type == COFFER__GGUF_BOOL)
        return pass_bools(input, count, err);
    if (coffer__gguf_value_size(type)) {
        if (count > (input->size - input->at) / coffer__gguf_value_size(type))
            return gguf_fail_short(input, coffer__gguf_value_size(type), err);
        input->at += count * coffer__gguf_value_size(type);
        return COFFER_OK;
    }
    for (uint64_t i = 0; !status && i < count; i++)
        status = type == COFFER__GGUF_STRING ? pass_string(input, err) : pass_value(input, type, depth, err);
    return status;
}

static coffer_status pass_value(coffer__gguf_input *input, uint32_t type, unsigned depth, coffer_error *err)
{
    uint32_t item_type;
    uint64_t count;
    if (type != COFFER__GGUF_ARRAY)
        return pass_items(input, type, 1, depth, err);
    if (depth == COFFER__GGUF_MAX_DEPTH)
        return coffer__fail(err, COFFER_E_LIMIT, input->at, "%s has arrays %d deep", input->what,
                            COFFER__GGUF_MAX_DEPTH + 1);
    coffer_status status = take_array_head(&item_type, &count, input, err);
    return status ? status : pass_items(input, item_type, count, depth + 1, err);
}

coffer_status coffer__gguf_take_key(coffer__gguf_key *key, coffer__gguf_input *input, coffer_error *err)
{
    uint32_t type, item_type = 0;
    size_t name_len;
    coffer_status status;
    input->what = "a key";
    status = coffer__gguf_take_name(&key->name, &name_len, input, err);
    if (status)
        return status;
    input->what = key->name;
    status = coffer__gguf_take_u32(&type, input, err);
    if (!status)
        status = check_value_type(input, type, err);
    if (status)
        return status;
    key->type = (coffer__gguf_value)type;
    key->count = 1;
    key->offset = input->at;
    if (type == COFFER__GGUF_ARRAY) {
        status = take_array_head(&item_type, &key->count, input, err);
        key->item_type = (coffer__gguf_value)item_type;
        if (!status)
            status = pass_items(input, item_type, key->count, 1, err);
    } else {
        status = pass_value(input, type, 0, err);
    }
    key->size = input->at - key->offset;
    return status;
}

/* The pieces of a GGUF header. */

static void put_u32(coffer__buffer *out, uint32_t value)
{
    uint8_t *to = coffer__buffer_extend(out, sizeof value);
    if (to)
        coffer__store_u32(to, value);
}

static void put_u64(coffer__buffer *out, uint64_t value)
{
    uint8_t *to = coffer__buffer_extend(out, sizeof value);
    if (to)
        coffer__store_u64(to, value);
}

void coffer__gguf_put_header(coffer__buffer *out, uint64_t tensor_count, uint64_t key_count)
{
    coffer__buffer_append(out, "GGUF", 4);
    put_u32(out, 3);
    put_u64(out, tensor_count);
    put_u64(out, key_count);
}

void coffer__gguf_put_string(coffer__buffer *out, const char *text, size_t len)
{
    put_u64(out, len);
    coffer__buffer_append(out, text, len);
}

void coffer__gguf_put_key(coffer__buffer *out, const char *name, size_t name_len, coffer__gguf_value type)
{
    coffer__gguf_put_string(out, name, name_len);
    put_u32(out, type);
}

void coffer__gguf_put_integer(coffer__buffer *out, coffer__gguf_value type, uint64_t value)
{
    uint8_t bytes[sizeof value];
    coffer__store_u64(bytes, value);
    coffer__buffer_append(out, bytes, coffer__gguf_value_size(type));
}

void coffer__gguf_put_float(coffer__buffer *out, coffer__gguf_value type, double value)
{
    uint64_t bits;
    if (type == COFFER__GGUF_F32) {
        put_u32(out, coffer__float_bits((float)value));
        return;
    }
    memcpy(&bits, &value, sizeof bits);
    put_u64(out, bits);
}

void coffer__gguf_put_tensor(coffer__buffer *out, const char *name, size_t name_len, uint32_t rank,
                             const uint64_t *dims, const coffer__gguf_type *type, uint64_t offset)
{
    coffer__gguf_put_string(out, name, name_len);
    put_u32(out, rank);
    for (uint32_t i = rank; i > 0; i--)
        put_u64(out, dims[i - 1]);
    put_u32(out, type->id);
    put_u64(out, offset);
}
