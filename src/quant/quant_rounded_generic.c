/* Rounded products for any processor. */
#include "quant/quant_rounded.h"

#include <string.h>

#define HERE static inline
#define PANEL 4
#define TILE_ROWS 4

typedef struct sums16 {
    int32_t of[COFFER__QUANT_PART_BLOCKS];
} sums16;

typedef struct floats16 {
    float of[COFFER__QUANT_PART_BLOCKS];
} floats16;

typedef struct ints {
    int32_t of[PANEL]; /* or four numbers of each vector */
} ints;

typedef struct floats {
    float of[PANEL];
} floats;

HERE void unpack_part(uint8_t *out, const uint8_t *codes, unsigned bits)
{
    for (size_t i = 0; i < COFFER__QUANT_PART / 8; i++) {
        int8_t eight[8];
        coffer__quant_unpack_eight(eight, codes + i * bits, bits);
        memcpy(out + 8 * i, eight, sizeof eight);
    }
}

HERE sums16 part_sums(const uint8_t *codes, const int8_t *x, const int32_t *x_sums, unsigned bits)
{
    uint8_t unpacked[COFFER__QUANT_PART];
    sums16 sums;
    (void)x_sums;
    unpack_part(unpacked, codes, bits);
    for (size_t block = 0; block < COFFER__QUANT_PART_BLOCKS; block++) {
        int32_t sum = 0;
        for (size_t i = block * COFFER__QUANT_BLOCK; i < (block + 1) * COFFER__QUANT_BLOCK; i++)
            sum += (int8_t)unpacked[i] * x[i];
        sums.of[block] = sum;
    }
    return sums;
}

HERE floats16 part_factors(const coffer__quant_run *run, size_t block, coffer__quant_family family)
{
    floats16 factors;
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++)
        factors.of[i] = family == COFFER__QUANT_WHOLE
                            ? 1.0f
                            : coffer__quant_block_scale(run, block + i, family == COFFER__QUANT_SUPERS);
    return factors;
}

HERE floats16 no_sum16(void)
{
    return (floats16){ { 0 } };
}

HERE floats16 load16(const float *from)
{
    floats16 out;
    memcpy(&out, from, sizeof out);
    return out;
}

HERE void store16(float *out, floats16 numbers)
{
    memcpy(out, &numbers, sizeof numbers);
}

HERE floats16 to_floats16(sums16 sums)
{
    floats16 out;
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++)
        out.of[i] = (float)sums.of[i];
    return out;
}

HERE floats16 add16(floats16 a, floats16 b)
{
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++)
        a.of[i] += b.of[i];
    return a;
}

HERE floats16 multiply16(floats16 a, floats16 b)
{
    for (size_t i = 0; i < COFFER__QUANT_PART_BLOCKS; i++)
        a.of[i] *= b.of[i];
    return a;
}

HERE float total16(floats16 sum)
{
    for (size_t half = COFFER__QUANT_PART_BLOCKS / 2; half; half /= 2) {
        for (size_t i = 0; i < half; i++)
            sum.of[i] += sum.of[i + half];
    }
    return sum.of[0];
}

HERE floats load_floats(const float *from)
{
    floats out;
    memcpy(&out, from, sizeof out);
    return out;
}

HERE void store_floats(float *out, floats numbers)
{
    memcpy(out, &numbers, sizeof numbers);
}

HERE floats everywhere(float number)
{
    return (floats){ { number, number, number, number } };
}

HERE floats add(floats a, floats b)
{
    for (size_t i = 0; i < PANEL; i++)
        a.of[i] += b.of[i];
    return a;
}

HERE floats multiply(floats a, floats b)
{
    for (size_t i = 0; i < PANEL; i++)
        a.of[i] *= b.of[i];
    return a;
}

HERE floats to_floats(ints sums)
{
    floats out;
    for (size_t i = 0; i < PANEL; i++)
        out.of[i] = (float)sums.of[i];
    return out;
}

HERE ints first_sums(const int32_t *x_sums)
{
    (void)x_sums;
    return (ints){ { 0 } };
}

HERE ints load_fours(const int8_t *from)
{
    ints out;
    memcpy(&out, from, sizeof out);
    return out;
}

HERE ints dot_four(ints sums, const uint8_t *codes, ints fours)
{
    int8_t numbers[PANEL][4];
    memcpy(numbers, &fours, sizeof numbers);
    for (size_t i = 0; i < PANEL; i++) {
        for (size_t j = 0; j < 4; j++)
            sums.of[i] += (int8_t)codes[j] * numbers[i][j];
    }
    return sums;
}

#include "quant/quant_rounded_loops.h"

const coffer__quant_rounded coffer__quant_rounded_generic = ALL_ROUNDED;
