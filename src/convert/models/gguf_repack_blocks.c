#include "convert/models/gguf_repack.h"

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/elements.h"
#include "outside/models/gguf.h"

#include <math.h>
#include <string.h>

#define BLOCK 32
#define SUPER 256
#define GROUPS 8 /* of 32 codes in a super-block */

void coffer__repack_unpack_codes(int8_t *out, const uint8_t *bytes, unsigned bits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * bits;
        unsigned word = bytes[bit / 8];
        if (bit % 8 + bits > 8)
            word |= (unsigned)bytes[bit / 8 + 1] << 8;
        unsigned code = word >> (bit % 8) & ((1u << bits) - 1);
        out[i] = (int8_t)((int)code - (code >> (bits - 1) ? 1 << bits : 0));
    }
}

void coffer__repack_pack_codes(uint8_t *out, const int8_t *codes, unsigned bits, size_t count)
{
    memset(out, 0, count * bits / 8);
    for (size_t i = 0; i < count; i++) {
        size_t bit = i * bits;
        unsigned code = ((unsigned)(uint8_t)codes[i] & ((1u << bits) - 1)) << (bit % 8);
        out[bit / 8] = (uint8_t)(out[bit / 8] | (code & 255));
        if (code > 255)
            out[bit / 8 + 1] = (uint8_t)(out[bit / 8 + 1] | code >> 8);
    }
}

/* value × factor as f16. False when it is not exact. */
static bool scale_f16(uint16_t *out, uint16_t value, float factor)
{
    float product = coffer__f16_to_f32(value) * factor;
    *out = coffer__f16_from_f32(product);
    return isfinite(product) && isfinite(coffer__f16_to_f32(*out)) && coffer__f16_to_f32(*out) == product;
}

bool coffer__repack_scale_is_small(uint16_t scale)
{
    enum { MAGNITUDE = 0x7FFF, LEAST_NORMAL = 0x0400 };
    return (scale & MAGNITUDE) != 0 && (scale & MAGNITUDE) < LEAST_NORMAL;
}

/* ---- From GGUF ---- */

static void unpack_nibbles(int8_t *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (int8_t)(bytes[i] & 15);
        out[i + count] = (int8_t)(bytes[i] >> 4);
    }
}

static bool from_small(coffer__repack_block *out, const uint8_t *bytes, uint32_t type)
{
    out->scale = coffer__load_u16(bytes);
    if (type == COFFER__GGUF_Q8_0) {
        memcpy(out->codes, bytes + 2, BLOCK);
    } else if (type == COFFER__GGUF_Q5_0) {
        uint32_t fifths = coffer__load_u32(bytes + 2);
        unpack_nibbles(out->codes, bytes + 6, BLOCK / 2);
        for (unsigned i = 0; i < BLOCK; i++)
            out->codes[i] = (int8_t)((out->codes[i] | (int)(fifths >> i & 1) << 4) - 16);
    } else {
        unpack_nibbles(out->codes, bytes + 2, BLOCK / 2);
        for (size_t i = 0; i < BLOCK; i++)
            out->codes[i] = type == COFFER__GGUF_Q4_0 ? (int8_t)(out->codes[i] - 8)
                                                      : coffer__gguf_iq4_levels[out->codes[i]];
    }
    return isfinite(coffer__f16_to_f32(out->scale));
}

static bool from_q6_k(coffer__repack_block *out, const uint8_t *bytes)
{
    for (size_t i = 0; i < SUPER; i++) {
        size_t half = i / 128, rest = i % 128;
        unsigned low = (unsigned)bytes[64 * half + rest % 64] >> (rest < 64 ? 0 : 4) & 15;
        unsigned high = (unsigned)bytes[128 + 32 * half + rest % 32] >> (2 * (rest / 32)) & 3;
        out->codes[i] = (int8_t)((int)(low | high << 4) - 32);
    }
    for (size_t i = 0; i < GROUPS; i++) {
        const uint8_t *pair = bytes + 192 + 2 * i;
        if (pair[0] != pair[1] || pair[0] > 63)
            return false;
        out->subs[i] = pair[0];
    }
    return scale_f16(&out->scale, coffer__load_u16(bytes + 208), 32.0f);
}

static bool from_q4_k(coffer__repack_block *out, const uint8_t *bytes)
{
    const uint8_t *packed = bytes + 4;
    uint16_t dmin;
    for (size_t i = 0; i < GROUPS; i++) {
        unsigned scale =
            i < 4 ? packed[i] & 63u : (packed[i + 4] & 15u) | (unsigned)(packed[i - 4] >> 6) << 4;
        unsigned minimum =
            i < 4 ? packed[i + 4] & 63u : (unsigned)packed[i + 4] >> 4 | (unsigned)(packed[i] >> 6) << 4;
        if (scale != minimum)
            return false;
        out->subs[i] = (uint8_t)scale;
    }
    for (size_t pair = 0; pair < GROUPS / 2; pair++)
        unpack_nibbles(out->codes + 64 * pair, bytes + 16 + 32 * pair, 32);
    for (size_t i = 0; i < SUPER; i++)
        out->codes[i] = (int8_t)(out->codes[i] - 8);
    return scale_f16(&dmin, coffer__load_u16(bytes), 8.0f) && dmin == coffer__load_u16(bytes + 2) &&
           scale_f16(&out->scale, coffer__load_u16(bytes), 32.0f);
}

bool coffer__repack_knows(uint32_t type)
{
    return type == COFFER__GGUF_Q8_0 || type == COFFER__GGUF_Q5_0 || type == COFFER__GGUF_Q4_0 ||
           type == COFFER__GGUF_IQ4_NL || type == COFFER__GGUF_Q6_K || type == COFFER__GGUF_Q4_K;
}

bool coffer__repack_from_gguf(coffer__repack_block *out, const uint8_t *bytes, uint32_t type)
{
    if (type == COFFER__GGUF_Q6_K)
        return from_q6_k(out, bytes);
    return type == COFFER__GGUF_Q4_K ? from_q4_k(out, bytes) : from_small(out, bytes, type);
}

/* ---- To GGUF ---- */

bool coffer__repack_super_fits(const coffer__repack_block *block, bool *exact)
{
    uint16_t d;
    for (size_t i = 0; i < GROUPS; i++) {
        if (block->subs[i] > 63)
            return false;
    }
    if (!scale_f16(&d, block->scale, 1.0f / 32))
        *exact = false;
    return isfinite(coffer__f16_to_f32(block->scale));
}

static void put_nibbles(uint8_t *out, const int8_t *codes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)((codes[i] + 8) | (codes[i + count] + 8) << 4);
}

static void to_q6_k(uint8_t *out, const coffer__repack_block *block)
{
    uint16_t d;
    memset(out, 0, 192);
    for (size_t i = 0; i < SUPER; i++) {
        size_t half = i / 128, rest = i % 128;
        unsigned code = (unsigned)(block->codes[i] + 32);
        uint8_t *low = &out[64 * half + rest % 64], *high = &out[128 + 32 * half + rest % 32];
        *low = (uint8_t)(*low | (code & 15) << (rest < 64 ? 0 : 4));
        *high = (uint8_t)(*high | (code >> 4) << (2 * (rest / 32)));
    }
    for (size_t i = 0; i < GROUPS; i++)
        out[192 + 2 * i] = out[193 + 2 * i] = block->subs[i];
    scale_f16(&d, block->scale, 1.0f / 32);
    coffer__store_u16(out + 208, d);
}

static void to_q4_k(uint8_t *out, const coffer__repack_block *block)
{
    uint8_t *packed = out + 4;
    uint16_t d, dmin;
    scale_f16(&d, block->scale, 1.0f / 32);
    scale_f16(&dmin, d, 8.0f); /* also of a rounded d: the minimums must be those of code 8 */
    coffer__store_u16(out, d);
    coffer__store_u16(out + 2, dmin);
    for (size_t i = 0; i < GROUPS / 2; i++) {
        unsigned low = block->subs[i], high = block->subs[i + 4];
        packed[i] = packed[i + 4] = (uint8_t)(low | high >> 4 << 6);
        packed[i + 8] = (uint8_t)((high & 15) | (high & 15) << 4);
        put_nibbles(out + 16 + 32 * i, block->codes + 64 * i, 32);
    }
}

void coffer__repack_to_gguf(uint8_t *out, const coffer__repack_block *block, uint32_t type)
{
    if (type == COFFER__GGUF_Q6_K) {
        to_q6_k(out, block);
    } else if (type == COFFER__GGUF_Q4_K) {
        to_q4_k(out, block);
    } else {
        coffer__store_u16(out, block->scale);
        if (type == COFFER__GGUF_Q4_0)
            put_nibbles(out + 2, block->codes, BLOCK / 2);
        else
            memcpy(out + 2, block->codes, BLOCK);
    }
}
