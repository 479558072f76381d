/* Shared by the comparisons of metadata (mscan_diff_metadata.c) and of records (mscan_diff.c). */
#ifndef COFFER_FORMATS_MSCAN_DIFF_H
#define COFFER_FORMATS_MSCAN_DIFF_H

#include "base/node_diff.h"
#include "formats/mscan/mscan_private.h"

/* For a param_id of b: the id that the same parameter has in a. Parameters are matched by name, those that
 * are left by id, and one that only b has is COFFER__MSCAN_ONLY_B. */
#define COFFER__MSCAN_ONLY_B UINT32_MAX
typedef struct coffer__mscan_id_map {
    uint32_t to_a[COFFER__MSCAN_PARAM_IDS];
    bool identity; /* every id means the same in both */
} coffer__mscan_id_map;

/* A parameter whose name was added, removed or changed has the path "id_to_param_name_map.ID"; one with
 * another id has "params.NAME.id". */
coffer_status coffer__mscan_diff_metadata(coffer__node_changes *changes, coffer__mscan_id_map *ids,
                                          const coffer_mscan *a, const coffer_mscan *b, coffer_error *err);

#endif
