/* diff, for scans: the differences summed up, and a map of them. */
#include "base/memory.h"
#include "mscan_verbs.h"
#include "scan_heat.h"
#include "term.h"
#include "verbs.h"

#include <math.h>
#include <string.h>

static const cli_option options[] = {
    { "by", 0, "WHAT", "param|layer|token|sequence", "sum up the differences by this", "param" },
    { "map", 0, NULL, NULL, "also draw a map of the differences: mean of B minus mean of A" },
    { "output", 'o', "FILE", NULL, "picture of the map, .png or .svg", "text, with --map" },
    { "rows", 'r', "WHAT", "layer|param|block", "rows of the map",
      "layer, or param if names have no layers" },
    { "metric", 'm', "NAME", "activation|grad_norm", "value of the map", "activation" },
    { "force", 'f', NULL, NULL, "overwrite an existing picture" },
    { 0 },
};

typedef struct map_job {
    const cli_args *args;
    coffer_mscan *scans[2];
    coffer_mscan_grid *grids[2];
    coffer_mscan_grid_opts opts;
} map_job;

/* Rows are compared by number: each must mean the same in both. */
static bool has_same_rows(const map_job *job)
{
    const coffer_mscan *a = job->scans[0], *b = job->scans[1];
    size_t count = coffer_mscan_layer_count(a);
    if (job->opts.rows == COFFER_MSCAN_ROWS_LAYER) {
        bool same = count == coffer_mscan_layer_count(b);
        for (size_t i = 0; same && i < count; i++)
            same = strcmp(coffer_mscan_layer_name(a, i), coffer_mscan_layer_name(b, i)) == 0;
        return same;
    }
    for (size_t i = 0; i < coffer_mscan_param_count(a); i++) {
        const coffer_mscan_param *left = coffer_mscan_param_at(a, i), *right = coffer_mscan_param_at(b, i);
        if (!right || left->id != right->id || strcmp(left->name, right->name) != 0)
            return false;
    }
    return coffer_mscan_param_count(a) == coffer_mscan_param_count(b);
}

/* Cells are the same in both: the token range of the longer scan. */
static coffer_status make_grids(map_job *job, coffer_error *err)
{
    uint64_t a_tokens = coffer_mscan_total_tokens(job->scans[0]);
    uint64_t b_tokens = coffer_mscan_total_tokens(job->scans[1]);
    job->opts.token_end = a_tokens < b_tokens ? a_tokens : b_tokens;
    job->opts.row_end = UINT64_MAX;
    for (size_t i = 0; i < 2; i++) {
        coffer_status status = coffer_mscan_grid_new(&job->grids[i], job->scans[i], &job->opts, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* The second grid becomes the difference, in real units if both have the same scale. */
static bool subtract(map_job *job)
{
    coffer_mscan_grid *a = job->grids[0], *b = job->grids[1];
    const coffer_mscan_quantization *unit[2];
    bool real = true;
    for (size_t i = 0; i < 2; i++) {
        unit[i] = coffer_mscan_quantization_of(job->scans[i], job->opts.metric, 0, 0);
        real &= unit[i] &&
                coffer_mscan_quantization_scope(job->scans[i], job->opts.metric) == COFFER_MSCAN_SCALE_FILE;
    }
    real = real && unit[0]->scale == unit[1]->scale;
    b->low = b->high = NAN;
    for (size_t i = 0; i < (size_t)b->width * b->height; i++) {
        b->mean[i] = (b->mean[i] - a->mean[i]) * (real ? unit[0]->scale : 1);
        b->low = fmin(b->low, b->mean[i]);
        b->high = fmax(b->high, b->mean[i]);
    }
    return real;
}

static int draw(map_job *job, const heat_layout *layout)
{
    static const char *const titles[2][2] = {
        { "difference of mean activation", "difference of mean activation (raw)" },
        { "difference of mean grad_norm", "difference of mean grad_norm (raw)" }
    };
    coffer_error err = COFFER_ERROR_INIT;
    const char *output = cli_value(job->args, "output");
    bool raw = !subtract(job);
    coffer_mscan_grid *grid = job->grids[1];
    scan_heat heat = { .scan = job->scans[1], .grid = grid, .rows = job->opts.rows };
    heat.map = (heat_map){ .cells = grid->mean, .columns = grid->width, .rows = grid->height };
    heat.map.title = titles[job->opts.metric][raw];
    heat.map.palette = COLORMAP_COOLWARM;
    double most = fmax(fabs(grid->low), fabs(grid->high));
    heat.map.scale = (color_scale){ .low = most > 0 ? -most : -1, .high = most > 0 ? most : 1 };
    if (!output)
        scan_heat_draw_text(&heat, stdout);
    else if (scan_heat_draw_picture(&heat, layout, output, &err) != COFFER_OK)
        return cli_fail(output, &err, NULL);
    return CLI_OK;
}

static int draw_map(map_job *job)
{
    coffer_error err = COFFER_ERROR_INIT;
    heat_layout layout = { 0 };
    const char *output = cli_value(job->args, "output");
    if (heat_layout_of(&layout, job->args))
        return CLI_USAGE;
    if (!has_same_rows(job))
        return cli_usage(job->args, "a map needs the same %s in both scans",
                         job->opts.rows == COFFER_MSCAN_ROWS_LAYER ? "layers" : "parameters");
    if (output && job->opts.rows != COFFER_MSCAN_ROWS_BLOCK)
        scan_heat_fit_names(&layout, job->scans[0]);
    heat_text_size size = scan_heat_text_size(job->scans[0], job->opts.rows, stdout);
    job->opts.width = output ? heat_plot_width(&layout) : size.columns;
    job->opts.height = output ? heat_plot_height(&layout) : size.rows;
    if (make_grids(job, &err) != COFFER_OK)
        return cli_fail(cli_operand(job->args, 0), &err, NULL);
    const coffer_mscan_grid *a = job->grids[0], *b = job->grids[1];
    if (a->width != b->width || a->height != b->height || a->width == 0 || a->height == 0)
        return cli_usage(job->args, "the scans have no cells in common");
    return draw(job, &layout);
}

static int run_map(const cli_args *args)
{
    static const coffer_mscan_rows rows[] = { COFFER_MSCAN_ROWS_LAYER, COFFER_MSCAN_ROWS_PARAM,
                                              COFFER_MSCAN_ROWS_BLOCK };
    coffer_error err = COFFER_ERROR_INIT;
    map_job job = { .args = args, .opts = COFFER_MSCAN_GRID_OPTS_INIT };
    int result = CLI_OK;
    for (size_t i = 0; i < 2 && !result; i++) {
        if (coffer_mscan_open_path(&job.scans[i], cli_operand(args, i), NULL, &err) != COFFER_OK)
            result = cli_worse(CLI_FAILED, cli_fail(cli_operand(args, i), &err, NULL));
    }
    if (!result) {
        bool has_layers = coffer_mscan_layer_count(job.scans[0]) > 2;
        job.opts.rows = cli_has(args, "rows") ? rows[cli_choice(args, "rows", 0)]
                        : has_layers          ? COFFER_MSCAN_ROWS_LAYER
                                              : COFFER_MSCAN_ROWS_PARAM;
        job.opts.metric = (coffer_mscan_metric)cli_choice(args, "metric", COFFER_MSCAN_ACTIVATION);
        result = draw_map(&job);
    }
    for (size_t i = 0; i < 2; i++) {
        coffer_mscan_grid_free(job.grids[i]);
        coffer_mscan_close(job.scans[i]);
    }
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    const char *by = cli_value(args, "by");
    (void)src;
    bool json = cli_has(args, "json") || cli_has(args, "csv");
    if (cli_has(args, "map") && json && !cli_value(args, "output"))
        return cli_usage(args, "--map with --json or --csv requires -o FILE");
    int result = cli_diff_nodes(args, by);
    if (result <= CLI_FINDINGS && (cli_has(args, "map") || cli_value(args, "output")))
        result = cli_worse(result, run_map(args));
    return cli_finish(result);
}

const cli_format_verb cli_mscan_diff = {
    .format = "mscan",
    .verb = "diff",
    .options = options,
    .examples = "  coffer diff a.mscan b.mscan --by layer          # which layers differ most\n"
                "  coffer diff a.mscan b.mscan -o difference.png   # where, by layer and token\n",
    .run = run,
};
