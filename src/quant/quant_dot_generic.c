/* Products for any processor: blocks are decoded and multiplied. */
#include "quant/quant_product.h"

#include "base/cpu.h"

#define LANES 8

/* Eight sums side by side, which compilers turn into vectors. */
static float dot_numbers(const float *a, const float *b, size_t count)
{
    float sums[LANES] = { 0 };
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        COFFER__UNROLL(8)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < count; i++)
        sums[i % LANES] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/* A piece is a whole number of supers, and of bytes of codes: only the first piece of int4 can begin inside a
 * byte, and then all of them do. */
static float dot_decoded(const coffer__quant_run *run, const coffer__quant_vector *x, size_t type,
                         size_t bits)
{
    enum { PIECE = COFFER__QUANT_SUPER };
    bool blocks = type <= COFFER__QUANT_Q4, supers = !blocks && type <= COFFER__QUANT_K2;
    coffer__quant_run piece = *run;
    float sum = 0.0f, numbers[PIECE];
    for (size_t at = 0; at < run->elements; at += PIECE) {
        piece.elements = run->elements - at < PIECE ? run->elements - at : PIECE;
        coffer__quant_reference.decode_f32[type](numbers, &piece);
        sum += dot_numbers(numbers, x->numbers + at, piece.elements);
        if (blocks)
            piece.parts[COFFER__QUANT_SCALES] += 2 * (PIECE / COFFER__QUANT_BLOCK);
        if (supers) {
            piece.parts[COFFER__QUANT_SCALES] += 2;
            piece.parts[COFFER__QUANT_SUBS] += PIECE / COFFER__QUANT_BLOCK;
        }
        piece.parts[COFFER__QUANT_CODES] += PIECE * bits / 8;
    }
    return sum;
}

static float dot_q8(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_Q8, 8);
}

static float dot_q4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_Q4, 4);
}

static float dot_k6(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_K6, 6);
}

static float dot_k4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_K4, 4);
}

static float dot_k3(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_K3, 3);
}

static float dot_k2(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_K2, 2);
}

static float dot_int8(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_INT8, 8);
}

static float dot_int4(const coffer__quant_run *run, const coffer__quant_vector *x)
{
    return dot_decoded(run, x, COFFER__QUANT_INT4, 4);
}

static void tile(float out[COFFER__QUANT_ROWS][COFFER__QUANT_VECTORS],
                 const float *const rows[COFFER__QUANT_ROWS], const float *const x[COFFER__QUANT_VECTORS],
                 size_t count)
{
    for (size_t row = 0; row < COFFER__QUANT_ROWS; row++) {
        for (size_t i = 0; i < COFFER__QUANT_VECTORS; i++)
            out[row][i] = dot_numbers(rows[row], x[i], count);
    }
}

const coffer__quant_dots coffer__quant_dots_generic = {
    { dot_q8, dot_q4, dot_k6, dot_k4, dot_k3, dot_k2, dot_int8, dot_int4 },
    { NULL },
    tile,
};
