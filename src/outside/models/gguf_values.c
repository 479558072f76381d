/* The types of GGUF metadata. */
#include "outside/models/gguf.h"

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
