/* Rows times vectors that are rounded to 8 bits. */
#include "quant/quant_rounded.h"

#include "base/checked.h"
#include "base/cpu.h"

#include <string.h>

const coffer__quant_rounded *coffer__quant_rounded_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return &coffer__quant_rounded_avx512;
    case COFFER__CPU_AVX2:
        return &coffer__quant_rounded_avx2;
    default:
        break;
    }
#elif defined(__aarch64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_NEON_DOT:
        return &coffer__quant_rounded_neon_dot;
    case COFFER__CPU_NEON:
        return &coffer__quant_rounded_neon;
    default:
        break;
    }
#endif
    return &coffer__quant_rounded_generic;
}

/* ---- Panels ---- */

static uint64_t row_parts(const coffer__quant_layout *layout)
{
    return coffer__divide_up(layout->cols, COFFER__QUANT_PART);
}

/* Codes, scales and sums of a part of a vector. */
#define PART_BYTES (COFFER__QUANT_PART + COFFER__QUANT_PART_BLOCKS * (sizeof(float) + sizeof(int32_t)))
#define TOTALS_BYTES 64

bool coffer__quant_panel_size(uint64_t *out, const coffer__quant_layout *layout, size_t vectors)
{
    uint64_t size;
    return coffer__mul_u64(&size, row_parts(layout), PART_BYTES * vectors) &&
           coffer__add_u64(out, size, TOTALS_BYTES);
}

coffer__quant_panel coffer__quant_panel_at(void *memory, const coffer__quant_layout *layout, size_t vectors)
{
    size_t parts = (size_t)row_parts(layout) * vectors;
    coffer__quant_panel panel;
    panel.totals = memory;
    panel.codes = (int8_t *)memory + TOTALS_BYTES;
    void *scales = panel.codes + parts * COFFER__QUANT_PART;
    panel.scales = scales;
    void *sums = panel.scales + parts * COFFER__QUANT_PART_BLOCKS;
    panel.sums = sums;
    return panel;
}

void coffer__quant_round(const coffer__quant_panel *out, const coffer__quant_rounded *kernels,
                         const coffer__quant_layout *layout, size_t vector, size_t vectors, const float *x)
{
    size_t blocks = (size_t)row_parts(layout) * COFFER__QUANT_PART_BLOCKS, first = 0;
    if (x) {
        kernels->round(out, vector, vectors, x, (size_t)layout->cols);
        first = (size_t)coffer__divide_up(layout->cols, COFFER__QUANT_BLOCK);
    }
    for (size_t block = first; block < blocks; block++) {
        out->scales[block * vectors + vector] = 0.0f;
        out->sums[block * vectors + vector] = 0;
        for (size_t four = block * 8; four < block * 8 + 8; four++)
            memset(out->codes + 4 * (four * vectors + vector), 0, 4);
    }
    if (vectors == 1 && kernels->fold[layout->type->index])
        kernels->fold[layout->type->index](out->codes, (size_t)row_parts(layout));
    out->totals[vector] = 0.0f;
    for (size_t block = 0; block < blocks; block++)
        out->totals[vector] +=
            (float)out->sums[block * vectors + vector] * out->scales[block * vectors + vector];
}

/* ---- Products ---- */

/* The scale and the zero point of a whole tensor; 1 and 0 for types whose blocks have scales. */
typedef struct whole_scale {
    float scale, zero;
} whole_scale;

static whole_scale scale_of_whole(const coffer__quant_layout *layout, const uint8_t *payload)
{
    if (layout->type->family != COFFER__QUANT_WHOLE)
        return (whole_scale){ 1.0f, 0.0f };
    coffer__quant_run run = coffer__quant_run_of_row(layout, payload, 0);
    return (whole_scale){ coffer__quant_whole_scale(&run), coffer__quant_zero_point(&run) };
}

static float apply_whole(float sum, whole_scale whole, float total)
{
    return whole.scale * (sum - whole.zero * total);
}

void coffer__quant_matvec_rounded(const coffer__quant_products *out, const coffer__quant_tile *tile)
{
    const coffer__quant_layout *layout = tile->layout;
    coffer__quant_run run = { .elements = 0 };
    whole_scale whole = { 1.0f, 0.0f };
    if (layout->cols) {
        run = coffer__quant_run_of_row(layout, tile->payload, tile->first);
        whole = scale_of_whole(layout, tile->payload);
    }
    for (size_t i = 0; i < tile->count; i++) {
        for (size_t j = 0; j < tile->vectors; j++) {
            const coffer__quant_panel *x = &tile->panels[j];
            float sum = layout->cols ? tile->kernels->dot[layout->type->index](&run, x) : 0.0f;
            out->y[i * out->row_stride + j * out->vector_stride] = apply_whole(sum, whole, x->totals[0]);
        }
        if (layout->cols)
            coffer__quant_next_row(&run, layout);
    }
}

/* Unpacks rows [first, end) of a tile. */
static void unpack_rows(const coffer__quant_tile *tile, coffer__quant_room *room, size_t part, size_t first,
                        size_t end)
{
    coffer__quant_run run = coffer__quant_run_of_row(tile->layout, tile->payload, tile->first + first);
    for (size_t i = first; i < end; i++, coffer__quant_next_row(&run, tile->layout))
        tile->kernels->unpack[tile->layout->type->index](room->codes[i], room->factors[i], &run, part);
}

/* Bytes of rounded vectors that stay in the cache while rows pass by. */
#define CACHED_BYTES ((size_t)512 << 10)

/* Weights are read fastest along few rows; vectors that do not fit into the cache are read less often for
 * many rows. */
static size_t rows_together(const coffer__quant_tile *tile, size_t panels)
{
    const coffer__quant_rounded *kernels = tile->kernels;
    size_t bytes = (size_t)row_parts(tile->layout) * PART_BYTES * panels * kernels->panel;
    return bytes <= CACHED_BYTES ? kernels->rows : COFFER__QUANT_ROUNDED_ROWS;
}

static void multiply_part(const coffer__quant_tile *tile, coffer__quant_room *room, size_t part, size_t first,
                          size_t end, size_t panels)
{
    const coffer__quant_rounded *kernels = tile->kernels;
    for (size_t p = 0; p < panels; p++) {
        for (size_t row = first; row < end; row += kernels->rows)
            kernels->tile(room->sums[row] + p * kernels->panel, room->codes[row], room->factors[row],
                          &tile->panels[p], part);
    }
}

/* Sums begin at zero, and rows that are missing to a whole tile are zeros. */
static void clear_room(coffer__quant_room *room, size_t rows, size_t tile_rows, size_t vectors)
{
    size_t end = (rows + tile_rows - 1) / tile_rows * tile_rows;
    for (size_t row = 0; row < end; row++)
        memset(room->sums[row], 0, vectors * sizeof(float));
    memset(room->codes[rows], 0, (end - rows) * sizeof room->codes[0]);
    memset(room->factors[rows], 0, (end - rows) * sizeof room->factors[0]);
}

static void put_products(const coffer__quant_products *out, const coffer__quant_tile *tile,
                         const coffer__quant_room *room)
{
    size_t panel = tile->kernels->panel;
    whole_scale whole = { 1.0f, 0.0f };
    if (tile->layout->cols)
        whole = scale_of_whole(tile->layout, tile->payload);
    for (size_t i = 0; i < tile->count; i++) {
        for (size_t j = 0; j < tile->vectors; j++)
            out->y[i * out->row_stride + j * out->vector_stride] =
                apply_whole(room->sums[i][j], whole, tile->panels[j / panel].totals[j % panel]);
    }
}

void coffer__quant_matmul_rounded(const coffer__quant_products *out, const coffer__quant_tile *tile,
                                  coffer__quant_room *room)
{
    const coffer__quant_rounded *kernels = tile->kernels;
    size_t panels = (tile->vectors + kernels->panel - 1) / kernels->panel, count = (size_t)tile->count;
    size_t together = rows_together(tile, panels);
    clear_room(room, count, kernels->rows, panels * kernels->panel);
    for (size_t first = 0; first < count; first += together) {
        size_t end = count - first < together ? count : first + together;
        for (size_t part = 0; part < row_parts(tile->layout); part++) {
            unpack_rows(tile, room, part, first, end);
            multiply_part(tile, room, part, first, end, panels);
        }
    }
    put_products(out, tile, room);
}
