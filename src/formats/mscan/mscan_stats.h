/* Shared by statistics and scores. */
#ifndef COFFER_FORMATS_MSCAN_STATS_H
#define COFFER_FORMATS_MSCAN_STATS_H

#include "formats/mscan/mscan_pass.h"

struct coffer_mscan_stats {
    coffer_mscan_group total;
    coffer_mscan_group *groups; /* ascending key, none empty */
    size_t count;
};

/* Like coffer_mscan_stats_new, over a selection; only `by`, threads, limits and progress of the query are
 * used. Determines whether the selection is sorted if the grouping needs it. */
coffer_status coffer__mscan_stats_of(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                     const coffer_mscan_stats_opts *query, coffer_error *err);

/* The same for one grouping each (mscan_stats_folded.c). */
coffer_status coffer__mscan_stats_by_layer(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                           const coffer_mscan_stats_opts *query, coffer_error *err);
coffer_status coffer__mscan_stats_by_param_block(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                                 const coffer_mscan_stats_opts *query, coffer_error *err);

#endif
