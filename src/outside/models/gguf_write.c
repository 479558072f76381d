/* The pieces of a GGUF header. */
#include "base/bytes.h"
#include "base/dtype.h"
#include "outside/models/gguf.h"

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
