/* Massif's snapshots: what valgrind's heap profiler writes and ms_print reads. */
#ifndef COFFER_OUTSIDE_MASSIF_H
#define COFFER_OUTSIDE_MASSIF_H

#include "outside/profiles/profile_text.h"

bool coffer__massif_probe(const uint8_t *head, size_t len);

typedef enum coffer__massif_detail {
    COFFER__MASSIF_EMPTY,
    COFFER__MASSIF_DETAILED,
    COFFER__MASSIF_PEAK /* detailed, and the highest */
} coffer__massif_detail;

typedef struct coffer__massif_snapshot {
    uint64_t number;
    uint64_t time; /* microseconds; instructions and bytes are counted as such */
    uint64_t heap_bytes, extra_bytes, stack_bytes;
    coffer__massif_detail detail; /* when not EMPTY, a tree follows in the text */
} coffer__massif_snapshot;

/* One line of a tree: its children are the next nodes, one after the other with what is below them. */
typedef struct coffer__massif_node {
    uint64_t children, bytes;
    const char *label;
    size_t label_len;
} coffer__massif_node;

typedef struct coffer__massif {
    coffer__packed_lines *lines;
    coffer__buffer command;
    char time_unit[8];
} coffer__massif;

/* Reads the head, up to the first snapshot. lines : borrowed. */
coffer_status coffer__massif_open(coffer__massif *massif, coffer__packed_lines *lines, coffer_error *err);
void coffer__massif_close(coffer__massif *massif);
/* The next snapshot; false in *more at the end. Its tree, if it has one, must have been read. */
coffer_status coffer__massif_next(bool *more, coffer__massif_snapshot *snapshot, coffer__massif *massif,
                                  coffer_error *err);
/* The next node of the tree; its label lives until the next call. */
coffer_status coffer__massif_node_next(coffer__massif_node *node, coffer__massif *massif, coffer_error *err);

#endif
