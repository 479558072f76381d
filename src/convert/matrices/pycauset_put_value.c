/* Values as text. */
#include "base/bytes.h"
#include "base/elements.h"
#include "base/real.h"
#include "convert/matrices/pycauset_export.h"
#include "outside/text/number.h"

static float load_f32(const uint8_t *at)
{
    uint32_t bits = coffer__load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_f64(const uint8_t *at)
{
    uint64_t bits = coffer__load_u64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static char *put_pair(char *to, const uint8_t *value, coffer_dtype half)
{
    to = coffer__pycauset_put_value(to, value, half);
    *to++ = ' ';
    return coffer__pycauset_put_value(to, value + coffer_dtype_size(half), half);
}

char *coffer__pycauset_put_value(char *to, const uint8_t *value, coffer_dtype dtype)
{
    switch (dtype) {
    case COFFER_DTYPE_I8:
        return coffer__put_i64(to, (int8_t)*value);
    case COFFER_DTYPE_I16:
        return coffer__put_i64(to, (int16_t)coffer__load_u16(value));
    case COFFER_DTYPE_U16:
        return coffer__put_u32(to, coffer__load_u16(value));
    case COFFER_DTYPE_I32:
        return coffer__put_i64(to, (int32_t)coffer__load_u32(value));
    case COFFER_DTYPE_U32:
        return coffer__put_u32(to, coffer__load_u32(value));
    case COFFER_DTYPE_I64:
        return coffer__put_i64(to, (int64_t)coffer__load_u64(value));
    case COFFER_DTYPE_U64:
        return coffer__put_u64(to, coffer__load_u64(value));
    case COFFER_DTYPE_F16:
        return coffer__put_f32(to, coffer__f16_to_f32(coffer__load_u16(value)));
    case COFFER_DTYPE_F32:
        return coffer__put_f32(to, load_f32(value));
    case COFFER_DTYPE_F64:
        return coffer__put_f64(to, load_f64(value));
    case COFFER_DTYPE_C32:
        return put_pair(to, value, COFFER_DTYPE_F16);
    case COFFER_DTYPE_C64:
        return put_pair(to, value, COFFER_DTYPE_F32);
    case COFFER_DTYPE_C128:
        return put_pair(to, value, COFFER_DTYPE_F64);
    default: /* BOOL, U8 */
        return coffer__put_u32(to, *value);
    }
}

bool coffer__pycauset_is_zero(const uint8_t *value, coffer_dtype dtype)
{
    size_t size = coffer_dtype_size(dtype);
    bool has_sign = coffer_dtype_is_float(dtype) || coffer_dtype_is_complex(dtype);
    size_t part = coffer_dtype_is_complex(dtype) ? size / 2 : size;
    for (size_t i = 0; i < size; i++) {
        /* The sign of a real zero is in its last byte. */
        uint8_t mask = has_sign && i % part == part - 1 ? 0x7f : 0xff;
        if (value[i] & mask)
            return false;
    }
    return true;
}
