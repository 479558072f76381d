/* A stored row becomes a row of values: bits to bytes, planes to pairs, scalar, conjugation, type. */
#include "formats/pycauset/pycauset_payload.h"

#include "base/bytes.h"
#include "base/elements.h"

#include <string.h>

/* Elements per pass through scratch memory, which stays in the L1 cache. */
#define CHUNK 1024

/* ---- Bits ---- */

static const coffer__pycauset_bit_kernels *bit_kernels(coffer__cpu_level level)
{
#if defined(__x86_64__)
    if (level == COFFER__CPU_AVX512)
        return &coffer__pycauset_bits_avx512;
    if (level == COFFER__CPU_AVX2)
        return &coffer__pycauset_bits_avx2;
#elif defined(__aarch64__)
    if (level == COFFER__CPU_NEON)
        return &coffer__pycauset_bits_neon;
#endif
    (void)level;
    return &coffer__pycauset_bits_generic;
}

static void expand_singly(uint8_t *out, const uint8_t *bits, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = bits[(first + i) / 8] >> (first + i) % 8 & 1;
}

void coffer__pycauset_expand_bits(uint8_t *out, const uint8_t *bits, size_t first, size_t count,
                                  coffer__cpu_level level)
{
    size_t head = (8 - first % 8) % 8;
    head = head < count ? head : count;
    expand_singly(out, bits, first, head);
    size_t words = (count - head) / 64;
    bit_kernels(level)->expand(out + head, bits + (first + head) / 8, words);
    size_t done = head + 64 * words;
    expand_singly(out + done, bits, first + done, count - done);
}

void coffer__pycauset_pack_bits(uint8_t *bits, const uint8_t *bytes, size_t count, coffer__cpu_level level)
{
    size_t words = count / 64, rest = count % 64;
    bit_kernels(level)->pack(bits, bytes, words);
    if (rest > 0) {
        uint8_t last[64] = { 0 };
        memcpy(last, bytes + 64 * words, rest);
        bit_kernels(level)->pack(bits + 8 * words, last, 1);
    }
}

uint64_t coffer__pycauset_count_bits(const uint8_t *bits, size_t first, size_t count)
{
    uint64_t ones = 0;
    for (; count > 0 && first % 8 != 0; first++, count--)
        ones += bits[first / 8] >> first % 8 & 1;
    const uint8_t *at = bits + first / 8;
    for (; count >= 64; count -= 64, at += 8)
        ones += (uint64_t)__builtin_popcountll(coffer__load_u64(at));
    for (size_t i = 0; i < count; i++)
        ones += at[i / 8] >> i % 8 & 1;
    return ones;
}

/* ---- Scalar and conjugation ---- */

static void scale_reals(double *values, size_t count, double scalar)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= scalar;
}

static void scale_complexes(double *pairs, size_t count, double real, double imag)
{
    if (imag == 0) { /* an infinite part does not make a NaN of the other */
        scale_reals(pairs, 2 * count, real);
        return;
    }
    for (size_t i = 0; i < count; i++, pairs += 2) {
        double re = pairs[0] * real - pairs[1] * imag;
        pairs[1] = pairs[0] * imag + pairs[1] * real;
        pairs[0] = re;
    }
}

static void conjugate(uint8_t *pairs, coffer_dtype dtype, size_t count)
{
    size_t size = coffer_dtype_size(dtype);
    uint8_t *imaginary = pairs + size / 2 + coffer__sign_byte(size / 2);
    for (; count > 0; count--, imaginary += size)
        *imaginary ^= 0x80;
}

/* ---- Negatives ---- */

static void negate_integers(uint8_t *values, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++, values += size) {
        unsigned carry = 1;
        for (size_t byte = 0; byte < size; byte++) {
            uint8_t *at = &values[COFFER__BIG_ENDIAN ? size - 1 - byte : byte];
            carry += (uint8_t) ~*at;
            *at = (uint8_t)carry;
            carry >>= 8;
        }
    }
}

static void negate_floats(uint8_t *values, size_t size, size_t count)
{
    for (uint8_t *sign = values + coffer__sign_byte(size); count > 0; count--, sign += size)
        *sign ^= 0x80;
}

/* Puts the negatives of at most a chunk into scratch, which has room for pairs of doubles, and gives their
 * type: what has no sign becomes a double. */
static coffer_dtype negate_chunk(uint8_t *scratch, const coffer__pycauset_recipe *recipe,
                                 const void *elements, coffer_dtype type, size_t count)
{
    bool has_sign = type == COFFER_DTYPE_I8 || type == COFFER_DTYPE_I16 || type == COFFER_DTYPE_I32 ||
                    type == COFFER_DTYPE_I64;
    bool pairs = coffer_dtype_is_complex(type);
    coffer_dtype to = has_sign || pairs || coffer_dtype_is_float(type) ? type : COFFER_DTYPE_F64;
    size_t size = coffer_dtype_size(to);
    coffer__elements_convert_by(recipe->kernels, scratch, to, elements, type, count);
    if (has_sign)
        negate_integers(scratch, size, count);
    else
        negate_floats(scratch, pairs ? size / 2 : size, pairs ? 2 * count : count);
    return to;
}

/* ---- Rows ---- */

/* At most a chunk of elements of a plain type. */
static void finish_chunk(uint8_t *out, const coffer__pycauset_recipe *recipe, const void *elements,
                         coffer_dtype type, size_t count)
{
    double wide[2 * CHUNK], negatives[2 * CHUNK];
    if (recipe->negated) {
        type = negate_chunk((uint8_t *)negatives, recipe, elements, type, count);
        elements = negatives;
    }
    if (recipe->scaled) {
        bool pairs = coffer_dtype_is_complex(type) || recipe->scalar_imag != 0;
        coffer_dtype wide_type = pairs ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
        coffer__elements_convert_by(recipe->kernels, wide, wide_type, elements, type, count);
        if (pairs)
            scale_complexes(wide, count, recipe->scalar_real, recipe->scalar_imag);
        else
            scale_reals(wide, count, recipe->scalar_real);
        if (pairs && recipe->conjugated)
            conjugate((uint8_t *)wide, COFFER_DTYPE_C128, count);
        coffer__elements_convert_by(recipe->kernels, out, recipe->to, wide, wide_type, count);
        return;
    }
    coffer__elements_convert_by(recipe->kernels, out, recipe->to, elements, type, count);
    if (recipe->conjugated && coffer_dtype_is_complex(type))
        conjugate(out, recipe->to, count);
}

static void interleave(uint16_t *out, const uint8_t *real, const uint8_t *imag, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(&out[2 * i], real + 2 * i, 2);
        memcpy(&out[2 * i + 1], imag + 2 * i, 2);
    }
}

void coffer__pycauset_expand_row(void *out, const coffer__pycauset_recipe *recipe,
                                 const coffer__pycauset_stored_row *row, size_t count)
{
    union {
        uint8_t bytes[CHUNK];
        uint16_t pairs[2 * CHUNK];
    } scratch;
    uint8_t *to = out;
    size_t to_size = coffer_dtype_size(recipe->to), size = coffer_dtype_size(recipe->stored);
    bool is_bits = recipe->stored == COFFER_DTYPE_BIT;
    bool as_is = !recipe->negated && !recipe->scaled && !recipe->conjugated;
    if (is_bits && recipe->to == COFFER_DTYPE_BOOL && as_is) {
        coffer__pycauset_expand_bits(to, row->bytes, row->first_bit, count, recipe->level);
        return;
    }
    if (!is_bits && as_is && recipe->stored != COFFER_DTYPE_C32) {
        coffer__elements_convert_by(recipe->kernels, to, recipe->to, row->bytes, recipe->stored, count);
        return;
    }
    for (size_t done = 0; done < count; done += CHUNK, to += CHUNK * to_size) {
        size_t n = count - done < CHUNK ? count - done : CHUNK;
        if (is_bits) {
            coffer__pycauset_expand_bits(scratch.bytes, row->bytes, row->first_bit + done, n, recipe->level);
            finish_chunk(to, recipe, scratch.bytes, COFFER_DTYPE_BOOL, n);
        } else if (recipe->stored == COFFER_DTYPE_C32) {
            interleave(scratch.pairs, row->bytes + 2 * done, row->imaginary + 2 * done, n);
            finish_chunk(to, recipe, scratch.pairs, COFFER_DTYPE_C32, n);
        } else {
            finish_chunk(to, recipe, row->bytes + done * size, recipe->stored, n);
        }
    }
}

/* ---- Turning ---- */

#define DEFINE_TRANSPOSE(name, size)                                                                    \
    static void name(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride, size_t rows, \
                     size_t cols)                                                                       \
    {                                                                                                   \
        for (size_t j = 0; j < cols; j++) {                                                             \
            uint8_t *to = out + j * out_stride;                                                         \
            const uint8_t *from = in + j * (size);                                                      \
            for (size_t i = 0; i < rows; i++, to += (size), from += in_stride)                          \
                memcpy(to, from, size);                                                                 \
        }                                                                                               \
    }

DEFINE_TRANSPOSE(transpose_1, 1)
DEFINE_TRANSPOSE(transpose_2, 2)
DEFINE_TRANSPOSE(transpose_4, 4)
DEFINE_TRANSPOSE(transpose_8, 8)
DEFINE_TRANSPOSE(transpose_16, 16)

void coffer__pycauset_transpose(uint8_t *out, size_t out_stride, const uint8_t *in, size_t in_stride,
                                size_t rows, size_t cols, size_t size)
{
    switch (size) {
    case 1:
        transpose_1(out, out_stride, in, in_stride, rows, cols);
        break;
    case 2:
        transpose_2(out, out_stride, in, in_stride, rows, cols);
        break;
    case 4:
        transpose_4(out, out_stride, in, in_stride, rows, cols);
        break;
    case 8:
        transpose_8(out, out_stride, in, in_stride, rows, cols);
        break;
    default:
        transpose_16(out, out_stride, in, in_stride, rows, cols);
        break;
    }
}
