/* The heat map of a scan, drawn in two ways. */
#ifndef COFFER_CLI_SCAN_HEAT_H
#define COFFER_CLI_SCAN_HEAT_H

#include "coffer/mscan.h"
#include "draw/heat.h"

typedef struct scan_heat {
    heat_map map;
    const coffer_mscan *scan;
    const coffer_mscan_grid *grid; /* in the units that are shown */
    coffer_mscan_rows rows;
    const uint16_t *row_keys; /* parameter or layer of each row; NULL = rows cover the grid's range evenly */
} scan_heat;

/* The name of a row of parameters or layers; "" when it has none. */
const char *scan_heat_row_name(const scan_heat *heat, uint32_t row);
/* The first parameter, layer or block of a row. */
uint64_t scan_heat_row_key(const scan_heat *heat, uint32_t row);
/* The columns may cover more tokens than there are: the last one that is there. */
uint64_t scan_heat_last_token(const scan_heat *heat);

/* Makes room for the names of parameters at the left. */
void scan_heat_fit_names(heat_layout *layout, const coffer_mscan *scan);
coffer_status scan_heat_draw_picture(const scan_heat *heat, const heat_layout *layout, const char *path,
                                     coffer_error *err);

heat_text_size scan_heat_text_size(const coffer_mscan *scan, coffer_mscan_rows rows, FILE *out);
void scan_heat_draw_text(const scan_heat *heat, FILE *out);

#endif
