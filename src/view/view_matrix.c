/* Questions about a matrix: its values, as means or one by one. */
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/pycauset.h"
#include "view/view_tile.h"

#include <math.h>

typedef struct matrix_view {
    coffer_pycauset *matrices[2];
} matrix_view;

static void close_matrices(void *state)
{
    matrix_view *view = state;
    coffer_pycauset_close(view->matrices[0]);
    coffer_pycauset_close(view->matrices[1]);
    coffer__free(view);
}

static coffer_status open_matrices(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer_pycauset_open_opts opts = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    matrix_view *view = coffer__calloc(1, sizeof *view);
    coffer_status status = view ? COFFER_OK : coffer__fail_no_memory(err, sizeof *view);
    opts.limits = &chunks->limits;
    for (size_t i = 0; i < chunks->file_count && !status; i++)
        status = coffer_pycauset_open(&view->matrices[i], coffer_file_source(chunks->files[i]), &opts, err);
    if (status) {
        if (view)
            close_matrices(view);
        return status;
    }
    *state = view;
    return COFFER_OK;
}

static coffer_status read_real(double *out, void *from, uint64_t row, uint64_t column, uint64_t count,
                               coffer_error *err)
{
    coffer_pycauset_tile tile = COFFER_PYCAUSET_TILE(row, 1, column, count);
    return coffer_pycauset_read_tile(out, 0, from, &tile, COFFER_DTYPE_F64, err);
}

/* Magnitudes, as in the picture of a report. */
static coffer_status read_complex(double *out, void *from, uint64_t row, uint64_t column, uint64_t count,
                                  coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        double real = 0, imag = 0;
        status = coffer_pycauset_get(&real, &imag, from, row, column + i, err);
        out[i] = hypot(real, imag);
    }
    return status;
}

static coffer_status answer_tile(coffer_chunks *chunks, void *state, const coffer__question *question,
                                 coffer_error *err)
{
    const matrix_view *view = state;
    coffer__view_tile tile;
    size_t file = 0;
    coffer_status status = coffer__question_file(&file, question, chunks, err);
    if (status)
        return status;
    coffer_pycauset *matrix = view->matrices[file];
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    status = coffer__question_tile(&tile, question, info->rows, info->cols, err);
    if (status)
        return status;
    bool is_complex = info->value_dtype == COFFER_DTYPE_C64 || info->value_dtype == COFFER_DTYPE_C128;
    return coffer__view_add_means(chunks, &tile, is_complex ? read_complex : read_real, matrix, err);
}

static const coffer__view_question questions[] = {
    { "tile", answer_tile },
    { NULL, NULL },
};

const coffer__view_kind coffer__view_matrix = { "matrix", open_matrices, close_matrices, questions };
