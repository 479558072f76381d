/* Differences of two trees of named values, in the one JSON shape that `diff` has for metadata. */
#ifndef COFFER_BASE_NODE_DIFF_H
#define COFFER_BASE_NODE_DIFF_H

#include "coffer/node.h"

/* Each change is a map in a list:
 *
 *     {"path": "train.steps", "change": "changed", "a": 100, "b": 200}
 *
 * path   : names and list indices joined by '.'; a '.' or '\' inside a name has a '\' before it
 * change : "added" (no a), "removed" (no b) or "changed"
 * a, b   : the values. A text of more than 160 bytes is cut and ends in "…"; a list or map whose JSON takes
 *          more is shown as the beginning of that JSON, as a text. */
typedef struct coffer__node_changes {
    coffer_node *list; /* NULL = count only */
    uint64_t max_shown;
    uint64_t count; /* of all changes, shown or not */
} coffer__node_changes;

/* Compares two values and adds what differs. path : where they are, "" for the root. a or b may be NULL: the
 * value was added or removed. Maps are compared by name, whatever the order of their members; lists index by
 * index; numbers by value. Changes come in the order of their names. */
coffer_status coffer__node_diff(coffer__node_changes *changes, const char *path, const coffer_node *a,
                                const coffer_node *b, coffer_error *err);

/* A list "metadata" of `out`, for coffer__node_changes. */
coffer__node_changes coffer__node_changes_new(coffer_node *out, uint64_t max_shown);

#endif
