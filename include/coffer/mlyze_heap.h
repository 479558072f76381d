#ifndef COFFER_MLYZE_HEAP_H
#define COFFER_MLYZE_HEAP_H

#include "coffer/mlyze.h"

COFFER_BEGIN_DECLS

/* Heap snapshots of a trace: objects, the references between them, and which object keeps which alive. An
 * object retains what would be freed with it: the objects that are reachable through it alone. The roots are
 * the objects that no other object refers to. */
typedef struct coffer_mlyze_heap coffer_mlyze_heap;

typedef struct coffer_mlyze_heap_opts {
    uint32_t struct_size;
    uint64_t snapshot; /* number, from 1; 0 = the last one */
    uint64_t since;    /* number of an earlier one, whose objects are counted too; 0 = none */
} coffer_mlyze_heap_opts;

#define COFFER_MLYZE_HEAP_OPTS_INIT          \
    {                                        \
        sizeof(coffer_mlyze_heap_opts), 0, 0 \
    }
COFFER_API void coffer_mlyze_heap_opts_init(coffer_mlyze_heap_opts *opts, uint32_t struct_size);

/* Reads a snapshot and finds what each object retains. Reads every event, since the size of an object can be
 * that of its block. trace : borrowed, must outlive the heap. opts : NULL = the last snapshot.
 * COFFER_E_NOT_FOUND when the trace does not have the snapshot.
 * out : owned by the caller, free with coffer_mlyze_heap_free(); untouched on failure. */
COFFER_API_STATUS coffer_mlyze_heap_new(coffer_mlyze_heap **out, const coffer_mlyze *trace,
                                        const coffer_mlyze_heap_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_heap_free(coffer_mlyze_heap *heap);

/* Belongs to the heap; may get members at its end. */
typedef struct coffer_mlyze_snapshot {
    uint64_t number, snapshots; /* from 1; in the trace */
    uint64_t time_us;
    uint64_t objects, bytes, references;
    uint64_t dangling_references;  /* from or to an address without an object */
    uint64_t objects_without_size; /* no recorded block contains them */
    bool complete;                 /* the snapshot has an end */
} coffer_mlyze_snapshot;
COFFER_API const coffer_mlyze_snapshot *coffer_mlyze_heap_snapshot(const coffer_mlyze_heap *heap);

/* The objects of one type. Belongs to the heap; may get members at its end. */
typedef struct coffer_mlyze_heap_type {
    const char *name; /* "?" when it is not known */
    uint64_t objects, bytes;
    uint64_t retained_bytes;               /* objects that another one of the type retains count once */
    uint64_t objects_before, bytes_before; /* in the snapshot that opts.since names */
} coffer_mlyze_heap_type;
COFFER_API size_t coffer_mlyze_heap_type_count(const coffer_mlyze_heap *heap);
/* The most bytes first; NULL past the end. */
COFFER_API const coffer_mlyze_heap_type *coffer_mlyze_heap_type_at(const coffer_mlyze_heap *heap,
                                                                   size_t index);

typedef struct coffer_mlyze_heap_object {
    uint32_t struct_size;
    const char *type; /* borrowed from the heap */
    uint64_t address, bytes, retained_bytes;
} coffer_mlyze_heap_object;

#define COFFER_MLYZE_HEAP_OBJECT_INIT                   \
    {                                                   \
        sizeof(coffer_mlyze_heap_object), NULL, 0, 0, 0 \
    }
COFFER_API void coffer_mlyze_heap_object_init(coffer_mlyze_heap_object *object, uint32_t struct_size);
/* COFFER_E_OUT_OF_BOUNDS past the last object of the snapshot. */
COFFER_API_STATUS coffer_mlyze_heap_object_at(coffer_mlyze_heap_object *out, const coffer_mlyze_heap *heap,
                                              size_t index, coffer_error *err);
/* The indexes of the `count` objects that retain most, the largest first. out : room for count. Returns how
 * many there are. */
COFFER_API size_t coffer_mlyze_heap_largest(size_t *out, size_t count, const coffer_mlyze_heap *heap);

/* An object on the way from a root, and the name of the reference to it; NULL for the root. Never grows. */
typedef struct coffer_mlyze_heap_step {
    size_t object;
    const char *reference;
} coffer_mlyze_heap_step;
/* The shortest chain of references from a root to an object of the type. *steps is owned by the caller,
 * coffer_free(). COFFER_E_NOT_FOUND when the snapshot has no object of the type. */
COFFER_API_STATUS coffer_mlyze_heap_path(coffer_mlyze_heap_step **steps, size_t *count,
                                         const coffer_mlyze_heap *heap, const char *type, coffer_error *err);

COFFER_END_DECLS

#endif
