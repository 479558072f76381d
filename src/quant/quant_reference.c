/* The decoders as the format's description has them. Arithmetic is float32, each product rounded once: every
 * other set of kernels gives the same bits. */
#include "base/bytes.h"
#include "base/elements.h"
#include "quant/quant.h"

static inline void decode_block(float *out, const uint8_t *codes, float scale, unsigned bits, size_t elements)
{
    int8_t values[COFFER__QUANT_BLOCK];
    for (unsigned i = 0; i < COFFER__QUANT_BLOCK / 8; i++)
        coffer__quant_unpack_eight(values + 8 * i, codes + i * bits, bits);
    for (size_t i = 0; i < elements; i++)
        out[i] = scale * (float)values[i];
}

static inline float load_f16(const uint8_t *halves, size_t index)
{
    return coffer__f16_to_f32(coffer__load_u16(halves + 2 * index));
}

static inline float load_f32(const uint8_t *bytes)
{
    uint32_t bits = coffer__load_u32(bytes);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float coffer__quant_block_scale(const coffer__quant_run *run, size_t block, bool supers)
{
    const uint8_t *scales = run->parts[COFFER__QUANT_SCALES];
    if (!supers)
        return load_f16(scales, block);
    return load_f16(scales, block / (COFFER__QUANT_SUPER / COFFER__QUANT_BLOCK)) *
           ((float)run->parts[COFFER__QUANT_SUBS][block] * 0.03125f);
}

float coffer__quant_whole_scale(const coffer__quant_run *run)
{
    return load_f32(run->parts[COFFER__QUANT_SCALES]);
}

float coffer__quant_zero_point(const coffer__quant_run *run)
{
    return run->parts[COFFER__QUANT_SUBS] ? load_f32(run->parts[COFFER__QUANT_SUBS]) : 0.0f;
}

static inline void decode_blocks(float *out, const coffer__quant_run *run, unsigned bits, bool supers)
{
    for (size_t at = 0; at < run->elements; at += COFFER__QUANT_BLOCK) {
        size_t block = at / COFFER__QUANT_BLOCK, left = run->elements - at;
        decode_block(out + at, run->parts[COFFER__QUANT_CODES] + block * (bits * COFFER__QUANT_BLOCK / 8),
                     coffer__quant_block_scale(run, block, supers), bits,
                     left < COFFER__QUANT_BLOCK ? left : COFFER__QUANT_BLOCK);
    }
}

static void decode_q8(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 8, false);
}

static void decode_q4(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 4, false);
}

static void decode_k6(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 6, true);
}

static void decode_k4(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 4, true);
}

static void decode_k3(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 3, true);
}

static void decode_k2(float *out, const coffer__quant_run *run)
{
    decode_blocks(out, run, 2, true);
}

static void decode_int8(float *out, const coffer__quant_run *run)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    float scale = coffer__quant_whole_scale(run), zero = coffer__quant_zero_point(run);
    for (size_t i = 0; i < run->elements; i++)
        out[i] = scale * ((float)(int8_t)codes[i] - zero);
}

static void decode_int4(float *out, const coffer__quant_run *run)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    float scale = coffer__quant_whole_scale(run), zero = coffer__quant_zero_point(run);
    for (size_t i = 0; i < run->elements; i++) {
        size_t at = run->skip + i;
        uint8_t at_top = (uint8_t)(codes[at / 2] << (at % 2 ? 0 : 4));
        out[i] = scale * ((float)((int8_t)at_top >> 4) - zero);
    }
}

static void finish_stream(void)
{
}

const coffer__quant_kernels coffer__quant_reference = {
    { decode_q8, decode_q4, decode_k6, decode_k4, decode_k3, decode_k2, decode_int8, decode_int4 },
    finish_stream,
};
