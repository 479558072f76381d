/* Pictures with text, and colors for numbers. */
#ifndef COFFER_CLI_PICTURE_H
#define COFFER_CLI_PICTURE_H

#include "coffer/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Colors for numbers: palettes whose lightness grows evenly, so that equal steps look equal and a print in
 * black and white still reads. */
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

/* Pictures with text: PNG or SVG by the name of the file. Coordinates are pixels from the top left corner;
 * failures while drawing are
 * reported by picture_save. The drawing itself is done by a module, see canvas.h. */
#define PICTURE_MAX_SIDE 16384

typedef struct picture picture;

typedef struct picture_box {
    double x, y, width, height;
} picture_box;

typedef struct picture_point {
    double x, y;
} picture_point;

typedef enum picture_align { PICTURE_LEFT, PICTURE_CENTER, PICTURE_RIGHT } picture_align;

typedef struct picture_font {
    double size;
    bool bold;
    rgb color;
} picture_font;

/* True when the name ends in .png or .svg: nothing else can be written. */
bool picture_can_write(const char *path);
/* path : copied; the picture appears there at picture_save. Sides from 1 to PICTURE_MAX_SIDE. */
coffer_status picture_new(picture **out, const char *path, unsigned width, unsigned height,
                          coffer_error *err);
/* Writes the file and frees the picture. An old file is replaced only with --force, and only when the new one
 * is complete. */
coffer_status picture_save(picture *image, coffer_error *err);
void picture_free(picture *image);

void picture_fill(picture *image, picture_box box, rgb color);
/* A filled area; SVG files hold it as one path. */
void picture_polygon(picture *image, const picture_point *corners, size_t count, rgb color);
void picture_outline(picture *image, picture_box box, double line_width, rgb color);
void picture_line(picture *image, double x0, double y0, double x1, double y1, double line_width, rgb color);
/* Text with its baseline at y; x is its left end, middle or right end. Control characters become '?'. */
void picture_text(picture *image, double x, double y, picture_align align, const picture_font *font,
                  const char *text);
/* The same, turned to read upwards; (x, y) is the middle of the baseline. */
void picture_text_upwards(picture *image, double x, double y, const picture_font *font, const char *text);
double picture_text_width(picture *image, const picture_font *font, const char *text);
typedef enum picture_cut { PICTURE_CUT_MIDDLE, PICTURE_CUT_END } picture_cut;
/* Text cut with "…" so that it is at most `width` wide: names in the middle, prose at its end. */
void picture_fit_text(char *out, size_t capacity, picture *image, const picture_font *font, picture_cut cut,
                      const char *text, double width);
/* A photograph, rows of 3 bytes for each pixel, scaled into the box; pixels that become large stay square. */
void picture_photo(picture *image, picture_box box, const uint8_t *pixels, unsigned width, unsigned height);
/* A grid of colored cells stretched over the box, each with sharp edges. cells : rows × columns. */
void picture_cells(picture *image, picture_box box, const rgb *cells, size_t columns, size_t rows);

#endif
