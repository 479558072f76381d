/* Blocks of an archive that outlive the archive block of their allocation, in the order of their numbers.
 * Frees list them in that order too, so both are read from left to right; no table is searched. */
#ifndef COFFER_FORMATS_MLYZE_SURVIVORS_H
#define COFFER_FORMATS_MLYZE_SURVIVORS_H

#include "formats/mlyze/analyze/mlyze_live.h"

/* Allocations of one archive block that are still live. */
typedef struct coffer__mlyze_generation {
    coffer__mlyze_held *items;   /* order : their numbers. stack : COFFER__MLYZE_NO_ROW = it is dead */
    size_t count, dead, charged; /* charged : to the budget */
    uint64_t last;               /* number, at the start of a call of take */
} coffer__mlyze_generation;

typedef struct coffer__mlyze_survivors {
    coffer__mlyze_budget *budget;
    coffer__mlyze_generation *items;
    size_t count, capacity;
} coffer__mlyze_survivors;

/* Room for a generation whose numbers follow all others; the caller fills it. COFFER_E_LIMIT when it does not
 * fit into the budget. */
coffer_status coffer__mlyze_survivors_add(coffer__mlyze_held **out, coffer__mlyze_survivors *survivors,
                                          size_t count, coffer_error *err);
/* Removes the blocks with these numbers, which ascend. False when one is missing. */
bool coffer__mlyze_survivors_take(coffer__mlyze_held *out, coffer__mlyze_survivors *survivors,
                                  const uint64_t *numbers, size_t count);
void coffer__mlyze_survivors_free(coffer__mlyze_survivors *survivors);

#endif
