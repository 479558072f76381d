/* The decoders' loops, the same for every set of vector instructions. The including file has included its
 * factors and defined, for registers of LANES floats, decode_block for a whole block, decode_int8_codes for a
 * multiple of LANES codes, and decode_int4_codes for a multiple of 2 × LANES from a whole byte on. */

HERE bool can_stream(const float *out, const coffer__quant_run *run)
{
    return run->stream && ((uintptr_t)out & 63) == 0;
}

/* Loads may reach past a block, and its row may end inside it: the last one goes through copies. */
HERE void decode_last(float *out, const uint8_t *codes, float factor, unsigned bits, size_t elements)
{
    uint8_t padded[COFFER__QUANT_BLOCK + 16] = { 0 };
    float values[COFFER__QUANT_BLOCK];
    memcpy(padded, codes, bits * COFFER__QUANT_BLOCK / 8);
    decode_block(values, padded, factor, bits, false);
    memcpy(out, values, elements * sizeof *out);
}

HERE void decode_whole_blocks(float *out, const coffer__quant_run *run, size_t blocks, unsigned bits,
                              bool supers, bool stream)
{
    const uint8_t *codes = run->parts[COFFER__QUANT_CODES];
    const size_t size = bits * COFFER__QUANT_BLOCK / 8;
    float factors[8];
    size_t block = 0;
    for (; block + 8 <= blocks; block += 8) {
        eight_factors(factors, run, block, supers);
        for (size_t i = 0; i < 8; i++)
            decode_block(out + (block + i) * COFFER__QUANT_BLOCK, codes + (block + i) * size, factors[i],
                         bits, stream);
    }
    for (; block < blocks; block++)
        decode_block(out + block * COFFER__QUANT_BLOCK, codes + block * size,
                     coffer__quant_block_scale(run, block, supers), bits, stream);
}

HERE void decode_blocks(float *out, const coffer__quant_run *run, unsigned bits, bool supers)
{
    size_t last = (run->elements - 1) / COFFER__QUANT_BLOCK;
    if (can_stream(out, run))
        decode_whole_blocks(out, run, last, bits, supers, true);
    else
        decode_whole_blocks(out, run, last, bits, supers, false);
    decode_last(out + last * COFFER__QUANT_BLOCK,
                run->parts[COFFER__QUANT_CODES] + last * (bits * COFFER__QUANT_BLOCK / 8),
                coffer__quant_block_scale(run, last, supers), bits,
                run->elements - last * COFFER__QUANT_BLOCK);
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

/* Codes that fill whole registers, then the rest by the reference. */
static void decode_int8(float *out, const coffer__quant_run *run)
{
    size_t count = run->elements / LANES * LANES;
    coffer__quant_run rest = *run;
    if (can_stream(out, run))
        decode_int8_codes(out, run, count, true);
    else
        decode_int8_codes(out, run, count, false);
    rest.parts[COFFER__QUANT_CODES] += count;
    rest.elements -= count;
    coffer__quant_reference.decode_f32[COFFER__QUANT_INT8](out + count, &rest);
}

static void decode_int4(float *out, const coffer__quant_run *run)
{
    coffer__quant_run rest = *run;
    size_t lead = run->skip && run->elements ? 1 : 0;
    rest.elements = lead;
    coffer__quant_reference.decode_f32[COFFER__QUANT_INT4](out, &rest);
    rest.elements = run->elements - lead;
    rest.parts[COFFER__QUANT_CODES] += lead;
    rest.skip = 0;
    size_t count = rest.elements / (2 * LANES) * (2 * LANES);
    if (can_stream(out + lead, run))
        decode_int4_codes(out + lead, &rest, count, true);
    else
        decode_int4_codes(out + lead, &rest, count, false);
    rest.parts[COFFER__QUANT_CODES] += count / 2;
    rest.elements -= count;
    coffer__quant_reference.decode_f32[COFFER__QUANT_INT4](out + lead + count, &rest);
}

#define ALL_DECODERS                                                                               \
    {                                                                                              \
        decode_q8, decode_q4, decode_k6, decode_k4, decode_k3, decode_k2, decode_int8, decode_int4 \
    }
