#ifndef COFFER_FORMATS_MLYZE_CHECK_NAMES_H
#define COFFER_FORMATS_MLYZE_CHECK_NAMES_H

#include "formats/mlyze/archive/mlyze_archive.h"

typedef struct coffer__mlyze_names_check {
    const coffer_mlyze *trace;
    coffer_report *report;
    bool goes_on; /* false: a block is damaged, numbers are wrong, or memory does not suffice */
    coffer__mlyze_live live;
    coffer__mlyze_budget budget;
    coffer__mlyze_unpacker unpacker;
    coffer_mlyze_events names;
    uint64_t alloc_count;
    uint64_t wrong, first_wrong; /* events, and the number of the first */
} coffer__mlyze_names_check;

/* Free it even on failure. */
coffer_status coffer__mlyze_names_init(coffer__mlyze_names_check *names, const coffer_mlyze *trace,
                                       coffer_report *report, coffer_error *err);
void coffer__mlyze_names_free(coffer__mlyze_names_check *names);
/* The blocks in order. events : of the block, with addresses. */
coffer_status coffer__mlyze_names_block(coffer__mlyze_names_check *names, const coffer__mlyze_block *block,
                                        const coffer_mlyze_events *events, coffer_error *err);
void coffer__mlyze_names_report(const coffer__mlyze_names_check *names);

#endif
