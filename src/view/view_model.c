/* Questions about a model: the values of any tensor. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_model.h"
#include "view/view_tile.h"

#include <string.h>

typedef struct model_view {
    coffer_tensors *own[2]; /* of a file of the library's; others have their tensors open already */
    const coffer_tensors *sets[2];
} model_view;

static void close_models(void *state)
{
    model_view *models = state;
    coffer_tensors_close(models->own[0]);
    coffer_tensors_close(models->own[1]);
    coffer__free(models);
}

static coffer_status open_models(void **state, coffer_chunks *chunks, coffer_error *err)
{
    model_view *models = coffer__calloc(1, sizeof *models);
    coffer_status status = models ? COFFER_OK : coffer__fail_no_memory(err, sizeof *models);
    for (size_t i = 0; i < chunks->file_count && !status; i++)
        status = coffer__page_open_model(&models->sets[i], &models->own[i], chunks->files[i], err);
    if (status) {
        if (models)
            close_models(models);
        return status;
    }
    *state = models;
    return COFFER_OK;
}

/* "file" and "tensor": its index among the tensors. */
static coffer_status choose_tensor(const coffer_tensors **set, size_t *tensor, const model_view *models,
                                   const coffer_chunks *chunks, const coffer__question *question,
                                   coffer_error *err)
{
    size_t file = 0;
    uint64_t index = 0;
    coffer_status status = coffer__question_file(&file, question, chunks, err);
    if (status)
        return status;
    size_t count = coffer_tensors_count(models->sets[file]);
    if (count == 0)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "the file has no tensors");
    status = coffer__question_number(&index, question, "tensor", 0, 0, count - 1, err);
    *set = models->sets[file];
    *tensor = (size_t)index;
    return status;
}

/* A glob that matches the name, and perhaps others. */
static char *glob_of(const char *name)
{
    char *glob = coffer__strdup(name);
    for (char *at = glob; at && *at; at++)
        if (strchr("*?[]\\{}!", *at))
            *at = '?';
    return glob;
}

/* The row of statistics of one tensor: "values.…". */
static coffer_status answer_tensor(coffer_chunks *chunks, void *state, const coffer__question *question,
                                   coffer_error *err)
{
    coffer_tensors_stats_opts opts = COFFER_TENSORS_STATS_OPTS_INIT;
    coffer_tensors_stats *stats = NULL;
    const coffer_tensors *set = NULL;
    size_t tensor = 0;
    coffer_status status = choose_tensor(&set, &tensor, state, chunks, question, err);
    if (status)
        return status;
    char *glob = glob_of(coffer_tensors_at(set, tensor)->name);
    if (!glob)
        return coffer__fail_no_memory(err, 0);
    opts.include = glob;
    opts.progress = chunks->opts.progress;
    opts.threads = chunks->opts.threads;
    status = coffer_tensors_stats_new(&stats, set, &opts, err);
    coffer__free(glob);
    if (status)
        return status;
    coffer__page_add_values(chunks, stats, coffer_tensors_count(set), 1);
    coffer_tensors_stats_free(stats);
    return COFFER_OK;
}

/* The tensor as a grid: its first dimension down, all others across. */
typedef struct tensor_grid {
    const coffer_tensors *set;
    size_t tensor;
    uint64_t columns;
    double *row; /* quantized tensors are decoded by whole rows; NULL for others */
    uint64_t row_number;
} tensor_grid;

static coffer_status read_values(double *out, void *from, uint64_t row, uint64_t column, uint64_t count,
                                 coffer_error *err)
{
    tensor_grid *grid = from;
    if (!grid->row)
        return coffer_tensors_read_as(out, COFFER_DTYPE_F64, grid->set, grid->tensor,
                                      row * grid->columns + column, count, err);
    if (grid->row_number != row) {
        coffer_status status = coffer_tensors_read_as(grid->row, COFFER_DTYPE_F64, grid->set, grid->tensor,
                                                      row * grid->columns, grid->columns, err);
        if (status)
            return status;
        grid->row_number = row;
    }
    memcpy(out, grid->row + column, (size_t)count * sizeof *out);
    return COFFER_OK;
}

static coffer_status answer_tile(coffer_chunks *chunks, void *state, const coffer__question *question,
                                 coffer_error *err)
{
    tensor_grid grid = { .row_number = UINT64_MAX };
    coffer__view_tile tile;
    coffer_status status = choose_tensor(&grid.set, &grid.tensor, state, chunks, question, err);
    if (status)
        return status;
    const coffer_tensor *tensor = coffer_tensors_at(grid.set, grid.tensor);
    uint64_t rows = tensor->rank > 1 && tensor->dims[0] ? tensor->dims[0] : 1;
    grid.columns = tensor->elements / rows;
    status = coffer__question_tile(&tile, question, rows, grid.columns, err);
    if (status)
        return status;
    if (tensor->dtype == COFFER_DTYPE_NONE || !coffer_dtype_size(tensor->dtype)) {
        grid.row = grid.columns <= SIZE_MAX / sizeof *grid.row
                       ? coffer__alloc_array((size_t)grid.columns, sizeof *grid.row)
                       : NULL;
        if (!grid.row)
            return coffer__fail_no_memory(err, grid.columns);
    }
    status = coffer__view_add_means(chunks, &tile, read_values, &grid, err);
    coffer__free(grid.row);
    return status;
}

static const coffer__view_question questions[] = {
    { "tensor", answer_tensor },
    { "tile", answer_tile },
    { NULL, NULL },
};

const coffer__view_kind coffer__view_model = { "model", open_models, close_models, questions };
