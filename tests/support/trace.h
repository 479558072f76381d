/* Traces for tests, put together byte by byte. */
#ifndef SUPPORT_TRACE_H
#define SUPPORT_TRACE_H

#include "base/buffer.h"
#include "coffer/format.h"
#include "coffer/mlyze.h"
#include "formats/mlyze/mlyze_layout.h"
#include "support/temp.h"

/* Stacks 0 and 1, files 0 and 1, functions 0 to 2. */
extern const char trace_tables[];

typedef struct trace_builder {
    coffer__buffer file;  /* header, metadata, and events or blocks */
    coffer__buffer block; /* events of the block that is open, with COFFER__MLYZE_FLAG_BLOCKS */
    uint32_t block_events;
    uint64_t time, block_time; /* after what was put so far; at the start of the open block */
    uint64_t events;
    size_t area; /* where the events begin */
} trace_builder;

/* Header and metadata of version 1; json : NULL = trace_tables. With flags 0 it is a plain trace. */
void trace_begin(trace_builder *to, uint32_t flags, const char *json);
/* Events, with the time since the one before. */
void trace_alloc(trace_builder *to, uint64_t delta, uint64_t address, uint64_t size, uint64_t stack,
                 uint16_t thread);
void trace_free(trace_builder *to, uint64_t delta, uint64_t address);
void trace_gc(trace_builder *to, uint64_t delta, uint64_t objects, uint64_t bytes);
void trace_marker(trace_builder *to, uint64_t delta, uint64_t name);
void trace_extension(trace_builder *to, uint64_t delta, uint8_t type, const void *body, size_t len);
/* Appends raw bytes that count as this number of events. */
void trace_raw(trace_builder *to, const void *bytes, size_t len, uint32_t events);
/* Ends the open block: compressed with LZ4, or as it is. */
void trace_end_block(trace_builder *to, bool compressed);
/* Ends the last block and fills in the header: with checksums also the counts and the sums. */
void trace_finish(trace_builder *to);
/* Recomputes the checksums of the header after a test has changed it. */
void trace_sum_header(trace_builder *to);
void trace_dispose(trace_builder *to);

/* A mixture of allocations, frees and collections with a marker now and then, the same for the same number;
 * with blocks, `per_block` events in each. */
void trace_sample(trace_builder *to, uint32_t flags, uint32_t events, uint32_t per_block);

/* Opens, or fails the test. The bytes of a builder must stay as they are meanwhile. */
coffer_source *trace_source(const trace_builder *of);
coffer_mlyze *trace_open(coffer_source *src, const char *index_path);
/* A block of the trace, or fails the test. */
coffer_mlyze_block trace_block(const coffer_mlyze *trace, size_t index);
/* All events of a trace in one set of columns; trace_columns_free(). Fails the test when a block cannot be
 * read. */
coffer_mlyze_events trace_read_all(const coffer_mlyze *trace);
void trace_columns_free(coffer_mlyze_events *events);

/* The findings of check; coffer_report_free(). */
coffer_report *trace_check(const trace_builder *of);

/* The number of events that check finds nothing wrong with, except what a repair recorded as lost; −1 when
 * the file is missing, −2 when it is damaged. */
int64_t trace_whole_events(const char *path);

#endif
