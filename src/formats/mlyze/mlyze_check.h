/* What the parts of check share. */
#ifndef COFFER_FORMATS_MLYZE_CHECK_H
#define COFFER_FORMATS_MLYZE_CHECK_H

#include "formats/mlyze/mlyze_private.h"

typedef struct coffer__mlyze_checker {
    coffer_report *report;
    coffer_mlyze *trace;
    bool understood; /* the tables are there to look things up in */
    const coffer_progress *progress;
} coffer__mlyze_checker;

/* Files and functions that frames refer to. */
void coffer__mlyze_check_stacks(const coffer__mlyze_checker *check);
/* Blocks and events. */
coffer_status coffer__mlyze_check_events(const coffer__mlyze_checker *check, coffer_error *err);

/* Nothing in the tables at all, as the program memlyze leaves them. */
bool coffer__mlyze_has_empty_tables(const coffer_mlyze *trace);

#endif
