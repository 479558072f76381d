/* The page of a scan: layers, parameters and blocks by tokens as heat maps, the blocks with the largest
 * means, and the text. */
#include "page/page_scan.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1024, MOST_ROWS = 1024, TOP_BLOCKS = 200, MOST_SEQUENCES = 2000, SOURCE_BYTES = 2000 };

const char *const coffer__page_metrics[2] = { "activation", "grad_norm" };

/* The rows that a heat map can have. */
static const struct {
    coffer_mscan_rows rows;
    const char *groups[2]; /* of the first and the second scan */
} row_kinds[] = {
    { COFFER_MSCAN_ROWS_PARAM, { "grid", "grid_b" } },
    { COFFER_MSCAN_ROWS_LAYER, { "layer_grid", "layer_grid_b" } },
    { COFFER_MSCAN_ROWS_BLOCK, { "block_grid", "block_grid_b" } },
};

typedef struct scan_page {
    coffer_mscan *scans[2];
    coffer_mscan_stats *params[2], *blocks[2];
    coffer_mscan_scores *scores; /* of the parameters; NULL for two scans */
    size_t count;
} scan_page;

static void close_scan(void *state)
{
    scan_page *page = state;
    for (size_t i = 0; i < 2; i++) {
        coffer_mscan_stats_free(page->params[i]);
        coffer_mscan_stats_free(page->blocks[i]);
        coffer_mscan_close(page->scans[i]);
    }
    coffer_mscan_scores_free(page->scores);
    coffer__free(page);
}

static coffer_status read_scan(scan_page *page, size_t index, const coffer_chunks *chunks, coffer_error *err)
{
    coffer_mscan_open_opts how = COFFER_MSCAN_OPEN_OPTS_INIT;
    coffer_mscan_stats_opts opts = COFFER_MSCAN_STATS_OPTS_INIT;
    how.lenient = true;
    how.limits = opts.limits = &chunks->limits;
    opts.threads = chunks->opts.threads;
    opts.progress = chunks->opts.progress;
    coffer_status status =
        coffer_mscan_open(&page->scans[index], coffer_file_source(chunks->files[index]), &how, err);
    if (status || chunks->quick)
        return status;
    opts.by = COFFER_MSCAN_BY_PARAM;
    status = coffer_mscan_stats_new(&page->params[index], page->scans[index], &opts, err);
    if (!status && page->count == 1)
        status = coffer_mscan_scores_new(&page->scores, page->scans[index], &opts, err);
    opts.by = COFFER_MSCAN_BY_PARAM_BLOCK;
    if (!status)
        status = coffer_mscan_stats_new(&page->blocks[index], page->scans[index], &opts, err);
    return status;
}

static coffer_status open_scan(void **state, coffer_chunks *chunks, coffer_error *err)
{
    scan_page *page = coffer__calloc(1, sizeof *page);
    if (!page)
        return coffer__fail_no_memory(err, sizeof *page);
    coffer_status status = COFFER_OK;
    page->count = chunks->file_count;
    for (size_t i = 0; i < page->count && !status; i++)
        status = read_scan(page, i, chunks, err);
    if (status) {
        close_scan(page);
        return status;
    }
    *state = page;
    return COFFER_OK;
}

/* ---- Heat map ---- */

void coffer__page_add_grid_size(coffer_node *view, const char *name, const coffer_mscan_grid *grid)
{
    coffer_node *map = coffer_node_add_map(view, name);
    coffer_node_add_u64(map, "width", grid->width, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "height", grid->height, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "token_begin", grid->token_begin, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "token_end", grid->token_end, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "row_begin", grid->row_begin, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "row_end", grid->row_end, COFFER_UNIT_NONE);
}

void coffer__page_drop_empty_layer(coffer_mscan_grid *grid, const coffer_mscan *scan)
{
    const double *last = grid->mean + (size_t)grid->width * (grid->height ? grid->height - 1 : 0);
    bool empty = grid->height > 1 && grid->row_end - grid->row_begin == grid->height &&
                 grid->row_end == coffer_mscan_layer_count(scan);
    for (uint32_t i = 0; empty && i < grid->width; i++)
        empty = isnan(last[i]);
    grid->height -= empty;
    grid->row_end -= empty;
}

static coffer_status add_grid(coffer_chunks *chunks, coffer_node *view, const coffer_mscan *scan,
                              coffer_mscan_rows rows, const char *group, coffer_mscan_metric metric,
                              uint32_t detail, coffer_error *err)
{
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_mscan_grid *grid = NULL;
    coffer__chunk_name name;
    opts.rows = rows;
    opts.metric = metric;
    opts.width = MOST_COLUMNS / detail;
    opts.height = MOST_ROWS / detail > 0 ? MOST_ROWS / detail : 1;
    opts.width = opts.width > 0 ? opts.width : 1;
    opts.threads = chunks->opts.threads;
    opts.limits = &chunks->limits;
    coffer_status status = coffer_mscan_grid_new(&grid, scan, &opts, err);
    if (status)
        return status;
    if (rows == COFFER_MSCAN_ROWS_LAYER)
        coffer__page_drop_empty_layer(grid, scan);
    size_t cells = (size_t)grid->width * grid->height;
    float *to =
        coffer__chunks_f32(chunks, coffer__chunk_name_of(name, group, coffer__page_metrics[metric]), cells);
    for (size_t i = 0; to && i < cells; i++)
        to[i] = (float)grid->mean[i];
    coffer__page_add_grid_size(view, coffer__page_metrics[metric], grid);
    if (rows == COFFER_MSCAN_ROWS_PARAM && metric == COFFER_MSCAN_ACTIVATION &&
        grid->token_end - grid->token_begin > grid->width)
        coffer__chunks_note(chunks, "heat map: a cell is the mean of up to %" PRIu64 " tokens",
                            (grid->token_end - grid->token_begin + grid->width - 1) / grid->width);
    coffer_mscan_grid_free(grid);
    return COFFER_OK;
}

/* A scan whose names have no layers has one layer, which says nothing. */
static coffer_status add_grids(coffer_chunks *chunks, const coffer_mscan *scan, size_t index, uint32_t detail,
                               coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (chunks->quick)
        return coffer__page_add_scan_sample(chunks,
                                            coffer_node_add_map(chunks->view, row_kinds[0].groups[index]),
                                            scan, row_kinds[0].groups[index], err);
    for (size_t i = 0; i < sizeof row_kinds / sizeof *row_kinds && !status; i++) {
        const char *group = row_kinds[i].groups[index];
        if (row_kinds[i].rows == COFFER_MSCAN_ROWS_LAYER && coffer_mscan_layer_count(scan) < 2)
            continue;
        coffer_node *view = coffer_node_add_map(chunks->view, group);
        for (int j = 0; j < 2 && !status; j++)
            status =
                add_grid(chunks, view, scan, row_kinds[i].rows, group, (coffer_mscan_metric)j, detail, err);
    }
    return status;
}

/* ---- Parameters, blocks, sequences ---- */

static void add_groups(coffer_chunks *chunks, const coffer_mscan_stats *stats, const size_t *order,
                       size_t count, const char *group)
{
    coffer__chunk_name name;
    uint32_t *key = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "key"), count);
    double *records = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "records"), count);
    double *mean[2], *most[2];
    mean[0] = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "activation_mean"), count);
    mean[1] = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "grad_norm_mean"), count);
    most[0] = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "activation_max"), count);
    most[1] = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "grad_norm_max"), count);
    for (size_t i = 0; most[1] && i < count; i++) {
        const coffer_mscan_group *from = coffer_mscan_stats_at(stats, order ? order[i] : i);
        key[i] = (uint32_t)from->key;
        records[i] = (double)from->count;
        for (int j = 0; j < 2; j++) {
            mean[j][i] = coffer_mscan_mean(from, (coffer_mscan_metric)j);
            most[j][i] = from->column[j].max;
        }
    }
}

static void add_names(coffer_chunks *chunks, const coffer_mscan *scan)
{
    size_t count = coffer_mscan_param_count(scan);
    uint32_t *id = coffer__chunks_u32(chunks, "params.id", count);
    uint32_t *name = coffer__chunks_u32(chunks, "params.name", count);
    for (size_t i = 0; name && i < count; i++) {
        id[i] = (uint32_t)coffer_mscan_param_at(scan, i)->id;
        name[i] = coffer__chunks_text(chunks, coffer_mscan_param_at(scan, i)->name);
    }
}

static void add_layers(coffer_chunks *chunks, const coffer_mscan *scan)
{
    size_t count = coffer_mscan_layer_count(scan);
    uint32_t *name = coffer__chunks_u32(chunks, "layers.name", count);
    for (size_t i = 0; name && i < count; i++)
        name[i] = coffer__chunks_text(chunks, coffer_mscan_layer_name(scan, i));
}

/* "param_stats.score": NaN for a parameter without a name, which has none. */
static void add_scores(coffer_chunks *chunks, const scan_page *page)
{
    size_t count = coffer_mscan_stats_count(page->params[0]), next = 0;
    double *score = coffer__chunks_f64(chunks, "param_stats.score", count);
    for (size_t i = 0; score && i < count; i++) {
        const coffer_mscan_score *from = coffer_mscan_scores_at(page->scores, next);
        bool has_score = from && from->key == coffer_mscan_stats_at(page->params[0], i)->key;
        score[i] = has_score ? from->sps : NAN;
        next += has_score;
    }
}

typedef struct ranked_block {
    double mean;
    size_t index;
} ranked_block;

static int by_mean(const void *a, const void *b)
{
    const ranked_block *left = a, *right = b;
    if (left->mean != right->mean)
        return left->mean < right->mean ? 1 : -1;
    return (left->index > right->index) - (left->index < right->index);
}

static coffer_status add_top_blocks(coffer_chunks *chunks, const coffer_mscan_stats *stats, uint32_t detail,
                                    coffer_error *err)
{
    size_t total = coffer_mscan_stats_count(stats), most = TOP_BLOCKS / detail;
    size_t count = total < most ? total : most;
    ranked_block *list = coffer__alloc_array(total ? total : 1, sizeof *list);
    size_t *order = coffer__alloc_array(count ? count : 1, sizeof *order);
    coffer_status status = list && order ? COFFER_OK : coffer__fail_no_memory(err, total * sizeof *list);
    if (!status) {
        for (size_t i = 0; i < total; i++)
            list[i] =
                (ranked_block){ coffer_mscan_mean(coffer_mscan_stats_at(stats, i), COFFER_MSCAN_ACTIVATION),
                                i };
        qsort(list, total, sizeof *list, by_mean);
        for (size_t i = 0; i < count; i++)
            order[i] = list[i].index;
        add_groups(chunks, stats, order, count, "blocks");
        if (count < total)
            coffer__chunks_note(chunks, "blocks: the %zu with the largest mean activation of %zu", count,
                                total);
    }
    coffer__free(list);
    coffer__free(order);
    return status;
}

static void add_sequences(coffer_chunks *chunks, const coffer_mscan *scan, uint32_t detail)
{
    size_t total = coffer_mscan_sequence_count(scan), most = MOST_SEQUENCES / detail;
    size_t count = total < most ? total : most, cut = 0;
    double *id = coffer__chunks_f64(chunks, "sequences.id", count);
    double *first = coffer__chunks_f64(chunks, "sequences.first_token", count);
    double *tokens = coffer__chunks_f64(chunks, "sequences.tokens", count);
    uint32_t *source = coffer__chunks_u32(chunks, "sequences.source", count);
    for (size_t i = 0; source && i < count; i++) {
        const coffer_mscan_sequence *from = coffer_mscan_sequence_at(scan, i);
        size_t len = from->source ? strnlen(from->source, SOURCE_BYTES) : 0;
        while (len == SOURCE_BYTES && len > 0 && ((unsigned char)from->source[len] & 0xc0) == 0x80)
            len--; /* not inside a character */
        cut += from->source && from->source_len > len;
        id[i] = (double)from->sequence_id;
        first[i] = (double)from->first_token;
        tokens[i] = (double)from->num_tokens;
        source[i] = coffer__chunks_text_len(chunks, from->source ? from->source : "", len);
    }
    if (count < total)
        coffer__chunks_note(chunks, "the first %zu of %zu sequences are listed", count, total);
    if (cut)
        coffer__chunks_note(chunks, "the texts of %zu sequences are cut after %d bytes", cut, SOURCE_BYTES);
}

static coffer_status emit_scan(coffer_chunks *chunks, void *state, uint32_t detail, coffer_error *err)
{
    const scan_page *page = state;
    coffer_node *list = coffer_node_add_list(chunks->view, "scans");
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < page->count; i++) {
        const coffer_mscan *scan = page->scans[i];
        coffer_node *map = coffer_node_add_map(list, NULL);
        coffer_node_add_u64(map, "records", coffer_mscan_record_count(scan), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "tokens", coffer_mscan_total_tokens(scan), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "params", coffer_mscan_param_count(scan), COFFER_UNIT_NONE);
        coffer_node_add_u64(map, "sequences", coffer_mscan_sequence_count(scan), COFFER_UNIT_NONE);
        coffer_node_add_text(map, "model_name", coffer_mscan_model_name(scan));
    }
    for (size_t i = 0; i < page->count && !status; i++)
        status = add_grids(chunks, page->scans[i], i, detail, err);
    if (status)
        return status;
    add_names(chunks, page->scans[0]);
    add_layers(chunks, page->scans[0]);
    if (page->count > 1 || chunks->quick) {
        add_sequences(chunks, page->scans[0], detail);
        return COFFER_OK;
    }
    add_groups(chunks, page->params[0], NULL, coffer_mscan_stats_count(page->params[0]), "param_stats");
    add_scores(chunks, page);
    add_sequences(chunks, page->scans[0], detail);
    return add_top_blocks(chunks, page->blocks[0], detail, err);
}

const coffer__page_kind coffer__page_scan = {
    .page = "scan",
    .kinds = "mscan",
    .open = open_scan,
    .emit = emit_scan,
    .close = close_scan,
};
