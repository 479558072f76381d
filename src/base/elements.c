/* Conversion: finds the way from one type to the other. */
#include "base/elements.h"

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/elements_kernels.h"

#include <math.h>
#include <string.h>

#define CHUNK 512
#define WIDEST 16 /* bytes of a complex double */

bool coffer__elements_can_convert(coffer_dtype to, coffer_dtype from)
{
    if (coffer_dtype_size(to) == 0 || coffer_dtype_size(from) == 0)
        return false;
    return coffer_dtype_is_complex(to) || !coffer_dtype_is_complex(from);
}

/* The type of the two parts of a complex type. */
static coffer_dtype part_of(coffer_dtype complex_type)
{
    switch (complex_type) {
    case COFFER_DTYPE_C32:
        return COFFER_DTYPE_F16;
    case COFFER_DTYPE_C64:
        return COFFER_DTYPE_F32;
    default:
        return COFFER_DTYPE_F64;
    }
}

/* Bytes of the float that an integer type goes with: one of half its width does not have the digits. */
static size_t float_bytes_for(coffer_dtype type)
{
    size_t size = coffer_dtype_size(type);
    if (type == COFFER_DTYPE_BOOL)
        return 0;
    if (coffer_dtype_is_integer(type))
        return size == 1 ? 2 : size == 2 ? 4 : 8;
    return coffer_dtype_is_complex(type) ? size / 2 : size;
}

static bool is_signed_integer(coffer_dtype type)
{
    return type == COFFER_DTYPE_I8 || type == COFFER_DTYPE_I16 || type == COFFER_DTYPE_I32 ||
           type == COFFER_DTYPE_I64;
}

static coffer_dtype promote_integers(coffer_dtype a, coffer_dtype b)
{
    static const coffer_dtype next_signed[] = {
        [1] = COFFER_DTYPE_I16, [2] = COFFER_DTYPE_I32, [4] = COFFER_DTYPE_I64, [8] = COFFER_DTYPE_F64
    };
    size_t a_size = coffer_dtype_size(a), b_size = coffer_dtype_size(b);
    if (is_signed_integer(a) == is_signed_integer(b))
        return a_size >= b_size ? a : b;
    coffer_dtype with_sign = is_signed_integer(a) ? a : b, without = is_signed_integer(a) ? b : a;
    if (coffer_dtype_size(with_sign) > coffer_dtype_size(without))
        return with_sign;
    return next_signed[coffer_dtype_size(without)];
}

coffer_dtype coffer__elements_promote(coffer_dtype a, coffer_dtype b)
{
    if (a == b || b == COFFER_DTYPE_BOOL)
        return a;
    if (a == COFFER_DTYPE_BOOL)
        return b;
    if (coffer_dtype_is_integer(a) && coffer_dtype_is_integer(b))
        return promote_integers(a, b);
    bool pairs = coffer_dtype_is_complex(a) || coffer_dtype_is_complex(b);
    size_t a_bytes = float_bytes_for(a), b_bytes = float_bytes_for(b);
    size_t bytes = a_bytes > b_bytes ? a_bytes : b_bytes;
    /* F16 has more digits, BF16 more range, and the types of eight bits have neither. */
    if (bytes <= 2 && (a == COFFER_DTYPE_BF16 || b == COFFER_DTYPE_BF16))
        bytes = 4;
    if (bytes <= 2)
        return pairs ? COFFER_DTYPE_C32 : COFFER_DTYPE_F16;
    if (bytes == 4)
        return pairs ? COFFER_DTYPE_C64 : COFFER_DTYPE_F32;
    return pairs ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
}

/* ---- Between integers ---- */

/* An element of an integer type as 64 bits. */
static uint64_t load_integer(const uint8_t *from, coffer_dtype type)
{
    uint64_t wide = 0;
    size_t size = coffer_dtype_size(type);
    memcpy((uint8_t *)&wide + (COFFER__BIG_ENDIAN ? sizeof wide - size : 0), from, size);
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    return is_signed_integer(type) ? (wide ^ sign) - sign : wide;
}

#define STORE_CLAMPED(type, low, high)                                          \
    do {                                                                        \
        type narrow;                                                            \
        if (from_unsigned)                                                      \
            narrow = (type)(wide > (uint64_t)(high) ? (uint64_t)(high) : wide); \
        else if ((int64_t)wide < (int64_t)(low))                                \
            narrow = (type)(low);                                               \
        else if ((int64_t)wide > 0 && wide > (uint64_t)(high))                  \
            narrow = (type)(high);                                              \
        else                                                                    \
            narrow = (type)wide;                                                \
        memcpy(to, &narrow, sizeof narrow);                                     \
    } while (0)

static void store_integer(uint8_t *to, coffer_dtype type, uint64_t wide, bool from_unsigned)
{
    switch (type) {
    case COFFER_DTYPE_I8:
        STORE_CLAMPED(int8_t, INT8_MIN, INT8_MAX);
        break;
    case COFFER_DTYPE_U8:
        STORE_CLAMPED(uint8_t, 0, UINT8_MAX);
        break;
    case COFFER_DTYPE_I16:
        STORE_CLAMPED(int16_t, INT16_MIN, INT16_MAX);
        break;
    case COFFER_DTYPE_U16:
        STORE_CLAMPED(uint16_t, 0, UINT16_MAX);
        break;
    case COFFER_DTYPE_I32:
        STORE_CLAMPED(int32_t, INT32_MIN, INT32_MAX);
        break;
    case COFFER_DTYPE_U32:
        STORE_CLAMPED(uint32_t, 0, UINT32_MAX);
        break;
    case COFFER_DTYPE_I64:
        STORE_CLAMPED(int64_t, INT64_MIN, INT64_MAX);
        break;
    default:
        STORE_CLAMPED(uint64_t, 0, UINT64_MAX);
        break;
    }
}

static void integers_to_integers(uint8_t *out, coffer_dtype to, const uint8_t *in, coffer_dtype from,
                                 size_t count)
{
    size_t to_size = coffer_dtype_size(to), from_size = coffer_dtype_size(from);
    bool from_unsigned = from == COFFER_DTYPE_U64; /* the others fit an int64_t */
    for (size_t i = 0; i < count; i++)
        store_integer(out + i * to_size, to, load_integer(in + i * from_size, from), from_unsigned);
}

/* ---- From doubles ---- */

/* Bounds of an integer type that are exact as doubles: low <= x < end fits after truncation. */
static void doubles_to_integers(uint8_t *out, coffer_dtype to, const double *in, size_t count)
{
    size_t size = coffer_dtype_size(to);
    bool is_unsigned =
        to == COFFER_DTYPE_U8 || to == COFFER_DTYPE_U16 || to == COFFER_DTYPE_U32 || to == COFFER_DTYPE_U64;
    double end = ldexp(1.0, (int)(8 * size) - !is_unsigned), low = is_unsigned ? 0.0 : -end;
    for (size_t i = 0; i < count; i++, out += size) {
        uint64_t wide;
        if (isnan(in[i]))
            wide = 0;
        else if (in[i] >= end)
            wide = is_unsigned ? UINT64_MAX : INT64_MAX;
        else if (in[i] <= low)
            wide = is_unsigned ? 0 : (uint64_t)INT64_MIN;
        else
            wide = is_unsigned ? (uint64_t)in[i] : (uint64_t)(int64_t)in[i];
        store_integer(out, to, wide, is_unsigned);
    }
}

static void doubles_to_small_floats(uint8_t *out, coffer_dtype to, const double *in, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        float odd = coffer__float_odd(in[i]);
        uint16_t half;
        switch (to) {
        case COFFER_DTYPE_F16:
            half = coffer__f16_from_f32(odd);
            memcpy(out + 2 * i, &half, sizeof half);
            break;
        case COFFER_DTYPE_BF16:
            half = coffer__bf16_from_f32(odd);
            memcpy(out + 2 * i, &half, sizeof half);
            break;
        case COFFER_DTYPE_F8_E4M3:
            out[i] = coffer__f8_e4m3_from_f32(odd);
            break;
        default:
            out[i] = coffer__f8_e5m2_from_f32(odd);
            break;
        }
    }
}

/* ---- Booleans ---- */

/* The bytes of the number 1. */
static uint64_t one_of(coffer_dtype type)
{
    switch (type) {
    case COFFER_DTYPE_F16:
    case COFFER_DTYPE_C32:
        return 0x3C00;
    case COFFER_DTYPE_BF16:
        return 0x3F80;
    case COFFER_DTYPE_F32:
    case COFFER_DTYPE_C64:
        return 0x3F800000;
    case COFFER_DTYPE_F64:
        return UINT64_C(0x3FF0000000000000);
    case COFFER_DTYPE_F8_E4M3:
        return 0x38;
    case COFFER_DTYPE_F8_E5M2:
        return 0x3C;
    default:
        return 1;
    }
}

static void to_booleans(uint8_t *out, const uint8_t *in, coffer_dtype from, size_t count)
{
    size_t size = coffer_dtype_size(from);
    /* −0 is zero. */
    uint8_t sign_mask = coffer_dtype_is_float(from) ? 0x7F : 0xFF;
    size_t sign = coffer__sign_byte(size);
    for (size_t i = 0; i < count; i++, in += size) {
        unsigned any = 0;
        for (size_t byte = 0; byte < size; byte++)
            any |= byte == sign ? in[byte] & sign_mask : in[byte];
        out[i] = any != 0;
    }
}

/* ---- Everything else goes through doubles ---- */

/* As a double that rounds to small floats as the integer itself would: what does not fit into 53 bits sets
 * the last one. */
static double odd_double(uint64_t magnitude)
{
    if (magnitude >> 53 == 0)
        return (double)magnitude;
    uint64_t cut = magnitude & 0x7FF;
    return ldexp((double)(magnitude >> 11 | (cut != 0)), 11);
}

static void long_integers_to_odd_doubles(double *out, const uint8_t *in, coffer_dtype from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t wide = load_integer(in + 8 * i, from);
        bool negative = from == COFFER_DTYPE_I64 && wide >> 63;
        double magnitude = odd_double(negative ? 0 - wide : wide);
        out[i] = negative ? -magnitude : magnitude;
    }
}

static void f8_to_doubles(double *out, const uint8_t *in, coffer_dtype from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (double)(from == COFFER_DTYPE_F8_E4M3 ? coffer__f8_e4m3_to_f32(in[i])
                                                       : coffer__f8_e5m2_to_f32(in[i]));
}

static void to_doubles(double *out, const void *in, coffer_dtype from, size_t count,
                       const coffer__elements_kernels *kernels)
{
    float floats[CHUNK];
    if (from == COFFER_DTYPE_F64) {
        memcpy(out, in, count * sizeof *out);
    } else if (from == COFFER_DTYPE_F8_E4M3 || from == COFFER_DTYPE_F8_E5M2) {
        f8_to_doubles(out, in, from, count);
    } else if (kernels->convert[from][COFFER_DTYPE_F64]) {
        kernels->convert[from][COFFER_DTYPE_F64](out, in, count);
    } else {
        kernels->convert[from][COFFER_DTYPE_F32](floats, in, count);
        kernels->convert[COFFER_DTYPE_F32][COFFER_DTYPE_F64](out, floats, count);
    }
}

/* At most a chunk, between two different real types of which neither is BOOL. */
static void convert_chunk(void *out, coffer_dtype to, const void *in, coffer_dtype from, size_t count,
                          const coffer__elements_kernels *kernels)
{
    double doubles[CHUNK];
    float floats[CHUNK];
    bool from_long = from == COFFER_DTYPE_I64 || from == COFFER_DTYPE_U64;
    if (to == COFFER_DTYPE_F64) {
        to_doubles(doubles, in, from, count, kernels);
        memcpy(out, doubles, count * sizeof *doubles);
    } else if (to == COFFER_DTYPE_F32) { /* from one of eight bits: exact */
        to_doubles(doubles, in, from, count, kernels);
        kernels->convert[COFFER_DTYPE_F64][COFFER_DTYPE_F32](out, doubles, count);
    } else if (coffer_dtype_is_integer(to)) {
        to_doubles(doubles, in, from, count, kernels);
        doubles_to_integers(out, to, doubles, count);
    } else if ((to == COFFER_DTYPE_F16 || to == COFFER_DTYPE_BF16) &&
               (from == COFFER_DTYPE_F16 || from == COFFER_DTYPE_BF16)) {
        kernels->convert[from][COFFER_DTYPE_F32](floats, in, count);
        kernels->convert[COFFER_DTYPE_F32][to](out, floats, count);
    } else {
        if (from_long)
            long_integers_to_odd_doubles(doubles, in, from, count);
        else
            to_doubles(doubles, in, from, count, kernels);
        doubles_to_small_floats(out, to, doubles, count);
    }
}

static void convert_real(uint8_t *out, coffer_dtype to, const uint8_t *in, coffer_dtype from, size_t count,
                         const coffer__elements_kernels *kernels)
{
    size_t to_size = coffer_dtype_size(to), from_size = coffer_dtype_size(from);
    if (from == COFFER_DTYPE_BOOL) {
        kernels->select[to_size == 8 ? 3 : to_size / 2](out, in, count, one_of(to));
    } else if (to == from) {
        memcpy(out, in, count * to_size);
    } else if (to == COFFER_DTYPE_BOOL) {
        to_booleans(out, in, from, count);
    } else if (to <= COFFER_DTYPE_F64 && from <= COFFER_DTYPE_F64 && kernels->convert[from][to]) {
        kernels->convert[from][to](out, in, count);
    } else if (coffer_dtype_is_integer(to) && coffer_dtype_is_integer(from)) {
        integers_to_integers(out, to, in, from, count);
    } else {
        for (size_t i = 0; i < count; i += CHUNK)
            convert_chunk(out + i * to_size, to, in + i * from_size, from,
                          count - i < CHUNK ? count - i : CHUNK, kernels);
    }
}

static void real_to_complex(uint8_t *out, coffer_dtype to, const uint8_t *in, coffer_dtype from, size_t count,
                            const coffer__elements_kernels *kernels)
{
    uint8_t parts[CHUNK * WIDEST / 2];
    coffer_dtype part = part_of(to);
    size_t size = coffer_dtype_size(part), from_size = coffer_dtype_size(from);
    for (size_t done = 0; done < count; done += CHUNK) {
        size_t n = count - done < CHUNK ? count - done : CHUNK;
        convert_real(parts, part, in + done * from_size, from, n, kernels);
        for (size_t i = 0; i < n; i++, out += 2 * size) {
            memcpy(out, parts + i * size, size);
            memset(out + size, 0, size);
        }
    }
}

void coffer__elements_convert_by(const coffer__elements_kernels *kernels, void *out, coffer_dtype to,
                                 const void *in, coffer_dtype from, size_t count)
{
    if (coffer_dtype_is_complex(from))
        convert_real(out, part_of(to), in, part_of(from), 2 * count, kernels);
    else if (coffer_dtype_is_complex(to))
        real_to_complex(out, to, in, from, count, kernels);
    else
        convert_real(out, to, in, from, count, kernels);
}

void coffer__elements_convert(void *out, coffer_dtype to, const void *in, coffer_dtype from, size_t count)
{
    coffer__elements_convert_by(coffer__elements_kernels_for(coffer__cpu()), out, to, in, from, count);
}

bool coffer_dtype_can_convert(coffer_dtype to, coffer_dtype from)
{
    return coffer_dtype_size(to) > 0 && coffer_dtype_size(from) > 0 && coffer__elements_can_convert(to, from);
}

bool coffer_dtype_convert(void *out, coffer_dtype to, const void *in, coffer_dtype from, size_t count)
{
    if (!coffer_dtype_can_convert(to, from))
        return false;
    coffer__elements_convert(out, to, in, from, count);
    return true;
}
