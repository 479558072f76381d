/* The heat map of a scan, drawn in two ways. */
#ifndef COFFER_CLI_HEAT_H
#define COFFER_CLI_HEAT_H

#include "coffer/mscan.h"
#include "colormap.h"

#include <stdio.h>

typedef struct heat_map {
    const coffer_mscan *scan;
    const coffer_mscan_grid *grid; /* in the units that are shown */
    coffer_mscan_rows rows;
    const uint16_t *row_params; /* the parameter of each row; NULL = rows cover the grid's range evenly */
    coffer_mscan_metric metric;
    bool raw; /* quantised integers, not real units */
    colormap palette;
    color_scale scale;
} heat_map;

/* Room for the plot itself in a picture of that size: ask the grid for no more cells than that.
 * height : 0 = as the rows need. */
typedef struct heat_layout {
    unsigned width, height;
    double left, right, top, bottom; /* margins */
} heat_layout;

heat_layout heat_layout_of(const coffer_mscan *scan, coffer_mscan_rows rows, unsigned width, unsigned height);
unsigned heat_plot_width(const heat_layout *layout);
unsigned heat_plot_height(const heat_layout *layout);

size_t heat_longest_name(const coffer_mscan *scan); /* bytes, over all parameters */
/* The colour of a cell; an empty one has a tone that no palette has. */
rgb heat_color(const heat_map *map, double value);
/* The first parameter or block of a row. */
uint64_t heat_row_key(const heat_map *map, uint32_t row);
/* The columns may cover more tokens than there are: the last one that is there. */
uint64_t heat_last_token(const heat_map *map);
/* "mean activation (raw)". */
const char *heat_title(const heat_map *map);

coffer_status heat_draw_picture(const heat_map *map, heat_layout layout, const char *path, coffer_error *err);

/* Room in the terminal, in cells of the grid, beside `label` columns for names. */
typedef struct heat_text_size {
    unsigned label, columns, rows;
} heat_text_size;

heat_text_size heat_text_size_of(const coffer_mscan *scan, coffer_mscan_rows rows, FILE *out);
/* Half blocks in colour on a terminal, shades of text elsewhere. */
void heat_draw_text(const heat_map *map, FILE *out);

#endif
