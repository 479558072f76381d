/* Rows times vectors. */
#include "quant/quant_product.h"

#include "base/cpu.h"

#define PIECE_ELEMENTS 1024

static const coffer__quant_dots *dots_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return &coffer__quant_dots_avx512;
    case COFFER__CPU_AVX2:
        return &coffer__quant_dots_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    if (coffer__cpu() == COFFER__CPU_NEON)
        return &coffer__quant_dots_neon;
#endif
    return &coffer__quant_dots_generic;
}

/* int8 and int4: one scale for all, so the codes are decoded a piece at a time. */
static float dot_whole(const coffer__quant_dots *dots, const coffer__quant_layout *layout,
                       coffer__quant_run run, const float *x)
{
    coffer__quant_decode_f32 decode = coffer__quant_kernels_in_use()->decode_f32[layout->type->index];
    size_t left = run.elements;
    float sum = 0.0f, numbers[PIECE_ELEMENTS], sums[COFFER__QUANT_TOGETHER];
    while (left > 0) {
        run.elements = left < PIECE_ELEMENTS ? left : PIECE_ELEMENTS;
        decode(numbers, &run);
        dots->four(sums, numbers, (const float *const[]){ x, x, x, x }, run.elements);
        sum += sums[0];
        x += run.elements;
        left -= run.elements;
        run.parts[COFFER__QUANT_CODES] += PIECE_ELEMENTS * layout->type->bits / 8u;
    }
    return sum;
}

void coffer__quant_matvec(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const float *x, uint64_t first, uint64_t count)
{
    const coffer__quant_dots *dots = dots_in_use();
    for (uint64_t i = 0; i < count; i++) {
        if (!layout->cols) {
            y[i] = 0.0f;
            continue;
        }
        coffer__quant_run run = coffer__quant_run_of_row(layout, payload, first + i);
        y[i] = layout->type->family == COFFER__QUANT_WHOLE ? dot_whole(dots, layout, run, x)
                                                           : dots->dot[layout->type->index](&run, x);
    }
}

/* One row with all vectors; those that are missing to a multiple of four are the last one again. */
static void multiply_row(float *y, const coffer__quant_dots *dots, const float *row, const float *x,
                         uint32_t columns, size_t cols)
{
    for (uint32_t at = 0; at < columns; at += COFFER__QUANT_TOGETHER) {
        const float *vectors[COFFER__QUANT_TOGETHER];
        float sums[COFFER__QUANT_TOGETHER];
        for (uint32_t i = 0; i < COFFER__QUANT_TOGETHER; i++)
            vectors[i] = x + (size_t)(at + i < columns ? at + i : columns - 1) * cols;
        dots->four(sums, row, vectors, cols);
        for (uint32_t i = 0; i < COFFER__QUANT_TOGETHER && at + i < columns; i++)
            y[at + i] = sums[i];
    }
}

void coffer__quant_matmul(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const float *x, uint32_t columns, uint64_t first, uint64_t count, float *row)
{
    const coffer__quant_dots *dots = dots_in_use();
    for (uint64_t i = 0; i < count; i++) {
        coffer__quant_decode_rows(row, layout, payload, first + i, 1);
        multiply_row(y + i * columns, dots, row, x, columns, (size_t)layout->cols);
    }
}
