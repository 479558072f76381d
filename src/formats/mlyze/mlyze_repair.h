/* Repair: the front of a damaged trace, and its intact blocks. */
#ifndef COFFER_FORMATS_MLYZE_REPAIR_H
#define COFFER_FORMATS_MLYZE_REPAIR_H

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
    uint32_t cut_lost; /* events of a truncated archive block, whose columns end at different places */
    uint64_t time;     /* of the last event */
    uint64_t unsorted; /* blocks that begin before the previous block ends */
    bool extensions;
    uint64_t budget; /* bytes that the search for blocks may still read */
} coffer__mlyze_salvage;

/* Every loss is a warning in the report, except the bytes after the last intact block, which begin at
 * whole_end. */
coffer_status coffer__mlyze_salvage_blocks(coffer__mlyze_salvage *salvage, coffer_error *err);
void coffer__mlyze_salvage_free(coffer__mlyze_salvage *salvage);

/* ---- The repair of one file ---- */

typedef struct coffer__mlyze_rescue {
    coffer_report *report;
    coffer_source *source;
    const coffer_repair_opts *opts;
    coffer_limits limits;
    bool blocks_changed; /* blocks were dropped, or are not in order */
    bool changed;        /* something was damaged: the file is written again instead of copied */
    bool doubts_header;  /* its checksum does not match: lengths and flags may be wrong */
    bool searches;       /* where the events begin is not known either */
    coffer_mlyze trace;  /* the source without the damage */
    char *metadata;
    size_t metadata_len;
    coffer__mlyze_salvage blocks; /* of a trace with blocks */
    uint64_t plain_len;           /* bytes of whole events in a plain trace */
    uint64_t event_count;
    bool extensions;
    coffer__mlyze_losses losses;
    bool innermost_first; /* only the flags of version 0.1 say it */
    bool has_plain_sum;   /* the metadata has a checksum of the file */
    uint32_t plain_crc;   /* of the events of a plain trace that are kept */
} coffer__mlyze_rescue;

/* Adds a finding about damage. */
void coffer__mlyze_rescue_note(coffer__mlyze_rescue *work, coffer_status code, uint64_t offset,
                               const char *text);
/* Reads the header and the metadata as far as they can be understood, and finds where the events begin. */
coffer_status coffer__mlyze_rescue_front(coffer__mlyze_rescue *work, coffer_error *err);

#endif
