/* The functions of cairo that pictures are drawn with, in a module: see picture.h. */
#ifndef COFFER_CLI_CANVAS_H
#define COFFER_CLI_CANVAS_H

#include "base/buffer.h"
#include "base/module.h"
#include "picture.h"

typedef struct canvas canvas;

typedef struct canvas_module {
    coffer__module common;
    /* vector : SVG, else PNG. NULL when out of memory. */
    canvas *(*create)(bool vector, unsigned width, unsigned height);
    void (*destroy)(canvas *surface);
    /* Writes the file into bytes. COFFER_E_NO_MEMORY also for failures while drawing. */
    coffer_status (*encode)(coffer__buffer *bytes, canvas *surface, coffer_error *err);

    void (*fill)(canvas *surface, picture_box box, rgb color);
    void (*outline)(canvas *surface, picture_box box, double line_width, rgb color);
    void (*line)(canvas *surface, double x0, double y0, double x1, double y1, double line_width, rgb color);
    /* text : valid UTF-8 without control characters. */
    void (*text)(canvas *surface, double x, double y, const picture_font *font, const char *text);
    double (*text_width)(canvas *surface, const picture_font *font, const char *text);
    /* Moves the origin and turns the axes by a quarter, until restore. */
    void (*turn)(canvas *surface, double x, double y);
    void (*restore)(canvas *surface);
    void (*cells)(canvas *surface, picture_box box, const rgb *cells, size_t columns, size_t rows);
    void (*photo)(canvas *surface, picture_box box, const uint8_t *pixels, unsigned width, unsigned height);
    void (*polygon)(canvas *surface, const picture_point *corners, size_t count, rgb color);
} canvas_module;

#endif
