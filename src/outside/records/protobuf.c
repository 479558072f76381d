#include "outside/records/protobuf.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/fail.h"

#include <inttypes.h>

coffer__protobuf coffer__protobuf_over(const void *bytes, size_t len, uint64_t base)
{
    const uint8_t *start = bytes;
    return (coffer__protobuf){ start, start, start + len, base };
}

coffer__protobuf coffer__protobuf_inside(const coffer__protobuf *outer, const coffer__protobuf_field *field)
{
    uint64_t base = outer->base + (uint64_t)(field->bytes - outer->start);
    return coffer__protobuf_over(field->bytes, field->len, base);
}

static uint64_t place(const coffer__protobuf *message)
{
    return message->base + (uint64_t)(message->at - message->start);
}

static coffer_status take_varint(uint64_t *out, const uint8_t **at, const coffer__protobuf *message,
                                 coffer_error *err)
{
    coffer__varint_result result = coffer__varint_read(out, at, message->end);
    if (result == COFFER__VARINT_OK || result == COFFER__VARINT_OVERLONG)
        return COFFER_OK;
    uint64_t offset = message->base + (uint64_t)(*at - message->start);
    if (result == COFFER__VARINT_TRUNCATED)
        return coffer__fail(err, COFFER_E_TRUNCATED, offset,
                            "the message ends inside a number at byte %" PRIu64, offset);
    return coffer__fail(err, COFFER_E_BAD_VARINT, offset,
                        "the number at byte %" PRIu64 " has more than 64 bits", offset);
}

static coffer_status take_bytes(const uint8_t **out, uint64_t len, coffer__protobuf *message,
                                coffer_error *err)
{
    size_t left = (size_t)(message->end - message->at);
    if (len > left)
        return coffer__fail(err, COFFER_E_TRUNCATED, place(message),
                            "a field of %" PRIu64 " bytes at byte %" PRIu64 ", %zu are left", len,
                            place(message), left);
    *out = message->at;
    message->at += len;
    return COFFER_OK;
}

coffer_status coffer__protobuf_next(bool *more, coffer__protobuf_field *field, coffer__protobuf *message,
                                    coffer_error *err)
{
    uint64_t tag = 0, start = place(message);
    coffer_status status;
    *more = message->at < message->end;
    if (!*more)
        return COFFER_OK;
    status = take_varint(&tag, &message->at, message, err);
    if (status)
        return status;
    *field = (coffer__protobuf_field){ .number = (uint32_t)(tag >> 3), .shape = tag & 7 };
    if (field->number == 0 || tag >> 3 > UINT32_MAX >> 3)
        return coffer__fail(err, COFFER_E_BAD_VALUE, start, "no field has the number %" PRIu64, tag >> 3);
    switch (field->shape) {
    case COFFER__PROTOBUF_VARINT:
        return take_varint(&field->value, &message->at, message, err);
    case COFFER__PROTOBUF_BYTES:
        status = take_varint(&field->value, &message->at, message, err);
        if (!status)
            status = take_bytes(&field->bytes, field->value, message, err);
        field->len = status ? 0 : (size_t)field->value;
        return status;
    case COFFER__PROTOBUF_FIXED64:
        status = take_bytes(&field->bytes, 8, message, err);
        field->value = status ? 0 : coffer__load_u64(field->bytes);
        return status;
    case COFFER__PROTOBUF_FIXED32:
        status = take_bytes(&field->bytes, 4, message, err);
        field->value = status ? 0 : coffer__load_u32(field->bytes);
        return status;
    }
    return coffer__fail(err, COFFER_E_BAD_VALUE, start, "field %" PRIu32 " at byte %" PRIu64 " has shape %d",
                        field->number, start, (int)(tag & 7));
}

coffer_status coffer__protobuf_number(bool *more, uint64_t *out, const uint8_t **state,
                                      const coffer__protobuf_field *field, const coffer__protobuf *message,
                                      coffer_error *err)
{
    if (field->shape != COFFER__PROTOBUF_BYTES) {
        *more = *state == NULL;
        *out = field->value;
        *state = message->end;
        return COFFER_OK;
    }
    coffer__protobuf packed = coffer__protobuf_inside(message, field);
    if (*state)
        packed.at = *state;
    *more = packed.at < packed.end;
    coffer_status status = *more ? take_varint(out, &packed.at, &packed, err) : COFFER_OK;
    *state = packed.at;
    return status;
}

void coffer__protobuf_put_varint(coffer__buffer *out, uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    coffer__buffer_append(out, bytes, coffer__varint_write(bytes, value));
}

void coffer__protobuf_put_u64(coffer__buffer *out, uint32_t number, uint64_t value)
{
    coffer__protobuf_put_varint(out, (uint64_t)number << 3 | COFFER__PROTOBUF_VARINT);
    coffer__protobuf_put_varint(out, value);
}

void coffer__protobuf_put_bytes(coffer__buffer *out, uint32_t number, const void *bytes, size_t len)
{
    coffer__protobuf_put_varint(out, (uint64_t)number << 3 | COFFER__PROTOBUF_BYTES);
    coffer__protobuf_put_varint(out, len);
    coffer__buffer_append(out, bytes, len);
}
