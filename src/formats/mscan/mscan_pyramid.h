/* Cells of the whole scan at a bounded resolution, and at every half of it down to one column. A heat map
 * that is not finer is drawn from them without reading the records. Built in one pass and kept in a file
 * between calls. */
#ifndef COFFER_FORMATS_MSCAN_PYRAMID_H
#define COFFER_FORMATS_MSCAN_PYRAMID_H

#include "formats/mscan/mscan_private.h"

/* Cells of a heat map: what records fall into a range of rows and a range of tokens. */
typedef struct coffer__mscan_cell {
    uint64_t sum[2]; /* by coffer_mscan_metric */
    uint32_t count;  /* a scan has fewer than 2^32 records */
} coffer__mscan_cell;

static inline void coffer__mscan_cell_add(coffer__mscan_cell *sum, const coffer__mscan_cell *from)
{
    sum->sum[0] += from->sum[0];
    sum->sum[1] += from->sum[1];
    sum->count += from->count;
}

static inline void coffer__mscan_cell_take(coffer__mscan_cell *sum, const uint8_t *record)
{
    sum->sum[0] += coffer__load_u16(record + COFFER__MSCAN_ACTIVATION_AT);
    sum->sum[1] += coffer__load_u16(record + COFFER__MSCAN_GRAD_NORM_AT);
    sum->count++;
}

/* Tables of cells are kept column by column: records come token by token, so a pass works in one place. */

/* One side of a grid. A cell covers a power of two of tokens (or rows) and starts at a multiple of it: so
 * cells of a coarse grid are unions of cells of a fine one, and a pyramid gives the same means as a look at
 * the records. */
typedef struct coffer__mscan_axis {
    uint64_t begin; /* a multiple of 1 << shift */
    unsigned shift;
    uint32_t count; /* cells */
} coffer__mscan_axis;

/* The finest axis of at most `most` cells that covers [begin, end). */
coffer__mscan_axis coffer__mscan_axis_over(uint64_t begin, uint64_t end, uint32_t most);

static inline uint64_t coffer__mscan_axis_end(const coffer__mscan_axis *axis)
{
    return axis->begin + ((uint64_t)axis->count << axis->shift);
}

/* Tokens that records can name. */
uint64_t coffer__mscan_tokens(const coffer_mscan *scan);
/* Rows there are: parameters up to the last one with a name. Of blocks only the records know. */
uint32_t coffer__mscan_param_rows(const coffer_mscan *scan);
coffer_status coffer__mscan_block_rows(uint32_t *out, const coffer_mscan *scan,
                                       const coffer_mscan_grid_opts *opts, coffer_error *err);

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

#endif
