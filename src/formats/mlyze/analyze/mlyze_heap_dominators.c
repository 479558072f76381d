/* Which object keeps which alive: the dominator tree of the references, by the algorithm of Cooper, Harvey
 * and Kennedy. The roots are the objects that nothing refers to; a cycle that no root reaches gets its first
 * object as a root. */
#include "formats/mlyze/analyze/mlyze_heap_graph.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

/* Objects are numbered in the order of the search: what refers to an object mostly has a number close to its
 * own, and the loops go through memory from left to right. */
typedef struct analysis {
    coffer__mlyze_graph *graph;
    uint32_t *rank;               /* number of an object */
    uint32_t *first_back, *backs; /* objects that refer to an object; by object, then by number */
    uint32_t *stack, *next;       /* of the depth-first search */
    uint32_t *dominator; /* by number; COFFER__MLYZE_NO_OBJECT = the imaginary root, UNKNOWN = not computed so
                            far */
} analysis;

#define UNKNOWN (COFFER__MLYZE_NO_OBJECT - 1)

static coffer_status make(analysis *work, coffer_error *err)
{
    coffer__mlyze_graph *graph = work->graph;
    size_t count = graph->count + 1;
    graph->order = coffer__alloc_array(count, sizeof *graph->order);
    graph->dominator = coffer__alloc_array(count, sizeof *graph->dominator);
    graph->retained = coffer__alloc_array(count, sizeof *graph->retained);
    work->rank = coffer__alloc_array(count, sizeof *work->rank);
    work->first_back = coffer__calloc(count + 1, sizeof *work->first_back);
    work->backs = coffer__alloc_array(graph->edge_count + 1, sizeof *work->backs);
    work->stack = coffer__alloc_array(count, sizeof *work->stack);
    work->next = coffer__alloc_array(count, sizeof *work->next);
    graph->is_root = coffer__calloc(count, sizeof *graph->is_root);
    if (graph->order && graph->dominator && graph->retained && work->rank && work->first_back &&
        work->backs && work->stack && work->next && graph->is_root)
        return COFFER_OK;
    return coffer__fail_no_memory(err, count * sizeof *graph->retained);
}

/* Lists what refers to each object. by_number : objects are given by their numbers. */
static void link_back(analysis *work, bool by_number)
{
    const coffer__mlyze_graph *graph = work->graph;
    memset(work->first_back, 0, (graph->count + 2) * sizeof *work->first_back);
    uint32_t *next = work->first_back + 1;
    for (size_t i = 0; i < graph->edge_count; i++) {
        uint32_t to = graph->edges[i].to;
        next[(by_number ? work->rank[to] : to) + 1]++;
    }
    for (size_t i = 0; i < graph->count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < graph->edge_count; i++) {
        uint32_t from = graph->edges[i].from, to = graph->edges[i].to;
        work->backs[next[by_number ? work->rank[to] : to]++] = by_number ? work->rank[from] : from;
    }
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
    coffer__mlyze_graph *graph = work->graph;
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
        uint32_t to = graph->edges[work->next[object]++].to;
        if (work->rank[to] != COFFER__MLYZE_NO_OBJECT)
            continue;
        work->rank[to] = 0;
        work->next[to] = graph->first_edge[to];
        work->stack[++depth] = to;
    }
    return left;
}

static void put_in_order(analysis *work)
{
    coffer__mlyze_graph *graph = work->graph;
    size_t left = graph->count;
    memset(work->rank, 0xff, graph->count * sizeof *work->rank);
    for (uint32_t i = 0; i < graph->count; i++)
        if (!has_referrer(work, i))
            left = search(work, i, left);
    for (uint32_t i = 0; i < graph->count; i++)
        if (work->rank[i] == COFFER__MLYZE_NO_OBJECT)
            left = search(work, i, left);
    for (uint32_t i = 0; i < graph->count; i++)
        work->rank[graph->order[i]] = i;
}

/* The nearest object through which both are reached; dominators have smaller numbers. */
static uint32_t meet(const uint32_t *dominator, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a == COFFER__MLYZE_NO_OBJECT || b == COFFER__MLYZE_NO_OBJECT)
            return COFFER__MLYZE_NO_OBJECT;
        if (a > b)
            a = dominator[a];
        else
            b = dominator[b];
    }
    return a;
}

static bool find_dominator(const analysis *work, uint32_t number)
{
    uint32_t best = UNKNOWN;
    for (uint32_t j = work->first_back[number]; j < work->first_back[number + 1]; j++) {
        uint32_t from = work->backs[j];
        if (work->dominator[from] == UNKNOWN || from == number)
            continue;
        best = best == UNKNOWN ? from : meet(work->dominator, best, from);
        if (best == COFFER__MLYZE_NO_OBJECT)
            break;
    }
    bool changed = work->dominator[number] != best;
    work->dominator[number] = best;
    return changed;
}

static void find_dominators(analysis *work)
{
    const coffer__mlyze_graph *graph = work->graph;
    for (uint32_t i = 0; i < graph->count; i++)
        work->dominator[i] = graph->is_root[graph->order[i]] ? COFFER__MLYZE_NO_OBJECT : UNKNOWN;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->count; i++) {
            if (!graph->is_root[graph->order[i]])
                changed |= find_dominator(work, i);
        }
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        uint32_t number = work->dominator[i];
        graph->dominator[graph->order[i]] =
            number == COFFER__MLYZE_NO_OBJECT ? COFFER__MLYZE_NO_OBJECT : graph->order[number];
    }
}

coffer_status coffer__mlyze_graph_analyze(coffer__mlyze_graph *graph, coffer_error *err)
{
    analysis work = { .graph = graph };
    coffer_status status = make(&work, err);
    if (!status) {
        link_back(&work, false);
        put_in_order(&work);
        link_back(&work, true);
        work.dominator = work.stack; /* the search has ended */
        find_dominators(&work);
        for (size_t i = 0; i < graph->count; i++)
            graph->retained[i] = graph->objects[i].size;
        for (size_t i = graph->count; i-- > 0;) {
            uint32_t object = graph->order[i];
            if (graph->dominator[object] != COFFER__MLYZE_NO_OBJECT)
                graph->retained[graph->dominator[object]] += graph->retained[object];
        }
    }
    coffer__free(work.rank);
    coffer__free(work.first_back);
    coffer__free(work.backs);
    coffer__free(work.stack);
    coffer__free(work.next);
    return status;
}

/* ---- Paths ---- */

/* Breadth-first from all roots, with the queue in `queue`. */
static uint32_t search_type(uint32_t *queue, uint32_t *via, bool *seen, const coffer__mlyze_graph *graph,
                            uint64_t type)
{
    size_t head = 0, tail = 0;
    for (uint32_t i = 0; i < graph->count; i++) {
        seen[i] = graph->is_root[i];
        via[i] = COFFER__MLYZE_NO_OBJECT;
        if (seen[i])
            queue[tail++] = i;
    }
    for (; head < tail; head++) {
        uint32_t object = queue[head];
        if (graph->objects[object].type == type)
            return object;
        for (uint32_t e = graph->first_edge[object]; e < graph->first_edge[object + 1]; e++) {
            uint32_t to = graph->edges[e].to;
            if (seen[to])
                continue;
            seen[to] = true;
            via[to] = e;
            queue[tail++] = to;
        }
    }
    return COFFER__MLYZE_NO_OBJECT;
}

size_t coffer__mlyze_graph_path(uint32_t *path, uint32_t *edges, const coffer__mlyze_graph *graph,
                                uint64_t type)
{
    uint32_t *via = coffer__alloc_array(graph->count + 1, sizeof *via);
    bool *seen = coffer__alloc_array(graph->count + 1, sizeof *seen);
    uint32_t found = via && seen ? search_type(path, via, seen, graph, type) : COFFER__MLYZE_NO_OBJECT;
    size_t len = 0;
    for (uint32_t at = found; at != COFFER__MLYZE_NO_OBJECT; len++)
        at = via[at] == COFFER__MLYZE_NO_OBJECT ? COFFER__MLYZE_NO_OBJECT : graph->edges[via[at]].from;
    for (size_t i = len; i-- > 0;) {
        path[i] = found;
        edges[i] = via[found];
        found = edges[i] == COFFER__MLYZE_NO_OBJECT ? COFFER__MLYZE_NO_OBJECT : graph->edges[edges[i]].from;
    }
    coffer__free(via);
    coffer__free(seen);
    return len;
}
