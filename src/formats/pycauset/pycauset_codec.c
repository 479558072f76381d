/* Decodes and encodes values. Decoding makes two passes: the first validates and counts, then one allocation
 * holds all values and texts, and the second fills it and can fail only for duplicate keys. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_ITEM_MIN 2 /* a tag and a bool */
#define MAP_ITEM_MIN 4   /* the length of an empty key, a tag and a bool */

typedef struct decoder {
    const uint8_t *start, *at, *end;
    uint64_t base; /* file offset of start */
    const coffer_limits *limits;
    coffer_error *err;
    uint64_t values, text_bytes; /* counted by the first pass */
    coffer_pycauset_value *next; /* filled by the second */
    char *next_text;
    bool unsorted;
} decoder;

static size_t left(const decoder *reader)
{
    return (size_t)(reader->end - reader->at);
}

static uint64_t offset(const decoder *reader)
{
    return reader->base + (uint64_t)(reader->at - reader->start);
}

/* ---- First pass ---- */

static coffer_status need(const decoder *reader, size_t bytes, const char *what)
{
    if (bytes <= left(reader))
        return COFFER_OK;
    return coffer__fail(reader->err, COFFER_E_TRUNCATED, offset(reader),
                        "metadata ends inside %s: %zu bytes, %zu left", what, bytes, left(reader));
}

static coffer_status measure_bool(decoder *reader)
{
    coffer_status status = need(reader, 1, "a bool");
    if (status)
        return status;
    if (*reader->at > 1)
        return coffer__fail(reader->err, COFFER_E_BAD_VALUE, offset(reader), "a bool is %u, not 0 or 1",
                            *reader->at);
    reader->at++;
    return COFFER_OK;
}

static coffer_status measure_number(decoder *reader)
{
    coffer_status status = need(reader, 8, "a number");
    if (!status)
        reader->at += 8;
    return status;
}

static coffer_status measure_text(decoder *reader, uint64_t len, bool utf8, const char *what)
{
    if (len > left(reader))
        return coffer__fail(reader->err, COFFER_E_OUT_OF_BOUNDS, offset(reader),
                            "%s of %" PRIu64 " bytes, %zu are left", what, len, left(reader));
    if (len > reader->limits->string_bytes)
        return coffer__fail(reader->err, COFFER_E_LIMIT, offset(reader),
                            "%s of %" PRIu64 " bytes, the limit is %" PRIu64, what, len,
                            reader->limits->string_bytes);
    if (utf8) {
        size_t valid = coffer__utf8_valid_prefix(reader->at, (size_t)len);
        if (valid < len)
            return coffer__fail(reader->err, COFFER_E_BAD_TEXT, offset(reader) + valid, "%s is not UTF-8",
                                what);
    }
    reader->text_bytes += len + 1;
    reader->at += len;
    return COFFER_OK;
}

static coffer_status measure_value(decoder *reader, uint32_t depth);

static coffer_status measure_key(decoder *reader)
{
    coffer_status status = need(reader, 2, "the length of a key");
    if (status)
        return status;
    size_t len = coffer__load_u16(reader->at);
    reader->at += 2;
    return measure_text(reader, len, true, "a key");
}

static coffer_status measure_children(decoder *reader, bool map, uint32_t depth)
{
    coffer_status status = need(reader, 4, map ? "the count of a map" : "the count of an array");
    if (status)
        return status;
    uint32_t count = coffer__load_u32(reader->at);
    reader->at += 4;
    if (count > left(reader) / (map ? MAP_ITEM_MIN : ARRAY_ITEM_MIN))
        return coffer__fail(reader->err, COFFER_E_OUT_OF_BOUNDS, offset(reader) - 4,
                            "%s says it has %lu entries, %zu bytes are left", map ? "a map" : "an array",
                            (unsigned long)count, left(reader));
    for (uint32_t i = 0; i < count && !status; i++) {
        if (map)
            status = measure_key(reader);
        if (!status)
            status = measure_value(reader, depth + 1);
    }
    return status;
}

static uint32_t max_depth(const decoder *reader)
{
    return reader->limits->json_depth < COFFER__PYCAUSET_MAX_DEPTH ? reader->limits->json_depth
                                                                   : COFFER__PYCAUSET_MAX_DEPTH;
}

static coffer_status measure_value(decoder *reader, uint32_t depth)
{
    coffer_status status = need(reader, 1, "a value");
    if (status)
        return status;
    if (depth > max_depth(reader))
        return coffer__fail(reader->err, COFFER_E_LIMIT, offset(reader), "values are nested deeper than %lu",
                            (unsigned long)max_depth(reader));
    if (++reader->values > reader->limits->entries)
        return coffer__fail(reader->err, COFFER_E_LIMIT, offset(reader), "more than %" PRIu64 " values",
                            reader->limits->entries);
    uint8_t tag = *reader->at++;
    switch (tag) {
    case COFFER_PYCAUSET_BOOL:
        return measure_bool(reader);
    case COFFER_PYCAUSET_I64:
    case COFFER_PYCAUSET_U64:
    case COFFER_PYCAUSET_F64:
        return measure_number(reader);
    case COFFER_PYCAUSET_STRING:
    case COFFER_PYCAUSET_BYTES:
        status = need(reader, 4, "the length of a text");
        if (status)
            return status;
        reader->at += 4;
        return measure_text(reader, coffer__load_u32(reader->at - 4), tag == COFFER_PYCAUSET_STRING,
                            tag == COFFER_PYCAUSET_STRING ? "a string" : "bytes");
    case COFFER_PYCAUSET_ARRAY:
    case COFFER_PYCAUSET_MAP:
        return measure_children(reader, tag == COFFER_PYCAUSET_MAP, depth);
    default:
        return coffer__fail(reader->err, COFFER_E_BAD_VALUE, offset(reader) - 1,
                            "a value has the tag %u, not 1 to 8", tag);
    }
}

static coffer_status measure(decoder *reader)
{
    if (left(reader) > 0 && *reader->at != COFFER_PYCAUSET_MAP)
        return coffer__fail(reader->err, COFFER_E_BAD_VALUE, offset(reader),
                            "metadata is a value with the tag %u, not a map", *reader->at);
    coffer_status status = measure_value(reader, 0);
    if (!status && left(reader) > 0)
        return coffer__fail(reader->err, COFFER_E_TRAILING_BYTES, offset(reader),
                            "%zu bytes after the metadata", left(reader));
    return status;
}

/* ---- Second pass ---- */

static const char *keep_text(decoder *reader, size_t len)
{
    char *text = reader->next_text;
    memcpy(text, reader->at, len);
    text[len] = '\0';
    reader->next_text += len + 1;
    reader->at += len;
    return text;
}

static int by_key(const void *a, const void *b)
{
    const coffer_pycauset_value *x = a, *y = b;
    return coffer__pycauset_compare_keys(x->key, x->key_len, y->key, y->key_len);
}

static coffer_status sort_keys(decoder *reader, coffer_pycauset_value *children, size_t count, uint64_t place)
{
    bool sorted = true;
    for (size_t i = 1; i < count && sorted; i++)
        sorted = by_key(&children[i - 1], &children[i]) < 0;
    if (sorted)
        return COFFER_OK;
    reader->unsorted = true;
    qsort(children, count, sizeof *children, by_key);
    for (size_t i = 1; i < count; i++) {
        if (by_key(&children[i - 1], &children[i]) == 0)
            return coffer__fail(reader->err, COFFER_E_DUPLICATE, place, "duplicate key \"%s\" in a map",
                                children[i].key);
    }
    return COFFER_OK;
}

static coffer_status build_value(decoder *reader, coffer_pycauset_value *value);

static coffer_status build_children(decoder *reader, coffer_pycauset_value *value)
{
    uint64_t place = offset(reader) - 1;
    bool map = value->kind == COFFER_PYCAUSET_MAP;
    coffer_pycauset_value *children = reader->next;
    coffer_status status = COFFER_OK;
    value->count = coffer__load_u32(reader->at);
    value->as.children = children;
    reader->at += 4;
    reader->next += value->count;
    for (uint32_t i = 0; i < value->count && !status; i++) {
        children[i].key = NULL;
        children[i].key_len = 0;
        if (map) {
            children[i].key_len = coffer__load_u16(reader->at);
            reader->at += 2;
            children[i].key = keep_text(reader, children[i].key_len);
        }
        status = build_value(reader, &children[i]);
    }
    if (map && !status)
        status = sort_keys(reader, children, value->count, place);
    return status;
}

/* Key and key_len are the parent's work. */
static coffer_status build_value(decoder *reader, coffer_pycauset_value *value)
{
    value->kind = *reader->at++;
    value->count = 0;
    value->room = 0;
    switch (value->kind) {
    case COFFER_PYCAUSET_BOOL:
        value->as.boolean = *reader->at++ != 0;
        return COFFER_OK;
    case COFFER_PYCAUSET_STRING:
    case COFFER_PYCAUSET_BYTES:
        value->count = coffer__load_u32(reader->at);
        reader->at += 4;
        value->as.text = keep_text(reader, value->count);
        return COFFER_OK;
    case COFFER_PYCAUSET_ARRAY:
    case COFFER_PYCAUSET_MAP:
        return build_children(reader, value);
    default: { /* the three numbers have the same bytes in memory */
        uint64_t bits = coffer__load_u64(reader->at);
        memcpy(&value->as, &bits, sizeof bits);
        reader->at += 8;
        return COFFER_OK;
    }
    }
}

coffer_status coffer__pycauset_decode(coffer__pycauset_tree *out, const uint8_t *bytes, size_t len,
                                      uint64_t base, const coffer_limits *limits, coffer_error *err)
{
    decoder reader = {
        .start = bytes, .at = bytes, .end = bytes + len, .base = base, .limits = limits, .err = err
    };
    size_t values, total;
    coffer_status status = measure(&reader);
    if (status)
        return status;
    if (!coffer__to_size(&values, reader.values) ||
        !coffer__mul_size(&values, values, sizeof(coffer_pycauset_value)) || reader.text_bytes > SIZE_MAX ||
        !coffer__add_size(&total, values, (size_t)reader.text_bytes))
        return coffer__fail_no_memory(err, UINT64_MAX);
    coffer_pycauset_value *root = coffer__malloc(total);
    if (!root)
        return coffer__fail_no_memory(err, total);
    *root = (coffer_pycauset_value){ .key = NULL };
    reader.at = reader.start;
    reader.next = root + 1;
    reader.next_text = (char *)root + values;
    status = build_value(&reader, root);
    if (status) {
        coffer__free(root);
        return status;
    }
    *out = (coffer__pycauset_tree){ root, root, total, reader.unsorted };
    return COFFER_OK;
}

void coffer__pycauset_tree_free(coffer__pycauset_tree *tree)
{
    coffer__free(tree->memory);
    *tree = (coffer__pycauset_tree){ .root = NULL };
}

/* ---- Encoding ---- */

static void put_u16(coffer__buffer *out, uint16_t number)
{
    uint8_t bytes[2];
    coffer__store_u16(bytes, number);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

/* A tag and a number of four bytes or eight. */
static void put_u32(coffer__buffer *out, uint8_t tag, uint32_t number)
{
    uint8_t bytes[5] = { tag };
    coffer__store_u32(bytes + 1, number);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

static void put_u64(coffer__buffer *out, uint8_t tag, uint64_t number)
{
    uint8_t bytes[9] = { tag };
    coffer__store_u64(bytes + 1, number);
    coffer__buffer_append(out, bytes, sizeof bytes);
}

static void encode_number(coffer__buffer *out, const coffer_pycauset_value *value)
{
    uint64_t bits;
    uint8_t tag = value->kind;
    memcpy(&bits, &value->as, sizeof bits);
    if (tag == COFFER_PYCAUSET_I64 && value->as.i64 >= 0)
        tag = COFFER_PYCAUSET_U64;
    put_u64(out, tag, bits);
}

bool coffer__pycauset_encode(coffer__buffer *out, const coffer_pycauset_value *value)
{
    switch (value->kind) {
    case COFFER_PYCAUSET_BOOL: {
        uint8_t bytes[2] = { COFFER_PYCAUSET_BOOL, value->as.boolean };
        coffer__buffer_append(out, bytes, sizeof bytes);
        break;
    }
    case COFFER_PYCAUSET_STRING:
    case COFFER_PYCAUSET_BYTES:
        put_u32(out, value->kind, value->count);
        coffer__buffer_append(out, value->as.text, value->count);
        break;
    case COFFER_PYCAUSET_ARRAY:
    case COFFER_PYCAUSET_MAP:
        put_u32(out, value->kind, value->count);
        for (uint32_t i = 0; i < value->count && !out->failed; i++) {
            const coffer_pycauset_value *child = &value->as.children[i];
            if (value->kind == COFFER_PYCAUSET_MAP) {
                put_u16(out, child->key_len);
                coffer__buffer_append(out, child->key, child->key_len);
            }
            coffer__pycauset_encode(out, child);
        }
        break;
    default:
        encode_number(out, value);
    }
    return !out->failed;
}

coffer_status coffer__pycauset_encode_block(coffer__buffer *out, const coffer_pycauset_value *root,
                                            coffer_error *err)
{
    size_t start = out->len, len;
    coffer__buffer_fill(out, 0, COFFER__PYCAUSET_BLOCK_HEADER);
    if (!coffer__pycauset_encode(out, root))
        return coffer__fail_no_memory(err, out->len);
    uint8_t *block = out->data + start;
    len = out->len - start - COFFER__PYCAUSET_BLOCK_HEADER;
    memcpy(block, COFFER__PYCAUSET_BLOCK_MAGIC, COFFER__PYCAUSET_BLOCK_MAGIC_SIZE);
    coffer__store_u32(block + COFFER__PYCAUSET_BLOCK_VERSION_AT, COFFER__PYCAUSET_BLOCK_VERSION);
    coffer__store_u32(block + COFFER__PYCAUSET_BLOCK_ENCODING_AT, COFFER__PYCAUSET_ENCODING_VERSION);
    coffer__store_u64(block + COFFER__PYCAUSET_BLOCK_LENGTH_AT, len);
    coffer__store_u32(block + COFFER__PYCAUSET_BLOCK_CRC_AT,
                      coffer__crc32(0, block + COFFER__PYCAUSET_BLOCK_HEADER, len));
    return COFFER_OK;
}
