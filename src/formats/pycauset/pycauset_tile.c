/* Values of a part of a matrix, through the view. */
#include "formats/pycauset/pycauset_payload.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/elements.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <string.h>

COFFER__INIT_FUNCTION(coffer_pycauset_tile, COFFER_PYCAUSET_TILE_INIT)
COFFER__INIT_FUNCTION(coffer_pycauset_view, COFFER_PYCAUSET_VIEW_INIT)

/* Elements of a row that are made at a time: none is wider than 16 bytes, so their bytes fit a window. */
#define PIECE ((uint64_t)(COFFER__PYCAUSET_PAYLOAD_WINDOW / 16))

/* Stored rows and columns that are transposed at a time: their lines of the cache stay there meanwhile. */
#define BAND_ROWS 64
#define BAND_COLS 1024
#define BAND_PADDING 64 /* keeps the rows of a band out of each other's places in the cache */

typedef struct tile_job {
    coffer__pycauset_grid grid;
    coffer__pycauset_recipe recipe;
    coffer__pycauset_payload payload;
    size_t size; /* of a value */
    uint8_t *band;
} tile_job;

/* A part of the stored elements. */
typedef struct stored_part {
    uint64_t row, rows, col, cols;
} stored_part;

/* ---- Rows as they are stored ---- */

/* The end of the contiguous bytes that the tile needs. */
static uint64_t needed_until(const tile_job *job, const stored_part *part)
{
    uint64_t last = part->row + part->rows - 1;
    if (job->grid.diagonal || part->col > coffer__pycauset_grid_first(&job->grid, part->row) ||
        part->col + part->cols != job->grid.cols)
        return 0;
    return coffer__pycauset_grid_offset(&job->grid, last, coffer__pycauset_grid_first(&job->grid, last),
                                        NULL) +
           coffer__pycauset_grid_row_bytes(&job->grid, last);
}

/* Values of stored elements; all of them are in the row. until : see coffer__pycauset_payload_row. */
static coffer_status make_values(uint8_t *out, tile_job *job, uint64_t row, uint64_t col, uint64_t count,
                                 uint64_t until, coffer_error *err)
{
    while (count > 0) {
        uint64_t n = count < PIECE ? count : PIECE;
        coffer__pycauset_stored_row from;
        coffer_status status =
            coffer__pycauset_payload_row(&from, &job->payload, &job->grid, row, col, n, until, err);
        if (status)
            return status;
        coffer__pycauset_expand_row(out, &job->recipe, &from, (size_t)n);
        out += n * job->size;
        col += n;
        count -= n;
    }
    return COFFER_OK;
}

/* Writes part->rows rows of part->cols values; what a row does not hold is 0. */
static coffer_status make_rows(uint8_t *out, size_t out_stride, tile_job *job, const stored_part *part,
                               coffer_error *err)
{
    uint64_t until = needed_until(job, part), end = part->col + part->cols;
    for (uint64_t row = part->row; row < part->row + part->rows; row++, out += out_stride) {
        uint64_t first = coffer__pycauset_grid_first(&job->grid, row);
        uint64_t last = coffer__pycauset_grid_end(&job->grid, row);
        first = first < part->col ? part->col : first < end ? first : end;
        last = last < first ? first : last < end ? last : end;
        size_t zeros = (size_t)(first - part->col) * job->size;
        memset(out, 0, zeros);
        memset(out + (last - part->col) * job->size, 0, (size_t)(end - last) * job->size);
        coffer_status status = make_values(out + zeros, job, row, first, last - first, until, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* Dense rows that are wanted just as they are stored. */
static coffer_status copy_rows(uint8_t *out, size_t out_stride, tile_job *job, const stored_part *part,
                               coffer_error *err)
{
    uint64_t offset = coffer__pycauset_grid_offset(&job->grid, part->row, part->col, NULL);
    uint64_t rows = part->rows;
    size_t len = (size_t)part->cols * job->size;
    if (part->cols == job->grid.cols && out_stride == len) {
        len *= (size_t)rows;
        rows = 1;
    }
    for (; rows > 0; rows--, out += out_stride, offset += job->grid.row_bytes) {
        coffer_status status = coffer__pycauset_verify_read(job->payload.matrix, offset, len, err);
        if (status)
            return status;
        if (job->payload.view)
            memcpy(out, job->payload.view + offset, len);
        else
            status = coffer_source_read_at(out, job->payload.source, job->payload.payload_offset + offset,
                                           len, err);
        if (status)
            return status;
        if (job->payload.number > 1)
            coffer__swap_numbers(out, job->payload.number, len / job->payload.number);
    }
    return COFFER_OK;
}

/* ---- The other way round ---- */

/* Puts a band, transposed, to where it belongs: element (r, c) of the stored matrix to out[c - col][r - row].
 * mirror : only the elements above the diagonal. */
static void place_band(uint8_t *out, size_t out_stride, const tile_job *job, const stored_part *part,
                       size_t band_stride, bool mirror)
{
    if (!mirror || part->row + part->rows <= part->col) {
        coffer__pycauset_transpose(out, out_stride, job->band, band_stride, (size_t)part->rows,
                                   (size_t)part->cols, job->size);
        return;
    }
    for (uint64_t r = 0; r < part->rows; r++) {
        uint64_t above = part->row + r + 1 > part->col ? part->row + r + 1 - part->col : 0;
        for (uint64_t c = above; c < part->cols; c++)
            memcpy(out + c * out_stride + r * job->size, job->band + r * band_stride + c * job->size,
                   job->size);
    }
}

static coffer_status transpose_part(uint8_t *out, size_t out_stride, tile_job *job, const stored_part *part,
                                    bool mirror, coffer_error *err)
{
    size_t widest = (size_t)(part->cols < BAND_COLS ? part->cols : BAND_COLS);
    size_t band_stride = widest * job->size + BAND_PADDING;
    if (!job->band && !(job->band = coffer__malloc(BAND_ROWS * (BAND_COLS * job->size + BAND_PADDING))))
        return coffer__fail_no_memory(err, BAND_ROWS * (BAND_COLS * job->size + BAND_PADDING));
    for (uint64_t r = 0; r < part->rows; r += BAND_ROWS) {
        for (uint64_t c = 0; c < part->cols; c += BAND_COLS) {
            stored_part band = { part->row + r, part->rows - r, part->col + c, part->cols - c };
            band.rows = band.rows < BAND_ROWS ? band.rows : BAND_ROWS;
            band.cols = band.cols < BAND_COLS ? band.cols : BAND_COLS;
            if (mirror && band.col + band.cols <= band.row)
                continue;
            coffer_status status = make_rows(job->band, band_stride, job, &band, err);
            if (status)
                return status;
            place_band(out + c * out_stride + r * job->size, out_stride, job, &band, band_stride, mirror);
        }
    }
    return COFFER_OK;
}

/* ---- Kinds of matrices ---- */

/* The diagonal is its own mirror image, and no negative. */
static coffer_status restore_diagonal(uint8_t *out, size_t out_stride, tile_job *job,
                                      const coffer_pycauset_tile *tile, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; i < tile->rows && !status; i++) {
        uint64_t at = tile->row + i;
        if (at >= tile->col && at < tile->col + tile->cols)
            status = make_values(out + i * out_stride + (at - tile->col) * job->size, job, at, at, 1, 0, err);
    }
    return status;
}

static coffer_status read_mirrored(uint8_t *out, size_t out_stride, tile_job *job,
                                   const coffer_pycauset_tile *tile, coffer_error *err)
{
    stored_part upper = { tile->row, tile->rows, tile->col, tile->cols };
    stored_part lower = { tile->col, tile->cols, tile->row, tile->rows };
    bool turned = job->grid.negative && job->grid.transposed;
    job->recipe.negated = turned;
    coffer_status status = make_rows(out, out_stride, job, &upper, err);
    job->recipe.negated = false;
    if (!status && turned)
        status = restore_diagonal(out, out_stride, job, tile, err);
    job->recipe.negated = job->grid.negative && !turned;
    if (!status && tile->row + tile->rows > tile->col + 1)
        status = transpose_part(out, out_stride, job, &lower, true, err);
    return status;
}

static coffer_status read_stored(uint8_t *out, size_t out_stride, tile_job *job,
                                 const coffer_pycauset_tile *tile, coffer_error *err)
{
    stored_part straight = { tile->row, tile->rows, tile->col, tile->cols };
    stored_part turned = { tile->col, tile->cols, tile->row, tile->rows };
    bool plain =
        !job->grid.triangular && !job->grid.diagonal && !coffer__pycauset_recipe_changes(&job->recipe);
    if (job->grid.mirrored)
        return read_mirrored(out, out_stride, job, tile, err);
    if (job->grid.transposed && tile->cols == 1 &&
        out_stride == job->size) { /* a column without gaps is a row */
        straight = turned;
        out_stride *= (size_t)straight.cols;
    } else if (job->grid.transposed) {
        return transpose_part(out, out_stride, job, &turned, false, err);
    }
    return plain ? copy_rows(out, out_stride, job, &straight, err)
                 : make_rows(out, out_stride, job, &straight, err);
}

static void fill_row(uint8_t *out, const uint8_t *value, size_t size, uint64_t count)
{
    static const uint8_t zeros[16];
    if (memcmp(value, zeros, size) == 0) {
        memset(out, 0, (size_t)count * size);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(out + i * size, value, size);
}

/* The identity and unit vectors: a one in a row here and there, nothing is stored. */
static void make_ones(uint8_t *out, size_t out_stride, const coffer_pycauset_info *info,
                      const coffer_pycauset_tile *tile, coffer__pycauset_recipe recipe)
{
    static const uint8_t digits[2] = { 0, 1 };
    uint8_t values[2 * 16];
    size_t size = coffer_dtype_size(recipe.to);
    coffer__pycauset_stored_row from = { digits, NULL, 0 };
    recipe.stored = COFFER_DTYPE_BOOL;
    coffer__pycauset_expand_row(values, &recipe, &from, 2);
    for (uint64_t row = tile->row; row < tile->row + tile->rows; row++, out += out_stride) {
        /* In a unit vector either row or column is always 0. */
        uint64_t one_at = info->type == COFFER_PYCAUSET_IDENTITY ? row : info->unit_index - row;
        fill_row(out, values, size, tile->cols);
        if (one_at - tile->col < tile->cols) /* a place before the tile wraps around */
            memcpy(out + (one_at - tile->col) * size, values + size, size);
    }
}

static coffer_status read_payload(uint8_t *out, size_t out_stride, const coffer_pycauset *matrix,
                                  const coffer_pycauset_tile *tile, coffer_dtype dtype, coffer_error *err)
{
    tile_job job = { .recipe = coffer__pycauset_recipe_for(&matrix->info, dtype),
                     .size = coffer_dtype_size(dtype) };
    coffer__pycauset_grid_init(&job.grid, &matrix->info);
    coffer__pycauset_payload_init(&job.payload, matrix);
    coffer_status status = read_stored(out, out_stride, &job, tile, err);
    if (!status)
        status = coffer__pycauset_payload_intact(&job.payload, err);
    coffer__pycauset_payload_free(&job.payload);
    coffer__free(job.band);
    return status;
}

/* ---- The calls ---- */

static coffer_status check_tile(size_t *out_stride, const coffer_pycauset *matrix,
                                const coffer_pycauset_tile *tile, coffer_dtype dtype, coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    size_t row_bytes, all;
    if (info->type == COFFER_PYCAUSET_UNKNOWN)
        return coffer__pycauset_fail_unknown(matrix, err);
    if (!coffer__range_fits(tile->row, tile->rows, info->rows) ||
        !coffer__range_fits(tile->col, tile->cols, info->cols))
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " x %" PRIu64 " values from (%" PRIu64 ", %" PRIu64
                            ") on, the matrix has %" PRIu64 " x %" PRIu64,
                            tile->rows, tile->cols, tile->row, tile->col, info->rows, info->cols);
    if (!coffer__elements_can_convert(dtype, info->value_dtype))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "cannot convert values of %s to %s%s", coffer_dtype_name(info->value_dtype),
                            coffer_dtype_name(dtype),
                            coffer_dtype_is_complex(info->value_dtype) ? "; use c128" : "");
    if (!coffer__to_size(&row_bytes, tile->cols) ||
        !coffer__mul_size(&row_bytes, row_bytes, coffer_dtype_size(dtype)) ||
        !coffer__mul_size(&all, *out_stride ? *out_stride : row_bytes, (size_t)tile->rows))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "%" PRIu64 " x %" PRIu64 " values do not fit into memory", tile->rows,
                            tile->cols);
    if (*out_stride == 0)
        *out_stride = row_bytes;
    if (*out_stride < row_bytes)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "rows of %zu bytes do not fit a stride of %zu", row_bytes, *out_stride);
    return COFFER_OK;
}

coffer_status coffer_pycauset_read_tile(void *out, size_t out_stride, const coffer_pycauset *matrix,
                                        const coffer_pycauset_tile *tile, coffer_dtype dtype,
                                        coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    coffer_pycauset_tile wanted = COFFER_PYCAUSET_TILE_INIT;
    coffer_status status = coffer__take_options(&wanted, sizeof wanted, tile, err);
    if (status)
        return status;
    tile = &wanted;
    if (dtype == COFFER_DTYPE_NONE)
        dtype = info->value_dtype;
    status = check_tile(&out_stride, matrix, tile, dtype, err);
    if (status || tile->rows == 0 || tile->cols == 0)
        return status;
    switch (info->type) {
    case COFFER_PYCAUSET_BLOCK:
        return coffer__pycauset_read_blocks(out, out_stride, matrix, tile, dtype, err);
    case COFFER_PYCAUSET_IDENTITY:
    case COFFER_PYCAUSET_UNIT_VECTOR:
        make_ones(out, out_stride, info, tile, coffer__pycauset_recipe_for(info, dtype));
        return COFFER_OK;
    default:
        return read_payload(out, out_stride, matrix, tile, dtype, err);
    }
}

coffer_status coffer_pycauset_read_rows(void *out, const coffer_pycauset *matrix, uint64_t first,
                                        uint64_t count, coffer_dtype dtype, coffer_error *err)
{
    coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(first, count, 0, matrix->info.cols);
    return coffer_pycauset_read_tile(out, 0, matrix, &tile, dtype, err);
}

coffer_status coffer_pycauset_get(double *real, double *imag, const coffer_pycauset *matrix, uint64_t row,
                                  uint64_t col, coffer_error *err)
{
    coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(row, 1, col, 1);
    double pair[2] = { 0, 0 };
    coffer_status status = coffer_pycauset_read_tile(pair, 0, matrix, &tile, COFFER_DTYPE_C128, err);
    if (status)
        return status;
    if (real)
        *real = pair[0];
    if (imag)
        *imag = pair[1];
    return COFFER_OK;
}

coffer_status coffer_pycauset_get_view(coffer_pycauset_view *out, const coffer_pycauset *matrix,
                                       coffer_error *err)
{
    const coffer_pycauset_info *info = &matrix->info;
    coffer__pycauset_payload payload;
    bool strided = coffer__pycauset_layout_of(info->type) == COFFER_PYCAUSET_RAW_DENSE &&
                   info->dtype != COFFER_DTYPE_BIT && info->dtype != COFFER_DTYPE_C32;
    if (!strided)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "%s of %s is not stored with strides", coffer_pycauset_type_name(info->type),
                            coffer_pycauset_dtype_name(info->dtype));
    coffer__pycauset_payload_init(&payload, matrix);
    if (COFFER__BIG_ENDIAN && payload.number > 1)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "the elements are little-endian, this machine is not; read the rows instead");
    if (!payload.view)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE, "not mapped");
    int64_t element = (int64_t)coffer_dtype_size(info->dtype);
    int64_t line = (int64_t)info->stored_cols * element;
    coffer_pycauset_view view = {
        .data = payload.view,
        .dtype = info->dtype,
        .rows = info->rows,
        .cols = info->cols,
        .row_stride = info->transposed ? element : line,
        .col_stride = info->transposed ? line : element,
    };
    return coffer__give_struct(out, &view, sizeof view, err);
}
