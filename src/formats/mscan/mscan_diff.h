/* What the two halves of the comparison share: metadata (mscan_diff_metadata.c) and records (mscan_diff.c).
 */
#ifndef COFFER_FORMATS_MSCAN_DIFF_H
#define COFFER_FORMATS_MSCAN_DIFF_H

#include "formats/mscan/mscan_private.h"

/* A difference in the metadata. Texts are owned; NULL where there is nothing to say. */
typedef struct coffer__mscan_change {
    const char *what; /* "param-renamed" */
    char *name, *a, *b;
} coffer__mscan_change;

typedef struct coffer__mscan_changes {
    coffer__mscan_change *items;
    size_t count, capacity; /* how many are kept, at most max */
    uint64_t max, total;
} coffer__mscan_changes;

/* For a param_id of b: the id that the same parameter has in a. Parameters are matched by name, those that
 * are left by id, and one that only b has is COFFER__MSCAN_ONLY_B. */
#define COFFER__MSCAN_ONLY_B UINT32_MAX
typedef struct coffer__mscan_id_map {
    uint32_t to_a[COFFER__MSCAN_PARAM_IDS];
    bool identity; /* every id stands for itself */
} coffer__mscan_id_map;

coffer_status coffer__mscan_diff_metadata(coffer__mscan_changes *changes, coffer__mscan_id_map *ids,
                                          const coffer_mscan *a, const coffer_mscan *b, coffer_error *err);
void coffer__mscan_changes_free(coffer__mscan_changes *changes); /* its members, not itself */

#endif
