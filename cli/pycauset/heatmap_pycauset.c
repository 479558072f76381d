/* heatmap, for matrices: means of equal cells, in the proportions of the matrix. */
#include "base/fail.h"
#include "base/memory.h"
#include "draw/axis.h"
#include "draw/heat.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <math.h>
#include <string.h>

static const cli_option options[] = {
    HEAT_OUTPUT_OPTION,
    HEAT_OPTIONS,
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    PYCAUSET_ARRAY_OPTIONS,
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct matrix_heat {
    heat_map map;
    double *cells;
    const coffer_pycauset_info *info;
    double low, high; /* over the cells; NaN when all are empty */
} matrix_heat;

/* ---- How many cells ---- */

static double aspect(const coffer_pycauset_info *info)
{
    return (double)info->rows / (double)info->cols;
}

static uint32_t at_most(double wanted, uint64_t available, unsigned room)
{
    double most = fmin((double)available, room);
    return (uint32_t)fmax(1, fmin(floor(wanted + 0.5), most));
}

/* Cells are square, unless the matrix is much taller than wide or wider than tall. */
static void fit_layout(heat_layout *layout, const coffer_pycauset_info *info)
{
    if (layout->height)
        return;
    double width = heat_plot_width(layout), height = width * aspect(info);
    if (height > HEAT_TALLEST_PLOT) {
        height = HEAT_TALLEST_PLOT;
        width = fmax(height / aspect(info), HEAT_SHORTEST_PLOT);
        layout->width = (unsigned)(width + layout->left + layout->right);
    }
    layout->height = (unsigned)(fmax(height, HEAT_SHORTEST_PLOT) + layout->top + layout->bottom);
}

static void choose_picture_grid(heat_map *map, const heat_layout *layout, const coffer_pycauset_info *info)
{
    map->columns = at_most(INFINITY, info->cols, heat_plot_width(layout));
    map->rows = at_most(INFINITY, info->rows, heat_plot_height(layout));
}

/* A character is twice as high as wide; in color it shows two cells, one above the other. */
static void choose_text_grid(heat_map *map, const heat_text_size *size, const coffer_pycauset_info *info)
{
    double letter = term_has_color(stdout) ? 1 : 0.5;
    double columns = fmin(size->columns, size->rows / (aspect(info) * letter));
    map->columns = at_most(columns, info->cols, size->columns);
    map->rows = at_most(columns * aspect(info) * letter, info->rows, size->rows);
}

/* ---- The numbers ---- */

static int fill_cells(matrix_heat *heat, const cli_args *args, const coffer_pycauset *matrix)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    size_t count = (size_t)heat->map.columns * heat->map.rows;
    uint64_t threads;
    term_progress bar;
    if (!cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    opts.threads = (uint32_t)threads;
    opts.progress = &bar.progress;
    heat->map.cells = heat->cells = coffer__alloc_array(count, sizeof *heat->cells);
    term_progress_start(&bar, "reading", NULL);
    bar.amount = heat->info->payload_needed;
    coffer_status status = heat->cells ? coffer_pycauset_downsample(heat->cells, heat->map.rows,
                                                                    heat->map.columns, matrix, &opts, &err)
                                       : coffer__fail_no_memory(&err, count * sizeof *heat->cells);
    term_progress_end(&bar);
    if (status)
        return cli_fail(cli_operand(args, 0), &err, NULL);
    heat->low = heat->high = NAN;
    for (size_t i = 0; i < count; i++) {
        heat->low = fmin(heat->low, heat->cells[i]);
        heat->high = fmax(heat->high, heat->cells[i]);
    }
    return CLI_OK;
}

/* Positive and negative values get a diverging palette by default. */
static int choose_colors(matrix_heat *heat, const cli_args *args)
{
    bool two_sided = heat->low < 0 && heat->high > 0 && !cli_has(args, "palette") && !cli_has(args, "low") &&
                     !cli_has(args, "high") && !cli_has(args, "log");
    double reach = fmax(-heat->low, heat->high);
    heat->map.palette =
        (colormap)cli_choice(args, "palette", two_sided ? COLORMAP_COOLWARM : COLORMAP_VIRIDIS);
    return heat_choose_scale(&heat->map, args, two_sided ? -reach : heat->low,
                             two_sided ? reach : heat->high);
}

/* ---- Drawing ---- */

static const char *title_of(const matrix_heat *heat)
{
    bool whole = heat->map.columns == heat->info->cols && heat->map.rows == heat->info->rows;
    bool complex_values = coffer_dtype_is_complex(heat->info->value_dtype);
    return complex_values ? (whole ? "magnitude" : "mean magnitude") : (whole ? "value" : "mean value");
}

static int draw_picture(const matrix_heat *heat, const heat_layout *layout, const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    heat_picture drawn;
    char subtitle[160];
    const char *path = cli_operand(args, 0), *output = cli_value(args, "output");
    const char *slash = strrchr(path, '/');
    term_text rows, cols;
    snprintf(subtitle, sizeof subtitle, "%s of %s · %s × %s", coffer_pycauset_type_name(heat->info->type),
             pycauset_element_type(heat->info), term_count(rows, heat->info->rows),
             term_count(cols, heat->info->cols));
    coffer_status status =
        heat_begin_picture(&drawn, &heat->map, layout, output, slash ? slash + 1 : path, subtitle, &err);
    if (!status) {
        axis_draw_below(drawn.canvas, drawn.plot, 0, (double)heat->info->cols, "column");
        axis_draw_left(drawn.canvas, drawn.plot, 0, (double)heat->info->rows, "row");
        status = picture_save(drawn.canvas, &err);
    }
    return status ? cli_fail(output, &err, NULL) : CLI_OK;
}

static void print_row_label(const heat_text *text, uint32_t row, FILE *out)
{
    const coffer_pycauset_info *info = text->context;
    double first = floor((double)info->rows * row / text->map->rows);
    fprintf(out, "%*.0f ", (int)text->label - 1, first);
}

static void draw_text(const matrix_heat *heat, const heat_text_size *size)
{
    heat_text text = { .map = &heat->map, .label = size->label, .print_label = print_row_label };
    text.cell = heat_cell_width(&heat->map, size);
    text.context = heat->info;
    text.last = heat->info->cols - 1;
    text.axis = "column";
    heat_draw_text(&text, stdout);
}

static int run_on(const cli_args *args, const coffer_pycauset *matrix)
{
    matrix_heat heat = { .info = coffer_pycauset_get_info(matrix) };
    heat_layout layout;
    term_text last_row;
    bool picture_wanted = cli_value(args, "output") != NULL;
    int result = heat_layout_of(&layout, args);
    if (result != CLI_OK)
        return result;
    if (heat.info->rows == 0 || heat.info->cols == 0) {
        coffer_error err = COFFER_ERROR_INIT;
        coffer__fail(&err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the matrix is empty");
        return cli_fail(cli_operand(args, 0), &err, "");
    }
    size_t digits = strlen(term_count(last_row, heat.info->rows));
    heat_text_size size = heat_text_size_of((unsigned)digits + 1, stdout);
    if (picture_wanted) {
        fit_layout(&layout, heat.info);
        choose_picture_grid(&heat.map, &layout, heat.info);
    } else {
        choose_text_grid(&heat.map, &size, heat.info);
    }
    heat.map.title = title_of(&heat);
    result = fill_cells(&heat, args, matrix);
    if (result == CLI_OK)
        result = choose_colors(&heat, args);
    if (result == CLI_OK && picture_wanted)
        result = draw_picture(&heat, &layout, args);
    else if (result == CLI_OK)
        draw_text(&heat, &size);
    coffer__free(heat.cells);
    return result;
}

static int run(const cli_args *args, coffer_source *src)
{
    return pycauset_with_matrix(args, src, 0, run_on);
}

const cli_format_verb cli_pycauset_heatmap = {
    .format = "pycauset, npy, hdf5, mtx",
    .verb = "heatmap",
    .options = options,
    .examples =
        "  coffer heatmap m.pycauset                              # rows and columns, in the terminal\n"
        "  coffer heatmap m.pycauset -o m.png --palette magma --log\n",
    .run = run,
};
