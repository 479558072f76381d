/* Means of the values of a part of a grid, for heat maps with zoom. */
#ifndef COFFER_VIEW_VIEW_TILE_H
#define COFFER_VIEW_VIEW_TILE_H

#include "view/view_private.h"

/* Reads `count` values of a row, from `column` on. */
typedef coffer_status (*coffer__view_read)(double *out, void *from, uint64_t row, uint64_t column,
                                           uint64_t count, coffer_error *err);

/* "tile.cells": means of the finite values of each cell, NaN without any; and where the cells are. Of a part
 * with many values, some at even distances are read, and "sampled" says so. */
coffer_status coffer__view_add_means(coffer_chunks *chunks, const coffer__view_tile *tile,
                                     coffer__view_read read, void *from, coffer_error *err);

#endif
