/* Which object keeps which alive: the dominator tree of the references, by the algorithm of Cooper, Harvey
 * and Kennedy. The roots are the objects that nothing refers to; a cycle that no root reaches gets its first
 * object as a root. */
#include "heap_graph.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

typedef struct analysis {
    heap_graph *graph;
    uint32_t *rank;               /* place of an object in graph->order */
    uint32_t *first_back, *backs; /* objects that refer to an object */
    uint32_t *stack, *next;       /* of the depth-first search */
    bool *known;                  /* dominators that were computed once */
} analysis;

static coffer_status make(analysis *work, coffer_error *err)
{
    heap_graph *graph = work->graph;
    size_t count = graph->count + 1;
    graph->order = coffer__alloc_array(count, sizeof *graph->order);
    graph->dominator = coffer__alloc_array(count, sizeof *graph->dominator);
    graph->retained = coffer__alloc_array(count, sizeof *graph->retained);
    work->rank = coffer__alloc_array(count, sizeof *work->rank);
    work->first_back = coffer__calloc(count + 1, sizeof *work->first_back);
    work->backs = coffer__alloc_array(graph->edge_count + 1, sizeof *work->backs);
    work->stack = coffer__alloc_array(count, sizeof *work->stack);
    work->next = coffer__alloc_array(count, sizeof *work->next);
    work->known = coffer__calloc(count, sizeof *work->known);
    graph->is_root = coffer__calloc(count, sizeof *graph->is_root);
    if (graph->order && graph->dominator && graph->retained && work->rank && work->first_back &&
        work->backs && work->stack && work->next && work->known && graph->is_root)
        return COFFER_OK;
    return coffer__fail_no_memory(err, count * sizeof *graph->retained);
}

static void link_back(analysis *work)
{
    const heap_graph *graph = work->graph;
    for (size_t i = 0; i < graph->edge_count; i++)
        work->first_back[graph->edges[i].to + 1]++;
    for (size_t i = 0; i < graph->count; i++)
        work->first_back[i + 1] += work->first_back[i];
    memcpy(work->next, work->first_back, graph->count * sizeof *work->next);
    for (size_t i = 0; i < graph->edge_count; i++)
        work->backs[work->next[graph->edges[i].to]++] = (uint32_t)graph->edges[i].from;
}

static bool has_referrer(const analysis *work, uint32_t object)
{
    for (uint32_t i = work->first_back[object]; i < work->first_back[object + 1]; i++)
        if (work->backs[i] != object)
            return true;
    return false;
}

/* Depth-first from a root; objects are numbered from the end when they are left. */
static size_t search(analysis *work, uint32_t root, size_t left)
{
    heap_graph *graph = work->graph;
    size_t depth = 0;
    graph->is_root[root] = true;
    work->rank[root] = 0; /* seen */
    work->stack[depth] = root;
    work->next[root] = graph->first_edge[root];
    while (depth != SIZE_MAX) {
        uint32_t object = work->stack[depth];
        if (work->next[object] == graph->first_edge[object + 1]) {
            graph->order[--left] = object;
            depth--;
            continue;
        }
        uint32_t to = (uint32_t)graph->edges[work->next[object]++].to;
        if (work->rank[to] != HEAP_NONE)
            continue;
        work->rank[to] = 0;
        work->next[to] = graph->first_edge[to];
        work->stack[++depth] = to;
    }
    return left;
}

static void put_in_order(analysis *work)
{
    heap_graph *graph = work->graph;
    size_t left = graph->count;
    memset(work->rank, 0xff, graph->count * sizeof *work->rank);
    for (uint32_t i = 0; i < graph->count; i++)
        if (!has_referrer(work, i))
            left = search(work, i, left);
    for (uint32_t i = 0; i < graph->count; i++)
        if (work->rank[i] == HEAP_NONE)
            left = search(work, i, left);
    for (uint32_t i = 0; i < graph->count; i++)
        work->rank[graph->order[i]] = i;
}

/* The nearest object through which both are reached; the imaginary root is HEAP_NONE. */
static uint32_t meet(const analysis *work, uint32_t a, uint32_t b)
{
    const uint32_t *dominator = work->graph->dominator;
    while (a != b) {
        if (a == HEAP_NONE || b == HEAP_NONE)
            return HEAP_NONE;
        if (work->rank[a] > work->rank[b])
            a = dominator[a];
        else
            b = dominator[b];
    }
    return a;
}

static void find_dominators(analysis *work)
{
    heap_graph *graph = work->graph;
    bool *known = work->known;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < graph->count; i++) {
            uint32_t object = graph->order[i], best = HEAP_NONE;
            bool any = graph->is_root[object];
            for (uint32_t j = work->first_back[object]; j < work->first_back[object + 1]; j++) {
                uint32_t from = work->backs[j];
                if (graph->is_root[object] || !known[from] || from == object)
                    continue;
                best = any ? meet(work, best, from) : from;
                any = true;
            }
            if (known[object] && graph->dominator[object] == best)
                continue;
            graph->dominator[object] = best;
            known[object] = true;
            changed = true;
        }
    }
}

coffer_status heap_graph_analyze(heap_graph *graph, coffer_error *err)
{
    analysis work = { .graph = graph };
    coffer_status status = make(&work, err);
    if (!status) {
        link_back(&work);
        put_in_order(&work);
        memset(graph->dominator, 0xff, graph->count * sizeof *graph->dominator);
        find_dominators(&work);
        for (size_t i = 0; i < graph->count; i++)
            graph->retained[i] = graph->objects[i].size;
        for (size_t i = graph->count; i-- > 0;) {
            uint32_t object = graph->order[i];
            if (graph->dominator[object] != HEAP_NONE)
                graph->retained[graph->dominator[object]] += graph->retained[object];
        }
    }
    coffer__free(work.rank);
    coffer__free(work.first_back);
    coffer__free(work.backs);
    coffer__free(work.stack);
    coffer__free(work.next);
    coffer__free(work.known);
    return status;
}

/* ---- Paths ---- */

/* Breadth-first from all roots, with the queue in `queue`. */
static uint32_t search_type(uint32_t *queue, uint32_t *via, bool *seen, const heap_graph *graph,
                            uint64_t type)
{
    size_t head = 0, tail = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        seen[i] = graph->is_root[i];
        via[i] = HEAP_NONE;
        if (seen[i])
            queue[tail++] = i;
    }
    for (; head < tail; head++) {
        uint32_t object = queue[head];
        if (graph->objects[object].type == type)
            return object;
        for (uint32_t e = graph->first_edge[object]; e < graph->first_edge[object + 1]; e++) {
            uint32_t to = (uint32_t)graph->edges[e].to;
            if (seen[to])
                continue;
            seen[to] = true;
            via[to] = e;
            queue[tail++] = to;
        }
    }
    return HEAP_NONE;
}

size_t heap_graph_path(uint32_t *path, uint32_t *edges, const heap_graph *graph, uint64_t type)
{
    uint32_t *via = coffer__alloc_array(graph->count + 1, sizeof *via);
    bool *seen = coffer__alloc_array(graph->count + 1, sizeof *seen);
    uint32_t found = via && seen ? search_type(path, via, seen, graph, type) : HEAP_NONE;
    size_t len = 0;
    for (uint32_t at = found; at != HEAP_NONE; len++)
        at = via[at] == HEAP_NONE ? HEAP_NONE : (uint32_t)graph->edges[via[at]].from;
    for (size_t i = len; i-- > 0;) {
        path[i] = found;
        edges[i] = via[found];
        found = edges[i] == HEAP_NONE ? HEAP_NONE : (uint32_t)graph->edges[edges[i]].from;
    }
    coffer__free(via);
    coffer__free(seen);
    return len;
}
