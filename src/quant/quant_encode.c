/* Encodes rows: splits them into groups that share a scale, encodes the groups, packs the codes. */
#include "quant/quant_encode.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/cpu.h"

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

static void pack_codes(uint8_t *out, const int8_t codes[COFFER__QUANT_BLOCK], unsigned bits)
{
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    for (size_t i = 0; i < COFFER__QUANT_BLOCK; i += 8, out += bits) {
        uint64_t packed = 0;
        for (size_t j = 0; j < 8; j++)
            packed |= ((uint64_t)(uint8_t)codes[i + j] & mask) << (bits * j);
        for (unsigned byte = 0; byte < bits; byte++)
            out[byte] = (uint8_t)(packed >> (8 * byte));
    }
}

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
        pack_codes(out->parts[COFFER__QUANT_CODES] + (block + i) * size, unit->codes[i], rows->type->bits);
    }
}

/* ---- The methods ---- */

static coffer__quant_fitter fitter_in_use(void)
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
    coffer__quant_fitter fit = fitter_in_use();
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
    for (uint64_t i = 0; i < rows->rows * row_units(rows); i++) {
        unit_place place = locate(rows, i);
        for (size_t b = 0; b < unit_blocks(rows->type); b++)
            take_block(&blocks[b], rows, place.row, place.first_block + b);
        if (method == COFFER__QUANT_ABSMAX)
            coffer__quant_absmax(&unit, rows->type, blocks);
        else
            coffer__quant_exact(&unit, rows->type, blocks);
        put_unit(out, rows, i, &unit);
    }
}
