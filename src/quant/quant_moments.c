/* Second moments of a layer's inputs: the order of the columns, and the factor L·D·Lᵀ. */
#include "base/checked.h"
#include "base/cpu.h"
#include "base/fail.h"
#include "base/memory.h"
#include "quant/quant_calibrate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const coffer__quant_calibrate_kernels *coffer__quant_calibrate_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return &coffer__quant_calibrate_avx512;
    case COFFER__CPU_AVX2:
        return &coffer__quant_calibrate_avx2;
    default:
        break;
    }
#endif
    return &coffer__quant_calibrate_generic;
}

/* ---- Order ---- */

typedef struct ranked {
    double importance;
    uint32_t index;
} ranked;

static int by_importance(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->importance != b->importance)
        return a->importance < b->importance ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Ranks pieces of up to `piece` columns by the mean of their diagonal. Gives their number. */
static size_t rank_pieces(ranked *out, const double *diagonal, size_t columns, size_t piece)
{
    size_t count = 0;
    for (size_t first = 0; first < columns; first += piece, count++) {
        size_t here = columns - first < piece ? columns - first : piece;
        double sum = 0.0;
        for (size_t i = 0; i < here; i++)
            sum += diagonal[first + i];
        out[count] = (ranked){ sum / (double)here, (uint32_t)first };
    }
    qsort(out, count, sizeof *out, by_importance);
    return count;
}

/* Supers by their importance, in each of them its blocks, in each block its columns: what shares a scale
 * stays together. */
static size_t put_order(uint32_t *order, ranked *ranks, const double *diagonal, uint32_t first,
                        size_t columns, size_t piece)
{
    if (piece == 0) {
        *order = first;
        return 1;
    }
    size_t next = piece == COFFER__QUANT_SUPER ? COFFER__QUANT_BLOCK : piece == COFFER__QUANT_BLOCK ? 1 : 0;
    size_t count = rank_pieces(ranks, diagonal + first, columns, piece), done = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = ranks[i].index, here = columns - at < piece ? columns - at : piece;
        done += put_order(order + done, ranks + count, diagonal, first + (uint32_t)at, here, next);
    }
    return done;
}

coffer_status coffer__quant_moments_new(coffer__quant_moments *out, const double *diagonal, size_t columns,
                                        coffer_error *err)
{
    coffer__quant_moments moments = { .columns = columns };
    uint64_t elements;
    size_t len;
    if (columns > UINT32_MAX || !coffer__mul_u64(&elements, columns, columns) ||
        !coffer__to_size(&len, elements))
        return coffer__fail_no_memory(err, columns);
    moments.order = coffer__alloc_array(columns, sizeof *moments.order);
    moments.pivots = coffer__alloc_array(columns, sizeof *moments.pivots);
    moments.matrix = coffer__alloc_array(len, sizeof *moments.matrix);
    /* Pieces of three levels at a time. */
    ranked *ranks = coffer__alloc_array(columns + COFFER__QUANT_SUPER, sizeof *ranks);
    if (!moments.order || !moments.pivots || !moments.matrix || !ranks) {
        coffer__free(ranks);
        coffer__quant_moments_free(&moments);
        return coffer__fail_no_memory(err, elements * sizeof *moments.matrix);
    }
    put_order(moments.order, ranks, diagonal, 0, columns, COFFER__QUANT_SUPER);
    coffer__free(ranks);
    *out = moments;
    return COFFER_OK;
}

void coffer__quant_moments_free(coffer__quant_moments *moments)
{
    coffer__free(moments->order);
    coffer__free(moments->pivots);
    coffer__free(moments->matrix);
    *moments = (coffer__quant_moments){ 0 };
}

/* ---- Cholesky's factor, a panel of columns at a time ---- */

#define PANEL 64  /* columns */
#define STRIP 32  /* rows of one piece of work */
#define CHUNK 512 /* products at a time, so that both sides stay in the cache */

typedef struct factoring {
    double *matrix;
    size_t columns, first, width; /* of the panel */
    const coffer__quant_calibrate_kernels *kernels;
} factoring;

static double product(const double *a, const double *b, size_t count)
{
    double sum = 0.0;
    for (size_t k = 0; k < count; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Takes the products with the panels before from rows [row, row + count) of the panel. */
static void subtract_before(const factoring *work, size_t row, size_t count)
{
    size_t n = work->columns;
    for (size_t k = 0; k < work->first; k += CHUNK) {
        size_t here = work->first - k < CHUNK ? work->first - k : CHUNK;
        size_t i = 0;
        for (; i + 4 <= count; i += 4) {
            double *at = work->matrix + (row + i) * n;
            size_t j = 0;
            for (; j + 2 <= work->width; j += 2)
                work->kernels->subtract_products(at + work->first + j, at + k,
                                                 work->matrix + (work->first + j) * n + k, n, here);
            for (; j < work->width; j++)
                for (size_t r = 0; r < 4; r++)
                    at[r * n + work->first + j] -=
                        product(at + r * n + k, work->matrix + (work->first + j) * n + k, here);
        }
        for (; i < count; i++)
            for (size_t j = 0; j < work->width; j++)
                work->matrix[(row + i) * n + work->first + j] -=
                    product(work->matrix + (row + i) * n + k, work->matrix + (work->first + j) * n + k, here);
    }
}

/* The rows of the panel itself. Above the diagonal the moments stay. Gives the position of a pivot that is
 * not positive; SIZE_MAX when all are. */
static size_t factor_corner(const factoring *work)
{
    size_t n = work->columns, first = work->first;
    double above[PANEL][PANEL];
    for (size_t i = 0; i < work->width; i++)
        memcpy(above[i] + i, work->matrix + (first + i) * n + first + i, (work->width - i) * sizeof(double));
    subtract_before(work, first, work->width);
    for (size_t i = 0; i < work->width; i++)
        memcpy(work->matrix + (first + i) * n + first + i + 1, above[i] + i + 1,
               (work->width - i - 1) * sizeof(double));
    for (size_t i = first; i < first + work->width; i++) {
        double *row = work->matrix + i * n;
        for (size_t j = first; j < i; j++)
            row[j] = (row[j] - product(row + first, work->matrix + j * n + first, j - first)) /
                     work->matrix[j * n + j];
        double pivot = row[i] - product(row + first, row + first, i - first);
        if (!(pivot > 0.0) || isinf(pivot))
            return i;
        row[i] = sqrt(pivot);
    }
    return SIZE_MAX;
}

static coffer_status factor_strip(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const factoring *work = context;
    size_t n = work->columns, row = work->first + work->width + (size_t)index * STRIP;
    size_t count = n - row < STRIP ? n - row : STRIP;
    (void)worker;
    (void)err;
    subtract_before(work, row, count);
    for (size_t i = row; i < row + count; i++) {
        double *at = work->matrix + i * n;
        for (size_t j = work->first; j < work->first + work->width; j++)
            at[j] = (at[j] - product(at + work->first, work->matrix + j * n + work->first, j - work->first)) /
                    work->matrix[j * n + j];
    }
    return COFFER_OK;
}

/* L, divided by its diagonal, and the moments as float32 in the same memory: a number is never ahead of its
 * double. diagonal : of the moments, which the factor has replaced. roots : memory for the factor's. */
static void narrow(coffer__quant_moments *moments, const double *diagonal, double *roots)
{
    size_t n = moments->columns;
    unsigned char *bytes = (unsigned char *)moments->matrix;
    for (size_t i = 0; i < n; i++) {
        roots[i] = moments->matrix[i * n + i];
        moments->pivots[i] = (float)(roots[i] * roots[i]);
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            double wide;
            memcpy(&wide, bytes + (i * n + j) * sizeof wide, sizeof wide);
            float narrowed = (float)(j < i ? wide / roots[j] : j == i ? diagonal[i] : wide);
            memcpy(bytes + (i * n + j) * sizeof narrowed, &narrowed, sizeof narrowed);
        }
    }
    moments->factored = (float *)(void *)bytes;
}

/* Makes the mean of the diagonal 1, and adds the damping. */
static void prepare(coffer__quant_moments *moments, double *diagonal, double damping)
{
    size_t n = moments->columns;
    double mean = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += moments->matrix[i * n + i] / (double)n;
    for (size_t i = 0; i < n * n; i++)
        moments->matrix[i] /= mean;
    for (size_t i = 0; i < n; i++) {
        moments->matrix[i * n + i] += damping;
        diagonal[i] = moments->matrix[i * n + i];
    }
    moments->damping = damping;
}

coffer_status coffer__quant_moments_factor(coffer__quant_moments *moments, double damping, coffer__work *work,
                                           coffer_error *err)
{
    size_t n = moments->columns;
    factoring panel = { moments->matrix, n, 0, 0, coffer__quant_calibrate_in_use() };
    coffer_status status = COFFER_OK;
    double *diagonals = coffer__alloc_array(2 * n, sizeof *diagonals);
    if (!diagonals)
        return coffer__fail_no_memory(err, 2 * n * sizeof *diagonals);
    prepare(moments, diagonals, damping);
    for (; !status && panel.first < n; panel.first += panel.width) {
        panel.width = n - panel.first < PANEL ? n - panel.first : PANEL;
        size_t bad = factor_corner(&panel), below = n - panel.first - panel.width;
        status = bad == SIZE_MAX
                     ? coffer__work_run(work, coffer__divide_up(below, STRIP), factor_strip, &panel, err)
                     : coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE,
                                    "not positive definite at column %" PRIu32, moments->order[bad]);
    }
    if (!status)
        narrow(moments, diagonals, diagonals + n);
    coffer__free(diagonals);
    return status;
}
