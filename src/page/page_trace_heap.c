/* The last heap snapshot of a trace: objects by type, what keeps them alive, and the largest objects. */
#include "base/fail.h"
#include "base/memory.h"
#include "page/page_trace.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_TYPES = 500, MOST_LARGEST = 100, MOST_PATHS = 128, FEW_PATHS = 16 };
/* A path is found by a search through all references: a large heap has fewer. */
#define MANY_OBJECTS ((uint64_t)1 << 18)

coffer_status coffer__page_heap_new(coffer_mlyze_heap **out, const coffer__page_trace_file *file,
                                    coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    coffer_mlyze_heap_opts opts = COFFER_MLYZE_HEAP_OPTS_INIT;
    if (file->windows.snapshots == 0)
        return COFFER_OK;
    opts.since = file->windows.snapshots > 1;
    coffer_status status = coffer_mlyze_heap_new(out, file->trace, &opts, &found);
    return status && !coffer__is_about_file(status) && status != COFFER_E_NOT_FOUND
               ? coffer__fail_copy(err, &found)
               : COFFER_OK;
}

static void add_snapshot(coffer_chunks *chunks, const coffer_mlyze_heap *heap)
{
    const coffer_mlyze_snapshot *snapshot = coffer_mlyze_heap_snapshot(heap);
    coffer_node *map = coffer_node_add_map(chunks->view, "heap");
    coffer_node_add_u64(map, "number", snapshot->number, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "snapshots", snapshot->snapshots, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "time_us", snapshot->time_us, COFFER_UNIT_MICROSECONDS);
    coffer_node_add_u64(map, "objects", snapshot->objects, COFFER_UNIT_NONE);
    coffer_node_add_u64(map, "bytes", snapshot->bytes, COFFER_UNIT_BYTES);
    if (!snapshot->complete)
        coffer__chunks_note(chunks, "the heap snapshot is incomplete: the recording ended in it");
    if (snapshot->objects_without_size)
        coffer__chunks_note(chunks,
                            "%" PRIu64 " objects of the heap have no size: no recorded block contains them",
                            snapshot->objects_without_size);
}

static void add_types(coffer_chunks *chunks, const coffer_mlyze_heap *heap, size_t count)
{
    uint32_t *type = coffer__chunks_u32(chunks, "heap.type", count);
    double *objects = coffer__chunks_f64(chunks, "heap.objects", count);
    double *bytes = coffer__chunks_f64(chunks, "heap.bytes", count);
    double *retained = coffer__chunks_f64(chunks, "heap.retained", count);
    double *before = coffer__chunks_f64(chunks, "heap.before", count);
    for (size_t i = 0; before && i < count; i++) {
        const coffer_mlyze_heap_type *row = coffer_mlyze_heap_type_at(heap, i);
        type[i] = coffer__chunks_text(chunks, row->name);
        objects[i] = (double)row->objects;
        bytes[i] = (double)row->bytes;
        retained[i] = (double)row->retained_bytes;
        before[i] = (double)row->bytes_before;
    }
}

typedef struct object_columns {
    uint32_t *type, *address;
    double *bytes, *retained;
} object_columns;

static bool make_columns(object_columns *out, coffer_chunks *chunks, const char *group, size_t count)
{
    coffer__chunk_name name;
    out->type = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "type"), count);
    out->address = coffer__chunks_u32(chunks, coffer__chunk_name_of(name, group, "address"), count);
    out->bytes = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "bytes"), count);
    out->retained = coffer__chunks_f64(chunks, coffer__chunk_name_of(name, group, "retained"), count);
    return out->retained;
}

static void put_object(object_columns *to, coffer_chunks *chunks, const coffer_mlyze_heap *heap, size_t row,
                       size_t index)
{
    coffer_mlyze_heap_object object = COFFER_MLYZE_HEAP_OBJECT_INIT;
    char address[24];
    if (coffer_mlyze_heap_object_at(&object, heap, index, NULL))
        return;
    snprintf(address, sizeof address, "0x%" PRIx64, object.address);
    to->type[row] = coffer__chunks_text(chunks, object.type);
    to->address[row] = coffer__chunks_text(chunks, address);
    to->bytes[row] = (double)object.bytes;
    to->retained[row] = (double)object.retained_bytes;
}

static void add_largest(coffer_chunks *chunks, const coffer_mlyze_heap *heap, size_t most)
{
    object_columns to;
    size_t list[MOST_LARGEST];
    size_t count = coffer_mlyze_heap_largest(list, most, heap);
    if (!make_columns(&to, chunks, "heap.largest", count))
        return;
    for (size_t i = 0; i < count; i++)
        put_object(&to, chunks, heap, i, list[i]);
}

/* The chains of references to objects of the largest types, one after the other. */
static coffer_status add_paths(coffer_chunks *chunks, const coffer_mlyze_heap *heap, size_t types,
                               coffer_error *err)
{
    size_t most = coffer_mlyze_heap_snapshot(heap)->objects < MANY_OBJECTS ? MOST_PATHS : FEW_PATHS;
    size_t count = types < most ? types : most, total = 0, row = 0;
    coffer_mlyze_heap_step *steps[MOST_PATHS] = { NULL };
    size_t lens[MOST_PATHS] = { 0 };
    coffer_status status = COFFER_OK;
    object_columns to;
    for (size_t i = 0; i < count && !status; i++) {
        status =
            coffer_mlyze_heap_path(&steps[i], &lens[i], heap, coffer_mlyze_heap_type_at(heap, i)->name, err);
        status = status == COFFER_E_NOT_FOUND ? COFFER_OK : status; /* a type of the first snapshot only */
        total += lens[i];
    }
    uint32_t *first = coffer__chunks_u32(chunks, "heap.path.first", count + 1);
    uint32_t *reference = coffer__chunks_u32(chunks, "heap.path.reference", total);
    bool is_made = make_columns(&to, chunks, "heap.path", total) && !status;
    for (size_t i = 0; is_made && i < count; i++) {
        first[i] = (uint32_t)row;
        for (size_t j = 0; j < lens[i]; j++, row++) {
            reference[row] = coffer__chunks_text(chunks, steps[i][j].reference ? steps[i][j].reference : "");
            put_object(&to, chunks, heap, row, steps[i][j].object);
        }
        first[i + 1] = (uint32_t)row;
    }
    for (size_t i = 0; i < count; i++)
        coffer_free(steps[i]);
    return status;
}

coffer_status coffer__page_add_heap(coffer_chunks *chunks, const coffer_mlyze_heap *heap, uint32_t detail,
                                    coffer_error *err)
{
    if (!heap)
        return COFFER_OK;
    size_t total = coffer_mlyze_heap_type_count(heap), most = MOST_TYPES / detail;
    size_t count = total < most ? total : most;
    if (count < total)
        coffer__chunks_note(chunks, "heap: the %zu types with the most bytes of %zu", count, total);
    add_snapshot(chunks, heap);
    add_types(chunks, heap, count);
    add_largest(chunks, heap, MOST_LARGEST / detail);
    return add_paths(chunks, heap, count, err);
}
