/* Values into bytes. */
#include "formats/pycauset/pycauset_private.h"

#include "base/crc32.h"
#include "base/fail.h"

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
    coffer__store_u32(block + 4, COFFER__PYCAUSET_BLOCK_VERSION);
    coffer__store_u32(block + 8, COFFER__PYCAUSET_ENCODING_VERSION);
    coffer__store_u64(block + 16, len);
    coffer__store_u32(block + 24, coffer__crc32(0, block + COFFER__PYCAUSET_BLOCK_HEADER, len));
    return COFFER_OK;
}
