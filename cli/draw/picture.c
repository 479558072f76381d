#include "picture.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "io/sink.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <string.h>
#include <strings.h>

struct picture {
    cairo_surface_t *surface;
    cairo_t *cairo;
    char *path;
    coffer__buffer bytes; /* the file, as cairo writes it */
    bool vector;
    bool out_of_memory;
};

static bool ends_in(const char *path, const char *extension)
{
    size_t len = strlen(path), tail = strlen(extension);
    return len > tail && strcasecmp(path + len - tail, extension) == 0;
}

bool picture_can_write(const char *path)
{
    return ends_in(path, ".png") || ends_in(path, ".svg");
}

static cairo_status_t collect(void *closure, const unsigned char *data, unsigned int length)
{
    coffer__buffer *bytes = closure;
    return coffer__buffer_append(bytes, data, length) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_NO_MEMORY;
}

coffer_status picture_new(picture **out, const char *path, unsigned width, unsigned height, coffer_error *err)
{
    if (width < 1 || height < 1 || width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a picture of %u × %u pixels: sides go from 1 to %d", width, height,
                            PICTURE_MAX_SIDE);
    picture *new_picture = coffer__calloc(1, sizeof *new_picture);
    if (!new_picture)
        return coffer__fail_no_memory(err, sizeof *new_picture);
    coffer__buffer_init(&new_picture->bytes, SIZE_MAX);
    new_picture->path = coffer__strdup(path);
    new_picture->vector = ends_in(path, ".svg");
    if (new_picture->vector) {
        new_picture->surface =
            cairo_svg_surface_create_for_stream(collect, &new_picture->bytes, width, height);
        cairo_svg_surface_set_document_unit(new_picture->surface, CAIRO_SVG_UNIT_PX);
    } else
        new_picture->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    new_picture->cairo = cairo_create(new_picture->surface);
    if (!new_picture->path || cairo_status(new_picture->cairo) != CAIRO_STATUS_SUCCESS) {
        picture_free(new_picture);
        return coffer__fail_no_memory(err, (uint64_t)width * height * 4);
    }
    picture_fill(new_picture, (picture_box){ 0, 0, width, height }, (rgb){ 255, 255, 255 });
    *out = new_picture;
    return COFFER_OK;
}

void picture_free(picture *canvas)
{
    if (!canvas)
        return;
    cairo_destroy(canvas->cairo);
    cairo_surface_destroy(canvas->surface);
    coffer__buffer_free(&canvas->bytes);
    coffer__free(canvas->path);
    coffer__free(canvas);
}

static coffer_status encode(picture *canvas, coffer_error *err)
{
    cairo_status_t status = cairo_status(canvas->cairo);
    if (status == CAIRO_STATUS_SUCCESS && !canvas->vector)
        status = cairo_surface_write_to_png_stream(canvas->surface, collect, &canvas->bytes);
    cairo_surface_finish(canvas->surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(canvas->surface);
    if (canvas->bytes.failed || canvas->out_of_memory || status == CAIRO_STATUS_NO_MEMORY)
        return coffer__fail_no_memory(err, canvas->bytes.len);
    if (status != CAIRO_STATUS_SUCCESS)
        return coffer__fail(err, COFFER_E_IO, COFFER_OFFSET_NONE, "drawing failed: %s",
                            cairo_status_to_string(status));
    return COFFER_OK;
}

coffer_status picture_save(picture *canvas, coffer_error *err)
{
    coffer__sink *sink = NULL;
    coffer_status status = encode(canvas, err);
    if (status == COFFER_OK)
        status = coffer__sink_create(&sink, canvas->path, NULL, err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, canvas->bytes.data, canvas->bytes.len, err);
    if (status == COFFER_OK) {
        status = coffer__sink_commit(sink, err);
        sink = NULL;
    }
    coffer__sink_discard(sink);
    picture_free(canvas);
    return status;
}

static void use_color(picture *canvas, rgb color)
{
    cairo_set_source_rgb(canvas->cairo, color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

void picture_fill(picture *canvas, picture_box box, rgb color)
{
    use_color(canvas, color);
    cairo_rectangle(canvas->cairo, box.x, box.y, box.width, box.height);
    cairo_fill(canvas->cairo);
}

void picture_outline(picture *canvas, picture_box box, double line_width, rgb color)
{
    double half = line_width / 2;
    use_color(canvas, color);
    cairo_set_line_width(canvas->cairo, line_width);
    cairo_rectangle(canvas->cairo, box.x - half, box.y - half, box.width + line_width,
                    box.height + line_width);
    cairo_stroke(canvas->cairo);
}

void picture_line(picture *canvas, double x0, double y0, double x1, double y1, double line_width, rgb color)
{
    use_color(canvas, color);
    cairo_set_line_width(canvas->cairo, line_width);
    cairo_move_to(canvas->cairo, x0, y0);
    cairo_line_to(canvas->cairo, x1, y1);
    cairo_stroke(canvas->cairo);
}

static void use_font(picture *canvas, const picture_font *font)
{
    cairo_select_font_face(canvas->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           font->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(canvas->cairo, font->size);
    use_color(canvas, font->color);
}

/* Cairo refuses bad UTF-8 for good, and control characters have no shape. */
static char *printable(const char *text)
{
    size_t len = strlen(text);
    char *copy = coffer__strndup(text, len);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < len;) {
        uint32_t code_point = 0;
        size_t step =
            coffer__utf8_decode(&code_point, (const uint8_t *)text + i, (const uint8_t *)text + len);
        if (step == 0 || code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0)) {
            bool space = code_point == '\n' || code_point == '\t' || code_point == '\r';
            step = step ? step : 1;
            memset(copy + i, space ? ' ' : '?', step);
        }
        i += step;
    }
    return copy;
}

double picture_text_width(picture *canvas, const picture_font *font, const char *text)
{
    cairo_text_extents_t extents = { 0 };
    char *shown = printable(text);
    if (!shown) {
        canvas->out_of_memory = true;
        return 0;
    }
    use_font(canvas, font);
    cairo_text_extents(canvas->cairo, shown, &extents);
    coffer__free(shown);
    return extents.x_advance;
}

void picture_text(picture *canvas, double x, double y, picture_align align, const picture_font *font,
                  const char *text)
{
    char *shown = printable(text);
    if (!shown) {
        canvas->out_of_memory = true;
        return;
    }
    if (align != PICTURE_LEFT) {
        double width = picture_text_width(canvas, font, shown);
        x -= align == PICTURE_CENTER ? width / 2 : width;
    }
    use_font(canvas, font);
    cairo_move_to(canvas->cairo, canvas->vector ? x : round(x), y);
    cairo_show_text(canvas->cairo, shown);
    coffer__free(shown);
}

void picture_text_upwards(picture *canvas, double x, double y, const picture_font *font, const char *text)
{
    cairo_save(canvas->cairo);
    cairo_translate(canvas->cairo, x, y);
    cairo_rotate(canvas->cairo, -acos(0.0));
    picture_text(canvas, 0, 0, PICTURE_CENTER, font, text);
    cairo_restore(canvas->cairo);
}

/* Moves an index inside UTF-8 text back to the start of its character. */
static size_t character_start(const char *text, size_t at)
{
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* The first `head` and the last `tail` bytes of the text around dots, no character cut in two. */
static void elide(char *out, const char *text, size_t len, size_t head, size_t tail)
{
    static const char dots[] = "…";
    head = character_start(text, head);
    tail = len - character_start(text, len - tail);
    memcpy(out, text, head);
    memcpy(out + head, dots, sizeof dots - 1);
    memcpy(out + head + sizeof dots - 1, text + len - tail, tail + 1);
}

void picture_fit_text(char *out, size_t capacity, picture *canvas, const picture_font *font, picture_cut cut,
                      const char *text, double width)
{
    enum { ROOM_FOR_DOTS = 8 }; /* and for a character that is kept whole */
    size_t len = strlen(text);
    size_t keep = len;
    if (len < capacity) {
        memcpy(out, text, len + 1);
        if (picture_text_width(canvas, font, out) <= width)
            return;
    }
    if (keep > capacity - ROOM_FOR_DOTS)
        keep = capacity - ROOM_FOR_DOTS;
    while (keep > 4) {
        keep -= keep > 40 ? keep / 16 : 1;
        size_t tail = cut == PICTURE_CUT_MIDDLE ? keep / 2 : 0;
        elide(out, text, len, keep - tail, tail);
        if (picture_text_width(canvas, font, out) <= width)
            return;
    }
}

void picture_cells(picture *canvas, picture_box box, const rgb *cells, size_t columns, size_t rows)
{
    /* Twice as fine in SVG, whose viewers may zoom in. */
    double fineness = canvas->vector ? 2 : 1;
    int width = (int)lround(box.width * fineness), height = (int)lround(box.height * fineness);
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    unsigned char *pixels = cairo_image_surface_get_data(image);
    if (!pixels) {
        canvas->out_of_memory = true;
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
    cairo_save(canvas->cairo);
    cairo_translate(canvas->cairo, box.x, box.y);
    cairo_scale(canvas->cairo, 1 / fineness, 1 / fineness);
    cairo_set_source_surface(canvas->cairo, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(canvas->cairo), CAIRO_FILTER_NEAREST);
    cairo_paint(canvas->cairo);
    cairo_restore(canvas->cairo);
    cairo_surface_destroy(image);
}

void picture_photo(picture *canvas, picture_box box, const uint8_t *pixels, unsigned width, unsigned height)
{
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    unsigned char *out = cairo_image_surface_get_data(image);
    if (!out) {
        canvas->out_of_memory = true;
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
    cairo_save(canvas->cairo);
    cairo_translate(canvas->cairo, box.x, box.y);
    cairo_scale(canvas->cairo, box.width / width, box.height / height);
    cairo_set_source_surface(canvas->cairo, image, 0, 0);
    cairo_pattern_set_extend(cairo_get_source(canvas->cairo), CAIRO_EXTEND_PAD);
    if (box.width >= 2 * width)
        cairo_pattern_set_filter(cairo_get_source(canvas->cairo), CAIRO_FILTER_NEAREST);
    cairo_rectangle(canvas->cairo, 0, 0, width, height);
    cairo_fill(canvas->cairo);
    cairo_restore(canvas->cairo);
    cairo_surface_destroy(image);
}
