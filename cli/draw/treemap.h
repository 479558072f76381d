/* Rectangles whose areas are sizes. */
#ifndef COFFER_CLI_TREEMAP_H
#define COFFER_CLI_TREEMAP_H

#include "picture.h"

typedef struct treemap_item {
    const char *name, *group; /* group : decides the color, and is in the legend; "" = none */
    uint64_t size;
} treemap_item;

typedef struct treemap_look {
    const char *title, *subtitle;
    unsigned width, height;
} treemap_look;

/* Draws the items into a PNG or SVG file. Sorts them, the largest first. */
coffer_status treemap_draw(const char *path, treemap_item *items, size_t count, const treemap_look *look,
                           coffer_error *err);

#endif
