#include "treemap.h"

#include "base/fail.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const picture_font title_font = { 16, true, { 0, 0, 0 } };
static const picture_font subtitle_font = { 12, false, { 100, 100, 112 } };
static const picture_font label_font = { 11, false, { 30, 30, 36 } };

enum { MARGIN = 16, TOP = 56, LEGEND = 30, MOST_GROUPS = 12, LINE_HEIGHT = 13 };

/* The colors of the treemap in a report: eight hues in one lightness. */
static rgb group_color(size_t group)
{
    static const rgb colors[] = {
        { 196, 217, 233 }, { 233, 213, 196 }, { 196, 233, 214 }, { 211, 196, 233 },
        { 233, 196, 208 }, { 233, 227, 196 }, { 196, 230, 233 }, { 227, 196, 233 }
    };
    return colors[group % (sizeof colors / sizeof *colors)];
}

typedef struct groups {
    const char *names[MOST_GROUPS];
    size_t count;
} groups;

/* Groups past the last that has room share its color. */
static size_t group_of(groups *known, const char *name)
{
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->names[i], name) == 0)
            return i;
    if (known->count == MOST_GROUPS)
        return MOST_GROUPS - 1;
    known->names[known->count] = name;
    return known->count++;
}

static int by_size(const void *a, const void *b)
{
    const treemap_item *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? 1 : -1;
    return strcmp(left->name, right->name);
}

/* How far the worst rectangle of a row is from a square. sum, most, least : areas; side : of the row. */
static double worst_ratio(double sum, double most, double least, double side)
{
    return fmax(side * side * most / (sum * sum), sum * sum / (side * side * fmax(least, 1e-12)));
}

/* How many items the next row has: as many as make its rectangles squarer (Bruls, Huizing, van Wijk). */
static size_t row_length(double *sum, const treemap_item *items, size_t count, double scale, double side)
{
    double worst = INFINITY;
    size_t length = 0;
    *sum = 0;
    for (; length < count; length++) {
        double area = (double)items[length].size * scale;
        double ratio = worst_ratio(*sum + area, (double)items[0].size * scale, area, side);
        if (ratio > worst)
            break;
        worst = ratio;
        *sum += area;
    }
    return length;
}

/* Up to the next dot or slash, or the end. */
static size_t part_length(const char *name)
{
    size_t len = strcspn(name, "./");
    return len + (name[len] != '\0');
}

/* The longest beginning of a name that fits into the width and ends with a dot or a slash; a part that is
 * wider than that is cut. Gives where the next line begins. */
static const char *take_line(char *out, size_t capacity, picture *canvas, const char *name, double width)
{
    size_t taken = 0, len = part_length(name);
    while (len > taken && len < capacity) {
        memcpy(out, name, len);
        out[len] = '\0';
        if (picture_text_width(canvas, &label_font, out) > width)
            break;
        taken = len;
        len += part_length(name + len);
    }
    if (taken == 0) {
        char part[256];
        snprintf(part, sizeof part, "%.*s", (int)len, name);
        picture_fit_text(out, capacity, canvas, &label_font, PICTURE_CUT_END, part, width);
        return name + len;
    }
    out[taken] = '\0';
    return name + taken;
}

static void draw_label(picture *canvas, const char *name, picture_box box)
{
    char line[256];
    int lines = (int)((box.height - 3) / LINE_HEIGHT);
    for (int i = 1; i <= lines && *name; i++) {
        if (i == lines)
            picture_fit_text(line, sizeof line, canvas, &label_font, PICTURE_CUT_END, name, box.width - 8);
        name = i == lines ? "" : take_line(line, sizeof line, canvas, name, box.width - 8);
        picture_text(canvas, box.x + 4, box.y + LINE_HEIGHT * i, PICTURE_LEFT, &label_font, line);
    }
}

static void draw_cell(picture *canvas, groups *known, const treemap_item *item, picture_box box)
{
    size_t group = group_of(known, item->group);
    if (box.width < 0.5 || box.height < 0.5)
        return;
    box.width = fmax(box.width - 1, 0.5);
    box.height = fmax(box.height - 1, 0.5);
    picture_fill(canvas, box, group_color(group));
    if (box.width >= 44)
        draw_label(canvas, item->name, box);
}

static void draw_cells(picture *canvas, groups *known, const treemap_item *items, size_t count,
                       picture_box room)
{
    double rest = 0;
    for (size_t i = 0; i < count; i++)
        rest += (double)items[i].size;
    for (size_t first = 0; first < count && rest > 0 && room.width > 0 && room.height > 0;) {
        bool upright = room.width >= room.height;
        double side = upright ? room.height : room.width, scale = room.width * room.height / rest, sum;
        size_t length = row_length(&sum, items + first, count - first, scale, side);
        double depth = sum / side, along = 0;
        for (size_t i = first; i < first + length; i++) {
            double part = depth > 0 ? (double)items[i].size * scale / depth : 0;
            draw_cell(canvas, known, &items[i],
                      upright ? (picture_box){ room.x, room.y + along, depth, part }
                              : (picture_box){ room.x + along, room.y, part, depth });
            along += part;
            rest -= (double)items[i].size;
        }
        room.x += upright ? depth : 0;
        room.y += upright ? 0 : depth;
        room.width -= upright ? depth : 0;
        room.height -= upright ? 0 : depth;
        first += length;
    }
}

static void draw_legend(picture *canvas, const groups *known, double y, double width)
{
    double x = MARGIN;
    for (size_t i = 0; i < known->count && x < width - 80; i++) {
        if (!known->names[i][0])
            continue;
        picture_fill(canvas, (picture_box){ x, y, 12, 12 }, group_color(i));
        picture_text(canvas, x + 17, y + 10, PICTURE_LEFT, &label_font, known->names[i]);
        x += 17 + picture_text_width(canvas, &label_font, known->names[i]) + 18;
    }
}

coffer_status treemap_draw(const char *path, treemap_item *items, size_t count, const treemap_look *look,
                           coffer_error *err)
{
    picture *canvas = NULL;
    groups known = { .count = 0 };
    const picture_box room = { MARGIN, TOP, (double)look->width - 2.0 * MARGIN,
                               (double)look->height - TOP - LEGEND - MARGIN };
    coffer_status status = picture_new(&canvas, path, look->width, look->height, err);
    if (status)
        return status;
    qsort(items, count, sizeof *items, by_size);
    picture_text(canvas, MARGIN, 26, PICTURE_LEFT, &title_font, look->title);
    picture_text(canvas, MARGIN, 44, PICTURE_LEFT, &subtitle_font, look->subtitle);
    draw_cells(canvas, &known, items, count, room);
    draw_legend(canvas, &known, (double)look->height - LEGEND - 2, look->width);
    return picture_save(canvas, err);
}
