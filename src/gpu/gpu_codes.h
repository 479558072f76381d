/* How the bytes of a quantized payload become numbers, for one thread of the GPU. The same code is compiled
 * for the processor, where tests compare it with src/quant/quant_reference.c bit for bit.
 *
 * Eight codes that follow each other are a chunk: four chunks are a block of 32. A product takes the codes of
 * a chunk in pairs (i, i + 4), which is how they are shifted into place with the fewest instructions. */
#ifndef COFFER_GPU_GPU_CODES_H
#define COFFER_GPU_GPU_CODES_H

extern "C" {
#include "base/elements.h"
#include "gpu/gpu.h"
}

#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define GPU_FUNCTION __host__ __device__ __forceinline__
#else
#define GPU_FUNCTION inline
#endif

namespace coffer_gpu
{

/* ---- Arithmetic that is rounded as on the processor ---- */

/* Reads a number at an aligned address. */
template <typename Number> GPU_FUNCTION Number load(const void *from)
{
#if defined(__CUDA_ARCH__)
    return *(const Number *)from;
#else
    Number value;
    std::memcpy(&value, from, sizeof value);
    return value;
#endif
}

/* The same at any address, byte by byte. */
GPU_FUNCTION uint32_t load_bytes(const uint8_t *from, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value |= (uint32_t)from[i] << (8 * i);
    return value;
}

GPU_FUNCTION float bits_to_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GPU_FUNCTION uint32_t f32_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

GPU_FUNCTION float multiply(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

GPU_FUNCTION float subtract(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fsub_rn(a, b);
#else
    return a - b;
#endif
}

GPU_FUNCTION float f16_to_f32(uint16_t bits)
{
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(bits));
#else
    return coffer__f16_to_f32(bits);
#endif
}

GPU_FUNCTION uint16_t f32_to_f16(float value)
{
#if defined(__CUDA_ARCH__)
    return __half_as_ushort(__float2half_rn(value));
#else
    return coffer__f16_from_f32(value);
#endif
}

GPU_FUNCTION uint16_t f32_to_bf16(float value)
{
#if defined(__CUDA_ARCH__)
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
    return coffer__bf16_from_f32(value);
#endif
}

/* (bits & mask) ^ flip, in one instruction: the compiler would take two, since both are constants. */
GPU_FUNCTION uint32_t mask_and_flip(uint32_t bits, uint32_t mask, uint32_t flip)
{
#if defined(__CUDA_ARCH__)
    uint32_t out;
    asm("lop3.b32 %0, %1, %2, %3, 0x6A;" : "=r"(out) : "r"(bits), "r"(mask), "r"(flip));
    return out;
#else
    return (bits & mask) ^ flip;
#endif
}

/* a · b + c on two halves at once. Exact here: every result is a small integer. */
GPU_FUNCTION uint32_t multiply_add_halves(uint32_t a, uint32_t b, uint32_t c)
{
#if defined(__CUDA_ARCH__)
    uint32_t out;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
    return out;
#else
    uint32_t out = 0;
    for (int i = 0; i < 32; i += 16) {
        float sum =
            f16_to_f32((uint16_t)(a >> i)) * f16_to_f32((uint16_t)(b >> i)) + f16_to_f32((uint16_t)(c >> i));
        out |= (uint32_t)f32_to_f16(sum) << i;
    }
    return out;
#endif
}

/* Four of the eight bytes of (high, low), as the nibbles of `selector` say. */
GPU_FUNCTION uint32_t select_bytes(uint32_t low, uint32_t high, uint32_t selector)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selector);
#else
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        out |= (uint32_t)(both >> (8 * (selector >> (4 * i) & 7)) & 0xFF) << (8 * i);
    return out;
#endif
}

/* ---- Types ---- */

GPU_FUNCTION constexpr int code_bits(int type)
{
    return type == COFFER__QUANT_Q8 || type == COFFER__QUANT_INT8 ? 8
           : type == COFFER__QUANT_K6                             ? 6
           : type == COFFER__QUANT_K3                             ? 3
           : type == COFFER__QUANT_K2                             ? 2
                                                                  : 4;
}

GPU_FUNCTION constexpr bool has_supers(int type)
{
    return type >= COFFER__QUANT_K6 && type <= COFFER__QUANT_K2;
}

GPU_FUNCTION constexpr bool is_whole(int type)
{
    return type == COFFER__QUANT_INT8 || type == COFFER__QUANT_INT4;
}

constexpr int BLOCK = COFFER__QUANT_BLOCK;
constexpr int BLOCKS_OF_SUPER = COFFER__QUANT_SUPER / COFFER__QUANT_BLOCK;

/* ---- Codes ---- */

/* Bits [bit, bit + 32) of a block of BITS words. No word past the block is read. */
template <int BITS> GPU_FUNCTION uint32_t load_bits(const uint8_t *block, unsigned bit)
{
    unsigned word = bit / 32, next = word + 1 < BITS ? word + 1 : word;
    uint64_t both = (uint64_t)load<uint32_t>(block + 4 * next) << 32 | load<uint32_t>(block + 4 * word);
    return (uint32_t)(both >> (bit % 32));
}

/* Codes [4 · index, 4 · index + 4) of a region whose first byte is aligned to 16, in the low bits. */
template <int BITS> GPU_FUNCTION uint32_t load_quad(const uint8_t *codes, uint64_t index)
{
    if (BITS == 8)
        return load<uint32_t>(codes + 4 * index);
    if (BITS == 4)
        return load<uint16_t>(codes + 2 * index);
    if (BITS == 2)
        return codes[index];
    return load_bits<BITS>(codes + index / 8 * (4 * BITS), (unsigned)(index % 8) * (4 * BITS));
}

/* Both quads of a chunk. */
template <int BITS> GPU_FUNCTION void load_chunk(uint32_t out[2], const uint8_t *codes, uint64_t index)
{
    if (BITS == 8) {
        uint64_t both = load<uint64_t>(codes + 8 * index);
        out[0] = (uint32_t)both;
        out[1] = (uint32_t)(both >> 32);
    } else if (BITS == 4) {
        out[0] = load<uint32_t>(codes + 4 * index);
        out[1] = out[0] >> 16;
    } else if (BITS == 2) {
        out[0] = load<uint16_t>(codes + 2 * index);
        out[1] = out[0] >> 8;
    } else if (BITS == 6) {
        const uint8_t *words = codes + 6 * index - (index % 2) * 2;
        uint64_t both = (uint64_t)load<uint32_t>(words + 4) << 32 | load<uint32_t>(words);
        both >>= (index % 2) * 16;
        out[0] = (uint32_t)both;
        out[1] = (uint32_t)(both >> 24);
    } else {
        out[0] = load_bits<3>(codes + index / 4 * 12, (unsigned)(index % 4) * 24);
        out[1] = out[0] >> 12;
    }
}

/* Code `i` of a quad, which is two's complement. */
template <int BITS> GPU_FUNCTION float quad_code(uint32_t quad, int i)
{
    return (float)((int32_t)(quad << (32 - BITS * (i + 1))) >> (32 - BITS));
}

/* ---- Decoding ---- */

inline bool is_aligned(const void *pointer, size_t size)
{
    return reinterpret_cast<uintptr_t>(pointer) % size == 0;
}

enum output { TO_F32, TO_F16, TO_BF16 };

/* The scale and the zero point of a whole tensor. */
struct whole_factors {
    float scale, zero;
};

GPU_FUNCTION whole_factors load_whole(const coffer__gpu_payload &payload)
{
    whole_factors factors = { 0.0f, 0.0f };
    factors.scale = bits_to_f32(load_bytes(payload.parts[COFFER__QUANT_SCALES], 4));
    if (payload.parts[COFFER__QUANT_SUBS])
        factors.zero = bits_to_f32(load_bytes(payload.parts[COFFER__QUANT_SUBS], 4));
    return factors;
}

GPU_FUNCTION float super_scale(uint16_t super, uint8_t sub)
{
    return multiply(f16_to_f32(super), multiply((float)sub, 0.03125f));
}

/* A thread stores 16 bytes at once. */
GPU_FUNCTION constexpr int stored_elements(int as)
{
    return as == TO_F32 ? 4 : 8;
}

/* The bytes behind one store, so that several can be on their way before the first is used. */
template <int TYPE, int AS> struct decode_piece {
    uint32_t quads[stored_elements(AS) / 4];
    uint16_t scale;
    uint8_t sub;
};

/* index : of the piece in the payload, whose rows follow each other without gaps. ROWS : a row ends within a
 * super, so that the index of the super depends on the row. */
template <int TYPE, int AS, bool ROWS>
GPU_FUNCTION void load_piece(decode_piece<TYPE, AS> &piece, const coffer__gpu_payload &payload,
                             uint64_t index)
{
    constexpr int PER_BLOCK = BLOCK / stored_elements(AS);
    uint64_t block = index / PER_BLOCK;
    if (AS == TO_F32)
        piece.quads[0] = load_quad<code_bits(TYPE)>(payload.parts[COFFER__QUANT_CODES], index);
    else
        load_chunk<code_bits(TYPE)>(piece.quads, payload.parts[COFFER__QUANT_CODES], index);
    if (has_supers(TYPE)) {
        uint64_t super = block / BLOCKS_OF_SUPER;
        if (ROWS) {
            uint64_t row = block / payload.blocks_per_row;
            super = row * payload.supers_per_row + (block - row * payload.blocks_per_row) / BLOCKS_OF_SUPER;
        }
        piece.scale = load<uint16_t>(payload.parts[COFFER__QUANT_SCALES] + 2 * super);
        piece.sub = payload.parts[COFFER__QUANT_SUBS][block];
    } else if (!is_whole(TYPE)) {
        piece.scale = load<uint16_t>(payload.parts[COFFER__QUANT_SCALES] + 2 * block);
    }
}

/* words : the 16 bytes to store. */
template <int TYPE, int AS>
GPU_FUNCTION void decode(uint32_t words[4], const decode_piece<TYPE, AS> &piece, whole_factors whole)
{
    constexpr int COUNT = stored_elements(AS);
    float values[COUNT];
    float scale = is_whole(TYPE)     ? whole.scale
                  : has_supers(TYPE) ? super_scale(piece.scale, piece.sub)
                                     : f16_to_f32(piece.scale);
    for (int i = 0; i < COUNT; i++) {
        float code = quad_code<code_bits(TYPE)>(piece.quads[i / 4], i % 4);
        values[i] = multiply(scale, is_whole(TYPE) ? subtract(code, whole.zero) : code);
    }
    for (int i = 0; i < 4; i++) {
        if (AS == TO_F32)
            words[i] = f32_to_bits(values[i]);
        else if (AS == TO_F16)
            words[i] = f32_to_f16(values[2 * i % COUNT]) | (uint32_t)f32_to_f16(values[(2 * i + 1) % COUNT])
                                                               << 16;
        else
            words[i] = f32_to_bf16(values[2 * i % COUNT]) | (uint32_t)f32_to_bf16(values[(2 * i + 1) % COUNT])
                                                                << 16;
    }
}

/* How many pieces there are at the front of rows [first, first + count); the rest is decoded by element. */
template <int TYPE, int AS>
inline uint64_t count_pieces(const void *out, const coffer__gpu_payload &payload, uint64_t first,
                             uint64_t count)
{
    constexpr int ELEMENTS = stored_elements(AS);
    bool dense = is_whole(TYPE) ? first * payload.cols % ELEMENTS == 0 : payload.cols % BLOCK == 0;
    bool aligned = is_aligned(out, 16) && is_aligned(payload.parts[COFFER__QUANT_CODES], 16) &&
                   is_aligned(payload.parts[COFFER__QUANT_SCALES], 2);
    return dense && aligned ? count * payload.cols / ELEMENTS : 0;
}

/* A row ends within a super, see load_piece. */
inline bool has_open_supers(const coffer__gpu_payload &payload)
{
    return payload.supers_per_row > 0 && payload.cols % COFFER__QUANT_SUPER != 0;
}

/* One element at any place, with loads of bytes: for shapes and addresses that the functions above exclude.
 */
template <int TYPE>
GPU_FUNCTION float decode_element(const coffer__gpu_payload &payload, uint64_t row, uint64_t col)
{
    constexpr int BITS = code_bits(TYPE);
    uint64_t block = row * payload.blocks_per_row + col / BLOCK;
    uint64_t element = is_whole(TYPE) ? row * payload.cols + col : block * BLOCK + col % BLOCK;
    const uint8_t *at = payload.parts[COFFER__QUANT_CODES] + element / 8 * BITS;
    unsigned bit = (unsigned)(element % 8) * BITS, last = (bit + BITS - 1) / 8;
    uint32_t bits = at[bit / 8];
    if (last != bit / 8)
        bits |= (uint32_t)at[last] << 8;
    float code = quad_code<BITS>(bits >> (bit % 8), 0);
    const uint8_t *scales = payload.parts[COFFER__QUANT_SCALES];
    if (is_whole(TYPE)) {
        whole_factors whole = load_whole(payload);
        return multiply(whole.scale, subtract(code, whole.zero));
    }
    if (!has_supers(TYPE))
        return multiply(f16_to_f32((uint16_t)load_bytes(scales + 2 * block, 2)), code);
    uint64_t super = row * payload.supers_per_row + col / COFFER__QUANT_SUPER;
    return multiply(super_scale((uint16_t)load_bytes(scales + 2 * super, 2),
                                payload.parts[COFFER__QUANT_SUBS][block]),
                    code);
}

/* ---- Products ---- */

/* Whether the tensor cores can multiply a payload: rows begin at a block, and the addresses suit the loads.
 */
template <int TYPE> inline bool has_tiles(const coffer__gpu_payload &payload)
{
    if (is_whole(TYPE) && (payload.cols % BLOCK != 0 || payload.parts[COFFER__QUANT_SUBS]))
        return false;
    return is_aligned(payload.parts[COFFER__QUANT_CODES], 16) &&
           is_aligned(payload.parts[COFFER__QUANT_SCALES], 4) &&
           is_aligned(payload.parts[COFFER__QUANT_SUBS], 2) && payload.rows < (1ull << 35) &&
           payload.cols < (1ull << 31);
}

/* The codes of a chunk as halves: pairs[i] is codes (i, i + 4). A code, made positive by flipping its sign
 * bit, becomes the low bits of a half between 1024 and 2048; taking the constant away leaves the integer. */
template <int BITS, int SHIFT> GPU_FUNCTION uint32_t to_halves(uint32_t bits)
{
    constexpr uint32_t MASK = ((1u << BITS) - 1) << SHIFT, SIGN = 1u << (BITS - 1 + SHIFT);
    constexpr uint32_t TWICE = 0x10001;
    constexpr uint32_t SHRINK = 0x3C00 - (SHIFT << 10); /* 2^-SHIFT */
    /* -(1024 + SIGN) · 2^-SHIFT, a half: 1024 / 2^SHIFT has the exponent 25 - SHIFT. */
    constexpr uint32_t OFFSET = 0x8000 | ((25 - SHIFT) << 10) | SIGN;
    return multiply_add_halves(mask_and_flip(bits, MASK * TWICE, (0x6400 | SIGN) * TWICE), SHRINK * TWICE,
                               OFFSET * TWICE);
}

/* quads : what load_chunk or chunk_of_words gives. Up to 4 bits, the first has the bits of both. */
template <int BITS> GPU_FUNCTION void chunk_to_halves(uint32_t pairs[4], const uint32_t quads[2])
{
    if (BITS == 8) {
        uint32_t low = select_bytes(quads[0], quads[1], 0x5140),
                 high = select_bytes(quads[0], quads[1], 0x7362);
        /* The bytes 0 4 1 5 and 2 6 3 7: a pair is a byte and the one after it. */
        pairs[0] = to_halves<8, 0>(select_bytes(low, 0, 0x4140));
        pairs[1] = to_halves<8, 0>(select_bytes(low, 0, 0x4342));
        pairs[2] = to_halves<8, 0>(select_bytes(high, 0, 0x4140));
        pairs[3] = to_halves<8, 0>(select_bytes(high, 0, 0x4342));
    } else if (BITS == 6) {
        uint32_t low = select_bytes(quads[0], quads[1], 0x5410);
        uint32_t high = select_bytes(quads[0] >> 12, quads[1] >> 12, 0x5410);
        pairs[0] = to_halves<6, 0>(low);
        pairs[1] = to_halves<6, 0>(low >> 6);
        pairs[2] = to_halves<6, 0>(high);
        pairs[3] = to_halves<6, 0>(high >> 6);
    } else {
        uint32_t both = BITS == 4
                            ? quads[0]
                            : select_bytes(quads[0], BITS == 2 ? 0 : quads[1], BITS == 2 ? 0x4140 : 0x5410);
        pairs[0] = to_halves<BITS, 0>(both);
        pairs[1] = to_halves<BITS, BITS>(both);
        if (BITS == 2) {
            pairs[2] = to_halves < BITS, BITS == 2 ? 4 : 0 > (both);
            pairs[3] = to_halves < BITS, BITS == 2 ? 6 : 0 > (both);
        } else {
            pairs[2] = to_halves<BITS, 0>(both >> 2 * BITS);
            pairs[3] = to_halves<BITS, BITS>(both >> 2 * BITS);
        }
    }
}

/* The quads of chunk `index` of a block whose words are in registers. index is a constant after unrolling. */
template <int BITS> GPU_FUNCTION void chunk_of_words(uint32_t quads[2], const uint32_t *words, int index)
{
    if (BITS == 8) {
        quads[0] = words[2 * index];
        quads[1] = words[2 * index + 1];
        return;
    }
    int bit = index * 8 * BITS, word = bit / 32, next = word + 1 < BITS ? word + 1 : word;
    uint64_t both = (uint64_t)words[next] << 32 | words[word];
    both >>= bit % 32;
    quads[0] = (uint32_t)both;
    quads[1] = (uint32_t)(both >> (4 * BITS));
}

/* A number of x is the sum of two halves, times a power of two that the 256 numbers of its super share: 22
 * bits of the number, or 2^-51 of the largest one where that is more. */
constexpr float SECOND_HALF = 1.0f / 2048;

/* The power of two that brings the largest magnitude to [2^14, 2^15). Numbers that are not finite
 * stay what they are. */
GPU_FUNCTION float factor_for(float largest)
{
    int exponent = (int)(f32_to_bits(largest) >> 23);
    if (exponent < 20) /* zero, or so small that the inverse would not be a number */
        exponent = 20;
    return bits_to_f32((uint32_t)(127 + 14 + 127 - exponent) << 23);
}

/* 1 / factor: both are powers of two. */
GPU_FUNCTION float inverse_factor(float factor)
{
    return bits_to_f32((254u << 23) - f32_to_bits(factor));
}

GPU_FUNCTION bool is_finite(float value)
{
    return (f32_to_bits(value) >> 23 & 0xFF) != 0xFF;
}

GPU_FUNCTION void split(uint16_t out[2], float value, float factor)
{
    float scaled = value * factor;
    out[0] = f32_to_f16(scaled);
    out[1] = is_finite(value) ? f32_to_f16(subtract(scaled, f16_to_f32(out[0])) * 2048.0f) : 0;
}

/* For tables and switches over the types. */
#define GPU_FOR_EACH_TYPE(CASE) \
    CASE(COFFER__QUANT_Q8)      \
    CASE(COFFER__QUANT_Q4)      \
    CASE(COFFER__QUANT_K6)      \
    CASE(COFFER__QUANT_K4)      \
    CASE(COFFER__QUANT_K3)      \
    CASE(COFFER__QUANT_K2)      \
    CASE(COFFER__QUANT_INT8)    \
    CASE(COFFER__QUANT_INT4)

} // namespace coffer_gpu

#endif
