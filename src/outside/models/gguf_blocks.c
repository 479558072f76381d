/* Decoders of the block types, and their table. A block first becomes small integers, then numbers: loops of
 * a fixed length over each, which compilers turn into vectors. */
#include "outside/models/gguf.h"

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/elements.h"

#define BLOCK 32  /* elements of the small block types */
#define SUPER 256 /* elements of the K types */

static inline float load_f16(const uint8_t *from)
{
    return coffer__f16_to_f32(coffer__load_u16(from));
}

/* ---- Steps that the types share ---- */

/* The low halves of `count` bytes, then the high ones. */
static inline void unpack_nibbles(int8_t *restrict out, const uint8_t *restrict bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (int8_t)(bytes[i] & 15);
        out[i + count] = (int8_t)(bytes[i] >> 4);
    }
}

/* Bit `bit` of each of 32 bytes, with the given value. */
static inline void add_bit(int8_t *restrict codes, const uint8_t *restrict bytes, unsigned bit, int value)
{
    for (size_t i = 0; i < 32; i++)
        codes[i] = (int8_t)(codes[i] + (bytes[i] >> bit & 1) * value);
}

static inline void scale_codes(float *restrict out, const int8_t *restrict codes, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scale * (float)codes[i];
}

static inline void scale_and_add(float *restrict out, const int8_t *restrict codes, size_t count, float scale,
                                 float offset)
{
    for (size_t i = 0; i < count; i++)
        out[i] = scale * (float)codes[i] + offset;
}

/* ---- Blocks of 32 ---- */

static void decode_q8_0(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 34, out += BLOCK) {
        int8_t codes[BLOCK];
        memcpy(codes, block + 2, BLOCK);
        scale_codes(out, codes, BLOCK, load_f16(block));
    }
}

static void decode_q4_0(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 18, out += BLOCK) {
        int8_t codes[BLOCK];
        unpack_nibbles(codes, block + 2, 16);
        for (size_t i = 0; i < BLOCK; i++)
            codes[i] = (int8_t)(codes[i] - 8);
        scale_codes(out, codes, BLOCK, load_f16(block));
    }
}

static void decode_q4_1(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 20, out += BLOCK) {
        int8_t codes[BLOCK];
        unpack_nibbles(codes, block + 4, 16);
        scale_and_add(out, codes, BLOCK, load_f16(block), load_f16(block + 2));
    }
}

/* The fifth bits of 32 codes are one number. */
static inline void unpack_fives(int8_t codes[BLOCK], const uint8_t *fifths, const uint8_t *nibbles)
{
    uint32_t bits = coffer__load_u32(fifths);
    unpack_nibbles(codes, nibbles, 16);
    for (unsigned i = 0; i < BLOCK; i++)
        codes[i] = (int8_t)(codes[i] | (int)(bits >> i & 1) << 4);
}

static void decode_q5_0(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 22, out += BLOCK) {
        int8_t codes[BLOCK];
        unpack_fives(codes, block + 2, block + 6);
        for (size_t i = 0; i < BLOCK; i++)
            codes[i] = (int8_t)(codes[i] - 16);
        scale_codes(out, codes, BLOCK, load_f16(block));
    }
}

static void decode_q5_1(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 24, out += BLOCK) {
        int8_t codes[BLOCK];
        unpack_fives(codes, block + 4, block + 8);
        scale_and_add(out, codes, BLOCK, load_f16(block), load_f16(block + 2));
    }
}

const int8_t coffer__gguf_iq4_levels[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113 };

static inline void look_up(int8_t codes[BLOCK], const uint8_t *nibbles, const int8_t table[16])
{
    unpack_nibbles(codes, nibbles, 16);
    for (size_t i = 0; i < BLOCK; i++)
        codes[i] = table[codes[i]];
}

static void decode_iq4_nl(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 18, out += BLOCK) {
        int8_t codes[BLOCK];
        look_up(codes, block + 2, coffer__gguf_iq4_levels);
        scale_codes(out, codes, BLOCK, load_f16(block));
    }
}

/* Four-bit floats, doubled so that they are whole, times half a power of two. */
static void decode_mxfp4(float *out, const uint8_t *block, size_t count)
{
    static const int8_t doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    for (; count; count--, block += 17, out += BLOCK) {
        int8_t codes[BLOCK];
        uint32_t exponent = block[0];
        uint32_t scale = exponent < 2 ? UINT32_C(0x00200000) << exponent : (exponent - 1) << 23;
        look_up(codes, block + 1, doubled);
        scale_codes(out, codes, BLOCK, coffer__float_from_bits(scale));
    }
}

/* ---- Super-blocks of 256 ---- */

/* Scales of 16 groups of 16. */
static inline void scale_groups(float *out, const int8_t codes[SUPER], const int8_t scales[16], float d)
{
    for (size_t group = 0; group < 16; group++)
        scale_codes(out + 16 * group, codes + 16 * group, 16, d * (float)scales[group]);
}

/* 64 bytes hold four codes each: those of elements 32 apart, 128 elements for each 32 bytes. */
static inline void unpack_pairs(int8_t codes[SUPER], const uint8_t *bytes)
{
    for (size_t half = 0; half < 2; half++) {
        for (unsigned row = 0; row < 4; row++) {
            for (size_t i = 0; i < 32; i++)
                codes[128 * half + 32 * row + i] = (int8_t)(bytes[32 * half + i] >> (2 * row) & 3);
        }
    }
}

static void decode_q2_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 84, out += SUPER) {
        int8_t codes[SUPER];
        float d = load_f16(block + 80), dmin = load_f16(block + 82);
        unpack_pairs(codes, block + 16);
        for (size_t group = 0; group < 16; group++)
            scale_and_add(out + 16 * group, codes + 16 * group, 16, d * (float)(block[group] & 15),
                          -(dmin * (float)(block[group] >> 4)));
    }
}

/* Sixteen scales of six bits: the low four in eight bytes, the high two in the four after them. */
static inline void unpack_sixes(int8_t scales[16], const uint8_t bytes[12])
{
    for (size_t i = 0; i < 16; i++) {
        unsigned low = i < 8 ? bytes[i] & 15u : (unsigned)bytes[i - 8] >> 4;
        unsigned high = (unsigned)bytes[8 + i % 4] >> (2 * (i / 4)) & 3;
        scales[i] = (int8_t)((int)(low | high << 4) - 32);
    }
}

static void decode_q3_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 110, out += SUPER) {
        int8_t codes[SUPER], scales[16];
        unpack_pairs(codes, block + 32);
        for (unsigned row = 0; row < 8; row++) {
            add_bit(codes + (size_t)32 * row, block, row, 4);
            for (size_t i = 0; i < 32; i++)
                codes[32 * row + i] = (int8_t)(codes[32 * row + i] - 4);
        }
        unpack_sixes(scales, block + 96);
        scale_groups(out, codes, scales, load_f16(block + 108));
    }
}

/* Eight scales and eight minimums of six bits in twelve bytes. */
static inline void unpack_scale_and_minimum(uint8_t *scale, uint8_t *minimum, const uint8_t bytes[12],
                                            size_t group)
{
    if (group < 4) {
        *scale = bytes[group] & 63;
        *minimum = bytes[group + 4] & 63;
    } else {
        *scale = (uint8_t)((bytes[group + 4] & 15) | bytes[group - 4] >> 6 << 4);
        *minimum = (uint8_t)(bytes[group + 4] >> 4 | bytes[group] >> 6 << 4);
    }
}

/* fifths : a bit more for each code, group by group; NULL for none. */
static inline void decode_with_minimums(float *out, const uint8_t *block, const uint8_t *fifths,
                                        const uint8_t *nibbles)
{
    float d = load_f16(block), dmin = load_f16(block + 2);
    for (size_t pair = 0; pair < 4; pair++) {
        int8_t codes[64];
        unpack_nibbles(codes, nibbles + 32 * pair, 32);
        for (size_t half = 0; half < 2; half++) {
            size_t group = 2 * pair + half;
            uint8_t scale, minimum;
            if (fifths)
                add_bit(codes + 32 * half, fifths, (unsigned)group, 16);
            unpack_scale_and_minimum(&scale, &minimum, block + 4, group);
            scale_and_add(out + 32 * group, codes + 32 * half, 32, d * (float)scale,
                          -(dmin * (float)minimum));
        }
    }
}

static void decode_q4_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 144, out += SUPER)
        decode_with_minimums(out, block, NULL, block + 16);
}

static void decode_q5_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 176, out += SUPER)
        decode_with_minimums(out, block, block + 16, block + 48);
}

static void decode_q6_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 210, out += SUPER) {
        int8_t codes[SUPER], high[SUPER], scales[16];
        for (size_t half = 0; half < 2; half++)
            unpack_nibbles(codes + 128 * half, block + 64 * half, 64);
        unpack_pairs(high, block + 128);
        for (size_t i = 0; i < SUPER; i++)
            codes[i] = (int8_t)((codes[i] | high[i] << 4) - 32);
        memcpy(scales, block + 192, sizeof scales);
        scale_groups(out, codes, scales, load_f16(block + 208));
    }
}

static void decode_q8_k(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 292, out += SUPER) {
        int8_t codes[SUPER];
        memcpy(codes, block + 4, SUPER);
        scale_codes(out, codes, SUPER, coffer__float_from_bits(coffer__load_u32(block)));
    }
}

static void decode_iq4_xs(float *out, const uint8_t *block, size_t count)
{
    for (; count; count--, block += 136, out += SUPER) {
        float d = load_f16(block);
        unsigned high = coffer__load_u16(block + 2);
        for (size_t group = 0; group < 8; group++) {
            int8_t codes[BLOCK];
            unsigned low = (unsigned)block[4 + group / 2] >> (4 * (group % 2)) & 15;
            int scale = (int)(low | (high >> (2 * group) & 3) << 4) - 32;
            look_up(codes, block + 8 + 16 * group, coffer__gguf_iq4_levels);
            scale_codes(out + BLOCK * group, codes, BLOCK, d * (float)scale);
        }
    }
}

/* ---- The table ---- */

#define PLAIN(id, name, dtype, bytes)   \
    {                                   \
        id, name, dtype, 1, bytes, NULL \
    }
#define BLOCKS(id, name, elements, bytes, decode)            \
    {                                                        \
        id, name, COFFER_DTYPE_NONE, elements, bytes, decode \
    }

static const coffer__gguf_type types[] = {
    PLAIN(0, "F32", COFFER_DTYPE_F32, 4),
    PLAIN(1, "F16", COFFER_DTYPE_F16, 2),
    BLOCKS(COFFER__GGUF_Q4_0, "Q4_0", BLOCK, 18, decode_q4_0),
    BLOCKS(3, "Q4_1", BLOCK, 20, decode_q4_1),
    BLOCKS(COFFER__GGUF_Q5_0, "Q5_0", BLOCK, 22, decode_q5_0),
    BLOCKS(7, "Q5_1", BLOCK, 24, decode_q5_1),
    BLOCKS(COFFER__GGUF_Q8_0, "Q8_0", BLOCK, 34, decode_q8_0),
    BLOCKS(9, "Q8_1", BLOCK, 36, NULL),
    BLOCKS(10, "Q2_K", SUPER, 84, decode_q2_k),
    BLOCKS(11, "Q3_K", SUPER, 110, decode_q3_k),
    BLOCKS(COFFER__GGUF_Q4_K, "Q4_K", SUPER, 144, decode_q4_k),
    BLOCKS(13, "Q5_K", SUPER, 176, decode_q5_k),
    BLOCKS(COFFER__GGUF_Q6_K, "Q6_K", SUPER, 210, decode_q6_k),
    BLOCKS(15, "Q8_K", SUPER, 292, decode_q8_k),
    BLOCKS(16, "IQ2_XXS", SUPER, 66, NULL),
    BLOCKS(17, "IQ2_XS", SUPER, 74, NULL),
    BLOCKS(18, "IQ3_XXS", SUPER, 98, NULL),
    BLOCKS(19, "IQ1_S", SUPER, 50, NULL),
    BLOCKS(COFFER__GGUF_IQ4_NL, "IQ4_NL", BLOCK, 18, decode_iq4_nl),
    BLOCKS(21, "IQ3_S", SUPER, 110, NULL),
    BLOCKS(22, "IQ2_S", SUPER, 82, NULL),
    BLOCKS(23, "IQ4_XS", SUPER, 136, decode_iq4_xs),
    PLAIN(24, "I8", COFFER_DTYPE_I8, 1),
    PLAIN(25, "I16", COFFER_DTYPE_I16, 2),
    PLAIN(26, "I32", COFFER_DTYPE_I32, 4),
    PLAIN(27, "I64", COFFER_DTYPE_I64, 8),
    PLAIN(28, "F64", COFFER_DTYPE_F64, 8),
    BLOCKS(29, "IQ1_M", SUPER, 56, NULL),
    PLAIN(30, "BF16", COFFER_DTYPE_BF16, 2),
    BLOCKS(34, "TQ1_0", SUPER, 54, NULL),
    BLOCKS(35, "TQ2_0", SUPER, 66, NULL),
    BLOCKS(39, "MXFP4", BLOCK, 17, decode_mxfp4),
    BLOCKS(40, "NVFP4", 64, 36, NULL),
    BLOCKS(41, "Q1_0", 128, 18, NULL),
};

#define TYPE_COUNT (sizeof types / sizeof *types)

const coffer__gguf_type *coffer__gguf_find_type(uint32_t id)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].id == id)
            return &types[i];
    }
    return NULL;
}

const coffer__gguf_type *coffer__gguf_type_for(coffer_dtype dtype)
{
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].dtype == dtype && dtype != COFFER_DTYPE_NONE)
            return &types[i];
    }
    return NULL;
}
