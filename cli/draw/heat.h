/* A grid of numbers as colors: a picture with a heading and a color bar, or blocks of text. The caller labels
 * the rows and columns. */
#ifndef COFFER_CLI_HEAT_H
#define COFFER_CLI_HEAT_H

#include "cli.h"
#include "picture.h"

/* Options of every heat map. */
#define HEAT_OUTPUT_OPTION                                                                                 \
    {                                                                                                      \
        "output", 'o', "FILE", NULL, "picture to write, .png or .svg", "blocks of text on standard output" \
    }
#define HEAT_OPTIONS                                                                  \
    CLI_FORCE_OPTION, { "width", 0, "PIXELS", NULL, "width of the picture", "1200" }, \
        { "height", 0, "PIXELS", NULL, "height of the picture", "as the rows need" }, \
        { "palette", 0, "NAME", COLORMAP_CHOICES, "colors" },                         \
        { "low", 0, "X", NULL, "value of the first color", "the smallest mean" },     \
        { "high", 0, "X", NULL, "value of the last color", "the largest mean" },      \
    {                                                                                 \
        "log", 0, NULL, NULL, "logarithmic colors"                                    \
    }

typedef struct heat_map {
    const double *cells; /* rows × columns, row by row; an empty one is NaN */
    uint32_t columns, rows;
    const char *title; /* the value that the colors show: "mean activation" */
    colormap palette;
    color_scale scale;
} heat_map;

/* Colors from low to high, as far as the options do not say otherwise. 0, or CLI_USAGE after a message. */
int heat_choose_scale(heat_map *map, const cli_args *args, double low, double high);

/* ---- Pictures ---- */

/* Room for the plot itself in a picture of that size: ask for no more cells than that.
 * height : 0 = as the rows need. */
typedef struct heat_layout {
    unsigned width, height;
    double left, right, top, bottom; /* margins */
} heat_layout;

enum { HEAT_TALLEST_PLOT = 680, HEAT_SHORTEST_PLOT = 150 };

/* The usual margins, in the size that the options ask for. 0, or CLI_USAGE after a message: also when there
 * is an output of a name that cannot be written. */
int heat_layout_of(heat_layout *out, const cli_args *args);
unsigned heat_plot_width(const heat_layout *layout);
unsigned heat_plot_height(const heat_layout *layout);

typedef struct heat_picture {
    picture *canvas;
    picture_box plot;
} heat_picture;

/* Cells, color bar and heading; a height that is 0 is chosen; axes and whatever else are the caller's to
 * draw, who saves (or frees) the canvas. */
coffer_status heat_begin_picture(heat_picture *out, const heat_map *map, const heat_layout *wanted,
                                 const char *path, const char *title, const char *subtitle,
                                 coffer_error *err);

/* ---- Text ---- */

/* Room in the terminal, in cells of the grid, beside `label` columns for names. */
typedef struct heat_text_size {
    unsigned label, columns, rows;
} heat_text_size;

heat_text_size heat_text_size_of(unsigned label, FILE *out);

typedef struct heat_text {
    const heat_map *map;
    unsigned label; /* columns before the cells */
    unsigned cell;  /* columns a cell takes */
    /* Prints `label` columns beside a row. */
    void (*print_label)(const struct heat_text *text, uint32_t row, FILE *out);
    const void *context;
    bool every_row;       /* a line for each row, in color too, so that each has its label */
    uint64_t first, last; /* at the two ends of the line below */
    const char *axis;     /* what they count */
} heat_text;

/* How wide a cell can be: a few cells are drawn wider. */
unsigned heat_cell_width(const heat_map *map, const heat_text_size *size);
/* Half blocks in color on a terminal, shades of text elsewhere; the line below; the legend. */
void heat_draw_text(const heat_text *text, FILE *out);

#endif
