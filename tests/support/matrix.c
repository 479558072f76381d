#include "support/matrix.h"

#include "base/elements.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool is_triangular(coffer_pycauset_type type)
{
    return type == COFFER_PYCAUSET_CAUSAL || type == COFFER_PYCAUSET_TRIANGULAR_FLOAT ||
           type == COFFER_PYCAUSET_TRIANGULAR_INTEGER;
}

static bool is_mirrored(coffer_pycauset_type type)
{
    return type == COFFER_PYCAUSET_SYMMETRIC || type == COFFER_PYCAUSET_ANTISYMMETRIC;
}

static bool has_payload(coffer_pycauset_type type)
{
    return type != COFFER_PYCAUSET_IDENTITY && type != COFFER_PYCAUSET_UNIT_VECTOR;
}

static bool is_unsigned(coffer_dtype dtype)
{
    return dtype == COFFER_DTYPE_U8 || dtype == COFFER_DTYPE_U16 || dtype == COFFER_DTYPE_U32 ||
           dtype == COFFER_DTYPE_U64;
}

/* The value stored at (row, col), made from a random number. */
static void make_pair(double pair[2], const coffer_pycauset_shape *shape, uint64_t row, uint64_t col,
                      uint64_t random)
{
    pair[0] = shape->dtype == COFFER_DTYPE_BIT ? (double)(random & 1)
              : is_unsigned(shape->dtype)      ? (double)(random % 100)
                                               : (double)(random % 200) - 100;
    pair[1] = coffer_dtype_is_complex(shape->dtype) ? (double)(random / 256 % 200) - 100 : 0;
    bool below = shape->has_diagonal ? col < row : col <= row;
    if (is_triangular(shape->type) && below)
        pair[0] = pair[1] = 0;
    if (shape->type == COFFER_PYCAUSET_IDENTITY) {
        pair[0] = row == col;
        pair[1] = 0;
    }
    if (shape->type == COFFER_PYCAUSET_UNIT_VECTOR) {
        pair[0] = row + col == shape->unit_index;
        pair[1] = 0;
    }
}

void test_matrix_make(test_matrix *out, const coffer_pycauset_shape *shape, uint64_t seed)
{
    size_t count = (size_t)(shape->rows * shape->cols);
    out->shape = *shape;
    out->element = shape->dtype == COFFER_DTYPE_BIT ? COFFER_DTYPE_BOOL : shape->dtype;
    out->pairs = malloc((count + 1) * 2 * sizeof *out->pairs);
    for (uint64_t i = 0; i < shape->rows; i++) {
        for (uint64_t j = 0; j < shape->cols; j++) {
            double *pair = out->pairs + 2 * (i * shape->cols + j);
            make_pair(pair, shape, i, j, next_random(&seed));
            if (is_mirrored(shape->type) && j < i) {
                double sign = shape->type == COFFER_PYCAUSET_ANTISYMMETRIC ? -1 : 1;
                pair[0] = sign * out->pairs[2 * (j * shape->cols + i)];
                pair[1] = sign * out->pairs[2 * (j * shape->cols + i) + 1];
            }
        }
    }
    out->rows = malloc((count + 1) * 16);
    if (coffer_dtype_is_complex(out->element)) {
        coffer__elements_convert(out->rows, out->element, out->pairs, COFFER_DTYPE_C128, count);
    } else {
        for (size_t i = 0; i < count; i++)
            coffer__elements_convert(out->rows + i * coffer_dtype_size(out->element), out->element,
                                     out->pairs + 2 * i, COFFER_DTYPE_F64, 1);
    }
}

void test_matrix_free(test_matrix *matrix)
{
    free(matrix->rows);
    free(matrix->pairs);
}

void test_matrix_write(const test_matrix *matrix, const char *path, uint64_t at_once,
                       const coffer_pycauset_writer_opts *opts)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_writer *writer = NULL;
    const coffer_pycauset_shape *shape = &matrix->shape;
    size_t row_bytes = (size_t)shape->cols * coffer_dtype_size(matrix->element);
    coffer_pycauset_writer_opts options = COFFER_PYCAUSET_WRITER_OPTS_INIT;
    if (opts)
        options = *opts;
    options.overwrite = true;
    if (coffer_pycauset_writer_create(&writer, path, shape, &options, &err))
        fail_msg("%s", err.text);
    for (uint64_t row = 0; has_payload(shape->type) && row < shape->rows; row += at_once) {
        uint64_t count = shape->rows - row < at_once ? shape->rows - row : at_once;
        if (coffer_pycauset_writer_put_rows(writer, matrix->rows + row * row_bytes, count, &err))
            fail_msg("%s", err.text);
    }
    if (coffer_pycauset_writer_commit(writer, &err))
        fail_msg("%s", err.text);
}

void test_matrix_value(double pair[2], const test_matrix *matrix, uint64_t row, uint64_t col)
{
    const coffer_pycauset_shape *shape = &matrix->shape;
    uint64_t stored_row = shape->transposed ? col : row, stored_col = shape->transposed ? row : col;
    const double *from = matrix->pairs + 2 * (stored_row * shape->cols + stored_col);
    pair[0] = from[0] * shape->scalar_real - from[1] * shape->scalar_imag;
    pair[1] = from[0] * shape->scalar_imag + from[1] * shape->scalar_real;
    if (shape->conjugated)
        pair[1] = -pair[1];
}

uint64_t test_matrix_seen_rows(const test_matrix *matrix)
{
    return matrix->shape.transposed ? matrix->shape.cols : matrix->shape.rows;
}

uint64_t test_matrix_seen_cols(const test_matrix *matrix)
{
    return matrix->shape.transposed ? matrix->shape.rows : matrix->shape.cols;
}

coffer_status test_matrix_stats(coffer_pycauset_summary *out, const coffer_pycauset *matrix,
                                const coffer_pycauset_stats_opts *opts, coffer_error *err)
{
    coffer_pycauset_stats *stats = NULL;
    coffer_status status = coffer_pycauset_stats_new(&stats, matrix, opts, err);
    if (status)
        return status;
    *out = *coffer_pycauset_stats_total(stats);
    coffer_pycauset_stats_free(stats);
    return COFFER_OK;
}

/* ---- Every kind ---- */

static const coffer_dtype dtypes[] = {
    COFFER_DTYPE_BIT, COFFER_DTYPE_I8,  COFFER_DTYPE_I16, COFFER_DTYPE_I32, COFFER_DTYPE_I64,
    COFFER_DTYPE_U8,  COFFER_DTYPE_U16, COFFER_DTYPE_U32, COFFER_DTYPE_U64, COFFER_DTYPE_F16,
    COFFER_DTYPE_F32, COFFER_DTYPE_F64, COFFER_DTYPE_C32, COFFER_DTYPE_C64, COFFER_DTYPE_C128,
};
#define DTYPES (sizeof dtypes / sizeof dtypes[0])

static const struct kind {
    coffer_pycauset_type type;
    bool has_diagonal;
} kinds[] = {
    { COFFER_PYCAUSET_DENSE_FLOAT, false },      { COFFER_PYCAUSET_INTEGER, false },
    { COFFER_PYCAUSET_TRIANGULAR_FLOAT, false }, { COFFER_PYCAUSET_TRIANGULAR_FLOAT, true },
    { COFFER_PYCAUSET_SYMMETRIC, true },         { COFFER_PYCAUSET_ANTISYMMETRIC, true },
    { COFFER_PYCAUSET_VECTOR, false },           { COFFER_PYCAUSET_UNIT_VECTOR, false },
    { COFFER_PYCAUSET_IDENTITY, false },         { COFFER_PYCAUSET_CAUSAL, false },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

size_t test_matrix_kinds(void)
{
    return (KINDS - 1) * DTYPES + 1; /* CAUSAL, the last, is of bits only */
}

coffer_pycauset_shape test_matrix_kind(size_t index, uint64_t rows, uint64_t cols)
{
    const struct kind *kind = &kinds[index / DTYPES];
    coffer_pycauset_shape shape = COFFER_PYCAUSET_SHAPE_INIT;
    shape.type = kind->type;
    shape.dtype = dtypes[index % DTYPES];
    shape.has_diagonal = kind->has_diagonal;
    shape.rows = rows;
    shape.cols = cols;
    if (is_triangular(kind->type) || is_mirrored(kind->type))
        shape.cols = rows;
    if (kind->type == COFFER_PYCAUSET_VECTOR || kind->type == COFFER_PYCAUSET_UNIT_VECTOR)
        shape.cols = 1;
    if (kind->type == COFFER_PYCAUSET_UNIT_VECTOR)
        shape.unit_index = rows / 2;
    /* A type without negative numbers cannot be antisymmetric. */
    if (kind->type == COFFER_PYCAUSET_ANTISYMMETRIC &&
        (shape.dtype == COFFER_DTYPE_BIT || is_unsigned(shape.dtype)))
        shape.dtype = COFFER_DTYPE_I16;
    return shape;
}
