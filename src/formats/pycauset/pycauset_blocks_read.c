/* Values of a block matrix, put together from those of its children. */
#include "formats/pycauset/pycauset_blocks.h"

#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/sorted.h"

#include <inttypes.h>
#include <string.h>

/* Rows and columns of a child that are converted or transposed at a time. */
#define BAND_ROWS 64
#define BAND_COLS 1024
#define BAND_STRIDE (BAND_COLS * 16 + 64)

typedef struct block_job {
    const coffer_pycauset *matrix;
    struct coffer__pycauset_blocks *blocks;
    coffer__pycauset_recipe recipe;
    bool straight; /* the children's values are those of the matrix, at their places */
    bool transposed;
    uint8_t *out; /* value (row, col) of the stored matrix is at out[row - origin] … */
    size_t out_stride, size;
    coffer_pycauset_tile stored; /* … with this origin; transposed, out[col - origin] */
    uint8_t *band, *line;
} block_job;

static uint8_t *place_of(const block_job *job, uint64_t row, uint64_t col)
{
    uint64_t i = row - job->stored.row, j = col - job->stored.col;
    return job->transposed ? job->out + j * job->out_stride + i * job->size
                           : job->out + i * job->out_stride + j * job->size;
}

/* A band of a child: read, changed row by row, put where it belongs. */
static coffer_status place_band(block_job *job, const coffer_pycauset *child,
                                const coffer_pycauset_tile *inside, uint64_t row, uint64_t col,
                                coffer_error *err)
{
    coffer_status status =
        coffer_pycauset_read_tile(job->band, BAND_STRIDE, child, inside, job->recipe.stored, err);
    if (status)
        return status;
    for (uint64_t i = 0; i < inside->rows; i++) {
        uint8_t *values = job->band + i * BAND_STRIDE;
        coffer__pycauset_stored_row from = { values, NULL, 0 };
        coffer__pycauset_expand_row(job->line, &job->recipe, &from, (size_t)inside->cols);
        memcpy(job->transposed ? values : place_of(job, row + i, col), job->line,
               (size_t)inside->cols * job->size);
    }
    if (job->transposed)
        coffer__pycauset_transpose(place_of(job, row, col), job->out_stride, job->band, BAND_STRIDE,
                                   (size_t)inside->rows, (size_t)inside->cols, job->size);
    return COFFER_OK;
}

static coffer_status place_changed(block_job *job, const coffer_pycauset *child,
                                   const coffer_pycauset_tile *inside, uint64_t row, uint64_t col,
                                   coffer_error *err)
{
    for (uint64_t i = 0; i < inside->rows; i += BAND_ROWS) {
        for (uint64_t j = 0; j < inside->cols; j += BAND_COLS) {
            coffer_pycauset_tile part = { sizeof part, inside->row + i, inside->rows - i, inside->col + j,
                                          inside->cols - j };
            part.rows = part.rows < BAND_ROWS ? part.rows : BAND_ROWS;
            part.cols = part.cols < BAND_COLS ? part.cols : BAND_COLS;
            coffer_status status = place_band(job, child, &part, row + i, col + j, err);
            if (status)
                return status;
        }
    }
    return COFFER_OK;
}

static coffer_status check_child_shape(const coffer_pycauset *child, uint64_t rows, uint64_t cols,
                                       coffer_error *err)
{
    if (child->info.rows == rows && child->info.cols == cols)
        return COFFER_OK;
    coffer__fail(err, COFFER_E_INCONSISTENT, COFFER_OFFSET_NONE,
                 "%" PRIu64 " x %" PRIu64 " values, the manifest has room for %" PRIu64 " x %" PRIu64,
                 child->info.rows, child->info.cols, rows, cols);
    return coffer__fail_other(err, COFFER_E_INCONSISTENT, coffer_source_name(child->source));
}

/* The part of a block that the tile has. */
static coffer_status place_block(block_job *job, size_t block_row, size_t block_col, coffer_error *err)
{
    const coffer__pycauset_manifest *manifest = &job->blocks->manifest;
    const uint64_t *rows = manifest->row_edges + block_row, *cols = manifest->col_edges + block_col;
    const coffer_pycauset_tile *tile = &job->stored;
    uint64_t row = tile->row > rows[0] ? tile->row : rows[0], col = tile->col > cols[0] ? tile->col : cols[0];
    uint64_t row_end = tile->row + tile->rows < rows[1] ? tile->row + tile->rows : rows[1];
    uint64_t col_end = tile->col + tile->cols < cols[1] ? tile->col + tile->cols : cols[1];
    coffer_pycauset_tile inside =
        COFFER_PYCAUSET_TILE(row - rows[0], row_end - row, col - cols[0], col_end - col);
    coffer__pycauset_block_child *child;
    size_t index = manifest->child_of[block_row * manifest->block_cols + block_col];
    coffer_status status = coffer__pycauset_blocks_acquire(&child, job->blocks, job->matrix, index, err);
    if (status)
        return status;
    status = check_child_shape(child->matrix, rows[1] - rows[0], cols[1] - cols[0], err);
    if (!status)
        status = job->straight ? coffer_pycauset_read_tile(place_of(job, row, col), job->out_stride,
                                                           child->matrix, &inside, job->recipe.to, err)
                               : place_changed(job, child->matrix, &inside, row, col, err);
    coffer__pycauset_blocks_release(job->blocks, child);
    return status;
}

/* The block that has a row or column. */
static size_t find_block(const uint64_t *edges, size_t count, uint64_t at)
{
    return coffer__last_of(coffer__count_up_to(edges, count, sizeof *edges, 0, at));
}

static coffer_status place_all(block_job *job, coffer_error *err)
{
    const coffer__pycauset_manifest *manifest = &job->blocks->manifest;
    const coffer_pycauset_tile *tile = &job->stored;
    size_t first_row = find_block(manifest->row_edges, manifest->block_rows, tile->row);
    size_t first_col = find_block(manifest->col_edges, manifest->block_cols, tile->col);
    for (size_t i = first_row; i < manifest->block_rows && manifest->row_edges[i] < tile->row + tile->rows;
         i++) {
        for (size_t j = first_col;
             j < manifest->block_cols && manifest->col_edges[j] < tile->col + tile->cols; j++) {
            coffer_status status = place_block(job, i, j, err);
            if (status)
                return status;
        }
    }
    return COFFER_OK;
}

/* How the children are read, and how their values are converted then. */
static void choose_recipe(block_job *job, const coffer_pycauset_info *info, coffer_dtype dtype)
{
    bool pairs = coffer_dtype_is_complex(dtype);
    job->recipe = coffer__pycauset_recipe_for(info, dtype);
    job->recipe.conjugated = info->conjugated && pairs;
    job->recipe.stored = dtype;
    if (job->recipe.scaled)
        job->recipe.stored = pairs ? COFFER_DTYPE_C128 : COFFER_DTYPE_F64;
    else if (dtype == COFFER_DTYPE_C32) /* stored, it would be two planes */
        job->recipe.stored = COFFER_DTYPE_C64;
    job->transposed = info->transposed;
    job->straight = !job->transposed && !job->recipe.scaled && !job->recipe.conjugated;
}

coffer_status coffer__pycauset_read_blocks(uint8_t *out, size_t out_stride, const coffer_pycauset *matrix,
                                           const coffer_pycauset_tile *tile, coffer_dtype dtype,
                                           coffer_error *err)
{
    block_job job = { .matrix = matrix, .out_stride = out_stride, .stored = *tile };
    coffer_status status = coffer__pycauset_blocks_get(&job.blocks, matrix, err);
    if (status)
        return status;
    job.out = out;
    job.size = coffer_dtype_size(dtype);
    choose_recipe(&job, &matrix->info, dtype);
    if (job.transposed)
        job.stored = (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(tile->col, tile->cols, tile->row, tile->rows);
    if (!job.straight) {
        job.band = coffer__malloc((size_t)BAND_ROWS * BAND_STRIDE);
        job.line = coffer__malloc((size_t)BAND_COLS * 16);
        if (!job.band || !job.line)
            status = coffer__fail_no_memory(err, (size_t)BAND_ROWS * BAND_STRIDE);
    }
    if (!status)
        status = place_all(&job, err);
    coffer__free(job.band);
    coffer__free(job.line);
    return status;
}

void coffer__pycauset_settle_value_dtype(coffer_pycauset *matrix)
{
    struct coffer__pycauset_blocks *blocks;
    coffer_dtype common = COFFER_DTYPE_BOOL;
    const coffer_pycauset_info *info = &matrix->info;
    if (info->type != COFFER_PYCAUSET_BLOCK || info->dtype != COFFER_DTYPE_NONE ||
        coffer__pycauset_blocks_get(&blocks, matrix, NULL))
        return;
    for (size_t i = 0; i < blocks->manifest.child_count; i++) {
        coffer__pycauset_block_child *child;
        if (coffer__pycauset_blocks_acquire(&child, blocks, matrix, i, NULL))
            return;
        common = coffer__elements_promote(common, child->matrix->info.value_dtype);
        coffer__pycauset_blocks_release(blocks, child);
    }
    if (info->scalar_real != 1.0 || info->scalar_imag != 0.0)
        common = coffer_dtype_is_complex(common) || info->scalar_imag != 0.0 ? COFFER_DTYPE_C128
                                                                             : COFFER_DTYPE_F64;
    matrix->info.value_dtype = common;
}

/* Findings about the children of a block matrix. */

/* Takes over what was found in a child, with its name in front. */
static void take_findings(coffer_report *out, const coffer_report *found, const char *child)
{
    for (size_t i = 0; i < coffer_report_count(found); i++) {
        const coffer_finding *finding = coffer_report_at(found, i);
        coffer__report_add(out, finding->code, finding->severity, COFFER_OFFSET_NONE, "child \"%s\": %s",
                           child, finding->text);
    }
}

/* The child as a file of its own. */
static coffer_status check_inside(coffer_report *out, const coffer_pycauset *matrix, const char *name,
                                  const coffer_check_opts *opts, coffer_error *err)
{
    coffer_report *found = NULL;
    coffer_status status = coffer_report_new(&found, matrix->limits.findings, err);
    if (status)
        return status;
    status = coffer__pycauset_check_open(found, matrix, opts, err);
    if (!status)
        take_findings(out, found, name);
    coffer_report_free(found);
    return status;
}

/* Findings about a child that could be opened. */
typedef struct child_shape {
    bool known;
    uint64_t rows, cols;
} child_shape;

static void check_shapes(coffer_report *out, const coffer__pycauset_manifest *manifest,
                         const child_shape *shapes)
{
    for (size_t i = 0; i < manifest->block_rows * manifest->block_cols; i++) {
        const uint64_t *row_edges = manifest->row_edges + i / manifest->block_cols;
        const uint64_t *col_edges = manifest->col_edges + i % manifest->block_cols;
        uint64_t rows = row_edges[1] - row_edges[0], cols = col_edges[1] - col_edges[0];
        const child_shape *shape = &shapes[manifest->child_of[i]];
        if (shape->known && (shape->rows != rows || shape->cols != cols))
            coffer__report_add(out, COFFER_E_INCONSISTENT, COFFER_ERROR, COFFER_OFFSET_NONE,
                               "child \"%s\" has %" PRIu64 " x %" PRIu64
                               " values, the manifest has room for %" PRIu64 " x %" PRIu64,
                               manifest->children[manifest->child_of[i]].path, shape->rows, shape->cols, rows,
                               cols);
    }
}

static coffer_status check_child(coffer_report *out, child_shape *shape,
                                 struct coffer__pycauset_blocks *blocks, const coffer_pycauset *matrix,
                                 size_t index, const coffer_check_opts *opts, coffer_error *err)
{
    const char *name = blocks->manifest.children[index].path;
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__pycauset_block_child *child;
    coffer_status status = coffer__pycauset_blocks_acquire(&child, blocks, matrix, index, &failure);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &failure);
    if (status) {
        coffer__report_add(out, status, COFFER_ERROR, COFFER_OFFSET_NONE, "child \"%s\": %s", name,
                           failure.text);
        return COFFER_OK;
    }
    *shape = (child_shape){ true, child->matrix->info.rows, child->matrix->info.cols };
    status = check_inside(out, child->matrix, name, opts, err);
    coffer__pycauset_blocks_release(blocks, child);
    return status;
}

coffer_status coffer__pycauset_check_blocks(coffer_report *out, const coffer_pycauset *matrix,
                                            const coffer_check_opts *opts, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    struct coffer__pycauset_blocks *blocks;
    coffer_status status = coffer__pycauset_blocks_get(&blocks, matrix, &failure);
    if (status == COFFER_E_NO_MEMORY)
        return coffer__fail_copy(err, &failure);
    if (status) {
        coffer__report_add_error(out, COFFER_ERROR, &failure);
        return COFFER_OK;
    }
    size_t count = blocks->manifest.child_count;
    child_shape *shapes = coffer__calloc(count, sizeof *shapes);
    if (!shapes)
        return coffer__fail_no_memory(err, count * sizeof *shapes);
    for (size_t i = 0; i < count && !status && !coffer__report_full(out); i++)
        status = check_child(out, &shapes[i], blocks, matrix, i, opts, err);
    if (!status)
        check_shapes(out, &blocks->manifest, shapes);
    coffer__free(shapes);
    return status;
}
