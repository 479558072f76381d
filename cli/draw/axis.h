/* Axes of a chart: round numbers for ticks, labels, color bars. */
#ifndef COFFER_CLI_AXIS_H
#define COFFER_CLI_AXIS_H

#include "picture.h"

enum { AXIS_MOST_TICKS = 32 };

typedef struct axis_ticks {
    double at[AXIS_MOST_TICKS];
    double step;
    size_t count;
} axis_ticks;

/* Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high], about `wanted` of them.
 * whole : whole numbers only. */
void axis_find_ticks(axis_ticks *out, double low, double high, size_t wanted, bool whole);
/* 1, 10, 100 … inside [low, high], with 2 and 5 between them while there are few. */
void axis_find_log_ticks(axis_ticks *out, double low, double high);

typedef char axis_label[32];
/* With as many decimals as the step needs: "0.25", "40,000", "1e-09". */
const char *axis_format(axis_label out, double value, double step);

/* The numbers of [low, high) along the lower edge of the plot; each stands under the middle of its cell. */
void axis_draw_below(picture *canvas, picture_box plot, double low, double high, const char *title);
/* The same along the left edge. */
void axis_draw_left(picture *canvas, picture_box plot, double low, double high, const char *title);
void axis_draw_color_bar(picture *canvas, picture_box bar, colormap map, const color_scale *scale,
                         const char *title);

#endif
