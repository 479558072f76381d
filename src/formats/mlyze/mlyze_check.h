/* Shared by the files of check. */
#ifndef COFFER_FORMATS_MLYZE_CHECK_H
#define COFFER_FORMATS_MLYZE_CHECK_H

#include "formats/mlyze/mlyze_private.h"

typedef struct coffer__mlyze_checker {
    coffer_report *report;
    coffer_mlyze *trace;
    bool understood; /* the tables could be read */
    const coffer_progress *progress;
} coffer__mlyze_checker;

/* Files and functions that frames refer to. */
void coffer__mlyze_check_stacks(const coffer__mlyze_checker *check);
/* Blocks and events. */
coffer_status coffer__mlyze_check_events(const coffer__mlyze_checker *check, coffer_error *err);

/* True for empty tables, which the program memlyze writes. */
bool coffer__mlyze_has_empty_tables(const coffer_mlyze *trace);

#endif
