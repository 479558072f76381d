/* The values of a matrix in Matrix Market form: coordinates of what is not zero, or an array by columns. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "convert/matrices/pycauset_export.h"
#include "convert/matrices/pycauset_values.h"
#include "convert/text_out.h"
#include "outside/arrays/mtx.h"
#include "outside/text/number.h"

#include <inttypes.h>
#include <string.h>

#define LINE_SIZE (2 * (COFFER__DECIMAL_U64 + 1) + COFFER__PYCAUSET_VALUE_TEXT + 2)

typedef struct mtx_export {
    coffer__pycauset_export common;
    bool coordinate;
    coffer__mtx_field field;
    coffer__mtx_symmetry symmetry;
    coffer__sink *sink;
    /* The batch that becomes text: a tile by rows, or by columns. */
    coffer_pycauset_tile tile;
    const uint8_t *values;
    uint8_t *columns; /* room for the values of a tile by columns */
} mtx_export;

/* ---- Banner and fields ---- */

static coffer_status choose_layout(mtx_export *export, coffer_error *err)
{
    const char *name = coffer__job_setting(export->common.job, "layout");
    switch (export->common.info->type) {
    case COFFER_PYCAUSET_CAUSAL:
    case COFFER_PYCAUSET_TRIANGULAR_FLOAT:
    case COFFER_PYCAUSET_TRIANGULAR_INTEGER:
    case COFFER_PYCAUSET_DIAGONAL:
    case COFFER_PYCAUSET_IDENTITY:
    case COFFER_PYCAUSET_UNIT_VECTOR:
        export->coordinate = true;
        break;
    default:
        export->coordinate = export->common.dtype == COFFER_DTYPE_BOOL;
        break;
    }
    if (!name)
        return COFFER_OK;
    export->coordinate = strcmp(name, "coordinate") == 0;
    if (!export->coordinate && strcmp(name, "array") != 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "layout: coordinate or array, not \"%s\"", name);
    return COFFER_OK;
}

static coffer__mtx_field field_of(coffer_dtype dtype, bool coordinate)
{
    if (dtype == COFFER_DTYPE_BOOL)
        return coordinate ? COFFER__MTX_PATTERN : COFFER__MTX_INTEGER;
    if (coffer_dtype_is_complex(dtype))
        return COFFER__MTX_COMPLEX;
    return coffer_dtype_is_float(dtype) ? COFFER__MTX_REAL : COFFER__MTX_INTEGER;
}

/* Matrix Market has no room for the diagonal of a skew-symmetric matrix. */
static coffer_status has_diagonal(bool *out, mtx_export *export, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    *out = false;
    for (uint64_t i = 0; !status && !*out && i < export->common.info->rows; i++) {
        const uint8_t *value;
        coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(i, 1, i, 1);
        status = coffer__pycauset_export_tile(&value, &tile, &export->common, err);
        if (!status)
            *out = !coffer__pycauset_is_zero(value, export->common.dtype);
    }
    return status;
}

static coffer_status choose_symmetry(mtx_export *export, coffer_error *err)
{
    const coffer__pycauset_export *common = &export->common;
    export->symmetry = COFFER__MTX_GENERAL;
    if (!common->is_whole || common->part != COFFER__PYCAUSET_ALL)
        return COFFER_OK;
    if (common->info->type == COFFER_PYCAUSET_SYMMETRIC)
        export->symmetry = COFFER__MTX_SYMMETRIC;
    if (common->info->type != COFFER_PYCAUSET_ANTISYMMETRIC)
        return COFFER_OK;
    bool found;
    coffer_status status = has_diagonal(&found, export, err);
    if (!status && !found)
        export->symmetry = COFFER__MTX_SKEW;
    return status;
}

/* ---- Text ---- */

/* A value mirrored at the diagonal has the opposite sign, except zero. */
static char *turn_sign(char *start, char *end)
{
    for (char *number = start; number < end;) {
        char *stop = memchr(number, ' ', (size_t)(end - number));
        if (!stop)
            stop = end;
        bool zero = true;
        for (char *c = number; c < stop && zero; c++)
            zero = *c == '-' || *c == '.' || *c == '0';
        if (*number == '-') {
            memmove(number, number + 1, (size_t)(end - number) - 1);
            end--;
            stop--;
        } else if (!zero && *number != 'n') {
            memmove(number + 1, number, (size_t)(end - number));
            *number = '-';
            end++;
            stop++;
        }
        number = stop + 1;
    }
    return end;
}

/* A line with a value, and its place in front where there is one. */
static char *put_line(char *to, const mtx_export *export, const uint64_t *place, const uint8_t *value)
{
    if (place) {
        to = coffer__put_u64(to, place[0] + 1);
        *to++ = ' ';
        to = coffer__put_u64(to, place[1] + 1);
    }
    if (export->field != COFFER__MTX_PATTERN) {
        if (place)
            *to++ = ' ';
        char *start = to;
        to = coffer__pycauset_put_value(to, value, export->common.dtype);
        if (export->symmetry == COFFER__MTX_SKEW)
            to = turn_sign(start, to);
    }
    *to++ = '\n';
    return to;
}

static coffer_status write_header(mtx_export *export, uint64_t entries, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    const coffer_pycauset_tile *tile = &export->common.selection;
    coffer__buffer_printf(&text, "%%%%MatrixMarket matrix %s %s %s\n%" PRIu64 " %" PRIu64,
                          export->coordinate ? "coordinate" : "array", coffer__mtx_field_names[export->field],
                          coffer__mtx_symmetry_names[export->symmetry], tile->rows, tile->cols);
    if (export->coordinate)
        coffer__buffer_printf(&text, " %" PRIu64, entries);
    coffer__buffer_append(&text, "\n", 1);
    coffer_status status = text.failed ? coffer__fail_no_memory(err, text.len)
                                       : coffer__sink_write(export->sink, text.data, text.len, err);
    coffer__buffer_free(&text);
    return status;
}

/* ---- Values in the order of rows ---- */

typedef coffer_status (*visitor)(mtx_export *export, uint64_t row, uint64_t col, const uint8_t *value,
                                 void *context, coffer_error *err);

/* Goes through the values; of a symmetric matrix through its upper triangle, whose rows are the columns of
 * the lower one. */
static coffer_status visit(mtx_export *export, visitor each, void *context, coffer_error *err)
{
    size_t size = coffer_dtype_size(export->common.dtype);
    uint64_t skipped = export->symmetry == COFFER__MTX_SKEW ? 1 : 0;
    coffer__pycauset_export_rewind(&export->common);
    for (;;) {
        const uint8_t *values;
        coffer_pycauset_tile tile;
        coffer_status status = coffer__pycauset_export_next(&values, &tile, &export->common, err);
        if (status || !values)
            return status;
        for (uint64_t row = tile.row; !status && row < tile.row + tile.rows; row++) {
            uint64_t col = tile.col, end = tile.col + tile.cols;
            const uint8_t *first = values + (row - tile.row) * tile.cols * size;
            if (export->symmetry != COFFER__MTX_GENERAL && row + skipped > col)
                col = row + skipped < end ? row + skipped : end;
            for (; !status && col < end; col++)
                status = each(export, row, col, first + (col - tile.col) * size, context, err);
        }
        if (status)
            return status;
    }
}

static coffer_status count_entry(mtx_export *export, uint64_t row, uint64_t col, const uint8_t *value,
                                 void *context, coffer_error *err)
{
    uint64_t *count = context;
    (void)row, (void)col, (void)err;
    *count += !coffer__pycauset_is_zero(value, export->common.dtype);
    return COFFER_OK;
}

static coffer_status next_rows(void *context, uint64_t *items, coffer_error *err)
{
    mtx_export *export = context;
    coffer_status status = coffer__pycauset_export_next(&export->values, &export->tile, &export->common, err);
    *items = !status && export->values ? export->tile.rows * export->tile.cols : 0;
    return status;
}

/* A symmetric matrix is written by its upper triangle, whose rows are the columns of the lower one. */
static coffer_status put_rows(void *context, coffer__buffer *text, uint64_t first, uint64_t count,
                              uint32_t worker, coffer_error *err)
{
    const mtx_export *export = context;
    const coffer_pycauset_tile *tile = &export->tile, *all = &export->common.selection;
    size_t size = coffer_dtype_size(export->common.dtype);
    bool whole = export->symmetry == COFFER__MTX_GENERAL;
    uint64_t skipped = export->symmetry == COFFER__MTX_SKEW ? 1 : 0;
    uint64_t row = tile->row - all->row + first / tile->cols, col = tile->col - all->col + first % tile->cols;
    char *start = (char *)coffer__buffer_extend(text, (size_t)count * LINE_SIZE), *to = start;
    (void)worker, (void)err;
    if (!start)
        return COFFER_OK;
    for (uint64_t i = first; i < first + count; i++) {
        const uint8_t *value = export->values + i * size;
        const uint64_t place[2] = { whole ? row : col, whole ? col : row };
        bool is_wanted = (whole || col >= row + skipped) &&
                         !(export->coordinate && coffer__pycauset_is_zero(value, export->common.dtype));
        if (is_wanted)
            to = put_line(to, export, export->coordinate ? place : NULL, value);
        if (++col == tile->col - all->col + tile->cols) {
            col = tile->col - all->col;
            row++;
        }
    }
    text->len -= (size_t)count * LINE_SIZE - (size_t)(to - start);
    return COFFER_OK;
}

static coffer_status write_rows(mtx_export *export, coffer_error *err)
{
    const coffer_pycauset_tile *all = &export->common.selection;
    const coffer__text_out out = { all->rows * all->cols, COFFER__PYCAUSET_TEXT_PIECE, next_rows, put_rows };
    coffer__pycauset_export_rewind(&export->common);
    return coffer__text_out_run(export->sink, &out, export, err);
}

static coffer_status write_coordinates(mtx_export *export, coffer_error *err)
{
    uint64_t entries = 0;
    coffer_status status = visit(export, count_entry, &entries, err);
    if (!status)
        status = write_header(export, entries, err);
    return status ? status : write_rows(export, err);
}

/* ---- Values in the order of columns ---- */

static coffer_status next_columns(void *context, uint64_t *items, coffer_error *err)
{
    mtx_export *export = context;
    const coffer_pycauset_tile *all = &export->common.selection;
    coffer_pycauset_tile *tile = &export->tile; /* the last one, of no size before the first */
    uint64_t capacity = export->common.capacity;
    tile->row += tile->rows;
    if (tile->row == all->row + all->rows) {
        tile->row = all->row;
        tile->col += tile->cols;
    }
    uint64_t rows_left = all->row + all->rows - tile->row, cols_left = all->col + all->cols - tile->col;
    uint64_t most = all->rows > 0 && all->rows < capacity ? capacity / all->rows : 1;
    tile->rows = rows_left < capacity ? rows_left : capacity;
    tile->cols = cols_left < most ? cols_left : most;
    *items = tile->rows * tile->cols;
    if (*items == 0)
        return COFFER_OK;
    const uint8_t *values;
    size_t size = coffer_dtype_size(export->common.dtype);
    coffer_status status = coffer__pycauset_export_tile(&values, tile, &export->common, err);
    if (status)
        return status;
    coffer__pycauset_columns_to_rows(export->columns, (size_t)tile->rows * size, values, (size_t)tile->cols,
                                     (size_t)tile->rows, size);
    return coffer__job_progress(export->common.job, tile->col - all->col, all->cols, err);
}

static coffer_status put_columns(void *context, coffer__buffer *text, uint64_t first, uint64_t count,
                                 uint32_t worker, coffer_error *err)
{
    const mtx_export *export = context;
    (void)worker, (void)err;
    coffer__pycauset_put_values(text, export->columns, first, (size_t)count, export->common.dtype, '\n');
    return COFFER_OK;
}

static coffer_status write_columns(mtx_export *export, coffer_error *err)
{
    const coffer_pycauset_tile *all = &export->common.selection;
    const coffer__text_out out = { all->rows * all->cols, COFFER__PYCAUSET_TEXT_PIECE, next_columns,
                                   put_columns };
    size_t size = coffer_dtype_size(export->common.dtype);
    export->tile = (coffer_pycauset_tile)COFFER_PYCAUSET_TILE(all->row, 0, all->col, 0);
    export->columns = coffer__alloc_array((size_t) export->common.capacity, size);
    if (!export->columns)
        return coffer__fail_no_memory(err, export->common.capacity * size);
    return coffer__text_out_run(export->sink, &out, export, err);
}

static coffer_status write_array(mtx_export *export, coffer_error *err)
{
    coffer_status status = write_header(export, 0, err);
    if (status)
        return status;
    return export->symmetry == COFFER__MTX_GENERAL ? write_columns(export, err) : write_rows(export, err);
}

static coffer_status find_large(mtx_export *export, uint64_t row, uint64_t col, const uint8_t *value,
                                void *context, coffer_error *err)
{
    bool *found = context;
    uint64_t number;
    (void)export, (void)row, (void)col, (void)err;
    memcpy(&number, value, sizeof number);
    *found = *found || number > INT64_MAX;
    return COFFER_OK;
}

/* Readers take "integer" for 64 bits with a sign; larger ones have a field of their own. */
static coffer_status choose_field(mtx_export *export, coffer_error *err)
{
    bool large = false;
    coffer_status status = COFFER_OK;
    export->field = field_of(export->common.dtype, export->coordinate);
    if (export->common.dtype == COFFER_DTYPE_U64)
        status = visit(export, find_large, &large, err);
    if (large)
        export->field = COFFER__MTX_UNSIGNED;
    coffer__pycauset_export_rewind(&export->common);
    return status;
}

static coffer_status write_all(mtx_export *export, coffer_error *err)
{
    coffer_status status = choose_layout(export, err);
    if (status)
        return status;
    status = choose_symmetry(export, err);
    if (!status)
        status = choose_field(export, err);
    if (status)
        return status;
    status = coffer__pycauset_export_create(&export->sink, &export->common, err);
    if (status)
        return status;
    return export->coordinate ? write_coordinates(export, err) : write_array(export, err);
}

coffer_status coffer__pycauset_to_mtx(const coffer__convert_job *job, coffer_error *err)
{
    static const coffer__pycauset_target target = { "Matrix Market", true, true };
    mtx_export export = { 0 };
    coffer_status status = coffer__pycauset_export_open(&export.common, job, &target, err);
    if (status)
        return status;
    status = write_all(&export, err);
    if (status)
        coffer__sink_discard(export.sink);
    else
        status = coffer__pycauset_export_commit(export.sink, &export.common, err);
    coffer__free(export.columns);
    coffer__pycauset_export_close(&export.common);
    return status;
}
