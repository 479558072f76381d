/* State and functions that the files of the trace page share. */
#ifndef COFFER_PAGE_PAGE_TRACE_H
#define COFFER_PAGE_PAGE_TRACE_H

#include "coffer/mlyze.h"
#include "page/page.h"

#define COFFER__PAGE_MEASURES 4
extern const char *const coffer__page_measures[COFFER__PAGE_MEASURES];

typedef struct coffer__page_trace_file {
    coffer_mlyze *trace;
    coffer_mlyze_stats *stats;
    coffer_mlyze_source_info source;
    coffer_mlyze_tree *trees[COFFER__PAGE_MEASURES];
    bool truncated;
} coffer__page_trace_file;

typedef struct coffer__page_trace_state {
    coffer__page_trace_file files[2];
    size_t count;
    coffer_mlyze_tree *both[COFFER__PAGE_MEASURES]; /* of a comparison */
} coffer__page_trace_state;

/* Opens the trace alone, of a profile as well. */
coffer_status coffer__page_open_trace(coffer__page_trace_file *file, coffer_chunks *chunks,
                                      const coffer_file *from, coffer_error *err);
/* Reads the statistics and the trees of the events [begin, end); forget frees them. */
coffer_status coffer__page_read_trace(coffer__page_trace_file *file, coffer_chunks *chunks, uint64_t begin,
                                      uint64_t end, coffer_error *err);
void coffer__page_forget_trace(coffer__page_trace_file *file);
/* "GROUP.time", ".live_bytes" and so on, and ".mark_time" and so on. */
void coffer__page_add_points(coffer_chunks *chunks, const coffer_mlyze_timeline *timeline,
                             const coffer_mlyze *trace, uint32_t detail, const char *group);
/* "flame.peak.parent", ".name", ".place", ".bytes", ".own", ".allocs", and ".before" and ".after" of a
 * comparison, for each kind of bytes. */
coffer_status coffer__page_add_flames(coffer_chunks *chunks, const coffer__page_trace_state *page,
                                      uint32_t detail, coffer_error *err);
/* "stacks.…": the largest stacks, with their frames. */
coffer_status coffer__page_add_stacks(coffer_chunks *chunks, const coffer__page_trace_file *file,
                                      uint32_t detail, coffer_error *err);

#endif
