/* The intact blocks of a damaged file. */
#ifndef COFFER_FORMATS_MLYZE_REPAIR_BLOCKS_H
#define COFFER_FORMATS_MLYZE_REPAIR_BLOCKS_H

#include "formats/mlyze/write/mlyze_write_copy.h"

typedef struct coffer__mlyze_salvage {
    const coffer_mlyze *trace;
    coffer_report *report;
    /* Called with the events of every intact block; may be NULL. */
    coffer_status (*take)(void *context, const coffer_mlyze_events *columns, coffer_error *err);
    void *context;
    bool takes_cut; /* also keep the whole events of a truncated last block */

    coffer__mlyze_block *blocks;
    size_t count, capacity;
    uint64_t event_count;
    uint64_t lost_blocks, lost_events, lost_bytes; /* lost events, as far as headers count them */
    uint64_t whole_end;                            /* end of the last intact block */
    uint64_t cut_events;                           /* in the truncated block after it */
    uint64_t time;                                 /* of the last event */
    uint64_t unsorted;                             /* blocks that begin before the previous block ends */
    bool extensions;
    uint64_t budget; /* bytes that the search for blocks may still read */
} coffer__mlyze_salvage;

/* Every loss is a warning in the report, except the bytes after the last intact block, which begin at
 * whole_end. */
coffer_status coffer__mlyze_salvage_blocks(coffer__mlyze_salvage *salvage, coffer_error *err);
void coffer__mlyze_salvage_free(coffer__mlyze_salvage *salvage);

#endif
