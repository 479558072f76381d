/* A snapshot of the heap: objects, the references between them, and which object keeps which alive. */
#ifndef COFFER_MLYZE_HEAP_GRAPH_H
#define COFFER_MLYZE_HEAP_GRAPH_H

#include "coffer/mlyze.h"

#define COFFER__MLYZE_NO_OBJECT UINT32_MAX

typedef struct coffer__mlyze_object {
    uint64_t address, type, size;
} coffer__mlyze_object;

/* A reference between objects, by their indexes. */
typedef struct coffer__mlyze_edge {
    uint32_t from, to;
    uint64_t name;
} coffer__mlyze_edge;

typedef struct coffer__mlyze_graph {
    coffer__mlyze_object *objects; /* in the order of the file */
    coffer__mlyze_edge *edges;     /* sorted by `from`, then by `to` */
    size_t count, edge_count;
    uint32_t *first_edge; /* of each object; count + 1 entries */
    uint32_t *order;      /* objects, each after at least one that refers to it */
    uint32_t *dominator;  /* the object through which alone it is reachable; COFFER__MLYZE_NO_OBJECT = a root
                             or several */
    bool *is_root;
    uint64_t *retained;    /* bytes that would be freed with the object */
    size_t snapshots;      /* in the trace */
    uint64_t number, time; /* of this one, from 1; µs since the start */
    uint64_t dangling;     /* references from or to an address without an object */
    uint64_t unsized;      /* objects that no recorded block contains */
    bool complete;         /* the snapshot has an end */
} coffer__mlyze_graph;

/* number : from 1; 0 = the last snapshot. COFFER_E_NOT_FOUND when the trace does not have it. */
coffer_status coffer__mlyze_graph_read(coffer__mlyze_graph *out, const coffer_mlyze *trace, uint64_t number,
                                       coffer_error *err);
void coffer__mlyze_graph_free(coffer__mlyze_graph *graph);
/* The shortest chain of objects from a root to an object of the type: `edges` gets the index of the edge to
 * each object of `path` (COFFER__MLYZE_NO_OBJECT for the root). Both have room for graph->count. Returns the
 * length; 0 = no object of the type was found. */
size_t coffer__mlyze_graph_path(uint32_t *path, uint32_t *edges, const coffer__mlyze_graph *graph,
                                uint64_t type);
/* mlyze_heap_dominators.c: fills order, dominator and retained. */
coffer_status coffer__mlyze_graph_analyze(coffer__mlyze_graph *graph, coffer_error *err);

#endif
