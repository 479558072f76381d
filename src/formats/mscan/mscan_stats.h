/* What statistics and scores share. */
#ifndef COFFER_FORMATS_MSCAN_STATS_H
#define COFFER_FORMATS_MSCAN_STATS_H

#include "formats/mscan/mscan_select.h"

struct coffer_mscan_stats {
    coffer_mscan_group total;
    coffer_mscan_group *groups; /* ascending key, none empty */
    size_t count;
};

/* As coffer_mscan_stats_new over a selection that is already made; of the query only `by`, threads, limits
 * and progress count. The selection may be completed with what the grouping needs. */
coffer_status coffer__mscan_stats_of(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                     const coffer_mscan_stats_opts *query, coffer_error *err);

#endif
