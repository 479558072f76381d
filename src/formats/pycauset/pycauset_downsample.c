/* A matrix as a small picture: means of even cells, on all cores. */
#include "formats/pycauset/pycauset_private.h"

#include "base/checked.h"
#include "base/elements_kernels.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sorted.h"
#include "base/work.h"

#include <inttypes.h>
#include <math.h>

/* Values that are read at a time. */
#define PIECE UINT64_C(16384)
/* Columns of the matrix that a unit has at most: a row of cells may be shared between threads. */
#define UNIT_COLS (UINT64_C(1) << 16)
/* A matrix without a payload of that size may claim any: past this it would take for ever. */
#define MAX_IMPLIED (UINT64_C(1) << 40)

typedef struct cell_sum {
    double sum;
    uint64_t count;
} cell_sum;

typedef struct picture_job {
    const coffer_pycauset *matrix;
    double *cells;
    uint64_t grid_rows, grid_cols;
    uint64_t unit_cells, units_across; /* cells of a row that are done together */
    uint64_t *edges;                   /* columns where the cells begin, and where the last one ends */
    bool magnitudes;
    double *values; /* PIECE values or pairs for each thread */
    cell_sum *sums; /* unit_cells for each thread */
} picture_job;

/* Where cell `index` of `count` begins when `size` is cut evenly. */
static uint64_t cell_begin(uint64_t index, uint64_t count, uint64_t size)
{
    return size / count * index + size % count * index / count;
}

/* The column of cells that a column of the matrix is in. */
static uint64_t cell_of(const picture_job *job, uint64_t col)
{
    return coffer__last_of(
        coffer__count_up_to(job->edges, (size_t)job->grid_cols, sizeof *job->edges, 0, col));
}

/* Takes in values [col, col + count) of one row. */
static void add_values(cell_sum *sums, const picture_job *job, uint64_t first_cell, const double *values,
                       uint64_t col, uint64_t count)
{
    uint64_t end = col + count;
    for (uint64_t cell = cell_of(job, col); col < end; cell++) {
        uint64_t stop = job->edges[cell + 1] < end ? job->edges[cell + 1] : end;
        cell_sum *into = &sums[cell - first_cell];
        for (; col < stop; col++, values += job->magnitudes ? 2 : 1) {
            double value = job->magnitudes ? coffer__magnitude(values[0], values[1]) : values[0];
            bool finite = value - value == 0;
            into->sum += finite ? value : 0.0;
            into->count += finite;
        }
    }
}

static coffer_status sum_tile(cell_sum *sums, const picture_job *job, uint64_t first_cell,
                              const coffer_pycauset_tile *tile, double *values, coffer_error *err)
{
    coffer_dtype dtype = job->magnitudes ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
    coffer_status status = coffer_pycauset_read_tile(values, 0, job->matrix, tile, dtype, err);
    for (uint64_t i = 0; i < tile->rows && !status; i++)
        add_values(sums, job, first_cell, values + i * tile->cols * (job->magnitudes ? 2 : 1), tile->col,
                   tile->cols);
    return status;
}

static coffer_status fill_cells(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    picture_job *job = context;
    const coffer_pycauset_info *info = &job->matrix->info;
    uint64_t cell_row = index / job->units_across, first = index % job->units_across * job->unit_cells;
    uint64_t cells = job->grid_cols - first < job->unit_cells ? job->grid_cols - first : job->unit_cells;
    uint64_t row = cell_begin(cell_row, job->grid_rows, info->rows);
    uint64_t row_end = cell_begin(cell_row + 1, job->grid_rows, info->rows);
    uint64_t col = job->edges[first], col_end = job->edges[first + cells];
    uint64_t tile_cols = col_end - col < PIECE ? col_end - col : PIECE, tile_rows = PIECE / tile_cols;
    double *values = job->values + (uint64_t)worker * 2 * PIECE;
    cell_sum *sums = job->sums + (uint64_t)worker * job->unit_cells;
    for (uint64_t i = 0; i < cells; i++)
        sums[i] = (cell_sum){ 0.0, 0 };
    for (uint64_t r = row; r < row_end; r += tile_rows) {
        for (uint64_t c = col; c < col_end; c += tile_cols) {
            coffer_pycauset_tile tile = { sizeof tile, r, row_end - r < tile_rows ? row_end - r : tile_rows,
                                          c, col_end - c < tile_cols ? col_end - c : tile_cols };
            coffer_status status = sum_tile(sums, job, first, &tile, values, err);
            if (status)
                return status;
        }
    }
    for (uint64_t i = 0; i < cells; i++)
        job->cells[cell_row * job->grid_cols + first + i] =
            sums[i].count ? sums[i].sum / (double)sums[i].count : NAN;
    return COFFER_OK;
}

static coffer_status draw(picture_job *job, const coffer__work_opts *opts, coffer_error *err)
{
    uint64_t cell_cols = job->matrix->info.cols / job->grid_cols + 1;
    coffer__work *work = NULL;
    job->unit_cells = UNIT_COLS / cell_cols > 0 ? UNIT_COLS / cell_cols : 1;
    if (job->unit_cells > job->grid_cols)
        job->unit_cells = job->grid_cols;
    job->units_across = (job->grid_cols + job->unit_cells - 1) / job->unit_cells;
    coffer_status status = coffer__work_new_pieces(&work, job->grid_rows * job->units_across, opts, err);
    if (status)
        return status;
    uint32_t threads = coffer__work_threads(work);
    job->values = coffer__alloc_array(threads, 2 * PIECE * sizeof *job->values);
    job->sums = coffer__alloc_array(threads, (size_t)job->unit_cells * sizeof *job->sums);
    job->edges = coffer__alloc_array((size_t)job->grid_cols + 1, sizeof *job->edges);
    for (uint64_t i = 0; job->edges && i <= job->grid_cols; i++)
        job->edges[i] = cell_begin(i, job->grid_cols, job->matrix->info.cols);
    if (!job->values || !job->sums || !job->edges)
        status = coffer__fail_no_memory(err, threads * 2 * PIECE * sizeof *job->values);
    else
        status = coffer__work_run(work, job->grid_rows * job->units_across, fill_cells, job, err);
    coffer__free(job->values);
    coffer__free(job->sums);
    coffer__free(job->edges);
    coffer__work_free(work);
    return status;
}

/* ---- Matrices without a payload ---- */

/* How many of [a, a_end) and [b, b_end) meet. */
static uint64_t overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
    uint64_t begin = a > b ? a : b, end = a_end < b_end ? a_end : b_end;
    return end > begin ? end - begin : 0;
}

static void draw_ones(picture_job *job)
{
    const coffer_pycauset_info *info = &job->matrix->info;
    double one =
        job->magnitudes ? coffer__magnitude(info->scalar_real, info->scalar_imag) : info->scalar_real;
    uint64_t unit_row = info->cols == 1 ? info->unit_index : 0, unit_col = info->unit_index - unit_row;
    for (uint64_t i = 0; i < job->grid_rows; i++) {
        uint64_t row = cell_begin(i, job->grid_rows, info->rows);
        uint64_t row_end = cell_begin(i + 1, job->grid_rows, info->rows);
        for (uint64_t j = 0; j < job->grid_cols; j++) {
            uint64_t col = cell_begin(j, job->grid_cols, info->cols);
            uint64_t col_end = cell_begin(j + 1, job->grid_cols, info->cols);
            uint64_t ones = info->type == COFFER_PYCAUSET_IDENTITY
                                ? overlap(row, row_end, col, col_end)
                                : overlap(row, row_end, unit_row, unit_row + 1) *
                                      overlap(col, col_end, unit_col, unit_col + 1);
            double area = (double)(row_end - row) * (double)(col_end - col);
            job->cells[i * job->grid_cols + j] = one * (double)ones / area;
        }
    }
}

coffer_status coffer_pycauset_downsample(double *cells, uint64_t grid_rows, uint64_t grid_cols,
                                         const coffer_pycauset *matrix,
                                         const coffer_pycauset_stats_opts *opts, coffer_error *err)
{
    coffer_pycauset_stats_opts options = COFFER_PYCAUSET_STATS_OPTS_INIT;
    const coffer_pycauset_info *info = &matrix->info;
    picture_job job = { .matrix = matrix };
    uint64_t elements;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    job.cells = cells;
    job.grid_rows = grid_rows < info->rows ? grid_rows : info->rows;
    job.grid_cols = grid_cols < info->cols ? grid_cols : info->cols;
    job.magnitudes = coffer_dtype_is_complex(info->value_dtype);
    if (job.grid_rows == 0 || job.grid_cols == 0)
        return COFFER_OK;
    if (job.grid_rows > UINT32_MAX || job.grid_cols > UINT32_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a picture of %" PRIu64 " x %" PRIu64 " cells", grid_rows, grid_cols);
    if (info->type == COFFER_PYCAUSET_IDENTITY || info->type == COFFER_PYCAUSET_UNIT_VECTOR) {
        draw_ones(&job);
        return COFFER_OK;
    }
    if (info->type == COFFER_PYCAUSET_BLOCK &&
        (!coffer__mul_u64(&elements, info->rows, info->cols) || elements > MAX_IMPLIED))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " x %" PRIu64 " values in blocks are too many for a picture",
                            info->rows, info->cols);
    coffer__work_opts work = { .threads = options.threads, .progress = options.progress };
    return draw(&job, &work, err);
}
