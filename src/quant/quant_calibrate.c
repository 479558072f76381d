/* Encodes rows for the least error of a layer's output, sixteen of them side by side. */
#include "quant/quant_calibrate.h"

#include "base/checked.h"
#include "base/elements.h"

#include <string.h>

#define LANES COFFER__QUANT_LANES
#define BLOCK COFFER__QUANT_BLOCK
#define SUPER COFFER__QUANT_SUPER
#define BLOCKS COFFER__QUANT_SUPER_BLOCKS
#define CHUNK 256 /* rows of the factor at a time: with the columns of a super they stay in the cache */

/* Sixteen rows: by position, except for scales, which are by block of the row. */
typedef struct group {
    float *errors, *targets; /* targets : of a super */
    float *scales;           /* as numbers */
    uint16_t *halves;        /* of q*; of k* at the first block of a super */
    uint8_t *subs;           /* of k* */
    int8_t *codes;
    uint64_t first_row;
    size_t rows;
} group;

typedef struct encoder {
    const coffer__quant_calibrated *job;
    const coffer__quant_moments *moments;
    const coffer__quant_rows *rows;
    const coffer__quant_calibrate_kernels *kernels;
    coffer__quant_fitter fit;
    size_t group_count;
} encoder;

/* Positions [first, first + count). */
typedef struct span {
    size_t first, count;
} span;

/* ---- Memory ---- */

/* Bytes of a group for each column, and what does not depend on them. A block has a float, a half and a
 * sub-scale in each lane: three bytes for a column suffice from three columns on. */
#define COLUMN_BYTES (LANES * (sizeof(float) + sizeof(int8_t) + 3))
#define GROUP_BYTES (LANES * (SUPER * sizeof(float) + 64))

uint64_t coffer__quant_calibrate_scratch(uint64_t rows, uint64_t cols)
{
    uint64_t bytes;
    return coffer__mul_u64(&bytes, cols, COLUMN_BYTES) && coffer__add_u64(&bytes, bytes, GROUP_BYTES) &&
                   coffer__mul_u64(&bytes, bytes, coffer__divide_up(rows, LANES))
               ? bytes
               : UINT64_MAX;
}

static group group_at(const encoder *work, size_t index)
{
    size_t columns = work->moments->columns, blocks = coffer__divide_up(columns, BLOCK);
    uint8_t *memory = (uint8_t *)work->job->scratch + index * (columns * COLUMN_BYTES + GROUP_BYTES);
    uint64_t first = (uint64_t)index * LANES, left = work->rows->rows - first;
    group set = { .first_row = first, .rows = left < LANES ? (size_t)left : LANES };
    set.errors = (float *)(void *)memory;
    set.targets = set.errors + LANES * columns;
    set.scales = set.targets + LANES * SUPER;
    set.halves = (uint16_t *)(void *)(set.scales + LANES * blocks);
    set.subs = (uint8_t *)(set.halves + LANES * blocks);
    set.codes = (int8_t *)(set.subs + LANES * blocks);
    return set;
}

/* The weights at positions. */
static void gather(float *out, const encoder *work, const group *set, span place)
{
    uint64_t cols = work->rows->cols;
    for (size_t i = 0; i < place.count; i++) {
        const float *column =
            work->rows->values + set->first_row * cols + work->moments->order[place.first + i];
        for (size_t lane = 0; lane < LANES; lane++)
            out[i * LANES + lane] = lane < set->rows ? column[lane * cols] : 0.0f;
    }
}

/* The last positions before `end` whose columns share a piece of that many. */
static span piece_before(const encoder *work, size_t end, size_t piece)
{
    const uint32_t *order = work->moments->order;
    span place = { end, 0 };
    while (place.first > 0 && order[place.first - 1] / piece == order[end - 1] / piece)
        place.first--;
    place.count = end - place.first;
    return place;
}

static size_t block_of(const encoder *work, span place)
{
    return work->moments->order[place.first] / BLOCK;
}

/* ---- Products with the factor and the moments ---- */

static const float *element(const encoder *work, size_t row, size_t column)
{
    return work->moments->factored + row * work->moments->columns + column;
}

/* Adds the products of errors at the positions `from` with L, or with H above the diagonal. */
static void add(float *sums, span place, const encoder *work, const group *set, span from)
{
    coffer__quant_factors factors = { element(work, from.first, place.first), work->moments->columns, 1 };
    work->kernels->add_products(sums, place.count, set->errors + from.first * LANES, from.count, &factors);
}

/* The same for H where it is stored above the diagonal and needed below. */
static void add_mirrored(float *sums, span place, const encoder *work, const group *set, span from)
{
    coffer__quant_factors factors = { element(work, place.first, from.first), 1, work->moments->columns };
    work->kernels->add_products(sums, place.count, set->errors + from.first * LANES, from.count, &factors);
}

typedef void (*adding)(float *sums, span place, const encoder *work, const group *set, span from);

/* In all groups for the targets at `place`; the matrix passes through the cache once. */
static void add_in_groups(const encoder *work, span place, span from, adding function)
{
    for (size_t done = 0; done < from.count; done += CHUNK) {
        size_t left = from.count - done;
        span here = { from.first + done, left < CHUNK ? left : CHUNK };
        for (size_t i = 0; i < work->group_count; i++) {
            group set = group_at(work, i);
            function(set.targets, place, work, &set, here);
        }
    }
}

/* ---- Scales ---- */

/* Each row of the group has a super of its own: two at a time in the lanes of the fitter. */
static void fit_supers(const encoder *work, const group *set, span place)
{
    size_t first_block = work->moments->order[place.first] / SUPER * BLOCKS;
    size_t blocks = coffer__divide_up(work->moments->columns, BLOCK) - first_block;
    for (size_t row = 0; row < LANES; row += 2) {
        coffer__quant_lanes lanes = { .weighted = true };
        coffer__quant_fitted fitted;
        for (size_t i = 0; i < place.count; i++) {
            size_t column = work->moments->order[place.first + i] % SUPER;
            for (size_t k = 0; k < 2; k++) {
                size_t lane = k * BLOCKS + column / BLOCK;
                lanes.values[column % BLOCK][lane] = set->targets[i * LANES + row + k];
                lanes.weights[column % BLOCK][lane] = work->moments->pivots[place.first + i];
            }
        }
        work->fit(&fitted, &lanes, work->rows->type);
        for (size_t k = 0; k < 2; k++) {
            set->halves[first_block * LANES + row + k] = fitted.scales[k * BLOCKS];
            for (size_t b = 0; b < BLOCKS && b < blocks; b++)
                set->subs[(first_block + b) * LANES + row + k] = fitted.subs[k * BLOCKS + b];
        }
    }
}

/* Numbers of the file that are tried for a block, in each lane. */
typedef uint16_t candidates[COFFER__QUANT_TRIALS][LANES];

/* Sub-scales around the fitted one. */
static void offer_subs(coffer__quant_trial *trial, candidates subs, const group *set, size_t block)
{
    static const int steps[COFFER__QUANT_TRIALS] = { 0, -1, 1, -2, 2, -3, 3, -4, 4 };
    trial->scale_count = COFFER__QUANT_TRIALS;
    for (size_t lane = 0; lane < LANES; lane++) {
        float super = coffer__f16_to_f32(set->halves[block / BLOCKS * BLOCKS * LANES + lane]);
        for (size_t s = 0; s < COFFER__QUANT_TRIALS; s++) {
            int sub = set->subs[block * LANES + lane] + steps[s];
            subs[s][lane] = (uint16_t)(sub < 0 ? 0 : sub > 63 ? 63 : sub);
            trial->scales[s][lane] = super * ((float)subs[s][lane] * 0.03125f);
        }
    }
}

/* Scales around the fitted one. */
static void offer_scales(coffer__quant_trial *trial, candidates halves, const encoder *work, span place)
{
    static const float shares[COFFER__QUANT_TRIALS] = { 1.0f,  0.98f, 1.02f, 0.96f, 1.04f,
                                                        0.93f, 1.07f, 0.9f,  1.1f };
    coffer__quant_lanes lanes = { .weighted = true };
    coffer__quant_fitted fitted;
    for (size_t i = 0; i < place.count; i++) {
        memcpy(lanes.values[i], trial->targets + i * LANES, sizeof lanes.values[i]);
        for (size_t lane = 0; lane < LANES; lane++)
            lanes.weights[i][lane] = work->moments->pivots[place.first + i];
    }
    work->fit(&fitted, &lanes, work->rows->type);
    trial->scale_count = COFFER__QUANT_TRIALS;
    for (size_t lane = 0; lane < LANES; lane++) {
        float scale = coffer__f16_to_f32(fitted.scales[lane]);
        for (size_t s = 0; s < COFFER__QUANT_TRIALS; s++) {
            float share = scale * shares[s];
            halves[s][lane] = coffer__f16_from_f32(share < 65504.0f ? share : 65504.0f);
            trial->scales[s][lane] = coffer__f16_to_f32(halves[s][lane]);
        }
    }
}

/* ---- From the last column to the first ---- */

static void encode_block(const encoder *work, const group *set, span super, span place)
{
    coffer__quant_family family = work->rows->type->family;
    size_t block = block_of(work, place), before = place.first - super.first;
    float values[BLOCK * LANES];
    candidates tried = { { 0 } };
    coffer__quant_trial trial = {
        .targets = set->targets + before * LANES,
        .values = values,
        .factor = element(work, place.first, place.first),
        .pivots = work->moments->pivots + place.first,
        .stride = work->moments->columns,
        .count = place.count,
        .scale_count = 1,
        .largest = (float)coffer__quant_largest_code(work->rows->type),
        .errors = set->errors + place.first * LANES,
        .codes = set->codes + place.first * LANES,
    };
    gather(values, work, set, place);
    for (size_t lane = 0; lane < LANES; lane++)
        trial.scales[0][lane] = work->job->whole_scale;
    if (family == COFFER__QUANT_SUPERS)
        offer_subs(&trial, tried, set, block);
    else if (family == COFFER__QUANT_BLOCKS)
        offer_scales(&trial, tried, work, place);
    work->kernels->encode_block(&trial);
    for (size_t lane = 0; lane < LANES; lane++) {
        size_t best = trial.best[lane];
        set->scales[block * LANES + lane] = trial.scales[best][lane];
        if (family == COFFER__QUANT_SUPERS)
            set->subs[block * LANES + lane] = (uint8_t)tried[best][lane];
        else
            set->halves[block * LANES + lane] = tried[best][lane];
    }
    /* The columns of the super that are left learn of it at once. */
    add(set->targets, (span){ super.first, before }, work, set, place);
}

/* The scale of a super of k* is chosen before its first block, all others when their block is reached. */
static void encode_groups(const encoder *work)
{
    for (size_t end = work->moments->columns; end > 0;) {
        span super = piece_before(work, end, SUPER);
        for (size_t i = 0; i < work->group_count; i++) {
            group set = group_at(work, i);
            gather(set.targets, work, &set, super);
        }
        add_in_groups(work, super, (span){ end, work->moments->columns - end }, add);
        for (size_t i = 0; i < work->group_count; i++) {
            group set = group_at(work, i);
            if (work->rows->type->family == COFFER__QUANT_SUPERS)
                fit_supers(work, &set, super);
            for (size_t block_end = end; block_end > super.first;) {
                span block = piece_before(work, block_end, BLOCK);
                encode_block(work, &set, super, block);
                block_end = block.first;
            }
        }
        end = super.first;
    }
}

/* ---- Each code again, with all others held fixed ---- */

static void refine_block(const encoder *work, const group *set, span super, span place)
{
    size_t end = place.first + place.count, super_end = super.first + super.count;
    float slopes[BLOCK * LANES];
    memcpy(slopes, set->targets + (place.first - super.first) * LANES, place.count * LANES * sizeof *slopes);
    add(slopes, place, work, set, (span){ super.first, place.first - super.first });
    add_mirrored(slopes, place, work, set, (span){ end, super_end - end });
    coffer__quant_refinement block = {
        .slopes = slopes,
        .moments = element(work, place.first, place.first),
        .stride = work->moments->columns,
        .count = place.count,
        .scale = set->scales + block_of(work, place) * LANES,
        .largest = (float)coffer__quant_largest_code(work->rows->type),
        .errors = set->errors + place.first * LANES,
        .codes = set->codes + place.first * LANES,
    };
    work->kernels->refine_block(&block);
}

static void refine_groups(const encoder *work)
{
    for (size_t end = work->moments->columns; end > 0;) {
        span super = piece_before(work, end, SUPER);
        for (size_t i = 0; i < work->group_count; i++)
            memset(group_at(work, i).targets, 0, super.count * LANES * sizeof(float));
        add_in_groups(work, super, (span){ 0, super.first }, add);
        add_in_groups(work, super, (span){ end, work->moments->columns - end }, add_mirrored);
        for (size_t i = 0; i < work->group_count; i++) {
            group set = group_at(work, i);
            for (size_t block_end = end; block_end > super.first;) {
                span block = piece_before(work, block_end, BLOCK);
                refine_block(work, &set, super, block);
                block_end = block.first;
            }
        }
        end = super.first;
    }
}

/* ---- Results ---- */

/* Σ xHxᵀ = Σ xₚ(Hₚₚxₚ + 2Σ xⱼHⱼₚ, j before p) of what is in .errors, without damping. */
static double energy(const encoder *work)
{
    double sum = 0.0, damping = work->moments->damping;
    for (size_t first = 0; first < work->moments->columns; first += SUPER) {
        size_t left = work->moments->columns - first;
        span place = { first, left < SUPER ? left : SUPER };
        for (size_t i = 0; i < work->group_count; i++)
            memset(group_at(work, i).targets, 0, place.count * LANES * sizeof(float));
        add_in_groups(work, place, (span){ 0, first }, add);
        for (size_t i = 0; i < work->group_count; i++) {
            group set = group_at(work, i);
            for (size_t k = 0; k < place.count; k++) {
                const float *x = set.errors + (first + k) * LANES, *y = set.targets + k * LANES;
                double own = (double)*element(work, first + k, first + k) - damping;
                for (size_t lane = 0; lane < LANES; lane++)
                    sum += (double)x[lane] * (own * (double)x[lane] + 2.0 * (double)y[lane]);
                span after = { first + k + 1, place.count - k - 1 };
                if (after.count)
                    add(set.targets + (k + 1) * LANES, after, work, &set, (span){ first + k, 1 });
            }
        }
    }
    return sum > 0.0 ? sum : 0.0;
}

static double signal_energy(const encoder *work)
{
    for (size_t i = 0; i < work->group_count; i++) {
        group set = group_at(work, i);
        gather(set.errors, work, &set, (span){ 0, work->moments->columns });
    }
    return energy(work);
}

static void put_whole(const encoder *work, const group *set)
{
    for (size_t i = 0; i < work->moments->columns; i++)
        for (size_t lane = 0; lane < set->rows; lane++)
            work->job->codes[(set->first_row + lane) * work->rows->cols + work->moments->order[i]] =
                set->codes[i * LANES + lane];
}

/* The super, or block of q*, at these positions. */
static void put_unit(const encoder *work, const group *set, span place)
{
    bool supers = work->rows->type->family == COFFER__QUANT_SUPERS;
    const uint32_t *order = work->moments->order;
    size_t unit_columns = supers ? SUPER : BLOCK, first = order[place.first] / unit_columns * unit_columns;
    for (size_t lane = 0; lane < set->rows; lane++) {
        coffer__quant_unit unit;
        memset(&unit, 0, sizeof unit);
        unit.scale = set->halves[first / BLOCK * LANES + lane];
        for (size_t i = 0; i < place.count; i++) {
            size_t column = order[place.first + i], block = (column - first) / BLOCK;
            unit.codes[block][column % BLOCK] = set->codes[(place.first + i) * LANES + lane];
            if (supers)
                unit.subs[block] = set->subs[column / BLOCK * LANES + lane];
        }
        coffer__quant_put_unit(work->job->out, work->rows, set->first_row + lane, first, &unit);
    }
}

static void put_groups(const encoder *work)
{
    size_t unit_columns = work->rows->type->family == COFFER__QUANT_SUPERS ? SUPER : BLOCK;
    for (size_t i = 0; i < work->group_count; i++) {
        group set = group_at(work, i);
        if (work->rows->type->family == COFFER__QUANT_WHOLE) {
            put_whole(work, &set);
            continue;
        }
        for (size_t end = work->moments->columns; end > 0;) {
            span place = piece_before(work, end, unit_columns);
            put_unit(work, &set, place);
            end = place.first;
        }
    }
}

/* How often each code is chosen again: as often as it pays. */
static unsigned refinements(const coffer__quant_type *type)
{
    return type->bits <= 2 ? 4 : type->bits <= 4 ? 2 : 0;
}

coffer__quant_output_error coffer__quant_calibrate_rows(const coffer__quant_calibrated *job,
                                                        const coffer__quant_rows *rows)
{
    encoder work = { job,
                     job->moments,
                     rows,
                     coffer__quant_calibrate_in_use(),
                     coffer__quant_fitter_in_use(),
                     (size_t)coffer__divide_up(rows->rows, LANES) };
    coffer__quant_output_error result;
    encode_groups(&work);
    for (unsigned i = 0; i < refinements(rows->type); i++)
        refine_groups(&work);
    put_groups(&work);
    result.error = energy(&work);
    result.signal = signal_energy(&work);
    return result;
}
