#include "outside/records/tfrecord.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/crc32.h"
#include "base/cursor.h"
#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <string.h>

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

/* tf.train.Example messages, read and written by hand: four levels of protocol buffers, none deeper. */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

typedef struct wire {
    uint32_t field, type;
    uint64_t number;      /* WIRE_VARINT */
    const uint8_t *bytes; /* the others */
    size_t size;
} wire;

/* The next field of a message; *at moves past it. False when the bytes are not a message. */
static bool next_field(wire *out, const uint8_t **at, const uint8_t *end)
{
    uint64_t tag;
    if (coffer__varint_read(&tag, at, end) > COFFER__VARINT_OVERLONG || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    out->field = (uint32_t)(tag >> 3);
    out->type = (uint32_t)(tag & 7);
    out->number = 0;
    switch (out->type) {
    case WIRE_VARINT:
        return coffer__varint_read(&out->number, at, end) <= COFFER__VARINT_OVERLONG;
    case WIRE_64:
    case WIRE_32:
        out->size = out->type == WIRE_64 ? 8 : 4;
        break;
    case WIRE_BYTES:
        if (coffer__varint_read(&out->number, at, end) > COFFER__VARINT_OVERLONG)
            return false;
        if (out->number > (uint64_t)(end - *at))
            return false;
        out->size = (size_t)out->number;
        break;
    default:
        return false;
    }
    if (out->size > (size_t)(end - *at))
        return false;
    out->bytes = *at;
    *at += out->size;
    return true;
}

/* How many numbers a packed run holds; false when it does not end with one. */
static bool count_packed(uint64_t *count, const wire *run, coffer__tf_kind kind)
{
    if (kind == COFFER__TF_FLOAT) {
        *count += run->size / 4;
        return run->size % 4 == 0;
    }
    const uint8_t *at = run->bytes, *end = at + run->size;
    for (; at < end; ++*count) {
        uint64_t value;
        if (coffer__varint_read(&value, &at, end) > COFFER__VARINT_OVERLONG)
            return false;
    }
    return true;
}

static bool check_list(coffer__tf_feature *feature)
{
    const uint8_t *at = feature->list, *end = at + feature->list_len;
    feature->count = 0;
    while (at < end) {
        wire field;
        if (!next_field(&field, &at, end))
            return false;
        if (field.field != 1)
            continue;
        if (field.type == WIRE_BYTES && feature->kind != COFFER__TF_BYTES) {
            if (!count_packed(&feature->count, &field, feature->kind))
                return false;
            continue;
        }
        if (field.type != (feature->kind == COFFER__TF_BYTES   ? WIRE_BYTES
                           : feature->kind == COFFER__TF_FLOAT ? WIRE_32
                                                               : WIRE_VARINT))
            return false;
        feature->count++;
    }
    return true;
}

static bool parse_feature(coffer__tf_feature *out, const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes, *end = bytes + size;
    while (at < end) {
        wire field;
        if (!next_field(&field, &at, end))
            return false;
        if (field.field < COFFER__TF_BYTES || field.field > COFFER__TF_INT64 || field.type != WIRE_BYTES)
            continue;
        out->kind = (coffer__tf_kind)field.field;
        out->list = field.bytes;
        out->list_len = field.size;
    }
    return out->kind == COFFER__TF_NONE || check_list(out);
}

static bool parse_entry(coffer__tf_feature *out, const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes, *end = bytes + size;
    *out = (coffer__tf_feature){ .key = "" };
    while (at < end) {
        wire field;
        if (!next_field(&field, &at, end))
            return false;
        if (field.type != WIRE_BYTES)
            continue;
        if (field.field == 1) {
            out->key = (const char *)field.bytes;
            out->key_len = field.size;
        } else if (field.field == 2 && !parse_feature(out, field.bytes, field.size)) {
            return false;
        }
    }
    return true;
}

static coffer_status parse_features(coffer__tf_example *out, const uint8_t *bytes, size_t size, bool *good,
                                    coffer_error *err)
{
    const uint8_t *at = bytes, *end = bytes + size;
    while (*good && at < end) {
        wire field;
        *good = next_field(&field, &at, end);
        if (!*good || field.field != 1 || field.type != WIRE_BYTES)
            continue;
        coffer_status status =
            coffer__array_reserve_one(&out->features, &out->capacity, out->count, sizeof *out->features, err);
        if (status)
            return status;
        *good = parse_entry(&out->features[out->count], field.bytes, field.size);
        out->count++;
    }
    return COFFER_OK;
}

coffer_status coffer__tf_parse(coffer__tf_example *out, const uint8_t *bytes, size_t size, coffer_error *err)
{
    const uint8_t *at = bytes, *end = bytes + size;
    bool good = true;
    out->count = 0;
    while (good && at < end) {
        wire field;
        good = next_field(&field, &at, end);
        if (!good || field.field != 1)
            continue;
        good = field.type == WIRE_BYTES;
        coffer_status status = good ? parse_features(out, field.bytes, field.size, &good, err) : COFFER_OK;
        if (status)
            return status;
    }
    if (!good)
        return coffer__fail(err, COFFER_E_BAD_VALUE, (uint64_t)(at - bytes),
                            "not a tf.train.Example: invalid before byte %zu", (size_t)(at - bytes));
    return COFFER_OK;
}

void coffer__tf_free(coffer__tf_example *example)
{
    coffer__free(example->features);
    *example = (coffer__tf_example){ 0 };
}

bool coffer__tf_next_bytes(const uint8_t **bytes, size_t *size, const uint8_t **at,
                           const coffer__tf_feature *feature)
{
    const uint8_t *end = feature->list + feature->list_len;
    wire field;
    while (*at < end && next_field(&field, at, end)) {
        if (field.field == 1 && field.type == WIRE_BYTES) {
            *bytes = field.bytes;
            *size = field.size;
            return true;
        }
    }
    return false;
}

void coffer__tf_floats(float *out, const coffer__tf_feature *feature)
{
    const uint8_t *at = feature->list, *end = at + feature->list_len;
    wire field;
    while (at < end && next_field(&field, &at, end)) {
        for (size_t i = 0; field.field == 1 && i + 4 <= field.size; i += 4)
            *out++ = coffer__load_f32(field.bytes + i);
    }
}

void coffer__tf_int64s(int64_t *out, const coffer__tf_feature *feature)
{
    const uint8_t *at = feature->list, *end = at + feature->list_len;
    wire field;
    while (at < end && next_field(&field, &at, end)) {
        if (field.field != 1)
            continue;
        if (field.type == WIRE_VARINT) {
            *out++ = (int64_t)field.number;
            continue;
        }
        uint64_t value;
        for (const uint8_t *run = field.bytes, *run_end = run + field.size;
             run < run_end && coffer__varint_read(&value, &run, run_end) <= COFFER__VARINT_OVERLONG;)
            *out++ = (int64_t)value;
    }
}

/* ---- Writing ---- */

static size_t varint_size(uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    return coffer__varint_write(bytes, value);
}

static void put_varint(coffer__buffer *out, uint64_t value)
{
    uint8_t bytes[COFFER__VARINT_MAX];
    coffer__buffer_append(out, bytes, coffer__varint_write(bytes, value));
}

/* Tag and length of a field whose contents follow. */
static void put_head(coffer__buffer *out, uint32_t field, size_t len)
{
    put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(out, len);
}

/* Bytes of a field with contents of this length. */
static size_t field_size(size_t len)
{
    return 1 + varint_size(len) + len;
}

/* Everything before the values of a list: entry, key, Feature, list, and the tag of the value. */
static void put_feature_head(coffer__buffer *out, const char *key, coffer__tf_kind kind, size_t len)
{
    size_t key_len = strlen(key), list = field_size(len), feature = field_size(list);
    put_head(out, 1, field_size(key_len) + field_size(feature));
    put_head(out, 1, key_len);
    coffer__buffer_append(out, key, key_len);
    put_head(out, 2, feature);
    put_head(out, (uint32_t)kind, list);
    put_head(out, 1, len);
}

void coffer__tf_put_bytes(coffer__buffer *out, const char *key, const void *bytes, size_t size)
{
    put_feature_head(out, key, COFFER__TF_BYTES, size);
    coffer__buffer_append(out, bytes, size);
}

void coffer__tf_put_floats(coffer__buffer *out, const char *key, const float *values, size_t count)
{
    put_feature_head(out, key, COFFER__TF_FLOAT, 4 * count);
    uint8_t *to = coffer__buffer_extend(out, 4 * count);
    for (size_t i = 0; to && i < count; i++)
        coffer__store_f32(to + 4 * i, values[i]);
}

void coffer__tf_put_int64s(coffer__buffer *out, const char *key, const int64_t *values, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += varint_size((uint64_t)values[i]);
    put_feature_head(out, key, COFFER__TF_INT64, len);
    for (size_t i = 0; i < count; i++)
        put_varint(out, (uint64_t)values[i]);
}

void coffer__tf_put_example(coffer__buffer *out, const coffer__buffer *features)
{
    put_head(out, 1, features->len);
    coffer__buffer_append(out, features->data, features->len);
    if (features->failed)
        out->failed = true;
}
