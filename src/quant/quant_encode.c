/* Encodes rows: splits them into groups that share a scale, encodes the groups, packs the codes. */
#include "quant/quant_encode.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/dtype.h"
#include "base/elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The method `exact`: the optimum by exhaustive search. Slow; the tests measure `fit` against it. */

#define BLOCK COFFER__QUANT_BLOCK
#define LARGEST_HALF 0x7BFF
#define MOST_STEPS (BLOCK * 127)

/* Whole numbers up to 2^51 lose their fraction next to this one; quotients are cut off before. */
static const double round_next_to = 6755399441055744.0; /* 1.5 × 2^52 */

static inline double code_for(double value, double scale, double largest)
{
    if (scale == 0.0)
        return 0.0;
    double code = value / scale;
    code = code > largest ? largest : code < -largest ? -largest : code;
    return code + round_next_to - round_next_to;
}

static double error_of(const coffer__quant_block *block, double scale, int largest)
{
    double error = 0.0;
    for (size_t i = 0; i < BLOCK; i++) {
        double miss = (double)block->values[i] - scale * code_for(block->values[i], scale, largest);
        error += (double)block->weights[i] * miss * miss;
    }
    return error;
}

static void put_exact_codes(int8_t codes[BLOCK], const coffer__quant_block *block, double scale, int largest)
{
    for (size_t i = 0; i < BLOCK; i++)
        codes[i] = (int8_t)code_for(block->values[i], scale, largest);
}

static uint16_t to_half(double value)
{
    uint16_t half = coffer__f16_from_f64(value);
    return half < LARGEST_HALF ? half : LARGEST_HALF;
}

/* ---- q* ---- */

/* As the inverse scale grows from 0, the code of one element goes up by one here. */
typedef struct step_up {
    double at;
    uint8_t element;
    uint8_t code; /* the one it reaches */
} step_up;

static int compare_steps(const void *a, const void *b)
{
    double x = ((const step_up *)a)->at, y = ((const step_up *)b)->at;
    return (x > y) - (x < y);
}

static size_t list_steps(step_up *steps, const coffer__quant_block *block, int largest)
{
    size_t count = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        double magnitude = fabs((double)block->values[i]);
        for (int code = 1; magnitude > 0.0 && code <= largest; code++)
            steps[count++] = (step_up){ (code - 0.5) / magnitude, (uint8_t)i, (uint8_t)code };
    }
    qsort(steps, count, sizeof *steps, compare_steps);
    return count;
}

/* Between two steps the codes are fixed, and of fixed codes the error is a parabola in the scale: its lowest
 * point is at Σwxq / Σwq², and the best scale that the file can hold is one of the two beside it. */
static uint16_t exact_scale(const coffer__quant_block *block, int largest)
{
    step_up steps[MOST_STEPS];
    size_t count = list_steps(steps, block, largest);
    double products = 0.0, squares = 0.0, best_change = 0.0;
    uint16_t best = 0;
    for (size_t i = 0; i < count; i++) {
        double weight = block->weights[steps[i].element];
        products += weight * fabs((double)block->values[steps[i].element]);
        squares += weight * (2.0 * steps[i].code - 1.0);
        if (squares <= 0.0)
            continue;
        uint16_t nearest = to_half(products / squares);
        for (int half = nearest - (nearest > 0); half <= nearest + (nearest < LARGEST_HALF); half++) {
            double scale = coffer__f16_to_f32((uint16_t)half);
            double change = scale * (scale * squares - 2.0 * products);
            if (change < best_change) {
                best_change = change;
                best = (uint16_t)half;
            }
        }
    }
    return best;
}

/* ---- k* ---- */

static double scale_of(uint16_t super, unsigned sub)
{
    return (double)(coffer__f16_to_f32(super) * ((float)sub * 0.03125f));
}

/* Gives the error; gives up, and an error that is as large, when it reaches `most`. */
static double exact_subs(uint8_t subs[COFFER__QUANT_SUPER_BLOCKS], const coffer__quant_block *blocks,
                         uint16_t super, int largest, double most)
{
    double total = 0.0;
    for (size_t i = 0; i < COFFER__QUANT_SUPER_BLOCKS && total < most; i++) {
        double best = INFINITY;
        for (unsigned sub = 0; sub < 64; sub++) {
            double error = error_of(&blocks[i], scale_of(super, sub), largest);
            if (error < best) {
                best = error;
                subs[i] = (uint8_t)sub;
            }
        }
        total += best;
    }
    return total;
}

static double largest_of_blocks(const coffer__quant_block *blocks, size_t count)
{
    float most = 0.0f;
    for (size_t i = 0; i < count * BLOCK; i++) {
        float here = fabsf(blocks[i / BLOCK].values[i % BLOCK]);
        most = here > most ? here : most;
    }
    return (double)most;
}

/* The super-scales from a quarter to twice of what gives the largest scale of absmax the largest sub-scale:
 * below, every block of that size is cut off by more than pays even for two bits; above, the same scales are
 * to be had with half the sub-scales unused. */
static void exact_super(coffer__quant_unit *out, const coffer__quant_block *blocks, int largest)
{
    double best = INFINITY, most = largest_of_blocks(blocks, COFFER__QUANT_SUPER_BLOCKS) / largest;
    uint16_t first = to_half(most * 32.0 / 63.0 / 4.0), last = to_half(most * 32.0 / 63.0 * 2.0);
    for (unsigned super = first; super <= last; super++) {
        uint8_t subs[COFFER__QUANT_SUPER_BLOCKS] = { 0 };
        double error = exact_subs(subs, blocks, (uint16_t)super, largest, best);
        if (error < best) {
            best = error;
            out->scale = (uint16_t)super;
            memcpy(out->subs, subs, sizeof subs);
        }
    }
    for (size_t b = 0; b < COFFER__QUANT_SUPER_BLOCKS; b++)
        put_exact_codes(out->codes[b], &blocks[b], scale_of(out->scale, out->subs[b]), largest);
}

static void quant_exact(coffer__quant_unit *out, const coffer__quant_type *type,
                        const coffer__quant_block *blocks)
{
    int largest = coffer__quant_largest_code(type);
    if (type->family == COFFER__QUANT_SUPERS) {
        exact_super(out, blocks, largest);
        return;
    }
    out->scale = exact_scale(blocks, largest);
    put_exact_codes(out->codes[0], blocks, (double)coffer__f16_to_f32(out->scale), largest);
}

/* Where one unit is. */
typedef struct unit_place {
    uint64_t row, first_block; /* in the row */
    size_t blocks;             /* of them that the row has */
} unit_place;

static size_t unit_blocks(const coffer__quant_type *type)
{
    return type->family == COFFER__QUANT_SUPERS ? COFFER__QUANT_SUPER_BLOCKS : 1;
}

static uint64_t row_blocks(const coffer__quant_rows *rows)
{
    return coffer__divide_up(rows->cols, COFFER__QUANT_BLOCK);
}

static uint64_t row_units(const coffer__quant_rows *rows)
{
    return coffer__divide_up(row_blocks(rows), unit_blocks(rows->type));
}

static unit_place locate(const coffer__quant_rows *rows, uint64_t unit)
{
    size_t most = unit_blocks(rows->type);
    unit_place place = { .row = unit / row_units(rows), .first_block = unit % row_units(rows) * most };
    uint64_t left = row_blocks(rows) - place.first_block;
    place.blocks = left < most ? (size_t)left : most;
    return place;
}

/* ---- In ---- */

/* Columns of a block that the row has: none for a block past its end. */
static size_t block_columns(const coffer__quant_rows *rows, uint64_t block)
{
    uint64_t first = block * COFFER__QUANT_BLOCK;
    if (first >= rows->cols)
        return 0;
    return rows->cols - first < COFFER__QUANT_BLOCK ? (size_t)(rows->cols - first) : COFFER__QUANT_BLOCK;
}

static void take_block(coffer__quant_block *out, const coffer__quant_rows *rows, uint64_t row, uint64_t block)
{
    size_t columns = block_columns(rows, block);
    uint64_t first = block * COFFER__QUANT_BLOCK;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < columns; i++) {
        out->values[i] = rows->values[row * rows->cols + first + i];
        out->weights[i] = rows->weights ? rows->weights[first + i] : 1.0f;
    }
}

static void take_lane(coffer__quant_lanes *out, size_t lane, const coffer__quant_rows *rows, uint64_t row,
                      uint64_t block)
{
    size_t columns = block_columns(rows, block);
    const float *values = rows->values + row * rows->cols + block * COFFER__QUANT_BLOCK;
    const float *weights = rows->weights ? rows->weights + block * COFFER__QUANT_BLOCK : NULL;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i++)
        out->values[i][lane] = i < columns ? values[i] : 0.0f;
    for (size_t i = 0; weights && i < COFFER__QUANT_BLOCK; i++)
        out->weights[i][lane] = i < columns ? weights[i] : 0.0f;
}

/* ---- Out ---- */

static void put_unit(const coffer__quant_output *out, const coffer__quant_rows *rows, uint64_t index,
                     const coffer__quant_unit *unit)
{
    unit_place place = locate(rows, index);
    uint64_t block = place.row * row_blocks(rows) + place.first_block;
    size_t size = rows->type->bits * COFFER__QUANT_BLOCK / 8u;
    coffer__store_u16(out->parts[COFFER__QUANT_SCALES] + 2 * index, unit->scale);
    for (size_t i = 0; i < place.blocks; i++) {
        if (rows->type->family == COFFER__QUANT_SUPERS)
            out->parts[COFFER__QUANT_SUBS][block + i] = unit->subs[i];
        coffer__quant_pack_codes(out->parts[COFFER__QUANT_CODES] + (block + i) * size, unit->codes[i],
                                 rows->type->bits);
    }
}

/* ---- The methods ---- */

coffer__quant_fitter coffer__quant_fitter_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return coffer__quant_fit_avx512;
    case COFFER__CPU_AVX2:
        return coffer__quant_fit_avx2;
    default:
        break;
    }
#endif
    return coffer__quant_fit_generic;
}

static void take_fitted(coffer__quant_unit *out, const coffer__quant_fitted *fitted, size_t first_lane,
                        size_t blocks)
{
    out->scale = fitted->scales[first_lane];
    for (size_t i = 0; i < blocks; i++) {
        out->subs[i] = fitted->subs[first_lane + i];
        for (size_t j = 0; j < COFFER__QUANT_BLOCK; j++)
            out->codes[i][j] = fitted->codes[j][first_lane + i];
    }
}

/* As many units side by side as there are lanes for. */
static void fit_rows(const coffer__quant_output *out, const coffer__quant_rows *rows)
{
    size_t blocks = unit_blocks(rows->type), together = COFFER__QUANT_LANES / blocks;
    uint64_t units = rows->rows * row_units(rows);
    coffer__quant_fitter fit = coffer__quant_fitter_in_use();
    coffer__quant_lanes lanes = { .weighted = rows->weights != NULL };
    coffer__quant_fitted fitted;
    coffer__quant_unit unit;
    for (uint64_t first = 0; first < units; first += together) {
        size_t here = units - first < together ? (size_t)(units - first) : together;
        for (size_t i = 0; i < here; i++) {
            unit_place place = locate(rows, first + i);
            for (size_t b = 0; b < blocks; b++)
                take_lane(&lanes, i * blocks + b, rows, place.row, place.first_block + b);
        }
        fit(&fitted, &lanes, rows->type);
        for (size_t i = 0; i < here; i++) {
            take_fitted(&unit, &fitted, i * blocks, blocks);
            put_unit(out, rows, first + i, &unit);
        }
    }
}

static coffer__quant_absmax absmax_in_use(void)
{
#if defined(__x86_64__)
    switch (coffer__cpu()) {
    case COFFER__CPU_AVX512:
        return coffer__quant_absmax_avx512;
    case COFFER__CPU_AVX2:
        return coffer__quant_absmax_avx2;
    default:
        break;
    }
#endif
    return coffer__quant_absmax_generic;
}

void coffer__quant_encode_rows(const coffer__quant_output *out, const coffer__quant_rows *rows,
                               coffer__quant_method method)
{
    coffer__quant_block blocks[COFFER__QUANT_SUPER_BLOCKS];
    coffer__quant_unit unit;
    if (!rows->rows || !rows->cols)
        return;
    if (method == COFFER__QUANT_FIT) {
        fit_rows(out, rows);
        return;
    }
    if (method == COFFER__QUANT_ABSMAX) {
        absmax_in_use()(out, rows);
        return;
    }
    for (uint64_t i = 0; i < rows->rows * row_units(rows); i++) {
        unit_place place = locate(rows, i);
        for (size_t b = 0; b < unit_blocks(rows->type); b++)
            take_block(&blocks[b], rows, place.row, place.first_block + b);
        quant_exact(&unit, rows->type, blocks);
        put_unit(out, rows, i, &unit);
    }
}

void coffer__quant_put_unit(const coffer__quant_output *out, const coffer__quant_rows *rows, uint64_t row,
                            uint64_t column, const coffer__quant_unit *unit)
{
    uint64_t number = column / COFFER__QUANT_BLOCK / unit_blocks(rows->type);
    put_unit(out, rows, row * row_units(rows) + number, unit);
}
