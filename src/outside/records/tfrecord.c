#include "outside/records/tfrecord.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"

#include <inttypes.h>

enum { FRONT_SIZE = 12, BACK_SIZE = 4 };

static uint32_t masked_crc(const void *bytes, size_t len)
{
    uint32_t crc = coffer__crc32c(bytes, len);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

bool coffer__tfrecord_probe(const uint8_t *head, size_t len)
{
    return len >= FRONT_SIZE && coffer__load_u32(head + 8) == masked_crc(head, 8);
}

static coffer_status fail_record(const char *name, uint64_t number, uint64_t offset, coffer_status status,
                                 const char *what, coffer_error *err)
{
    coffer__fail(err, status, offset, "record %" PRIu64 " at byte %" PRIu64 ": %s", number, offset, what);
    return coffer__fail_other(err, status, name);
}

static coffer_status read_body(const uint8_t **bytes, size_t size, coffer__buffer *own,
                               coffer__byte_stream *stream, size_t *got, coffer_error *err)
{
    const uint8_t *view = coffer__byte_stream_view(stream, size);
    if (view) {
        *bytes = view;
        *got = size;
        return COFFER_OK;
    }
    own->len = 0;
    uint8_t *to = coffer__buffer_extend(own, size ? size : 1);
    if (!to)
        return coffer__fail_no_memory(err, size);
    *bytes = to;
    return coffer__byte_stream_read(to, size, got, stream, err);
}

coffer_status coffer__tfrecord_next(const uint8_t **bytes, size_t *size, coffer__buffer *own,
                                    coffer__byte_stream *stream, const char *name, uint64_t number,
                                    const coffer_limits *limits, coffer_error *err)
{
    uint64_t offset = coffer__byte_stream_position(stream);
    uint8_t front[FRONT_SIZE], back[BACK_SIZE];
    size_t got = 0;
    *bytes = NULL;
    coffer_status status = coffer__byte_stream_read(front, FRONT_SIZE, &got, stream, err);
    if (status || got == 0)
        return status;
    if (got < FRONT_SIZE)
        return fail_record(name, number, offset, COFFER_E_TRUNCATED, "the file ends in its length", err);
    if (coffer__load_u32(front + 8) != masked_crc(front, 8))
        return fail_record(name, number, offset, COFFER_E_BAD_CHECKSUM, "its length has a wrong checksum",
                           err);
    uint64_t len = coffer__load_u64(front);
    if (len > limits->memory_bytes)
        return fail_record(name, number, offset, COFFER_E_LIMIT, "it is larger than the limit", err);
    if (len > coffer__byte_stream_left(stream))
        return fail_record(name, number, offset, COFFER_E_TRUNCATED, "the file ends before it does", err);
    const uint8_t *body = NULL;
    status = read_body(&body, (size_t)len, own, stream, &got, err);
    if (!status && got == len)
        status = coffer__byte_stream_read(back, BACK_SIZE, &got, stream, err);
    else if (!status)
        got = 0;
    if (status)
        return status;
    if (got < BACK_SIZE)
        return fail_record(name, number, offset, COFFER_E_TRUNCATED, "the file ends before it does", err);
    if (coffer__load_u32(back) != masked_crc(body, (size_t)len))
        return fail_record(name, number, offset, COFFER_E_BAD_CHECKSUM, "its bytes have a wrong checksum",
                           err);
    *bytes = body;
    *size = (size_t)len;
    return COFFER_OK;
}

void coffer__tfrecord_put_front(coffer__buffer *out, uint64_t size)
{
    uint8_t front[FRONT_SIZE];
    coffer__store_u64(front, size);
    coffer__store_u32(front + 8, masked_crc(front, 8));
    coffer__buffer_append(out, front, sizeof front);
}

void coffer__tfrecord_put_back(coffer__buffer *out, const void *bytes, size_t size)
{
    uint8_t back[BACK_SIZE];
    coffer__store_u32(back, masked_crc(bytes, size));
    coffer__buffer_append(out, back, sizeof back);
}
