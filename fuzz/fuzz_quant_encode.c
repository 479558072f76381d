/* Encoded values decode to finite numbers, the reserved code is never written, and the error of `fit` is at
 * most that of `absmax`. Exception: when rounding the scale to f16 happens to make a block with one weighted
 * number exact, the error of `fit` may be larger by that rounding.
 *
 * The first bytes of the input say what it is: type, whether columns have weights, rows, columns. The rest,
 * over and over, are the weights and the numbers. */
#include "base/bytes.h"
#include "must.h"
#include "quant/quant_encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 8
#define MOST_ELEMENTS 8192
#define SUMS_MISS 1.0001 /* sums are float32 */

/* The rest of the input, repeated from its start when it is used up. */
typedef struct reel {
    const uint8_t *bytes;
    size_t size, at;
} reel;

static uint32_t next_bits(reel *from)
{
    uint8_t bytes[4];
    for (size_t i = 0; i < sizeof bytes; i++, from->at++)
        bytes[i] = from->bytes[from->at % from->size];
    return coffer__load_u32(bytes);
}

static float next_number(reel *from)
{
    uint32_t bits = next_bits(from);
    float number;
    memcpy(&number, &bits, sizeof number);
    return isfinite(number) ? number : 0.0f;
}

/* Not so small or large that a squared error times it leaves the range of float32. */
static float next_weight(reel *from)
{
    float weight = fabsf(next_number(from));
    return weight < 0x1p-20f || weight > 0x1p20f ? 0.0f : weight;
}

static void must_be_writable_codes(const coffer__quant_layout *layout, const uint8_t *payload)
{
    const unsigned bits = layout->type->bits;
    const uint8_t *codes = payload + layout->regions[COFFER__QUANT_CODES].offset;
    const uint64_t count = layout->regions[COFFER__QUANT_CODES].size * 8 / bits;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t byte = i * bits / 8;
        uint32_t two = codes[byte];
        if ((i * bits) % 8 + bits > 8)
            two |= (uint32_t)codes[byte + 1] << 8;
        MUST((two >> (i * bits % 8) & ((1u << bits) - 1)) != 1u << (bits - 1));
    }
    for (uint64_t i = 0; i < layout->regions[COFFER__QUANT_SUBS].size; i++)
        MUST(payload[layout->regions[COFFER__QUANT_SUBS].offset + i] < 64);
}

/* Σw(x − decoded)² */
static double noise_of(const coffer__quant_rows *rows, const float *decoded)
{
    double sum = 0.0;
    for (size_t i = 0; i < rows->rows * rows->cols; i++) {
        double miss = (double)rows->values[i] - (double)decoded[i];
        sum += miss * miss * (rows->weights ? (double)rows->weights[i % rows->cols] : 1.0);
    }
    return sum;
}

static double encoding_noise(const coffer__quant_layout *layout, const coffer__quant_rows *rows,
                             coffer__quant_method method)
{
    size_t count = (size_t)(rows->rows * rows->cols);
    uint8_t *payload = calloc(1, (size_t)layout->size + 1);
    float *decoded = malloc(count * sizeof *decoded + 1);
    coffer__quant_output out;
    MUST(payload && decoded);
    for (size_t i = 0; i < COFFER__QUANT_PART_COUNT; i++)
        out.parts[i] = payload + layout->regions[i].offset;
    coffer__quant_encode_rows(&out, rows, method);
    must_be_writable_codes(layout, payload);
    coffer__quant_decode_rows(decoded, layout, payload, 0, rows->rows);
    for (size_t i = 0; i < count; i++)
        MUST(isfinite(decoded[i]));
    double noise = noise_of(rows, decoded);
    free(payload);
    free(decoded);
    return noise;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const coffer_dtype types[] = { COFFER_DTYPE_Q8, COFFER_DTYPE_Q4, COFFER_DTYPE_K6,
                                          COFFER_DTYPE_K4, COFFER_DTYPE_K3, COFFER_DTYPE_K2 };
    coffer__quant_layout layout;
    if (size <= HEAD)
        return 0;
    uint64_t dims[2] = { data[2] % 16, coffer__load_u16(data + 4) % 1024 };
    size_t count = (size_t)(dims[0] * dims[1]);
    if (count > MOST_ELEMENTS)
        return 0;
    MUST(coffer__quant_plan(&layout, types[data[0] % 6], 2, dims, false, NULL) == COFFER_OK);
    reel from = { data + HEAD, size - HEAD, 0 };
    float *values = malloc(count * sizeof *values + 1), *weights = malloc(dims[1] * sizeof *weights + 1);
    MUST(values && weights);
    for (size_t i = 0; i < dims[1]; i++)
        weights[i] = next_weight(&from);
    for (size_t i = 0; i < count; i++)
        values[i] = next_number(&from);
    coffer__quant_rows rows = { layout.type, values, data[1] & 1 ? weights : NULL, dims[0], dims[1] };
    double fit = encoding_noise(&layout, &rows, COFFER__QUANT_FIT);
    double absmax = encoding_noise(&layout, &rows, COFFER__QUANT_ABSMAX);
    MUST(fit <= absmax * SUMS_MISS);
    free(values);
    free(weights);
    return 0;
}
