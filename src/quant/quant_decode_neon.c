/* Decoders for NEON. */
#if defined(__aarch64__)
#include "quant/quant_unpack_neon.h"

HERE void put(float *out, lanes numbers, float32x4_t zero, float32x4_t scale)
{
    vst1q_f32(out, vmulq_f32(scale, vsubq_f32(numbers.val[0], zero)));
    vst1q_f32(out + 4, vmulq_f32(scale, vsubq_f32(numbers.val[1], zero)));
}

HERE void decode_block(float *out, const uint8_t *codes, float factor, unsigned bits, bool stream)
{
    float32x4_t scale = vdupq_n_f32(factor);
    (void)stream; /* no intrinsic stores past the cache */
    COFFER__UNROLL(4)
    for (unsigned group = 0; group < COFFER__QUANT_BLOCK / LANES; group++) {
        lanes numbers = eight_numbers(codes, group, bits);
        vst1q_f32(out + (size_t)LANES * group, vmulq_f32(scale, numbers.val[0]));
        vst1q_f32(out + (size_t)LANES * group + 4, vmulq_f32(scale, numbers.val[1]));
    }
}

HERE void decode_whole_codes(float *out, const coffer__quant_run *run, size_t count, unsigned bits)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    float32x4_t scale = vdupq_n_f32(coffer__quant_whole_scale(run));
    float32x4_t zero = vdupq_n_f32(coffer__quant_zero_point(run));
    for (size_t i = 0; i < count; i += LANES)
        put(out + i, eight_numbers(codes + i * bits / 8, 0, bits), zero, scale);
}

HERE void decode_int8_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    (void)stream;
    decode_whole_codes(out, run, count, 8);
}

/* Eight bytes are loaded for four: the last group is left to the reference. */
HERE void decode_int4_codes(float *out, const coffer__quant_run *run, size_t count, bool stream)
{
    (void)stream;
    if (!count)
        return;
    decode_whole_codes(out, run, count - LANES, 4);
    coffer__quant_run last = *run;
    last.parts[COFFER__QUANT_CODES] += (count - LANES) / 2;
    last.elements = LANES;
    coffer__quant_reference.decode_f32[COFFER__QUANT_INT4](out + count - LANES, &last);
}

static void finish_stream(void)
{
}

#include "quant/quant_decode_loops.h"

const coffer__quant_kernels coffer__quant_neon = { ALL_DECODERS, finish_stream };
#endif
