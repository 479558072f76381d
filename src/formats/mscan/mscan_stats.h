/* Statistics and scores: groups are added up in tables, one for each thread. */
#ifndef COFFER_FORMATS_MSCAN_STATS_H
#define COFFER_FORMATS_MSCAN_STATS_H

#include "coffer/mscan.h"
#include "formats/mscan/mscan_kernel.h"
#include "formats/mscan/mscan_pass.h"

#include <pthread.h>

/* Adding up groups: a table of narrow rows for each thread, filled by the kernels, and 64-bit sums that the
 * rows are drained into. */
void coffer__mscan_add_row(coffer_mscan_group *sum, const coffer__mscan_row *row);
void coffer__mscan_add_group(coffer_mscan_group *sum, const coffer_mscan_group *from);
/* Packed records that all belong to one group. */
void coffer__mscan_add_records(coffer_mscan_group *sum, const uint8_t *records, size_t count);

/* Sums by a 16-bit key. */
typedef struct coffer__mscan_tally {
    coffer__mscan_kernel kernel;
    unsigned rows_shift;
    uint16_t base; /* the key of groups[0]; keys wrap around */
    uint32_t threads;
    coffer__mscan_row *rows;    /* 65536 << rows_shift for each thread */
    coffer_mscan_group *groups; /* 65536 */
    void *rows_memory;
    pthread_mutex_t lock; /* of the groups, while threads run */
} coffer__mscan_tally;

/* Bytes of the rows of one thread, and of the groups. */
#define COFFER__MSCAN_ROWS_BYTES(rows_shift) \
    ((sizeof(coffer__mscan_row) * COFFER__MSCAN_KEYS) << (rows_shift))
#define COFFER__MSCAN_GROUPS_BYTES (sizeof(coffer_mscan_group) * COFFER__MSCAN_KEYS)

coffer_status coffer__mscan_tally_init(coffer__mscan_tally *tally, uint32_t threads, unsigned rows_shift,
                                       uint16_t base, coffer_error *err);
void coffer__mscan_tally_free(coffer__mscan_tally *tally); /* its members, not itself */
/* Takes in packed records; keys as for the kernel. */
void coffer__mscan_tally_take(coffer__mscan_tally *tally, uint32_t worker, const uint8_t *records,
                              size_t count, const uint8_t *keys, size_t key_stride);
/* Drains every thread's rows of the first key_count keys from the base on; their groups are complete
 * afterwards, and the caller may take them away. */
void coffer__mscan_tally_finish(coffer__mscan_tally *tally, size_t key_count);

/* Shared by statistics and scores. */
struct coffer_mscan_stats {
    coffer_mscan_group total;
    coffer_mscan_group *groups; /* ascending key, none empty */
    size_t count;
};

/* Like coffer_mscan_stats_new, over a selection; only `by`, threads, limits and progress of the query are
 * used. Determines whether the selection is sorted if the grouping needs it. */
coffer_status coffer__mscan_stats_of(coffer_mscan_stats **out, coffer__mscan_selection *selection,
                                     const coffer_mscan_stats_opts *query, coffer_error *err);

#endif
