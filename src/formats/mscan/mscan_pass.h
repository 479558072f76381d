/* One pass over the selected records on several threads, in pieces that fit a cache. */
#ifndef COFFER_FORMATS_MSCAN_PASS_H
#define COFFER_FORMATS_MSCAN_PASS_H

#include "formats/mscan/mscan_select.h"

/* Takes in packed records. Calls with the same worker never overlap. */
typedef void (*coffer__mscan_visit)(void *context, uint32_t worker, const uint8_t *records, size_t count);

typedef struct coffer__mscan_pass {
    const coffer__mscan_selection *selection;
    uint32_t threads; /* from coffer__mscan_pass_threads */
    const coffer_progress *progress;
    coffer__mscan_visit visit;
    void *context;
    /* Gives the first token after the group that a token belongs to. When set, all records of a group go to
     * one worker, so that workers can share a table without locks. The tokens must be sorted. */
    uint64_t (*group_end)(void *context, uint32_t token);
} coffer__mscan_pass;

/* How many threads are worth it for these records: `wanted` (0 = one per core), never more than `most`, at
 * least 1. */
uint32_t coffer__mscan_pass_threads(const coffer__mscan_selection *selection, uint32_t wanted, uint64_t most);
/* Working memory of a pass for each thread. */
#define COFFER__MSCAN_PASS_BYTES ((size_t)2 * 16384 * COFFER__MSCAN_RECORD_SIZE)

coffer_status coffer__mscan_pass_run(const coffer__mscan_pass *pass, coffer_error *err);

#endif
