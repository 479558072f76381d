/* Snapshots of Python's tracemalloc, as Snapshot.dump writes them: a pickle of
 *
 *   Snapshot { traces: _Traces { _traces: [trace, …] }, traceback_limit: n }
 *   trace = (domain, size, ((file, line), …), number of frames), innermost frame first;
 *           without the last before Python 3.9, and without the domain before 3.6
 *
 * Every block that was live is one trace. */
#ifndef COFFER_OUTSIDE_TRACEMALLOC_H
#define COFFER_OUTSIDE_TRACEMALLOC_H

#include "outside/profiles/pickle.h"

typedef struct coffer__tracemalloc {
    coffer__pickle pickle;
    uint32_t traces;    /* a list or tuple */
    uint64_t count;     /* of them */
    uint64_t limit;     /* frames of a stack that were kept at most */
    uint64_t bytes;     /* of all blocks */
    uint64_t shortened; /* stacks that had more frames than were kept */
} coffer__tracemalloc;

typedef struct coffer__tracemalloc_frame {
    const char *file;
    size_t file_len;
    uint64_t line;
} coffer__tracemalloc_frame;

/* One block. */
typedef struct coffer__tracemalloc_trace {
    uint64_t size, domain;
    uint64_t all_frames; /* of the stack; 0 = unknown */
    uint32_t frames, depth;
    uint32_t stack; /* equal numbers are equal stacks */
} coffer__tracemalloc_trace;

/* Goes through the traces. */
typedef struct coffer__tracemalloc_walk {
    const coffer__tracemalloc *snapshot;
    uint32_t run, at; /* run : + 1 */
    uint64_t number;
} coffer__tracemalloc_walk;

bool coffer__tracemalloc_probe(const uint8_t *head, size_t len);
/* bytes : borrowed, must outlive the snapshot. Free it even on failure. All traces have been checked on
 * success. */
coffer_status coffer__tracemalloc_read(coffer__tracemalloc *out, const void *bytes, size_t len,
                                       coffer_error *err);
void coffer__tracemalloc_free(coffer__tracemalloc *snapshot);

coffer__tracemalloc_walk coffer__tracemalloc_begin(const coffer__tracemalloc *snapshot);
/* False after the last trace. */
bool coffer__tracemalloc_next(coffer__tracemalloc_trace *out, coffer__tracemalloc_walk *walk);
/* Frame `index` of a trace, from the innermost one on. */
coffer__tracemalloc_frame coffer__tracemalloc_frame_at(const coffer__tracemalloc *snapshot,
                                                       const coffer__tracemalloc_trace *trace,
                                                       uint32_t index);

#endif
