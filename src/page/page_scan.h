/* Functions that the files of the page of scans share. */
#ifndef COFFER_PAGE_PAGE_SCAN_H
#define COFFER_PAGE_PAGE_SCAN_H

#include "coffer/mscan.h"
#include "page/page.h"

/* In the order of coffer_mscan_metric. */
extern const char *const coffer__page_metrics[2];

/* Where the cells of a heat map are: width, height, and the tokens and rows that they cover. */
void coffer__page_add_grid_size(coffer_node *view, const char *name, const coffer_mscan_grid *grid);
/* Takes the last row from a heat map of all layers when it has no records: "other", when every parameter
 * belongs to a layer of the model. */
void coffer__page_drop_empty_layer(coffer_mscan_grid *grid, const coffer_mscan *scan);
/* A heat map of some of the records: "GROUP.activation" and "GROUP.grad_norm". */
coffer_status coffer__page_add_scan_sample(coffer_chunks *chunks, coffer_node *view, const coffer_mscan *scan,
                                           const char *group, coffer_error *err);

#endif
