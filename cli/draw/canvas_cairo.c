/* The module for drawing, by cairo. */
#include "canvas.h"

#include "base/fail.h"
#include "base/memory.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <string.h>

struct canvas {
    cairo_surface_t *surface;
    cairo_t *cairo;
    coffer__buffer bytes; /* of an SVG file, as cairo writes it */
    bool vector;
    bool out_of_memory;
};

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned int length)
{
    coffer__buffer *bytes = closure;
    return coffer__buffer_append(bytes, data, length) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

static void destroy(canvas *surface)
{
    cairo_destroy(surface->cairo);
    cairo_surface_destroy(surface->surface);
    coffer__buffer_free(&surface->bytes);
    coffer__free(surface);
}

static canvas *create(bool vector, unsigned width, unsigned height)
{
    canvas *surface = coffer__calloc(1, sizeof *surface);
    if (!surface)
        return NULL;
    coffer__buffer_init(&surface->bytes, SIZE_MAX);
    surface->vector = vector;
    if (vector) {
        surface->surface = cairo_svg_surface_create_for_stream(collect, &surface->bytes, width, height);
        cairo_svg_surface_set_document_unit(surface->surface, CAIRO_SVG_UNIT_PX);
    } else {
        surface->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    }
    surface->cairo = cairo_create(surface->surface);
    if (cairo_status(surface->cairo) == CAIRO_STATUS_SUCCESS)
        return surface;
    destroy(surface);
    return NULL;
}

static coffer_status encode(coffer__buffer *bytes, canvas *surface, coffer_error *err)
{
    cairo_status_t status = cairo_status(surface->cairo);
    if (status == CAIRO_STATUS_SUCCESS && !surface->vector)
        status = cairo_surface_write_to_png_stream(surface->surface, collect, &surface->bytes);
    cairo_surface_finish(surface->surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface->surface);
    if (surface->bytes.failed || surface->out_of_memory || status == CAIRO_STATUS_NO_MEMORY)
        return coffer__fail_no_memory(err, surface->bytes.len);
    if (status != CAIRO_STATUS_SUCCESS)
        return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "drawing failed: %s",
                            cairo_status_to_string(status));
    *bytes = surface->bytes;
    coffer__buffer_init(&surface->bytes, SIZE_MAX);
    return COFFER_OK;
}

static void use_color(canvas *surface, rgb color)
{
    cairo_set_source_rgb(surface->cairo, color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

static void fill(canvas *surface, picture_box box, rgb color)
{
    use_color(surface, color);
    cairo_rectangle(surface->cairo, box.x, box.y, box.width, box.height);
    cairo_fill(surface->cairo);
}

static void polygon(canvas *surface, const picture_point *corners, size_t count, rgb color)
{
    use_color(surface, color);
    cairo_new_path(surface->cairo); /* a text before it leaves its end as the current point */
    for (size_t i = 0; i < count; i++)
        cairo_line_to(surface->cairo, corners[i].x, corners[i].y);
    cairo_close_path(surface->cairo);
    cairo_fill(surface->cairo);
}

static void outline(canvas *surface, picture_box box, double line_width, rgb color)
{
    double half = line_width / 2;
    use_color(surface, color);
    cairo_set_line_width(surface->cairo, line_width);
    cairo_rectangle(surface->cairo, box.x - half, box.y - half, box.width + line_width,
                    box.height + line_width);
    cairo_stroke(surface->cairo);
}

static void line(canvas *surface, double x0, double y0, double x1, double y1, double line_width, rgb color)
{
    use_color(surface, color);
    cairo_set_line_width(surface->cairo, line_width);
    cairo_move_to(surface->cairo, x0, y0);
    cairo_line_to(surface->cairo, x1, y1);
    cairo_stroke(surface->cairo);
}

static void use_font(canvas *surface, const picture_font *font)
{
    cairo_select_font_face(surface->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           font->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(surface->cairo, font->size);
    use_color(surface, font->color);
}

static double text_width(canvas *surface, const picture_font *font, const char *text)
{
    cairo_text_extents_t extents = { 0 };
    use_font(surface, font);
    cairo_text_extents(surface->cairo, text, &extents);
    return extents.x_advance;
}

static void show_text(canvas *surface, double x, double y, const picture_font *font, const char *text)
{
    use_font(surface, font);
    cairo_move_to(surface->cairo, surface->vector ? x : round(x), y);
    cairo_show_text(surface->cairo, text);
}

static void turn(canvas *surface, double x, double y)
{
    cairo_save(surface->cairo);
    cairo_translate(surface->cairo, x, y);
    cairo_rotate(surface->cairo, -acos(0.0));
}

static void restore(canvas *surface)
{
    cairo_restore(surface->cairo);
}

static void draw_cells(canvas *surface, picture_box box, const rgb *cells, size_t columns, size_t rows)
{
    /* Twice as fine in SVG, whose viewers may zoom in. */
    double fineness = surface->vector ? 2 : 1;
    int width = (int)lround(box.width * fineness), height = (int)lround(box.height * fineness);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    unsigned char *pixels = cairo_image_surface_get_data(image);
    if (!pixels) {
        surface->out_of_memory = true;
        cairo_surface_destroy(image);
        return;
    }
    int stride = cairo_image_surface_get_stride(image);
    for (int y = 0; y < height; y++) {
        const rgb *row = cells + (size_t)y * rows / (size_t)height * columns;
        for (int x = 0; x < width; x++) {
            rgb cell = row[(size_t)x * columns / (size_t)width];
            uint32_t pixel = (uint32_t)cell.red << 16 | (uint32_t)cell.green << 8 | cell.blue;
            memcpy(pixels + (size_t)y * (size_t)stride + (size_t)x * 4, &pixel, sizeof pixel);
        }
    }
    cairo_surface_mark_dirty(image);
    cairo_save(surface->cairo);
    cairo_translate(surface->cairo, box.x, box.y);
    cairo_scale(surface->cairo, 1 / fineness, 1 / fineness);
    cairo_set_source_surface(surface->cairo, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(surface->cairo), CAIRO_FILTER_NEAREST);
    cairo_paint(surface->cairo);
    cairo_restore(surface->cairo);
    cairo_surface_destroy(image);
}

static void photo(canvas *surface, picture_box box, const uint8_t *pixels, unsigned width, unsigned height)
{
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    unsigned char *out = cairo_image_surface_get_data(image);
    if (!out) {
        surface->out_of_memory = true;
        cairo_surface_destroy(image);
        return;
    }
    size_t stride = (size_t)cairo_image_surface_get_stride(image);
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            const uint8_t *from = pixels + 3 * (y * width + x);
            uint32_t pixel = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
            memcpy(out + y * stride + 4 * x, &pixel, sizeof pixel);
        }
    cairo_surface_mark_dirty(image);
    cairo_save(surface->cairo);
    cairo_translate(surface->cairo, box.x, box.y);
    cairo_scale(surface->cairo, box.width / width, box.height / height);
    cairo_set_source_surface(surface->cairo, image, 0, 0);
    cairo_pattern_set_extend(cairo_get_source(surface->cairo), CAIRO_EXTEND_PAD);
    if (box.width >= 2 * width)
        cairo_pattern_set_filter(cairo_get_source(surface->cairo), CAIRO_FILTER_NEAREST);
    cairo_rectangle(surface->cairo, 0, 0, width, height);
    cairo_fill(surface->cairo);
    cairo_restore(surface->cairo);
    cairo_surface_destroy(image);
}

static const canvas_module table = {
    COFFER__MODULE_INIT(canvas_module, cairo_version_string),
    create,
    destroy,
    encode,
    fill,
    outline,
    line,
    show_text,
    text_width,
    turn,
    restore,
    draw_cells,
    photo,
    polygon,
};
COFFER__MODULE_EXPORT(draw, table);
