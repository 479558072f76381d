/* The module coffer-cuda without a GPU: the templates of its kernels, run by the processor. Memory of the GPU
 * is plain memory here. */
#include "emulation.h"

#include "gpu/gpu_codes.h"

#include <cstdlib>
#include <vector>

extern "C" {
#include "base/fail.h"
}

using namespace coffer_gpu;

int emulation_fails_after = -1;

namespace
{

bool fails()
{
    return emulation_fails_after >= 0 && emulation_fails_after-- == 0;
}

coffer_status device_count(uint32_t *out, coffer_error *)
{
    *out = 1;
    return COFFER_OK;
}

/* ---- Decoding ---- */

template <int AS> void store_element(void *out, uint64_t index, float value)
{
    if (AS == TO_F32)
        static_cast<float *>(out)[index] = value;
    else
        static_cast<uint16_t *>(out)[index] = AS == TO_F16 ? f32_to_f16(value) : f32_to_bf16(value);
}

template <int TYPE, int AS>
void decode_rows(void *out, const coffer__gpu_payload &payload, uint64_t first, uint64_t count)
{
    constexpr uint64_t ELEMENTS = stored_elements(AS);
    uint64_t pieces = count_pieces<TYPE, AS>(out, payload, first, count),
             before = first * payload.cols / ELEMENTS;
    whole_factors whole = {};
    if (is_whole(TYPE))
        whole = load_whole(payload);
    for (uint64_t i = 0; i < pieces; i++) {
        decode_piece<TYPE, AS> piece = {};
        uint32_t words[4];
        if (has_supers(TYPE) && has_open_supers(payload))
            load_piece<TYPE, AS, true>(piece, payload, before + i);
        else
            load_piece<TYPE, AS, false>(piece, payload, before + i);
        decode<TYPE, AS>(words, piece, whole);
        memcpy(static_cast<uint8_t *>(out) + 16 * i, words, sizeof words);
    }
    for (uint64_t i = pieces * ELEMENTS; i < count * payload.cols; i++)
        store_element<AS>(out, i, decode_element<TYPE>(payload, first + i / payload.cols, i % payload.cols));
}

template <int TYPE>
void decode_as(void *out, coffer_dtype as, const coffer__gpu_payload &payload, uint64_t first, uint64_t count)
{
    if (as == COFFER_DTYPE_F32)
        decode_rows<TYPE, TO_F32>(out, payload, first, count);
    else if (as == COFFER_DTYPE_F16)
        decode_rows<TYPE, TO_F16>(out, payload, first, count);
    else
        decode_rows<TYPE, TO_BF16>(out, payload, first, count);
}

coffer_status decode_any(void *out, coffer_dtype as, const coffer__gpu_payload *payload, uint64_t first,
                         uint64_t count, void *, coffer_error *)
{
    switch (payload->type) {
#define DECODE_CASE(type)                                 \
    case type:                                            \
        decode_as<type>(out, as, *payload, first, count); \
        break;
        GPU_FOR_EACH_TYPE(DECODE_CASE)
#undef DECODE_CASE
    default:
        break;
    }
    return COFFER_OK;
}

/* ---- Products ---- */

/* The pairs of a block of x, as the kernels have them in shared memory: two pieces of 16 pairs. */
struct split_block {
    uint32_t pairs[2][16];
};

/* Splits the numbers of a super, and returns the factor of its sums. */
float split_super(split_block out[BLOCKS_OF_SUPER], const float *x, uint64_t cols, uint64_t col)
{
    float numbers[COFFER__QUANT_SUPER], largest = 0.0f;
    for (uint64_t i = 0; i < COFFER__QUANT_SUPER; i++) {
        numbers[i] = col + i < cols ? x[col + i] : 0.0f;
        float magnitude = numbers[i] < 0 ? -numbers[i] : numbers[i];
        largest = is_finite(numbers[i]) && magnitude > largest ? magnitude : largest;
    }
    float factor = factor_for(largest);
    for (int pair = 0; pair < BLOCKS_OF_SUPER * 16; pair++) {
        uint16_t low[2], high[2];
        int first = pair / 4 * 8 + pair % 4;
        split(low, numbers[first], factor);
        split(high, numbers[first + 4], factor);
        for (int piece = 0; piece < 2; piece++)
            out[pair / 16].pairs[piece][pair % 16] = low[piece] | (uint32_t)high[piece] << 16;
    }
    return inverse_factor(factor);
}

float dot_pair(uint32_t a, uint32_t b)
{
    return f16_to_f32((uint16_t)a) * f16_to_f32((uint16_t)b) +
           f16_to_f32((uint16_t)(a >> 16)) * f16_to_f32((uint16_t)(b >> 16));
}

/* Codes from registers and codes from memory must be the same. */
template <int BITS> void take_chunk(uint32_t pairs[4], const uint8_t *block, int chunk)
{
    uint32_t words[BITS], quads[2], again[4];
    memcpy(words, block, sizeof words);
    chunk_of_words<BITS>(quads, words, chunk);
    chunk_to_halves<BITS>(pairs, quads);
    load_chunk<BITS>(quads, block, (uint64_t)chunk);
    chunk_to_halves<BITS>(again, quads);
    if (memcmp(pairs, again, sizeof again) != 0)
        abort();
}

template <int TYPE>
float multiply_block(const coffer__gpu_payload &payload, uint64_t row, uint64_t block, const split_block &x)
{
    constexpr int BITS = code_bits(TYPE);
    uint64_t at = row * ((payload.cols + BLOCK - 1) / BLOCK) + block;
    const uint8_t *codes = payload.parts[COFFER__QUANT_CODES] + at * (4 * BITS),
                  *scales = payload.parts[COFFER__QUANT_SCALES];
    float sums[2] = { 0.0f, 0.0f };
    for (int chunk = 0; chunk < 4; chunk++) {
        uint32_t pairs[4];
        take_chunk<BITS>(pairs, codes, chunk);
        for (int i = 0; i < 8; i++)
            sums[i % 2] += dot_pair(pairs[i / 2], x.pairs[i % 2][4 * chunk + i / 2]);
    }
    float sum = sums[0] + sums[1] * SECOND_HALF;
    if (is_whole(TYPE))
        return sum;
    if (!has_supers(TYPE))
        return sum * f16_to_f32(load<uint16_t>(scales + 2 * at));
    uint64_t super = row * payload.supers_per_row + block / BLOCKS_OF_SUPER;
    return sum * super_scale(load<uint16_t>(scales + 2 * super), payload.parts[COFFER__QUANT_SUBS][at]);
}

template <int TYPE> float multiply_row(const coffer__gpu_payload &payload, uint64_t row, const float *x)
{
    float sum = 0.0f;
    if (!has_tiles<TYPE>(payload)) {
        for (uint64_t col = 0; col < payload.cols; col++)
            sum += decode_element<TYPE>(payload, row, col) * x[col];
        return sum;
    }
    for (uint64_t col = 0; col < payload.cols; col += COFFER__QUANT_SUPER) {
        split_block blocks[BLOCKS_OF_SUPER];
        float factor = split_super(blocks, x, payload.cols, col), super = 0.0f;
        for (uint64_t i = 0; i < BLOCKS_OF_SUPER && col + i * BLOCK < payload.cols; i++)
            super += multiply_block<TYPE>(payload, row, col / BLOCK + i, blocks[i]);
        sum += factor * super;
    }
    return is_whole(TYPE) ? sum * load_whole(payload).scale : sum;
}

coffer_status product_any(const coffer__gpu_products *out, const coffer__gpu_payload *payload, const float *x,
                          uint32_t columns, void *, coffer_error *)
{
    for (uint64_t row = 0; row < payload->rows; row++) {
        for (uint32_t vector = 0; vector < columns; vector++) {
            const float *from = x + vector * payload->cols;
            float *y = out->y + row * out->row_stride + vector * out->vector_stride;
            switch (payload->type) {
#define PRODUCT_CASE(type)                            \
    case type:                                        \
        *y = multiply_row<type>(*payload, row, from); \
        break;
                GPU_FOR_EACH_TYPE(PRODUCT_CASE)
#undef PRODUCT_CASE
            default:
                break;
            }
        }
    }
    return COFFER_OK;
}

/* ---- Memory ---- */

coffer_status host_alloc(void **out, size_t size, coffer_error *err)
{
    void *memory = fails() ? nullptr : malloc(size);
    if (!memory)
        return coffer__fail_no_memory(err, size);
    *out = memory;
    return COFFER_OK;
}

void host_free(void *memory, size_t)
{
    free(memory);
}

coffer_status upload(void *out, const void *from, size_t size, void *, coffer_error *err)
{
    if (fails())
        return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE,
                            "CUDA: copying to the GPU: emulated failure");
    memcpy(out, from, size);
    return COFFER_OK;
}

const char *library_version()
{
    return "emulated";
}

const coffer__gpu_module module = {
    COFFER__MODULE_INIT(coffer__gpu_module, library_version),
    device_count,
    decode_any,
    product_any,
    host_alloc,
    host_free,
    upload,
};

} // namespace

extern "C" {
extern const coffer__module *const coffer_module_cuda;
const coffer__module *const coffer_module_cuda = &module.common;
}
