/* What differs between two maps of named values. */
#ifndef COFFER_CONVERT_METADATA_DIFF_H
#define COFFER_CONVERT_METADATA_DIFF_H

#include "base/report.h"

/* Adds {"name", "a", "b"} to `list` for every member that is not the same in both, values as JSON, null for
 * one that is not there; the first max_shown of them. *count : of all. */
coffer_status coffer__metadata_diff(coffer_node *list, uint64_t *count, const coffer_node *a,
                                    const coffer_node *b, uint64_t max_shown, coffer_error *err);

#endif
