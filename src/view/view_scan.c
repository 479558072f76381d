/* Questions about a scan: parameters or the blocks of one, by tokens. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_scan.h"
#include "view/view_private.h"

#include <string.h>

typedef struct scan_view {
    coffer_mscan *scans[2];
} scan_view;

static void close_scans(void *state)
{
    scan_view *view = state;
    coffer_mscan_close(view->scans[0]);
    coffer_mscan_close(view->scans[1]);
    coffer__free(view);
}

static coffer_status open_scans(void **state, coffer_chunks *chunks, coffer_error *err)
{
    coffer_mscan_open_opts opts = COFFER_MSCAN_OPEN_OPTS_INIT;
    scan_view *view = coffer__calloc(1, sizeof *view);
    coffer_status status = view ? COFFER_OK : coffer__fail_no_memory(err, sizeof *view);
    opts.lenient = true;
    opts.limits = &chunks->limits;
    for (size_t i = 0; i < chunks->file_count && !status; i++)
        status = coffer_mscan_open(&view->scans[i], coffer_file_source(chunks->files[i]), &opts, err);
    if (status) {
        if (view)
            close_scans(view);
        return status;
    }
    *state = view;
    return COFFER_OK;
}

static coffer_status read_metric(coffer_mscan_metric *out, const coffer__question *question,
                                 coffer_error *err)
{
    const char *text = coffer__question_text(question, "metric");
    for (int i = 0; i < 2; i++)
        if (!text || strcmp(text, coffer__page_metrics[i]) == 0) {
            *out = (coffer_mscan_metric)i;
            return COFFER_OK;
        }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "metric must be one of activation, grad_norm");
}

static coffer_status read_rows(coffer_mscan_rows *out, const coffer__question *question, coffer_error *err)
{
    static const char *const words[] = { "param", "block", "layer" }; /* in the order of coffer_mscan_rows */
    const char *text = coffer__question_text(question, "rows");
    for (int i = 0; i < 3; i++)
        if (!text || strcmp(text, words[i]) == 0) {
            *out = (coffer_mscan_rows)i;
            return COFFER_OK;
        }
    return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                        "rows must be one of param, block, layer");
}

static coffer_status read_grid(coffer_mscan_grid_opts *opts, const coffer__question *question,
                               const coffer_mscan *scan, coffer_error *err)
{
    coffer__view_tile tile;
    uint64_t param = 0;
    bool blocks = coffer__question_text(question, "param") != NULL;
    coffer_status status = read_metric(&opts->metric, question, err);
    if (!status)
        status = read_rows(&opts->rows, question, err);
    if (!status)
        status = coffer__question_tile(&tile, question, UINT16_MAX + 1, coffer_mscan_total_tokens(scan), err);
    if (!status && blocks)
        status = coffer__question_number(&param, question, "param", 0, 0, UINT16_MAX, err);
    if (status)
        return status;
    if (blocks)
        opts->rows = COFFER_MSCAN_ROWS_BLOCK;
    opts->param_glob = blocks ? coffer_mscan_param_name(scan, (uint16_t)param) : NULL;
    if (blocks && !opts->param_glob)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "the scan does not list the parameter");
    opts->width = (uint32_t)tile.width;
    opts->height = (uint32_t)tile.height;
    opts->token_begin = tile.column_begin;
    opts->token_end = tile.column_end;
    opts->row_begin = tile.row_begin;
    opts->row_end = coffer__question_text(question, "row_end") ? tile.row_end : UINT64_MAX;
    return COFFER_OK;
}

/* "tile.cells", as in the heat map of a report. "param" : the blocks of one parameter down, instead of the
 * parameters. */
static coffer_status answer_tile(coffer_chunks *chunks, void *state, const coffer__question *question,
                                 coffer_error *err)
{
    const scan_view *view = state;
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_mscan_grid *grid = NULL;
    size_t file = 0;
    coffer_status status = coffer__question_file(&file, question, chunks, err);
    if (!status)
        status = read_grid(&opts, question, view->scans[file], err);
    opts.threads = chunks->opts.threads;
    opts.progress = chunks->opts.progress;
    opts.limits = &chunks->limits;
    if (!status)
        status = coffer_mscan_grid_new(&grid, view->scans[file], &opts, err);
    if (status)
        return status;
    if (opts.rows == COFFER_MSCAN_ROWS_LAYER)
        coffer__page_drop_empty_layer(grid, view->scans[file]);
    size_t cells = (size_t)grid->width * grid->height;
    double *to = coffer__chunks_f64(chunks, "tile.cells", cells);
    if (to)
        memcpy(to, grid->mean, cells * sizeof *to);
    coffer__view_tile tile = { grid->row_begin, grid->row_end, grid->token_begin,
                               grid->token_end, grid->width,   grid->height };
    coffer__view_add_tile(chunks, &tile, false);
    coffer_mscan_grid_free(grid);
    return COFFER_OK;
}

static const coffer__view_question questions[] = {
    { "tile", answer_tile },
    { NULL, NULL },
};

const coffer__view_kind coffer__view_scan = { "scan", open_scans, close_scans, questions };
