/* Rows times vectors. */
#include "quant/quant_product.h"

#include "base/cpu.h"

#include <string.h>

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
    if (coffer__cpu() >= COFFER__CPU_NEON)
        return &coffer__quant_dots_neon;
#endif
    return &coffer__quant_dots_generic;
}

bool coffer__quant_folds(const coffer__quant_layout *layout)
{
    return dots_in_use()->fold[layout->type->index] != NULL;
}

void coffer__quant_fold(float *out, const coffer__quant_layout *layout, const float *numbers)
{
    dots_in_use()->fold[layout->type->index](out, numbers, (size_t)layout->cols);
}

void coffer__quant_matvec(float *y, const coffer__quant_layout *layout, const uint8_t *payload,
                          const coffer__quant_vector *x, uint64_t first, uint64_t count)
{
    const coffer__quant_dots *dots = dots_in_use();
    if (!layout->cols) {
        memset(y, 0, (size_t)count * sizeof *y);
        return;
    }
    coffer__quant_run run = coffer__quant_run_of_row(layout, payload, first);
    for (uint64_t i = 0; i < count; i++) {
        y[i] = dots->dot[layout->type->index](&run, x);
        coffer__quant_next_row(&run, layout);
    }
}

/* Rows with all vectors. Of both, those that are missing to a whole tile are the last one again. */
static void multiply_rows(const coffer__quant_products *out, const coffer__quant_dots *dots,
                          const float *room, size_t rows, const float *x, uint32_t columns, size_t cols)
{
    const float *row_starts[COFFER__QUANT_ROWS], *vectors[COFFER__QUANT_VECTORS];
    float tile[COFFER__QUANT_ROWS][COFFER__QUANT_VECTORS];
    for (size_t i = 0; i < COFFER__QUANT_ROWS; i++)
        row_starts[i] = room + (i < rows ? i : rows - 1) * cols;
    for (uint32_t at = 0; at < columns; at += COFFER__QUANT_VECTORS) {
        for (uint32_t i = 0; i < COFFER__QUANT_VECTORS; i++)
            vectors[i] = x + (size_t)(at + i < columns ? at + i : columns - 1) * cols;
        dots->tile(tile, row_starts, vectors, cols);
        for (size_t row = 0; row < rows; row++) {
            for (uint32_t i = 0; i < COFFER__QUANT_VECTORS && at + i < columns; i++)
                out->y[row * out->row_stride + (at + i) * out->vector_stride] = tile[row][i];
        }
    }
}

void coffer__quant_matmul(const coffer__quant_products *out, const coffer__quant_layout *layout,
                          const uint8_t *payload, const float *x, uint32_t columns, uint64_t first,
                          uint64_t count, float *room)
{
    const coffer__quant_dots *dots = dots_in_use();
    coffer__quant_products here = *out;
    for (uint64_t i = 0; i < count; i += COFFER__QUANT_ROWS) {
        uint64_t rows = count - i < COFFER__QUANT_ROWS ? count - i : COFFER__QUANT_ROWS;
        coffer__quant_decode_rows(room, layout, payload, first + i, rows);
        multiply_rows(&here, dots, room, (size_t)rows, x, columns, (size_t)layout->cols);
        here.y += COFFER__QUANT_ROWS * here.row_stride;
    }
}
