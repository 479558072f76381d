/* Colors for numbers: palettes whose lightness grows evenly, so that equal steps look equal and a print in
 * black and white still reads. */
#ifndef COFFER_CLI_COLORMAP_H
#define COFFER_CLI_COLORMAP_H

#include <stdint.h>

typedef struct rgb {
    uint8_t red, green, blue;
} rgb;

typedef enum colormap {
    COLORMAP_VIRIDIS,
    COLORMAP_MAGMA,
    COLORMAP_GRAY,
    COLORMAP_COOLWARM /* two-sided: the middle is neutral */
} colormap;

/* In the order of the enum, as the choices of an option. */
#define COLORMAP_CHOICES "viridis|magma|gray|coolwarm"

/* t : 0 to 1; outside values take the nearest end. */
rgb colormap_at(colormap map, double t);

/* From values to [0, 1], on a linear or a logarithmic scale. */
typedef struct color_scale {
    double low, high;
    int logarithmic;
} color_scale;

double color_scale_position(const color_scale *scale, double value);

#endif
