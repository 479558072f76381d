#include "picture.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "canvas.h"
#include "cli.h"
#include "io/sink.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { POINTS = 9 };

/* Control points at equal distances. Computed in OKLCH along a path of hues with evenly growing lightness,
 * chroma reduced to what sRGB can show. */
static const rgb control_points[][POINTS] = {
    [COLORMAP_VIRIDIS] = { { 57, 4, 74 },
                           { 63, 37, 112 },
                           { 56, 71, 143 },
                           { 33, 107, 158 },
                           { 7, 141, 157 },
                           { 6, 175, 145 },
                           { 94, 202, 117 },
                           { 173, 221, 80 },
                           { 246, 235, 50 } },
    [COLORMAP_MAGMA] = { { 3, 2, 12 },
                         { 27, 9, 62 },
                         { 66, 19, 108 },
                         { 119, 30, 134 },
                         { 183, 43, 124 },
                         { 235, 78, 91 },
                         { 254, 138, 89 },
                         { 254, 197, 129 },
                         { 254, 248, 193 } },
    [COLORMAP_GRAY] = { { 11, 11, 11 },
                        { 34, 34, 34 },
                        { 60, 60, 60 },
                        { 87, 87, 87 },
                        { 116, 116, 116 },
                        { 147, 147, 147 },
                        { 178, 178, 178 },
                        { 211, 211, 211 },
                        { 245, 245, 245 } },
    [COLORMAP_COOLWARM] = { { 37, 77, 172 },
                            { 69, 120, 202 },
                            { 114, 161, 221 },
                            { 169, 199, 232 },
                            { 235, 235, 235 },
                            { 228, 184, 166 },
                            { 215, 135, 106 },
                            { 192, 83, 61 },
                            { 155, 31, 29 } },
};

static uint8_t mix(uint8_t a, uint8_t b, double share)
{
    return (uint8_t)lround(a + ((double)b - a) * share);
}

rgb colormap_at(colormap map, double t)
{
    const rgb *points = control_points[map];
    double place = (t > 0 ? (t < 1 ? t : 1) : 0) * (POINTS - 1);
    int below = place < POINTS - 1 ? (int)place : POINTS - 2;
    double share = place - below;
    const rgb *a = &points[below], *b = &points[below + 1];
    return (rgb){ mix(a->red, b->red, share), mix(a->green, b->green, share), mix(a->blue, b->blue, share) };
}

double color_scale_position(const color_scale *scale, double value)
{
    double low = scale->low, high = scale->high;
    if (scale->logarithmic) {
        low = log(low);
        high = log(high);
        value = value > 0 ? log(value) : low;
    }
    if (!(high > low))
        return 0.5;
    double t = (value - low) / (high - low);
    return t > 0 ? (t < 1 ? t : 1) : 0;
}

struct picture {
    const canvas_module *draw;
    canvas *surface;
    char *path;
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

coffer_status picture_new(picture **out, const char *path, unsigned width, unsigned height, coffer_error *err)
{
    if (width < 1 || height < 1 || width > PICTURE_MAX_SIDE || height > PICTURE_MAX_SIDE)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a picture of %u × %u pixels: sides go from 1 to %d", width, height,
                            PICTURE_MAX_SIDE);
    const canvas_module *draw = coffer__module_load(COFFER__MODULE_DRAW, sizeof *draw, err);
    if (!draw)
        return COFFER_E_UNSUPPORTED;
    picture *new_picture = coffer__calloc(1, sizeof *new_picture);
    if (!new_picture)
        return coffer__fail_no_memory(err, sizeof *new_picture);
    new_picture->draw = draw;
    new_picture->path = coffer__strdup(path);
    new_picture->surface = draw->create(ends_in(path, ".svg"), width, height);
    if (!new_picture->path || !new_picture->surface) {
        picture_free(new_picture);
        return coffer__fail_no_memory(err, (uint64_t)width * height * 4);
    }
    picture_fill(new_picture, (picture_box){ 0, 0, width, height }, (rgb){ 255, 255, 255 });
    *out = new_picture;
    return COFFER_OK;
}

void picture_free(picture *image)
{
    if (!image)
        return;
    if (image->surface)
        image->draw->destroy(image->surface);
    coffer__free(image->path);
    coffer__free(image);
}

coffer_status picture_save(picture *image, coffer_error *err)
{
    const coffer__sink_opts opts = { .exclusive = !cli_overwrites() };
    coffer__sink *sink = NULL;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    coffer_status status = image->out_of_memory ? coffer__fail_no_memory(err, 0)
                                                : image->draw->encode(&bytes, image->surface, err);
    if (status == COFFER_OK)
        status = coffer__sink_create(&sink, image->path, &opts, err);
    if (status == COFFER_OK)
        status = coffer__sink_write(sink, bytes.data, bytes.len, err);
    if (status == COFFER_OK) {
        status = coffer__sink_commit(sink, err);
        sink = NULL;
    }
    coffer__sink_discard(sink);
    coffer__buffer_free(&bytes);
    picture_free(image);
    return status;
}

void picture_fill(picture *image, picture_box box, rgb color)
{
    image->draw->fill(image->surface, box, color);
}

void picture_polygon(picture *image, const picture_point *corners, size_t count, rgb color)
{
    image->draw->polygon(image->surface, corners, count, color);
}

void picture_outline(picture *image, picture_box box, double line_width, rgb color)
{
    image->draw->outline(image->surface, box, line_width, color);
}

void picture_line(picture *image, double x0, double y0, double x1, double y1, double line_width, rgb color)
{
    image->draw->line(image->surface, x0, y0, x1, y1, line_width, color);
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

double picture_text_width(picture *image, const picture_font *font, const char *text)
{
    char *shown = printable(text);
    if (!shown) {
        image->out_of_memory = true;
        return 0;
    }
    double width = image->draw->text_width(image->surface, font, shown);
    coffer__free(shown);
    return width;
}

void picture_text(picture *image, double x, double y, picture_align align, const picture_font *font,
                  const char *text)
{
    char *shown = printable(text);
    if (!shown) {
        image->out_of_memory = true;
        return;
    }
    if (align != PICTURE_LEFT) {
        double width = picture_text_width(image, font, shown);
        x -= align == PICTURE_CENTER ? width / 2 : width;
    }
    image->draw->text(image->surface, x, y, font, shown);
    coffer__free(shown);
}

void picture_text_upwards(picture *image, double x, double y, const picture_font *font, const char *text)
{
    image->draw->turn(image->surface, x, y);
    picture_text(image, 0, 0, PICTURE_CENTER, font, text);
    image->draw->restore(image->surface);
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

void picture_fit_text(char *out, size_t capacity, picture *image, const picture_font *font, picture_cut cut,
                      const char *text, double width)
{
    enum { ROOM_FOR_DOTS = 8 }; /* and for a character that is kept whole */
    size_t len = strlen(text);
    size_t keep = len;
    if (len < capacity) {
        memcpy(out, text, len + 1);
        if (picture_text_width(image, font, out) <= width)
            return;
    }
    if (keep > capacity - ROOM_FOR_DOTS)
        keep = capacity - ROOM_FOR_DOTS;
    while (keep > 4) {
        keep -= keep > 40 ? keep / 16 : 1;
        size_t tail = cut == PICTURE_CUT_MIDDLE ? keep / 2 : 0;
        elide(out, text, len, keep - tail, tail);
        if (picture_text_width(image, font, out) <= width)
            return;
    }
}

void picture_cells(picture *image, picture_box box, const rgb *cells, size_t columns, size_t rows)
{
    image->draw->cells(image->surface, box, cells, columns, rows);
}

void picture_photo(picture *image, picture_box box, const uint8_t *pixels, unsigned width, unsigned height)
{
    image->draw->photo(image->surface, box, pixels, width, height);
}
