#include "base/bytes.h"
#include "convert/matrices/pycauset_import.h"

#include <math.h>
#include <string.h>

/* An element as two words, zeros without a sign and NaNs all alike. Types without a sign are never negated.
 */
typedef struct words {
    uint64_t part[2];
} words;

static uint64_t real_bits(double value, bool negate)
{
    uint64_t bits;
    if (isnan(value))
        return UINT64_MAX;
    value = negate ? 0 - value : value;
    if (value == 0)
        return 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double load_f32(const uint8_t *at)
{
    uint32_t bits = coffer__load_u32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double load_f64(const uint8_t *at)
{
    uint64_t bits = coffer__load_u64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Halves by their bits: the sign is one of them. */
static uint64_t half_bits(uint16_t bits, bool negate)
{
    if ((bits & 0x7fff) == 0)
        return 0;
    if ((bits & 0x7fff) > 0x7c00)
        return UINT64_MAX;
    return negate ? bits ^ 0x8000u : bits;
}

static uint64_t integer_bits(const uint8_t *at, size_t size, bool negate)
{
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    bits = COFFER__LE64(bits);
    if (negate)
        bits = 0 - bits;
    return size == 8 ? bits : bits & ((UINT64_C(1) << 8 * size) - 1);
}

static words load(const uint8_t *at, coffer_dtype dtype, bool negate)
{
    switch (dtype) {
    case COFFER_DTYPE_F16:
        return (words){ { half_bits(coffer__load_u16(at), negate), 0 } };
    case COFFER_DTYPE_C32:
        return (words){ { half_bits(coffer__load_u16(at), negate),
                          half_bits(coffer__load_u16(at + 2), negate) } };
    case COFFER_DTYPE_F32:
        return (words){ { real_bits(load_f32(at), negate), 0 } };
    case COFFER_DTYPE_C64:
        return (words){ { real_bits(load_f32(at), negate), real_bits(load_f32(at + 4), negate) } };
    case COFFER_DTYPE_F64:
        return (words){ { real_bits(load_f64(at), negate), 0 } };
    case COFFER_DTYPE_C128:
        return (words){ { real_bits(load_f64(at), negate), real_bits(load_f64(at + 8), negate) } };
    default:
        return (words){ { integer_bits(at, coffer_dtype_size(dtype), negate), 0 } };
    }
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t fingerprint(uint64_t place, words element)
{
    return mix(mix(mix(place) + element.part[0]) + element.part[1]);
}

void coffer__mirror_check_add(coffer__mirror_check *check, const void *rows, coffer_dtype dtype,
                              uint64_t first_row, uint64_t count, uint64_t cols)
{
    const uint8_t *at = rows;
    size_t size = coffer_dtype_size(dtype);
    for (uint64_t row = first_row; row < first_row + count; row++) {
        for (uint64_t col = 0; col < cols; col++, at += size) {
            if (col > row)
                check->upper += fingerprint(row * cols + col, load(at, dtype, false));
            else if (col < row)
                check->lower += fingerprint(col * cols + row, load(at, dtype, check->negative));
        }
    }
}

bool coffer__mirror_check_holds(const coffer__mirror_check *check)
{
    return check->upper == check->lower;
}
