/* State and functions that the files of the trace page share. */
#ifndef COFFER_PAGE_PAGE_TRACE_H
#define COFFER_PAGE_PAGE_TRACE_H

#include "coffer/mlyze.h"
#include "page/page.h"

#define COFFER__PAGE_MEASURES 4
extern const char *const coffer__page_measures[COFFER__PAGE_MEASURES];

/* The table of stacks has at most this many. */
#define COFFER__PAGE_MOST_STACKS 1000

/* Bytes by stack and part of the run. The rows are the stacks of coffer__page_rank_stacks in their order, and
 * one for all others; rows is 0 when the trace does not have times or has too many events. */
typedef struct coffer__page_windows {
    size_t rows;
    uint64_t step_us;
    uint64_t snapshots;                 /* of the heap, in the trace */
    double *allocated, *freed, *allocs; /* row by row */
} coffer__page_windows;

typedef struct coffer__page_trace_file {
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
    coffer_mlyze_source_info source;
    coffer_mlyze_tree *trees[COFFER__PAGE_MEASURES];
    coffer__page_windows windows;
    coffer_mlyze_heap *heap; /* the last snapshot; NULL without any */
    bool truncated;
} coffer__page_trace_file;

typedef struct coffer__page_trace_state {
    coffer__page_trace_file files[2];
    size_t count;
    coffer_mlyze_tree *both[COFFER__PAGE_MEASURES]; /* of a comparison */
} coffer__page_trace_state;

/* "flame.peak.parent", ".name", ".place", ".bytes", ".own", ".allocs", and ".before" and ".after" of a
 * comparison, for each kind of bytes. */
coffer_status coffer__page_add_flames(coffer_chunks *chunks, const coffer__page_trace_state *page,
                                      uint32_t detail, coffer_error *err);
/* The stacks by the largest share that they have of any kind of bytes. Free with coffer__free. */
typedef struct coffer__page_ranked_stack {
    uint64_t rank;
    size_t row; /* of the statistics */
} coffer__page_ranked_stack;
coffer_status coffer__page_rank_stacks(coffer__page_ranked_stack **out, const coffer_mlyze_stats *stats,
                                       coffer_error *err);
/* Reads every event once more. */
coffer_status coffer__page_windows_new(coffer__page_windows *out, const coffer__page_trace_file *file,
                                       coffer_error *err);
void coffer__page_windows_free(coffer__page_windows *windows);
/* "windows.…" for the first `stacks` of the stacks and all others together. */
void coffer__page_add_windows(coffer_chunks *chunks, const coffer__page_windows *windows, size_t stacks);
/* After coffer__page_windows_new, which finds out whether the trace has snapshots. */
coffer_status coffer__page_heap_new(coffer_mlyze_heap **out, const coffer__page_trace_file *file,
                                    coffer_error *err);
/* "heap.…"; heap : NULL adds nothing. */
coffer_status coffer__page_add_heap(coffer_chunks *chunks, const coffer_mlyze_heap *heap, uint32_t detail,
                                    coffer_error *err);
/* "stacks.…": the largest stacks, with their frames, and "windows.…". */
coffer_status coffer__page_add_stacks(coffer_chunks *chunks, const coffer__page_trace_file *file,
                                      uint32_t detail, coffer_error *err);

#endif
