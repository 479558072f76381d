/* Statistics in one pass over the stored elements, on all cores. Elements that the layout implies are
 * counted, not read. */
#include "formats/pycauset/pycauset_blocks.h"

#include "base/checked.h"
#include "base/elements_kernels.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Elements that a thread takes at once, at least; a multiple of 4096, so that the sums do not depend on it.
 */
#define UNIT (UINT64_C(1) << 20)
#define MAX_UNITS 65536
#define PIECE ((uint64_t)(COFFER__PYCAUSET_PAYLOAD_WINDOW / 16)) /* elements whose bytes fit a window */
#define CHUNK 4096

COFFER__INIT_FUNCTION(coffer_pycauset_stats_opts, COFFER_PYCAUSET_STATS_OPTS_INIT)

struct coffer_pycauset_stats {
    coffer_pycauset_summary total;
};

/* How values are looked at: times a factor, as signed numbers or as magnitudes. */
typedef struct outlook {
    double factor;
    bool magnitudes;
} outlook;

typedef struct tally {
    coffer__summary summary;
    uint64_t ones, zeros; /* of bits */
} tally;

typedef struct unit_sums {
    tally elements;
    tally diagonal; /* of a matrix whose other elements count twice */
} unit_sums;

typedef struct stats_worker {
    coffer__pycauset_payload payload;
    double *wide; /* CHUNK pairs */
} stats_worker;

typedef struct stats_job {
    coffer__pycauset_grid grid;
    coffer__pycauset_recipe recipe;
    bool direct; /* the stored elements are the values */
    uint64_t unit_rows, unit_cols, units_across;
    unit_sums *sums;
    stats_worker *workers;
} stats_job;

/* ---- Elements ---- */

static void add_piece(coffer__summary *summary, const stats_job *job, double *wide,
                      const coffer__pycauset_stored_row *from, uint64_t count)
{
    coffer__pycauset_stored_row row = *from;
    if (job->direct) {
        coffer__summary_add(summary, from->bytes, job->grid.dtype, (size_t)count);
        return;
    }
    for (uint64_t done = 0; done < count; done += CHUNK) {
        size_t n = (size_t)(count - done < CHUNK ? count - done : CHUNK);
        row.bytes = from->bytes + done * job->grid.element;
        if (from->imaginary)
            row.imaginary = from->imaginary + done * job->grid.element;
        coffer__pycauset_expand_row(wide, &job->recipe, &row, n);
        coffer__summary_add(summary, wide, job->recipe.to, n);
    }
}

/* count stored elements of a row. */
static coffer_status add_elements(tally *out, const stats_job *job, stats_worker *worker, uint64_t row,
                                  uint64_t col, uint64_t count, uint64_t until, coffer_error *err)
{
    while (count > 0) {
        uint64_t n = count < PIECE ? count : PIECE;
        coffer__pycauset_stored_row from;
        coffer_status status =
            coffer__pycauset_payload_row(&from, &worker->payload, &job->grid, row, col, n, until, err);
        if (status)
            return status;
        if (job->grid.dtype == COFFER_DTYPE_BIT) {
            uint64_t ones = coffer__pycauset_count_bits(from.bytes, from.first_bit, (size_t)n);
            out->ones += ones;
            out->zeros += n - ones;
        } else {
            add_piece(&out->summary, job, worker->wide, &from, n);
        }
        col += n;
        count -= n;
    }
    return COFFER_OK;
}

/* ---- Units ---- */

static coffer_status sum_unit(void *context, uint64_t index, uint32_t number, coffer_error *err)
{
    stats_job *job = context;
    const coffer__pycauset_grid *grid = &job->grid;
    stats_worker *worker = &job->workers[number];
    unit_sums *sums = &job->sums[index];
    uint64_t row = index / job->units_across * job->unit_rows;
    uint64_t col = index % job->units_across * job->unit_cols;
    uint64_t row_end = grid->rows - row < job->unit_rows ? grid->rows : row + job->unit_rows;
    uint64_t col_end = grid->cols - col < job->unit_cols ? grid->cols : col + job->unit_cols;
    uint64_t until = 0;
    if (job->units_across == 1)
        until = coffer__pycauset_grid_offset(grid, row_end - 1,
                                             coffer__pycauset_grid_first(grid, row_end - 1), NULL) +
                coffer__pycauset_grid_row_bytes(grid, row_end - 1);
    coffer__summary_init(&sums->elements.summary);
    coffer__summary_init(&sums->diagonal.summary);
    for (; row < row_end; row++) {
        uint64_t first = coffer__pycauset_grid_first(grid, row);
        coffer_status status = COFFER_OK;
        first = first > col ? first : col;
        if (grid->mirrored) {
            status = add_elements(&sums->diagonal, job, worker, row, first, 1, until, err);
            first++;
        }
        if (!status && first < col_end)
            status = add_elements(&sums->elements, job, worker, row, first, col_end - first, until, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* Cuts the stored rows into units, by their shape alone: the result is the same on any machine. */
static uint64_t cut(stats_job *job)
{
    coffer__pycauset_grid *grid = &job->grid;
    if (!grid->triangular && grid->dtype != COFFER_DTYPE_BIT) { /* rows follow each other without a gap */
        grid->cols *= grid->rows;
        grid->rows = grid->cols > 0;
        grid->row_bytes = grid->cols * grid->element;
    }
    if (grid->rows == 0 || grid->cols == 0)
        return 0;
    bool wide = !grid->triangular && grid->cols > UNIT;
    uint64_t most_rows = grid->rows / MAX_UNITS + 1, whole_rows = UNIT / grid->cols;
    job->unit_cols = wide ? (grid->cols / MAX_UNITS / UNIT + 1) * UNIT : grid->cols;
    job->unit_rows = wide ? 1 : whole_rows > most_rows ? whole_rows : most_rows;
    job->units_across = grid->cols / job->unit_cols + (grid->cols % job->unit_cols != 0);
    return (grid->rows / job->unit_rows + (grid->rows % job->unit_rows != 0)) * job->units_across;
}

static void workers_free(stats_worker *workers, uint32_t count)
{
    for (uint32_t i = 0; workers && i < count; i++) {
        coffer__pycauset_payload_free(&workers[i].payload);
        coffer__free(workers[i].wide);
    }
    coffer__free(workers);
}

static stats_worker *workers_new(const coffer_pycauset *matrix, uint32_t count)
{
    stats_worker *workers = coffer__calloc(count, sizeof *workers);
    for (uint32_t i = 0; workers && i < count; i++) {
        coffer__pycauset_payload_init(&workers[i].payload, matrix);
        workers[i].wide = coffer__malloc(CHUNK * 2 * sizeof *workers[i].wide);
        if (!workers[i].wide) {
            workers_free(workers, count);
            return NULL;
        }
    }
    return workers;
}

/* ---- Putting it together ---- */

static void negate(coffer__summary *summary)
{
    double min = summary->min;
    summary->min = -summary->max;
    summary->max = -min;
    summary->sum = -summary->sum;
    summary->sum_low = -summary->sum_low;
}

static double value_of_one(const coffer_pycauset_info *info, const outlook *how)
{
    double one = info->scalar_real;
    if (how->magnitudes)
        one = coffer__magnitude(info->scalar_real, info->scalar_imag);
    return how->factor * one;
}

/* Takes the units in order, so that the result does not depend on who did which. */
static void merge_units(tally *elements, tally *diagonal, const stats_job *job, uint64_t units)
{
    coffer__summary_init(&elements->summary);
    coffer__summary_init(&diagonal->summary);
    for (uint64_t i = 0; i < units; i++) {
        const unit_sums *unit = &job->sums[i];
        coffer__summary_merge(&elements->summary, &unit->elements.summary);
        coffer__summary_merge(&diagonal->summary, &unit->diagonal.summary);
        elements->ones += unit->elements.ones;
        elements->zeros += unit->elements.zeros;
        diagonal->ones += unit->diagonal.ones;
        diagonal->zeros += unit->diagonal.zeros;
    }
}

static void take_tally(coffer__summary *out, const tally *from, double one, bool negative)
{
    coffer__summary summary = from->summary;
    coffer__summary_add_repeated(&summary, one, from->ones);
    coffer__summary_add_repeated(&summary, 0.0, from->zeros);
    if (negative)
        negate(&summary);
    coffer__summary_merge(out, &summary);
}

static void take_units(coffer__summary *out, const stats_job *job, uint64_t units,
                       const coffer_pycauset_info *info, const outlook *how)
{
    tally elements = { .ones = 0 }, diagonal = { .ones = 0 };
    double one = value_of_one(info, how);
    merge_units(&elements, &diagonal, job, units);
    take_tally(out, &diagonal, one, false);
    take_tally(out, &elements, one, false);
    if (job->grid.mirrored)
        take_tally(out, &elements, one, job->grid.negative && !how->magnitudes);
}

static coffer_status summarize_payload(coffer__summary *out, const coffer_pycauset *matrix,
                                       const outlook *how, const coffer__work_opts *opts, coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    stats_job job = { .sums = NULL };
    coffer__work *work = NULL;
    coffer_status status;
    coffer__pycauset_grid_init(&job.grid, info);
    if (job.grid.diagonal) { /* its elements are one row without a gap */
        job.grid.diagonal = false;
        job.grid.rows = 1;
    }
    job.recipe = coffer__pycauset_recipe_for(info, how->magnitudes ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64);
    job.recipe.scalar_real *= how->factor;
    job.recipe.scalar_imag *= how->factor;
    job.recipe.scaled = job.recipe.scalar_real != 1.0 || job.recipe.scalar_imag != 0.0;
    job.direct = !job.recipe.scaled && job.grid.dtype != COFFER_DTYPE_C32 &&
                 (!how->magnitudes || coffer_dtype_is_complex(job.grid.dtype));
    uint64_t units = cut(&job);
    status = coffer__work_new_pieces(&work, units, opts, err);
    if (status)
        return status;
    job.sums = coffer__calloc((size_t)units, sizeof *job.sums);
    job.workers = workers_new(matrix, coffer__work_threads(work));
    if (!job.sums || !job.workers)
        status = coffer__fail_no_memory(err, units * sizeof *job.sums);
    else
        status = coffer__work_run(work, units, sum_unit, &job, err);
    if (!status)
        status = coffer__pycauset_payload_intact(&job.workers[0].payload, err);
    if (!status)
        take_units(out, &job, units, info, how);
    workers_free(job.workers, coffer__work_threads(work));
    coffer__free(job.sums);
    coffer__work_free(work);
    return status;
}

/* How many values are not 0 in a matrix that has no payload. */
static uint64_t ones_without_payload(const coffer_pycauset_info *info)
{
    if (info->type == COFFER_PYCAUSET_UNIT_VECTOR)
        return 1;
    return info->rows < info->cols ? info->rows : info->cols;
}

static coffer_status summarize(coffer__summary *out, const coffer_pycauset *matrix, const outlook *how,
                               const coffer__work_opts *opts, coffer_error *err);

/* Every child once, however many blocks it is. */
static coffer_status summarize_blocks(coffer__summary *out, const coffer_pycauset *matrix, const outlook *how,
                                      const coffer__work_opts *opts, coffer_error *err)
{
    struct coffer__pycauset_blocks *blocks;
    coffer_status status = coffer__pycauset_blocks_get(&blocks, matrix, err);
    if (status)
        return status;
    const coffer__pycauset_manifest *manifest = &blocks->manifest;
    outlook inside = { value_of_one(&matrix->info, how), how->magnitudes };
    coffer__summary *children = coffer__alloc_array(manifest->child_count, sizeof *children);
    if (!children)
        return coffer__fail_no_memory(err, manifest->child_count * sizeof *children);
    for (size_t i = 0; i < manifest->child_count && !status; i++) {
        coffer__pycauset_block_child *child;
        coffer__summary_init(&children[i]);
        status = coffer__pycauset_blocks_acquire(&child, blocks, matrix, i, err);
        if (status)
            break;
        status = summarize(&children[i], child->matrix, &inside, opts, err);
        coffer__pycauset_blocks_release(blocks, child);
    }
    for (size_t i = 0; !status && i < manifest->block_rows * manifest->block_cols; i++)
        coffer__summary_merge(out, &children[manifest->child_of[i]]);
    coffer__free(children);
    return status;
}

static coffer_status summarize(coffer__summary *out, const coffer_pycauset *matrix, const outlook *how,
                               const coffer__work_opts *opts, coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    coffer_status status = COFFER_OK;
    uint64_t elements;
    if (info->type == COFFER_PYCAUSET_UNKNOWN)
        return coffer__pycauset_fail_unknown(matrix, err);
    if (!coffer__mul_u64(&elements, info->rows, info->cols))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " x %" PRIu64 " values are too many to count", info->rows, info->cols);
    if (info->type == COFFER_PYCAUSET_BLOCK)
        return summarize_blocks(out, matrix, how, opts, err);
    if (coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_LAYOUT_NONE)
        coffer__summary_add_repeated(out, value_of_one(info, how), ones_without_payload(info));
    else
        status = summarize_payload(out, matrix, how, opts, err);
    if (!status)
        coffer__summary_add_repeated(out, 0.0, elements - out->count);
    return status;
}

coffer_status coffer_pycauset_stats_new(coffer_pycauset_stats **out, const coffer_pycauset *matrix,
                                        const coffer_pycauset_stats_opts *opts, coffer_error *err)
{
    coffer_pycauset_stats_opts options = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer__work_opts work = { .threads = options.threads, .progress = options.progress };
    outlook how = { 1.0, coffer_dtype_is_complex(matrix->info.value_dtype) };
    coffer__summary all;
    coffer__summary_init(&all);
    status = summarize(&all, matrix, &how, &work, err);
    if (status)
        return status;
    coffer_pycauset_stats *stats = coffer__malloc(sizeof *stats);
    if (!stats)
        return coffer__fail_no_memory(err, sizeof *stats);
    stats->total = (coffer_pycauset_summary){
        .elements = all.count,
        .nonzero = all.count - all.zeros,
        .nans = all.nans,
        .infinities = all.infinities,
        .density = all.count ? (double)(all.count - all.zeros) / (double)all.count : 0.0,
        .min = all.min,
        .max = all.max,
        .mean = coffer__summary_mean(&all),
        .std = coffer__summary_deviation(&all),
        .frobenius = coffer__summary_norm(&all),
        .complex_values = how.magnitudes,
    };
    *out = stats;
    return COFFER_OK;
}

void coffer_pycauset_stats_free(coffer_pycauset_stats *stats)
{
    coffer__free(stats);
}

const coffer_pycauset_summary *coffer_pycauset_stats_total(const coffer_pycauset_stats *stats)
{
    return &stats->total;
}
