/* The page of a matrix: its values as a picture, their statistics, and the history of its metadata. */
#include "base/fail.h"
#include "base/memory.h"
#include "coffer/pycauset.h"
#include "page/page.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_SIDE = 1024, MOST_GENERATIONS = 500, FIRST_SIDE = 256, FIRST_VALUES = 1 << 20 };

typedef struct matrix_page {
    coffer_pycauset *matrices[2];
    coffer_pycauset_stats *stats[2];
    coffer_pycauset_history *history; /* NULL without */
    coffer_error no_values;           /* why the values cannot be read */
    size_t count;
} matrix_page;

static void close_matrix(void *state)
{
    matrix_page *page = state;
    coffer_pycauset_history_close(page->history);
    for (size_t i = 0; i < 2; i++) {
        coffer_pycauset_stats_free(page->stats[i]);
        coffer_pycauset_close(page->matrices[i]);
    }
    coffer__free(page);
}

static coffer_status read_matrix(matrix_page *page, size_t index, const coffer_chunks *chunks,
                                 coffer_error *err)
{
    coffer_pycauset_open_opts how = COFFER_PYCAUSET_OPEN_OPTS_INIT;
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    coffer_error found = COFFER_ERROR_INIT;
    how.limits = &chunks->limits;
    opts.threads = chunks->opts.threads;
    opts.progress = chunks->opts.progress;
    coffer_status status =
        coffer_pycauset_open(&page->matrices[index], coffer_file_source(chunks->files[index]), &how, err);
    if (status || chunks->quick)
        return status;
    status = coffer_pycauset_stats_new(&page->stats[index], page->matrices[index], &opts, &found);
    if (status && !coffer__is_about_file(status) && status != COFFER_E_UNSUPPORTED)
        return coffer__fail_copy(err, &found);
    if (status)
        page->no_values = found;
    return COFFER_OK;
}

/* The check has reported what is wrong with a history that cannot be read. */
static coffer_status read_history(matrix_page *page, coffer_source *src, coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_status status = coffer_pycauset_history_open(&page->history, src, NULL, &found);
    return status && !coffer__is_about_file(status) ? coffer__fail_copy(err, &found) : COFFER_OK;
}

static coffer_status open_matrix(void **state, coffer_chunks *chunks, coffer_error *err)
{
    matrix_page *page = coffer__calloc(1, sizeof *page);
    if (!page)
        return coffer__fail_no_memory(err, sizeof *page);
    coffer_status status = COFFER_OK;
    page->count = chunks->file_count;
    page->no_values = (coffer_error)COFFER_ERROR_INIT;
    for (size_t i = 0; i < page->count && !status; i++)
        status = read_matrix(page, i, chunks, err);
    if (!status && page->count == 1)
        status = read_history(page, coffer_file_source(chunks->files[0]), err);
    if (status) {
        close_matrix(page);
        return status;
    }
    *state = page;
    return COFFER_OK;
}

/* ---- Values ---- */

/* name : of the chunk; the second matrix of a comparison has the grid of the first. */
static coffer_status add_picture(coffer_chunks *chunks, const coffer_pycauset *matrix, const char *name,
                                 uint32_t detail, coffer_error *err)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    uint64_t side = MOST_SIDE / detail > 0 ? MOST_SIDE / detail : 1;
    uint64_t rows = info->rows < side ? info->rows : side, cols = info->cols < side ? info->cols : side;
    opts.threads = chunks->opts.threads;
    if (!coffer_node_find(chunks->view, "grid")) {
        coffer_node *map = coffer_node_add_map(chunks->view, "grid");
        coffer_node_add_u64(map, "width", cols, COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "height", rows, COFFER_UNIT_NONE);
        if (rows < info->rows || cols < info->cols)
            coffer__chunks_note(chunks,
                                "the picture has %" PRIu64 " × %" PRIu64
                                " cells; each is the mean of its values",
                                rows, cols);
    }
    size_t count = (size_t)(rows * cols);
    double *cells = coffer__alloc_array(count ? count : 1, sizeof *cells);
    if (!cells)
        return coffer__fail_no_memory(err, (uint64_t)count * sizeof *cells);
    coffer_status status = coffer_pycauset_downsample(cells, rows, cols, matrix, &opts, err);
    float *to = status ? NULL : coffer__chunks_f32(chunks, name, count);
    for (size_t i = 0; to && i < count; i++)
        to[i] = (float)cells[i];
    coffer__free(cells);
    return status;
}

/* Single values of a large matrix, at even distances; a small one is read whole. Values that cannot be read
 * are left out: reading all of them says why. */
static coffer_status add_first_picture(coffer_chunks *chunks, const coffer_pycauset *matrix, uint32_t detail,
                                       coffer_error *err)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    uint64_t rows = info->rows < FIRST_SIDE ? info->rows : FIRST_SIDE;
    uint64_t cols = info->cols < FIRST_SIDE ? info->cols : FIRST_SIDE;
    coffer_error found = COFFER_ERROR_INIT;
    if (rows == 0 || cols == 0 || coffer_pycauset_get(NULL, NULL, matrix, 0, 0, &found))
        return COFFER_OK;
    if (info->rows <= FIRST_VALUES / info->cols)
        return add_picture(chunks, matrix, "grid.values", detail, err);
    coffer_node *map = coffer_node_add_map(chunks->view, "grid");
    coffer_node_add_u64(map, "width", cols, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "height", rows, COFFER_UNIT_NONE);
    float *to = coffer__chunks_f32(chunks, "grid.values", (size_t)(rows * cols));
    for (uint64_t i = 0; to && i < rows * cols; i++) {
        double real = NAN, imag = 0;
        if (coffer_pycauset_get(&real, &imag, matrix, coffer__page_even(info->rows, i / cols, rows),
                                coffer__page_even(info->cols, i % cols, cols), &found))
            real = NAN;
        to[i] = (float)(imag != 0 ? hypot(real, imag) : real);
    }
    coffer__chunks_note(chunks, "the first picture shows single values; their means are being read");
    return COFFER_OK;
}

static void add_values(coffer_node *map, const coffer_pycauset *matrix, const coffer_pycauset_stats *stats)
{
    const coffer_pycauset_info *info = coffer_pycauset_get_info(matrix);
    coffer_node_add_u64(map, "rows", info->rows, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "cols", info->cols, COFFER_UNIT_NONE);
    coffer_node_add_text(map, "type", coffer_pycauset_type_name(info->type));
    coffer_node_add_text(map, "dtype", coffer_dtype_name(info->value_dtype));
    if (!stats)
        return;
    const coffer_pycauset_summary *total = coffer_pycauset_stats_total(stats);
    coffer_node_add_bool(map, "complex", total->complex_values);
    coffer_node_add_u64(map, "nonzero", total->nonzero, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "nans", total->nans, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "infinities", total->infinities, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "density", total->density, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "min", total->min, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "max", total->max, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "mean", total->mean, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "std", total->std, COFFER_UNIT_NONE);
    coffer_node_add_f64(map, "frobenius", total->frobenius, COFFER_UNIT_NONE);
}

/* ---- History ---- */

static coffer_status add_generation(coffer_node *list, const coffer_pycauset_history *history, size_t index,
                                    const coffer_pycauset_value *before, coffer_error *err)
{
    const coffer_pycauset_generation *state = coffer_pycauset_history_at(history, index);
    coffer_node *map = coffer_node_add_map(list, NULL);
    coffer_node_add_u64(map, "generation", state->generation, COFFER_UNIT_NONE);
    coffer_node_add_bool(map, "committed", state->committed);
    coffer_node_add_bool(map, "active", state->active);
    coffer_node_add_text(map, "date", state->date);
    coffer_node_add_text(map, "author", state->author);
    coffer_node_add_text(map, "message", state->message);
    coffer_node_add_u64(map, "changed_elements", coffer_pycauset_value_count(state->elements),
                        COFFER_UNIT_NONE);
    return before && map ? coffer_pycauset_value_diff(map, before, state->metadata, err) : COFFER_OK;
}

static coffer_status add_history(coffer_chunks *chunks, const coffer_pycauset_history *history,
                                 uint32_t detail, coffer_error *err)
{
    size_t total = coffer_pycauset_history_count(history), most = MOST_GENERATIONS / detail;
    size_t first = total > most ? total - most : 0;
    coffer_node *list = coffer_node_add_list(chunks->view, "history");
    const coffer_pycauset_value *before = NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = first; i < total && !status; i++) {
        status = add_generation(list, history, i, before, err);
        if (coffer_pycauset_history_at(history, i)->committed)
            before = coffer_pycauset_history_at(history, i)->metadata;
    }
    if (first)
        coffer__chunks_note(chunks, "the newest %zu of %zu generations are listed", total - first, total);
    return status;
}

static bool can_subtract(const matrix_page *page)
{
    const coffer_pycauset_info *a = coffer_pycauset_get_info(page->matrices[0]);
    const coffer_pycauset_info *b = coffer_pycauset_get_info(page->matrices[1]);
    return page->stats[0] && page->stats[1] && a->rows == b->rows && a->cols == b->cols;
}

static coffer_status emit_matrix(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    const matrix_page *page = state;
    coffer_node *list = coffer_node_add_list(chunks->view, "matrices");
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < page->count; i++)
        add_values(coffer_node_add_map(list, NULL), page->matrices[i], page->stats[i]);
    if (page->no_values.status)
        coffer__chunks_note(chunks, "the values are left out: %s", page->no_values.text);
    if (page->count > 1) {
        if (chunks->quick)
            return COFFER_OK;
        if (can_subtract(page))
            status = add_picture(chunks, page->matrices[0], "grid.values", detail, err);
        if (!status && can_subtract(page))
            status = add_picture(chunks, page->matrices[1], "grid.other", detail, err);
        return status;
    }
    if (chunks->quick)
        status = add_first_picture(chunks, page->matrices[0], detail, err);
    else if (page->stats[0])
        status = add_picture(chunks, page->matrices[0], "grid.values", detail, err);
    if (!status && page->history)
        status = add_history(chunks, page->history, detail, err);
    return status;
}

const coffer__page_kind coffer__page_matrix = {
    .page = "matrix",
    .kinds = "pycauset",
    .open = open_matrix,
    .emit = emit_matrix,
    .close = close_matrix,
};
