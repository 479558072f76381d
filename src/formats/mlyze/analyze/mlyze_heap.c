/* Heap snapshots: the objects by type, those that retain most, and what keeps an object alive. */
#include "coffer/mlyze_heap.h"
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/table.h"
#include "formats/mlyze/analyze/mlyze_heap_graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 1000 };

typedef struct type_row {
    coffer_mlyze_heap_type shown;
    uint64_t id;
} type_row;

struct coffer_mlyze_heap {
    const coffer_mlyze *trace;
    coffer__mlyze_graph graph;
    coffer_mlyze_snapshot snapshot;
    type_row *rows;
    size_t row_count, row_capacity;
};

COFFER__INIT_FUNCTION(coffer_mlyze_heap_opts, COFFER_MLYZE_HEAP_OPTS_INIT)
COFFER__INIT_FUNCTION(coffer_mlyze_heap_object, COFFER_MLYZE_HEAP_OBJECT_INIT)

static const char *type_name(const coffer_mlyze_heap *heap, uint64_t type)
{
    const char *name = coffer_mlyze_function_name(heap->trace, type);
    return name && *name ? name : "?";
}

/* ---- Types ---- */

static int by_bytes(const void *left, const void *right)
{
    const type_row *a = left, *b = right;
    if (a->shown.bytes != b->shown.bytes)
        return a->shown.bytes < b->shown.bytes ? 1 : -1;
    if (a->shown.retained_bytes != b->shown.retained_bytes)
        return a->shown.retained_bytes < b->shown.retained_bytes ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

/* An object that another one of its type keeps alive is part of what that one retains. */
static bool is_nested(const coffer__mlyze_graph *graph, uint32_t object)
{
    uint64_t type = graph->objects[object].type;
    uint32_t outer = graph->dominator[object];
    for (int i = 0; outer != COFFER__MLYZE_NO_OBJECT && i < NESTING_MAX; i++, outer = graph->dominator[outer])
        if (graph->objects[outer].type == type)
            return true;
    return false;
}

/* The row of a type, which is added if it is new. NULL without memory. */
static type_row *row_of(coffer_mlyze_heap *heap, coffer__table *table, uint64_t type)
{
    uint64_t hash = coffer__table_hash(table, &type, sizeof type);
    coffer__table_probe probe = coffer__table_begin(table, hash);
    uint32_t found;
    while ((found = coffer__table_next(&probe)) != COFFER__TABLE_NONE)
        if (heap->rows[found].id == type)
            return &heap->rows[found];
    if (coffer__array_reserve_one(&heap->rows, &heap->row_capacity, heap->row_count, sizeof *heap->rows,
                                  NULL) ||
        coffer__table_add(table, hash, heap->row_count, NULL))
        return NULL;
    heap->rows[heap->row_count] = (type_row){ .shown = { .name = type_name(heap, type) }, .id = type };
    return &heap->rows[heap->row_count++];
}

/* Adds the objects of a graph to the rows of their types. */
static coffer_status add_rows(coffer_mlyze_heap *heap, const coffer__mlyze_graph *graph, bool before,
                              coffer_error *err)
{
    coffer__table table;
    coffer__table_init_keyed(&table);
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < heap->row_count && !status; i++)
        status =
            coffer__table_add(&table, coffer__table_hash(&table, &heap->rows[i].id, sizeof heap->rows[i].id),
                              i, err);
    for (uint32_t i = 0; i < graph->count && !status; i++) {
        const coffer__mlyze_object *object = &graph->objects[i];
        type_row *row = row_of(heap, &table, object->type);
        if (!row) {
            status = coffer__fail_no_memory(err, heap->row_count * sizeof *row);
        } else if (before) {
            row->shown.objects_before++;
            row->shown.bytes_before += object->size;
        } else {
            row->shown.objects++;
            row->shown.bytes += object->size;
            row->shown.retained_bytes += is_nested(graph, i) ? 0 : graph->retained[i];
        }
    }
    coffer__table_free(&table);
    return status;
}

size_t coffer_mlyze_heap_type_count(const coffer_mlyze_heap *heap)
{
    return heap->row_count;
}

const coffer_mlyze_heap_type *coffer_mlyze_heap_type_at(const coffer_mlyze_heap *heap, size_t index)
{
    return index < heap->row_count ? &heap->rows[index].shown : NULL;
}

/* ---- Objects ---- */

coffer_status coffer_mlyze_heap_object_at(coffer_mlyze_heap_object *out, const coffer_mlyze_heap *heap,
                                          size_t index, coffer_error *err)
{
    if (index >= heap->graph.count)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "object %zu requested, the snapshot has %zu", index, heap->graph.count);
    const coffer__mlyze_object *object = &heap->graph.objects[index];
    const coffer_mlyze_heap_object given = { sizeof given, type_name(heap, object->type), object->address,
                                             object->size, heap->graph.retained[index] };
    return coffer__give_struct(out, &given, sizeof given, err);
}

/* Largest first; equal ones in the order of the file. */
static bool is_larger(const coffer__mlyze_graph *graph, size_t a, size_t b)
{
    if (graph->retained[a] != graph->retained[b])
        return graph->retained[a] > graph->retained[b];
    if (graph->objects[a].size != graph->objects[b].size)
        return graph->objects[a].size > graph->objects[b].size;
    return a < b;
}

/* Moves the smallest of the chosen objects, at the root of a heap, to its place. */
static void sift(size_t *items, size_t count, const coffer__mlyze_graph *graph, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_larger(graph, items[child], items[child + 1]);
        if (!is_larger(graph, items[at], items[child]))
            return;
        size_t item = items[at];
        items[at] = items[child];
        items[child] = item;
    }
}

size_t coffer_mlyze_heap_largest(size_t *out, size_t count, const coffer_mlyze_heap *heap)
{
    const coffer__mlyze_graph *graph = &heap->graph;
    count = count < graph->count ? count : graph->count;
    for (size_t i = 0; i < count; i++)
        out[i] = i;
    for (size_t i = count / 2; i-- > 0;)
        sift(out, count, graph, i);
    for (size_t i = count; count > 0 && i < graph->count; i++) {
        if (!is_larger(graph, i, out[0]))
            continue;
        out[0] = i;
        sift(out, count, graph, 0);
    }
    for (size_t end = count; end > 1; end--) {
        size_t smallest = out[0];
        out[0] = out[end - 1];
        out[end - 1] = smallest;
        sift(out, end - 1, graph, 0);
    }
    return count;
}

/* ---- Paths ---- */

static bool find_type(uint64_t *type, const coffer_mlyze_heap *heap, const char *name)
{
    for (size_t i = 0; i < heap->row_count; i++)
        if (heap->rows[i].shown.objects > 0 && strcmp(heap->rows[i].shown.name, name) == 0) {
            *type = heap->rows[i].id;
            return true;
        }
    return false;
}

coffer_status coffer_mlyze_heap_path(coffer_mlyze_heap_step **steps, size_t *count,
                                     const coffer_mlyze_heap *heap, const char *type, coffer_error *err)
{
    const coffer__mlyze_graph *graph = &heap->graph;
    uint64_t id = 0;
    if (!find_type(&id, heap, type))
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE,
                            "the snapshot has no object of type '%s'", type);
    uint32_t *objects = coffer__alloc_array(graph->count + 1, sizeof *objects);
    uint32_t *edges = coffer__alloc_array(graph->count + 1, sizeof *edges);
    size_t len = objects && edges ? coffer__mlyze_graph_path(objects, edges, graph, id) : 0;
    coffer_mlyze_heap_step *list = len > 0 ? coffer__alloc_array(len, sizeof *list) : NULL;
    for (size_t i = 0; list && i < len; i++) {
        const char *name = edges[i] == COFFER__MLYZE_NO_OBJECT
                               ? NULL
                               : coffer_mlyze_function_name(heap->trace, graph->edges[edges[i]].name);
        bool is_root = edges[i] == COFFER__MLYZE_NO_OBJECT;
        list[i] = (coffer_mlyze_heap_step){ objects[i], is_root ? NULL : name ? name : "" };
    }
    coffer__free(objects);
    coffer__free(edges);
    if (!list)
        return coffer__fail_no_memory(err, (graph->count + 1) * sizeof *objects);
    *steps = list;
    *count = len;
    return COFFER_OK;
}

/* ---- Create and free ---- */

static void fill_snapshot(coffer_mlyze_heap *heap)
{
    const coffer__mlyze_graph *graph = &heap->graph;
    heap->snapshot = (coffer_mlyze_snapshot){ .number = graph->number,
                                              .snapshots = graph->snapshots,
                                              .time_us = graph->time,
                                              .objects = graph->count,
                                              .references = graph->edge_count,
                                              .dangling_references = graph->dangling,
                                              .objects_without_size = graph->unsized,
                                              .complete = graph->complete };
    for (size_t i = 0; i < heap->row_count; i++)
        heap->snapshot.bytes += heap->rows[i].shown.bytes;
}

static coffer_status read_heap(coffer_mlyze_heap *heap, const coffer_mlyze_heap_opts *opts, coffer_error *err)
{
    coffer_status status = coffer__mlyze_graph_read(&heap->graph, heap->trace, opts->snapshot, err);
    if (!status)
        status = add_rows(heap, &heap->graph, false, err);
    if (!status && opts->since) {
        coffer__mlyze_graph before;
        status = coffer__mlyze_graph_read(&before, heap->trace, opts->since, err);
        if (!status) {
            status = add_rows(heap, &before, true, err);
            coffer__mlyze_graph_free(&before);
        }
    }
    if (status)
        return status;
    qsort(heap->rows, heap->row_count, sizeof *heap->rows, by_bytes);
    fill_snapshot(heap);
    return COFFER_OK;
}

coffer_status coffer_mlyze_heap_new(coffer_mlyze_heap **out, const coffer_mlyze *trace,
                                    const coffer_mlyze_heap_opts *opts, coffer_error *err)
{
    coffer_mlyze_heap_opts options = COFFER_MLYZE_HEAP_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_mlyze_heap *heap = coffer__calloc(1, sizeof *heap);
    if (!heap)
        return coffer__fail_no_memory(err, sizeof *heap);
    heap->trace = trace;
    status = read_heap(heap, &options, err);
    if (status)
        coffer_mlyze_heap_free(heap);
    else
        *out = heap;
    return status;
}

void coffer_mlyze_heap_free(coffer_mlyze_heap *heap)
{
    if (!heap)
        return;
    coffer__mlyze_graph_free(&heap->graph);
    coffer__free(heap->rows);
    coffer__free(heap);
}

const coffer_mlyze_snapshot *coffer_mlyze_heap_snapshot(const coffer_mlyze_heap *heap)
{
    return &heap->snapshot;
}
