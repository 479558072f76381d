/* Cells of the whole scan at a bounded resolution, and at every half of it down to one column. A heat map
 * that is not finer is drawn from them without reading the records. Built in one pass and kept in a file
 * between calls. */
#ifndef COFFER_FORMATS_MSCAN_PYRAMID_H
#define COFFER_FORMATS_MSCAN_PYRAMID_H

#include "formats/mscan/mscan_grid.h"

#define COFFER__MSCAN_PYRAMID_LEVELS 20

typedef struct coffer__mscan_pyramid {
    uint64_t tokens;
    uint32_t row_count[2]; /* by coffer_mscan_rows: ids there are */
    coffer__mscan_axis columns;
    coffer__mscan_axis bands[2]; /* by coffer_mscan_rows */
    unsigned levels;
    /* By kind of rows and level; NULL until it is read. */
    coffer__mscan_cell *cells[2][COFFER__MSCAN_PYRAMID_LEVELS];
    coffer_source *file; /* where levels are read from; NULL when all are in memory */
} coffer__mscan_pyramid;

/* Opens the pyramid kept under opts->cache_path when it belongs to this scan, else builds it and tries to
 * keep it there. *out is NULL when the limits leave no room for one, or when there is nothing in the scan.
 * Owned by the caller, coffer__mscan_pyramid_close(). */
coffer_status coffer__mscan_pyramid_open(coffer__mscan_pyramid **out, const coffer_mscan *scan,
                                         const coffer_mscan_grid_opts *opts, coffer_error *err);
void coffer__mscan_pyramid_close(coffer__mscan_pyramid *pyramid);

/* Whether cells of these axes are unions of the pyramid's. */
bool coffer__mscan_pyramid_serves(const coffer__mscan_pyramid *pyramid, coffer_mscan_rows rows,
                                  const coffer__mscan_axis *down, const coffer__mscan_axis *across);
/* Fills down->count × across->count cells, which are zero before. */
coffer_status coffer__mscan_pyramid_draw(coffer__mscan_cell *out, coffer__mscan_pyramid *pyramid,
                                         const coffer_mscan *scan, const coffer_mscan_grid_opts *opts,
                                         const coffer__mscan_axis *down, const coffer__mscan_axis *across,
                                         coffer_error *err);

/* Cells of a level, and how the file keeps them (mscan_pyramid_file.c). */
uint32_t coffer__mscan_pyramid_width(const coffer__mscan_pyramid *pyramid, unsigned level);
bool coffer__mscan_pyramid_load(coffer__mscan_pyramid *out, const coffer_mscan *scan, const char *path);
bool coffer__mscan_pyramid_load_level(coffer__mscan_pyramid *pyramid, coffer_mscan_rows rows, unsigned level);
void coffer__mscan_pyramid_save(const coffer__mscan_pyramid *pyramid, const coffer_mscan *scan,
                                const char *path);
/* Lays out the axes. block_rows : number of blocks. */
void coffer__mscan_pyramid_shape(coffer__mscan_pyramid *out, const coffer_mscan *scan, uint32_t block_rows);

#endif
