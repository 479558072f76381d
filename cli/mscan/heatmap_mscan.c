/* coffer heatmap, for scans. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli.h"
#include "mscan_verbs.h"
#include "scan_heat.h"
#include "term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A cache is worth its file when a pass over the records takes longer than a blink. */
#define RECORDS_WORTH_A_CACHE (UINT64_C(4) << 20)

static const cli_option options[] = {
    HEAT_OUTPUT_OPTION,
    { "rows", 'r', "WHAT", "block|param|layer",
      "one row for each; block adds up the blocks with one number of all selected parameters",
      "layer, or param if names have no layers" },
    { "metric", 'm', "NAME", "activation|grad_norm", "value to draw", "activation" },
    { "tokens", 't', "A..B", NULL, "only tokens A to B - 1" },
    { "param", 'p', "GLOB", NULL, "only parameters whose name matches" },
    HEAT_OPTIONS,
    { "no-cache", 0, NULL, NULL, "do not write a cache file next to a large scan" },
    CLI_DAMAGED_OPTION,
    { 0 },
};

uint64_t scan_heat_row_key(const scan_heat *heat, uint32_t row)
{
    const coffer_mscan_grid *grid = heat->grid;
    if (heat->row_keys)
        return heat->row_keys[row];
    return grid->row_begin + (grid->row_end - grid->row_begin) * row / grid->height;
}

const char *scan_heat_row_name(const scan_heat *heat, uint32_t row)
{
    uint64_t key = scan_heat_row_key(heat, row);
    const char *name = heat->rows == COFFER_MSCAN_ROWS_LAYER
                           ? coffer_mscan_layer_name(heat->scan, (size_t)key)
                           : coffer_mscan_param_name(heat->scan, (uint16_t)key);
    return name ? name : "";
}

uint64_t scan_heat_last_token(const scan_heat *heat)
{
    uint64_t total = coffer_mscan_total_tokens(heat->scan);
    return (heat->grid->token_end < total ? heat->grid->token_end : total) - 1;
}

/* "mean activation (raw)". */
static const char *title_of(coffer_mscan_metric metric, bool raw)
{
    static const char *const titles[2][2] = { { "mean activation", "mean activation (raw)" },
                                              { "mean grad_norm", "mean grad_norm (raw)" } };
    return titles[metric][raw];
}

/* Rows from the first to the last parameter that matches. */
static void narrow_rows(coffer_mscan_grid_opts *grid, const coffer_mscan *scan)
{
    bool found = false;
    for (size_t i = 0; i < coffer_mscan_param_count(scan); i++) {
        const coffer_mscan_param *param = coffer_mscan_param_at(scan, i);
        if (!coffer__glob_match(grid->param_glob, param->name, param->name_len))
            continue;
        if (!found)
            grid->row_begin = param->id;
        grid->row_end = param->id + 1;
        found = true;
    }
}

static bool is_empty(const double *means, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!isnan(means[i]))
            return false;
    return true;
}

/* The first of the parameters [begin, end) that can be meant by a row they share. */
static uint16_t name_giver(const coffer_mscan *scan, uint64_t begin, uint64_t end, const char *glob)
{
    for (uint64_t id = begin; id < end; id++) {
        const char *name = coffer_mscan_param_name(scan, (uint16_t)id);
        if (name && (!glob || coffer__glob_match(glob, name, strlen(name))))
            return (uint16_t)id;
    }
    return (uint16_t)begin;
}

/* Takes out the rows without records: of all modules of a model a scan may know only a few. Gives the
 * parameter or layer that names each row left, which the caller frees; NULL when memory is short. */
static uint16_t *drop_empty_rows(coffer_mscan_grid *grid, const coffer_mscan *scan,
                                 const coffer_mscan_grid_opts *opts)
{
    uint16_t *keys = coffer__alloc_array(grid->height, sizeof *keys);
    uint64_t span = grid->height ? (grid->row_end - grid->row_begin) / grid->height : 0;
    uint32_t kept = 0;
    for (uint32_t row = 0; keys && row < grid->height; row++) {
        const double *means = grid->mean + (size_t)row * grid->width;
        uint64_t begin = grid->row_begin + row * span;
        if (is_empty(means, grid->width))
            continue;
        memmove(grid->mean + (size_t)kept * grid->width, means, grid->width * sizeof *means);
        keys[kept++] = opts->rows == COFFER_MSCAN_ROWS_LAYER
                           ? (uint16_t)begin
                           : name_giver(scan, begin, begin + span, opts->param_glob);
    }
    if (keys)
        grid->height = kept;
    return keys;
}

typedef struct named_row {
    const char *name;
    uint32_t row;
    uint16_t key;
} named_row;

static int compare_rows(const void *a, const void *b)
{
    const named_row *x = a, *y = b;
    int order = coffer__natural_compare(x->name, y->name);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* Parameters in the order of their names, with 2 before 10, whatever ids the writer gave them. */
static void sort_rows(coffer_mscan_grid *grid, uint16_t *keys, const coffer_mscan *scan)
{
    size_t cells = (size_t)grid->width * grid->height;
    named_row *rows = coffer__alloc_array(grid->height, sizeof *rows);
    double *sorted = coffer__alloc_array(cells, sizeof *sorted);
    for (uint32_t row = 0; rows && sorted && row < grid->height; row++) {
        const char *name = coffer_mscan_param_name(scan, keys[row]);
        rows[row] = (named_row){ name ? name : "", row, keys[row] };
    }
    if (rows && sorted && cells > 0) {
        qsort(rows, grid->height, sizeof *rows, compare_rows);
        for (uint32_t row = 0; row < grid->height; row++) {
            memcpy(sorted + (size_t)row * grid->width, grid->mean + (size_t)rows[row].row * grid->width,
                   grid->width * sizeof *sorted);
            keys[row] = rows[row].key;
        }
        memcpy(grid->mean, sorted, cells * sizeof *sorted);
    }
    coffer__free(rows);
    coffer__free(sorted);
}

/* Layers, if the names of the parameters have some. */
static coffer_mscan_rows rows_to_draw(const cli_args *args, const coffer_mscan *scan)
{
    static const coffer_mscan_rows choices[] = { COFFER_MSCAN_ROWS_BLOCK, COFFER_MSCAN_ROWS_PARAM,
                                                 COFFER_MSCAN_ROWS_LAYER };
    if (cli_has(args, "rows"))
        return choices[cli_choice(args, "rows", 0)];
    return coffer_mscan_layer_count(scan) > 2 ? COFFER_MSCAN_ROWS_LAYER : COFFER_MSCAN_ROWS_PARAM;
}

/* Beside the scan as NAME.heat, where the scan is large and its folder can be written. The caller frees. */
static char *cache_path(const cli_args *args, const coffer_mscan *scan)
{
    static const char extension[] = ".heat";
    const char *path = cli_operand(args, 0);
    if (cli_has(args, "no-cache") || strcmp(path, "-") == 0 ||
        coffer_mscan_record_count(scan) < RECORDS_WORTH_A_CACHE)
        return NULL;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? coffer__strndup(path, (size_t)(slash - path) + 1) : coffer__strdup(".");
    bool writable = folder && access(folder, W_OK) == 0;
    coffer__free(folder);
    size_t len = strlen(path);
    char *cache = writable ? coffer__malloc(len + sizeof extension) : NULL;
    if (cache) {
        memcpy(cache, path, len);
        memcpy(cache + len, extension, sizeof extension);
    }
    return cache;
}

/* The scale of the whole file turns means into real units; scales of smaller scope cannot. */
static bool to_real_units(coffer_mscan_grid *grid, const coffer_mscan *scan, coffer_mscan_metric metric)
{
    const coffer_mscan_quantization *unit = coffer_mscan_quantization_of(scan, metric, 0, 0);
    if (!unit || coffer_mscan_quantization_scope(scan, metric) != COFFER_MSCAN_SCALE_FILE)
        return false;
    size_t count = (size_t)grid->width * grid->height;
    for (size_t i = 0; i < count; i++)
        grid->mean[i] = unit->offset + unit->scale * grid->mean[i];
    double a = unit->offset + unit->scale * grid->low, b = unit->offset + unit->scale * grid->high;
    grid->low = fmin(a, b);
    grid->high = fmax(a, b);
    return true;
}

static int draw(const cli_args *args, scan_heat *heat, const heat_layout *layout)
{
    coffer_error err = COFFER_ERROR_INIT;
    const char *output = cli_value(args, "output");
    int result = heat_choose_scale(&heat->map, args, heat->grid->low, heat->grid->high);
    if (result != CLI_OK)
        return result;
    if (output && scan_heat_draw_picture(heat, layout, output, &err) != COFFER_OK)
        return cli_fail(output, &err, NULL);
    if (!output)
        scan_heat_draw_text(heat, stdout);
    return cli_finish(CLI_OK);
}

static int parse(coffer_mscan_grid_opts *grid, heat_layout *layout, const cli_args *args,
                 const coffer_mscan *scan)
{
    grid->rows = rows_to_draw(args, scan);
    grid->metric = (coffer_mscan_metric)cli_choice(args, "metric", COFFER_MSCAN_ACTIVATION);
    grid->param_glob = cli_value(args, "param");
    if (!cli_range(&grid->token_begin, &grid->token_end, args, "tokens") || heat_layout_of(layout, args))
        return CLI_USAGE;
    size_t matching = mscan_params_matching(scan, grid->param_glob);
    if (grid->param_glob && matching == 0)
        return cli_usage(args, "no parameter matches %s", grid->param_glob);
    if (grid->param_glob && grid->rows == COFFER_MSCAN_ROWS_PARAM)
        narrow_rows(grid, scan);
    if (grid->rows == COFFER_MSCAN_ROWS_BLOCK && matching > 1)
        fprintf(stderr,
                "note: a row is the mean of the blocks with one number of %zu parameters; --param NAME "
                "chooses one\n",
                matching);
    if (cli_value(args, "output")) {
        if (grid->rows == COFFER_MSCAN_ROWS_PARAM)
            scan_heat_fit_names(layout, scan);
        grid->width = heat_plot_width(layout);
        grid->height = heat_plot_height(layout);
    } else {
        heat_text_size size = scan_heat_text_size(scan, grid->rows, stdout);
        grid->width = size.columns;
        grid->height = size.rows;
    }
    return CLI_OK;
}

static int run_on(const cli_args *args, const coffer_mscan *scan)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_mscan_grid_opts opts = COFFER_MSCAN_GRID_OPTS_INIT;
    coffer_mscan_grid *grid = NULL;
    uint16_t *row_keys = NULL;
    heat_layout layout = { 0 };
    int result = parse(&opts, &layout, args, scan);
    if (result != CLI_OK)
        return result;
    char *cache = cache_path(args, scan);
    term_progress bar;
    term_progress_start(&bar, "reading", "records");
    opts.cache_path = cache;
    opts.progress = &bar.progress;
    coffer_status status = coffer_mscan_grid_new(&grid, scan, &opts, &err);
    term_progress_end(&bar);
    coffer__free(cache);
    if (status)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    if (opts.rows != COFFER_MSCAN_ROWS_BLOCK)
        row_keys = drop_empty_rows(grid, scan, &opts);
    if (row_keys && opts.rows == COFFER_MSCAN_ROWS_PARAM)
        sort_rows(grid, row_keys, scan);
    if (grid->width == 0 || grid->height == 0) {
        coffer__fail(&err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "no record is selected");
        result = cli_fail(cli_operand(args, 0), &err, NULL);
    } else {
        scan_heat heat = { .scan = scan, .grid = grid, .rows = opts.rows, .row_keys = row_keys };
        bool raw = !to_real_units(grid, scan, opts.metric);
        heat.map = (heat_map){ .cells = grid->mean, .columns = grid->width, .rows = grid->height };
        heat.map.title = title_of(opts.metric, raw);
        heat.map.palette = (colormap)cli_choice(args, "palette", COLORMAP_VIRIDIS);
        result = draw(args, &heat, &layout);
    }
    coffer__free(row_keys);
    coffer_mscan_grid_free(grid);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return mscan_with_scan(args, src, run_on);
}

const cli_format_verb cli_mscan_heatmap = {
    .format = "mscan",
    .verb = "heatmap",
    .options = options,
    .examples =
        "  coffer heatmap scan.mscan                              # layers and tokens, in the terminal\n"
        "  coffer heatmap scan.mscan --rows block --param model.layers.3.mlp.up_proj.weight\n"
        "  coffer heatmap scan.mscan -o scan.png --rows param\n"
        "  coffer heatmap scan.mscan -o part.svg --tokens 100..300 --param '*.mlp.*' --log\n",
    .run = run,
};
