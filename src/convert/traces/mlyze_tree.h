/* The rows of an analysis as a tree, from the innermost frames outwards: what asked for memory, and who
 * called that. */
#ifndef COFFER_CONVERT_MLYZE_TREE_H
#define COFFER_CONVERT_MLYZE_TREE_H

#include "convert/traces/mlyze_export.h"

#define COFFER__MLYZE_TREE_DEPTH 200 /* at most */

typedef struct coffer__mlyze_tree_node {
    size_t depth;                    /* 0 : the root, of all bytes */
    const coffer_mlyze_frame *frame; /* NULL for the root, and for the sum of small ones */
    uint64_t bytes;
    size_t children; /* the next nodes, each with what is below it */
    size_t places;   /* how many a sum of small ones sums up */
} coffer__mlyze_tree_node;

typedef void (*coffer__mlyze_tree_visit)(void *context, const coffer__mlyze_tree_node *node);

/* Visits every node after its parent, siblings from the largest down. Frames past `depth` are left out;
 * siblings below `threshold` bytes are summed up in one node, the last. */
coffer_status coffer__mlyze_tree(const coffer__mlyze_export *export, coffer_mlyze_measure measure,
                                 size_t depth, double threshold, coffer__mlyze_tree_visit visit,
                                 void *context, coffer_error *err);

#endif
