#include "heap_graph.h"

#include "base/fail.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct reading {
    heap_graph *graph;
    coffer_mlyze_live *live;
    uint64_t wanted;
    bool collects, done;
} reading;

static bool grow(void **items, size_t *capacity, size_t size)
{
    size_t larger = *capacity ? 2 * *capacity : 1024;
    void *moved = coffer__realloc(*items, larger * size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

static coffer_status add_object(heap_graph *graph, const heap_object *object, coffer_error *err)
{
    void *items = graph->objects;
    if (graph->count == graph->capacity && !grow(&items, &graph->capacity, sizeof *graph->objects))
        return coffer__fail_no_memory(err, graph->capacity * sizeof *graph->objects);
    graph->objects = items;
    graph->objects[graph->count++] = *object;
    return graph->count < HEAP_NONE
               ? COFFER_OK
               : coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "the snapshot has more than %" PRIu32 " objects", HEAP_NONE);
}

static coffer_status add_edge(heap_graph *graph, uint64_t from, uint64_t to, uint64_t name, coffer_error *err)
{
    void *items = graph->edges;
    if (graph->edge_count == graph->edge_capacity &&
        !grow(&items, &graph->edge_capacity, sizeof *graph->edges))
        return coffer__fail_no_memory(err, graph->edge_capacity * sizeof *graph->edges);
    graph->edges = items;
    graph->edges[graph->edge_count++] = (heap_edge){ from, to, name };
    return graph->edge_count < HEAP_NONE
               ? COFFER_OK
               : coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "the snapshot has more than %" PRIu32 " references", HEAP_NONE);
}

/* Objects of Python's garbage collector begin 16 bytes after their block. */
static coffer_status find_sizes(reading *work, coffer_error *err)
{
    enum { COLLECTOR_HEAD = 16 };
    heap_graph *graph = work->graph;
    graph->unsized = 0;
    for (size_t i = 0; i < graph->count; i++) {
        heap_object *object = &graph->objects[i];
        coffer_mlyze_live_block block;
        uint64_t address = object->address;
        if (object->size > 0) /* the recorder knew it */
            continue;
        bool found = coffer_mlyze_live_take(&block, work->live, address);
        if (!found && address > COLLECTOR_HEAD) {
            address -= COLLECTOR_HEAD;
            found = coffer_mlyze_live_take(&block, work->live, address);
        }
        graph->unsized += !found;
        if (!found)
            continue;
        object->size = block.size;
        bool replaced;
        coffer_mlyze_live_block old;
        coffer_status status = coffer_mlyze_live_put(&replaced, &old, work->live, address, &block, err);
        if (status)
            return status;
    }
    return COFFER_OK;
}

static coffer_status take_snapshot(reading *work, uint64_t time, bool ends, coffer_error *err)
{
    heap_graph *graph = work->graph;
    if (ends) {
        bool ended = work->collects;
        work->collects = false;
        graph->complete = graph->complete || ended;
        work->done = work->done || (ended && work->wanted > 0);
        return ended ? find_sizes(work, err) : COFFER_OK;
    }
    graph->snapshots++;
    work->collects = !work->done && (work->wanted == 0 || work->wanted == graph->snapshots);
    if (work->collects) {
        graph->count = graph->edge_count = 0;
        graph->complete = false;
        graph->number = graph->snapshots;
        graph->time = time;
    }
    return COFFER_OK;
}

static coffer_status take_event(reading *work, const coffer_mlyze_events *events, size_t i, coffer_error *err)
{
    coffer_mlyze_live_block block = { .size = events->size[i] }, old;
    bool replaced;
    switch (events->type[i]) {
    case COFFER_MLYZE_ALLOC:
        return work->done
                   ? COFFER_OK
                   : coffer_mlyze_live_put(&replaced, &old, work->live, events->address[i], &block, err);
    case COFFER_MLYZE_FREE:
        coffer_mlyze_live_take(&old, work->live, events->address[i]);
        return COFFER_OK;
    case COFFER_MLYZE_SNAPSHOT:
        return take_snapshot(work, events->time[i], events->size[i] == 1, err);
    case COFFER_MLYZE_OBJECT:
        return work->collects
                   ? add_object(work->graph,
                                &(heap_object){ events->address[i], events->id[i], events->size[i] }, err)
                   : COFFER_OK;
    case COFFER_MLYZE_REFERENCE:
        return work->collects ? add_edge(work->graph, events->address[i], events->size[i], events->id[i], err)
                              : COFFER_OK;
    default:
        return COFFER_OK;
    }
}

static coffer_status read_events(reading *work, const coffer_mlyze *trace, coffer_error *err)
{
    coffer_mlyze_events events = COFFER_MLYZE_EVENTS_INIT;
    size_t count = 0;
    coffer_status status = coffer_mlyze_block_count(&count, trace, err);
    for (size_t i = 0; !status && i < count; i++) {
        status = coffer_mlyze_read_block(&events, trace, i, err);
        for (size_t j = 0; !status && j < events.count; j++)
            status = take_event(work, &events, j, err);
    }
    coffer_mlyze_events_free(&events);
    if (!status && work->collects)
        status = find_sizes(work, err);
    return status;
}

/* ---- Objects instead of addresses ---- */

static int by_address(const void *left, const void *right)
{
    const heap_object *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int by_from(const void *left, const void *right)
{
    const heap_edge *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

static uint32_t index_of(const heap_graph *graph, uint64_t address)
{
    const heap_object key = { .address = address };
    const heap_object *found =
        graph->count ? bsearch(&key, graph->objects, graph->count, sizeof key, by_address) : NULL;
    return found ? (uint32_t)(found - graph->objects) : HEAP_NONE;
}

static coffer_status link_objects(heap_graph *graph, coffer_error *err)
{
    size_t kept = 0;
    if (graph->count > 0)
        qsort(graph->objects, graph->count, sizeof *graph->objects, by_address);
    for (size_t i = 0; i < graph->count; i++)
        if (kept == 0 || graph->objects[kept - 1].address != graph->objects[i].address)
            graph->objects[kept++] = graph->objects[i];
    graph->count = kept;
    kept = 0;
    for (size_t i = 0; i < graph->edge_count; i++) {
        heap_edge edge = graph->edges[i];
        uint32_t from = index_of(graph, edge.from), to = index_of(graph, edge.to);
        if (from == HEAP_NONE || to == HEAP_NONE)
            graph->dangling++;
        else
            graph->edges[kept++] = (heap_edge){ from, to, edge.name };
    }
    graph->edge_count = kept;
    if (kept > 0)
        qsort(graph->edges, kept, sizeof *graph->edges, by_from);
    graph->first_edge = coffer__calloc(graph->count + 1, sizeof *graph->first_edge);
    if (!graph->first_edge)
        return coffer__fail_no_memory(err, (graph->count + 1) * sizeof *graph->first_edge);
    for (size_t i = 0; i < kept; i++)
        graph->first_edge[graph->edges[i].from + 1]++;
    for (size_t i = 0; i < graph->count; i++)
        graph->first_edge[i + 1] += graph->first_edge[i];
    return COFFER_OK;
}

coffer_status heap_graph_read(heap_graph *out, const coffer_mlyze *trace, uint64_t number, coffer_error *err)
{
    reading work = { .graph = out, .wanted = number };
    *out = (heap_graph){ 0 };
    coffer_status status = coffer_mlyze_live_new(&work.live, err);
    if (!status)
        status = read_events(&work, trace, err);
    coffer_mlyze_live_free(work.live);
    if (!status && out->number == 0)
        status =
            out->snapshots == 0
                ? coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the trace has no heap snapshot")
                : coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                               "snapshot %" PRIu64 " requested, the trace has %zu", number, out->snapshots);
    if (!status)
        status = link_objects(out, err);
    if (!status)
        status = heap_graph_analyze(out, err);
    if (status)
        heap_graph_free(out);
    return status;
}

void heap_graph_free(heap_graph *graph)
{
    coffer__free(graph->objects);
    coffer__free(graph->edges);
    coffer__free(graph->first_edge);
    coffer__free(graph->order);
    coffer__free(graph->dominator);
    coffer__free(graph->retained);
    coffer__free(graph->is_root);
    *graph = (heap_graph){ 0 };
}
