#include "formats/mlyze/analyze/mlyze_heap_graph.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdlib.h>

/* A reference as in the file. */
typedef struct reference {
    uint64_t from, to, name;
} reference;

typedef struct reading {
    coffer__mlyze_graph *graph;
    coffer_mlyze_live *live;
    reference *references;
    size_t capacity, reference_count, reference_capacity; /* capacity : of the objects */
    coffer__table table;                                  /* of the objects, by address */
    uint64_t wanted;
    bool collects, done;
} reading;

static bool grow(void **items, size_t *capacity, size_t size)
{
    size_t larger = *capacity ? *capacity + *capacity / 2 : 1024;
    void *moved = coffer__realloc(*items, larger * size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

static coffer_status add_object(reading *work, const coffer__mlyze_object *object, coffer_error *err)
{
    coffer__mlyze_graph *graph = work->graph;
    void *items = graph->objects;
    if (graph->count == work->capacity && !grow(&items, &work->capacity, sizeof *graph->objects))
        return coffer__fail_no_memory(err, work->capacity * sizeof *graph->objects);
    graph->objects = items;
    graph->objects[graph->count++] = *object;
    return graph->count < COFFER__MLYZE_NO_OBJECT
               ? COFFER_OK
               : coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "the snapshot has more than %" PRIu32 " objects", COFFER__MLYZE_NO_OBJECT);
}

static coffer_status add_reference(reading *work, uint64_t from, uint64_t to, uint64_t name,
                                   coffer_error *err)
{
    void *items = work->references;
    if (work->reference_count == work->reference_capacity &&
        !grow(&items, &work->reference_capacity, sizeof *work->references))
        return coffer__fail_no_memory(err, work->reference_capacity * sizeof *work->references);
    work->references = items;
    work->references[work->reference_count++] = (reference){ from, to, name };
    return work->reference_count < COFFER__MLYZE_NO_OBJECT
               ? COFFER_OK
               : coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                              "the snapshot has more than %" PRIu32 " references", COFFER__MLYZE_NO_OBJECT);
}

/* Objects of Python's garbage collector begin 16 bytes after their block. */
static void find_sizes(reading *work)
{
    enum { COLLECTOR_HEAD = 16 };
    coffer__mlyze_graph *graph = work->graph;
    graph->unsized = 0;
    for (size_t i = 0; i < graph->count; i++) {
        coffer__mlyze_object *object = &graph->objects[i];
        coffer_mlyze_live_block block;
        if (object->size > 0) /* the recorder knew it */
            continue;
        bool found = coffer_mlyze_live_get(&block, work->live, object->address) ||
                     (object->address > COLLECTOR_HEAD &&
                      coffer_mlyze_live_get(&block, work->live, object->address - COLLECTOR_HEAD));
        graph->unsized += !found;
        if (found)
            object->size = block.size;
    }
}

static void take_snapshot(reading *work, uint64_t time, bool ends)
{
    coffer__mlyze_graph *graph = work->graph;
    if (ends) {
        bool ended = work->collects;
        work->collects = false;
        graph->complete = graph->complete || ended;
        work->done = work->done || (ended && work->wanted > 0);
        if (ended)
            find_sizes(work);
        return;
    }
    graph->snapshots++;
    work->collects = !work->done && (work->wanted == 0 || work->wanted == graph->snapshots);
    if (work->collects) {
        graph->count = work->reference_count = 0;
        graph->complete = false;
        graph->number = graph->snapshots;
        graph->time = time;
    }
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
        take_snapshot(work, events->time[i], events->size[i] == 1);
        return COFFER_OK;
    case COFFER_MLYZE_OBJECT:
        return work->collects
                   ? add_object(work,
                                &(coffer__mlyze_object){ events->address[i], events->id[i], events->size[i] },
                                err)
                   : COFFER_OK;
    case COFFER_MLYZE_REFERENCE:
        return work->collects ? add_reference(work, events->address[i], events->size[i], events->id[i], err)
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
        find_sizes(work);
    return status;
}

/* ---- Objects instead of addresses ---- */

/* Addresses that are looked up together, so that the memory is waited for once. */
enum { GROUP = 32 };

static uint64_t hash_of(const reading *work, uint64_t address)
{
    return coffer__table_hash(&work->table, &address, sizeof address);
}

static uint32_t index_of(const reading *work, uint64_t address, uint64_t hash)
{
    coffer__table_probe probe = coffer__table_begin(&work->table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE &&
           work->graph->objects[found].address != address)
        ;
    return found == COFFER__TABLE_NONE ? COFFER__MLYZE_NO_OBJECT : found;
}

static void find_group(uint32_t *out, const reading *work, const uint64_t *addresses, size_t count)
{
    uint64_t hashes[2 * GROUP];
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_of(work, addresses[i]);
        coffer__table_probe probe = coffer__table_begin(&work->table, hashes[i]);
        __builtin_prefetch(probe.slots ? &probe.slots[probe.position] : NULL);
    }
    for (size_t i = 0; i < count; i++) {
        coffer__table_probe probe = coffer__table_begin(&work->table, hashes[i]);
        uint32_t likely = coffer__table_next(&probe);
        __builtin_prefetch(likely == COFFER__TABLE_NONE ? NULL : &work->graph->objects[likely]);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = index_of(work, addresses[i], hashes[i]);
}

/* An address that occurs twice is one object, the first. */
static coffer_status index_objects(reading *work, coffer_error *err)
{
    coffer__mlyze_graph *graph = work->graph;
    size_t kept = 0;
    coffer__table_init_keyed(&work->table);
    coffer_status status = coffer__table_reserve(&work->table, graph->count, err);
    for (size_t i = 0; i < graph->count && !status; i++) {
        uint64_t hash = hash_of(work, graph->objects[i].address);
        if (index_of(work, graph->objects[i].address, hash) != COFFER__MLYZE_NO_OBJECT)
            continue;
        graph->objects[kept] = graph->objects[i];
        status = coffer__table_add(&work->table, hash, kept++, err);
    }
    graph->count = kept;
    return status;
}

/* Replaces addresses by indexes; references to nothing are dropped. */
static void resolve(reading *work)
{
    size_t kept = 0;
    for (size_t first = 0; first < work->reference_count; first += GROUP) {
        size_t count = work->reference_count - first < GROUP ? work->reference_count - first : GROUP;
        uint64_t addresses[2 * GROUP];
        uint32_t found[2 * GROUP];
        for (size_t i = 0; i < count; i++) {
            addresses[2 * i] = work->references[first + i].from;
            addresses[2 * i + 1] = work->references[first + i].to;
        }
        find_group(found, work, addresses, 2 * count);
        for (size_t i = 0; i < count; i++) {
            const reference *one = &work->references[first + i];
            if (found[2 * i] == COFFER__MLYZE_NO_OBJECT || found[2 * i + 1] == COFFER__MLYZE_NO_OBJECT)
                work->graph->dangling++;
            else
                work->references[kept++] = (reference){ found[2 * i], found[2 * i + 1], one->name };
        }
    }
    work->reference_count = kept;
}

static int by_to(const void *left, const void *right)
{
    const coffer__mlyze_edge *a = left, *b = right;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

/* Sorts the references by counting those of each object. */
static coffer_status sort_edges(reading *work, coffer_error *err)
{
    coffer__mlyze_graph *graph = work->graph;
    graph->edge_count = work->reference_count;
    graph->first_edge = coffer__calloc(graph->count + 2, sizeof *graph->first_edge);
    graph->edges = coffer__alloc_array(graph->edge_count + 1, sizeof *graph->edges);
    if (!graph->first_edge || !graph->edges)
        return coffer__fail_no_memory(err, (graph->edge_count + 1) * sizeof *graph->edges);
    uint32_t *next = graph->first_edge + 1; /* where the next reference of an object goes */
    for (size_t i = 0; i < graph->edge_count; i++)
        next[work->references[i].from + 1]++;
    for (size_t i = 0; i < graph->count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < graph->edge_count; i++) {
        const reference *one = &work->references[i];
        graph->edges[next[one->from]++] =
            (coffer__mlyze_edge){ (uint32_t)one->from, (uint32_t)one->to, one->name };
    }
    for (size_t i = 0; i < graph->count; i++) {
        size_t count = graph->first_edge[i + 1] - graph->first_edge[i];
        if (count > 1)
            qsort(&graph->edges[graph->first_edge[i]], count, sizeof *graph->edges, by_to);
    }
    return COFFER_OK;
}

static coffer_status link_objects(reading *work, coffer_error *err)
{
    coffer_status status = index_objects(work, err);
    if (!status) {
        resolve(work);
        coffer__table_free(&work->table);
        status = sort_edges(work, err);
    }
    return status;
}

coffer_status coffer__mlyze_graph_read(coffer__mlyze_graph *out, const coffer_mlyze *trace, uint64_t number,
                                       coffer_error *err)
{
    reading work = { .graph = out, .wanted = number };
    *out = (coffer__mlyze_graph){ 0 };
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
        status = link_objects(&work, err);
    coffer__table_free(&work.table);
    coffer__free(work.references);
    if (!status)
        status = coffer__mlyze_graph_analyze(out, err);
    if (status)
        coffer__mlyze_graph_free(out);
    return status;
}

void coffer__mlyze_graph_free(coffer__mlyze_graph *graph)
{
    coffer__free(graph->objects);
    coffer__free(graph->edges);
    coffer__free(graph->first_edge);
    coffer__free(graph->order);
    coffer__free(graph->dominator);
    coffer__free(graph->retained);
    coffer__free(graph->is_root);
    *graph = (coffer__mlyze_graph){ 0 };
}
