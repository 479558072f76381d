/* The blocks of a damaged file that are whole. */
#ifndef COFFER_FORMATS_MLYZE_REPAIR_BLOCKS_H
#define COFFER_FORMATS_MLYZE_REPAIR_BLOCKS_H

#include "formats/mlyze/write/mlyze_write_copy.h"

typedef struct coffer__mlyze_salvage {
    const coffer_mlyze *trace;
    coffer_report *report;
    /* Is shown the events of every block that is whole; may be NULL. */
    coffer_status (*take)(void *context, const coffer_mlyze_events *columns, coffer_error *err);
    void *context;
    bool takes_cut; /* the whole events of a last block that is cut off are taken too */

    coffer__mlyze_block *blocks;
    size_t count, capacity;
    uint64_t event_count;
    uint64_t lost_blocks, lost_events,
        lost_bytes;      /* lost events: as far as headers say how many there were */
    uint64_t whole_end;  /* behind the last whole block */
    uint64_t cut_events; /* in the block behind that */
    uint64_t time;       /* of the last event */
    uint64_t unsorted;   /* blocks that begin before the one in front of them ends */
    bool extensions;
    uint64_t budget; /* bytes that may still be spent on looking for where blocks go on */
} coffer__mlyze_salvage;

/* Every loss is a warning in the report. The rest behind the last whole block is not: it is whole_end. */
coffer_status coffer__mlyze_salvage_blocks(coffer__mlyze_salvage *salvage, coffer_error *err);
void coffer__mlyze_salvage_free(coffer__mlyze_salvage *salvage);

#endif
