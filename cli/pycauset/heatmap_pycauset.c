/* heatmap, for matrices: means of equal cells, in the proportions of the matrix. */
#include "base/fail.h"
#include "base/memory.h"
#include "draw/axis.h"
#include "draw/heat.h"
#include "files.h"
#include "pycauset_verbs.h"
#include "term.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const cli_option options[] = {
    HEAT_OUTPUT_OPTION,
    HEAT_OPTIONS,
    { "minus", 0, "FILE", NULL,
      "draw the difference: the values minus those of FILE, which has the same shape" },
    { "threads", 0, "N", NULL, "number of threads", "one per core" },
    PYCAUSET_ARRAY_OPTIONS,
    CLI_DAMAGED_OPTION,
    { 0 },
};

typedef struct matrix_heat {
    heat_map map;
    double *cells;
    const coffer_pycauset_info *info;
    const char *part;  /* what of the file is drawn; NULL = all of it */
    const char *minus; /* the file that is subtracted; NULL = none */
    double low, high;  /* over the cells; NaN when all are empty */
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

static coffer_status downsample(double **out, const matrix_heat *heat, uint64_t threads,
                                const coffer_pycauset *matrix, coffer_error *err)
{
    coffer_pycauset_stats_opts opts = COFFER_PYCAUSET_STATS_OPTS_INIT;
    size_t count = (size_t)heat->map.columns * heat->map.rows;
    term_progress bar;
    double *cells = coffer__alloc_array(count, sizeof *cells);
    if (!cells)
        return coffer__fail_no_memory(err, count * sizeof *cells);
    opts.threads = (uint32_t)threads;
    opts.progress = &bar.progress;
    term_progress_start(&bar, "reading", NULL);
    bar.amount = coffer_pycauset_get_info(matrix)->payload_needed;
    coffer_status status =
        coffer_pycauset_downsample(cells, heat->map.rows, heat->map.columns, matrix, &opts, err);
    term_progress_end(&bar);
    if (status)
        coffer__free(cells);
    else
        *out = cells;
    return status;
}

/* The difference of means is the mean of the differences; that of magnitudes is not one of complex numbers.
 */
static int subtract(matrix_heat *heat, const cli_args *args, uint64_t threads)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_source *src = NULL, *scratch = NULL;
    coffer_pycauset *matrix = NULL;
    double *cells = NULL;
    int result = CLI_OK;
    if (coffer_source_open(&src, heat->minus, NULL, &err))
        return cli_fail(heat->minus, &err, cli_open_hint(&err));
    result = pycauset_open_array(&scratch, args, heat->minus, src);
    if (!result && coffer_pycauset_open(&matrix, scratch ? scratch : src, NULL, &err))
        result = cli_fail(heat->minus, &err, NULL);
    const coffer_pycauset_info *info = result ? NULL : coffer_pycauset_get_info(matrix);
    if (info && (info->rows != heat->info->rows || info->cols != heat->info->cols))
        result =
            cli_usage(args, "--minus: %s has %" PRIu64 " × %" PRIu64 " elements, %s %" PRIu64 " × %" PRIu64,
                      heat->minus, info->rows, info->cols, cli_operand(args, 0), heat->info->rows,
                      heat->info->cols);
    if (!result && downsample(&cells, heat, threads, matrix, &err))
        result = cli_fail(heat->minus, &err, NULL);
    for (size_t i = 0; cells && i < (size_t)heat->map.columns * heat->map.rows; i++)
        heat->cells[i] -= cells[i];
    coffer__free(cells);
    coffer_pycauset_close(matrix);
    coffer_source_close(scratch);
    coffer_source_close(src);
    return result;
}

static int fill_cells(matrix_heat *heat, const cli_args *args, const coffer_pycauset *matrix)
{
    coffer_error err = COFFER_ERROR_INIT;
    uint64_t threads;
    if (!cli_number(&threads, args, "threads", 0, 1, 1024))
        return CLI_USAGE;
    if (downsample(&heat->cells, heat, threads, matrix, &err))
        return cli_fail(cli_operand(args, 0), &err, NULL);
    heat->map.cells = heat->cells;
    int result = heat->minus ? subtract(heat, args, threads) : CLI_OK;
    heat->low = heat->high = NAN;
    for (size_t i = 0; i < (size_t)heat->map.columns * heat->map.rows; i++) {
        heat->low = fmin(heat->low, heat->cells[i]);
        heat->high = fmax(heat->high, heat->cells[i]);
    }
    return result;
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
    if (heat->minus)
        return complex_values ? "difference of magnitudes" : whole ? "difference" : "mean difference";
    return complex_values ? (whole ? "magnitude" : "mean magnitude") : (whole ? "value" : "mean value");
}

static int draw_picture(const matrix_heat *heat, const heat_layout *layout, const cli_args *args)
{
    coffer_error err = COFFER_ERROR_INIT;
    heat_picture drawn;
    char subtitle[160];
    char title[256];
    const char *output = cli_value(args, "output"), *file = cli_base_name(cli_operand(args, 0));
    const char *second = heat->minus ? cli_base_name(heat->minus) : heat->part ? heat->part : "";
    term_text rows, cols;
    snprintf(title, sizeof title, "%.100s%s%.140s", file,
             heat->minus  ? " − "
             : heat->part ? ": "
                          : "",
             second);
    snprintf(subtitle, sizeof subtitle, "%s of %s · %s × %s", coffer_pycauset_type_name(heat->info->type),
             pycauset_element_type(heat->info), term_count(rows, heat->info->rows),
             term_count(cols, heat->info->cols));
    coffer_status status = heat_begin_picture(&drawn, &heat->map, layout, output, title, subtitle, &err);
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

static int draw(const cli_args *args, const coffer_pycauset *matrix, const char *part)
{
    matrix_heat heat = { .info = coffer_pycauset_get_info(matrix),
                         .part = part,
                         .minus = cli_value(args, "minus") };
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

static int draw_all(const cli_args *args, const coffer_pycauset *matrix)
{
    return draw(args, matrix, NULL);
}

static int run(const cli_args *args, coffer_source *src)
{
    return pycauset_with_matrix(args, src, 0, draw_all);
}

int pycauset_draw_heat(const cli_args *args, coffer_source *array, const char *part)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_convert_opts opts = COFFER_CONVERT_OPTS_INIT;
    coffer_source *scratch = NULL;
    coffer_pycauset *matrix = NULL;
    coffer_status status = coffer_convert_to_matrix(&scratch, array, &opts, &err);
    if (!status)
        status = coffer_pycauset_open(&matrix, scratch, NULL, &err);
    int result = status ? cli_fail(cli_operand(args, 0), &err, NULL) : draw(args, matrix, part);
    coffer_pycauset_close(matrix);
    coffer_source_close(scratch);
    return result;
}

const cli_format_verb cli_pycauset_heatmap = {
    .format = "pycauset, npy, hdf5, mtx",
    .verb = "heatmap",
    .options = options,
    .examples =
        "  coffer heatmap m.pycauset                              # rows and columns, in the terminal\n"
        "  coffer heatmap m.pycauset -o m.png --palette magma --log\n"
        "  coffer heatmap new.pycauset --minus old.pycauset -o change.png   # a difference map\n",
    .run = run,
};
