#ifndef COFFER_MLYZE_H
#define COFFER_MLYZE_H

#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MLYZE: every allocation and release of a program, in order, with the stack that asked for it.
 * docs/formats/mlyze.md describes the file. Times are microseconds since the start of the recording. */

typedef enum coffer_mlyze_type {
    COFFER_MLYZE_ALLOC = 0,
    COFFER_MLYZE_FREE = 1,
    COFFER_MLYZE_GC = 2,
    COFFER_MLYZE_MARKER = 3,
    COFFER_MLYZE_OBJECT = 4,
    COFFER_MLYZE_REFERENCE = 5,
    COFFER_MLYZE_SNAPSHOT = 6,
    COFFER_MLYZE_THREAD = 7,
    COFFER_MLYZE_RSS = 8 /* higher numbers: extensions that are not known, skipped and counted */
} coffer_mlyze_type;

/* ---- Reading ---- */

typedef struct coffer_mlyze coffer_mlyze;

typedef struct coffer_mlyze_open_opts {
    uint32_t struct_size;
    /* Where the index is looked for, and kept when it had to be built (one that cannot be written is no
     * failure). Derived data: missing, stale or damaged, it is built again. NULL = build in memory when
     * needed, and forget. */
    const char *index_path;
    const coffer_limits *limits;
} coffer_mlyze_open_opts;

#define COFFER_MLYZE_OPEN_OPTS_INIT                \
    {                                              \
        sizeof(coffer_mlyze_open_opts), NULL, NULL \
    }

/* Opens a trace. src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * Reads header and metadata, no event: what is wrong with the events is found when they are read
 * (coffer_mlyze_damage). Thread-safety: after success all calls with a const handle may run at the same time.
 */
COFFER_API coffer_status coffer_mlyze_open(coffer_mlyze **out, coffer_source *src,
                                           const coffer_mlyze_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_close(coffer_mlyze *trace);

COFFER_API uint32_t coffer_mlyze_version(const coffer_mlyze *trace);
COFFER_API uint32_t coffer_mlyze_flags(const coffer_mlyze *trace);
COFFER_API uint64_t coffer_mlyze_start_time(const coffer_mlyze *trace); /* µs since the epoch */
COFFER_API bool coffer_mlyze_compressed(const coffer_mlyze *trace);
/* Quirks of the program that wrote the file, or NULL: "memlyze" for empty tables, address 0 and repeated
 * deltas. */
COFFER_API const char *coffer_mlyze_profile_name(const coffer_mlyze *trace);
/* The metadata as it stands in the file (UTF-8 JSON, trailing spaces left out). Borrowed. */
COFFER_API const char *coffer_mlyze_metadata(const coffer_mlyze *trace, size_t *len);

/* Tables. Names are UTF-8, NUL-terminated, borrowed; NULL when the metadata does not list the id. O(1). */
COFFER_API const char *coffer_mlyze_file_name(const coffer_mlyze *trace, uint64_t id);
COFFER_API const char *coffer_mlyze_function_name(const coffer_mlyze *trace, uint64_t id);
COFFER_API const char *coffer_mlyze_thread_name(const coffer_mlyze *trace, uint16_t thread);

typedef struct coffer_mlyze_frame {
    uint64_t file_id, line, func_id;
} coffer_mlyze_frame;

COFFER_API size_t coffer_mlyze_stack_count(const coffer_mlyze *trace);
COFFER_API uint64_t coffer_mlyze_stack_id(const coffer_mlyze *trace, size_t index); /* index < count */
/* Index of the stack with that id, or SIZE_MAX. O(1). */
COFFER_API size_t coffer_mlyze_find_stack(const coffer_mlyze *trace, uint64_t id);
/* Its frames, innermost first. Borrowed. */
COFFER_API const coffer_mlyze_frame *coffer_mlyze_frames(size_t *depth, const coffer_mlyze *trace,
                                                         size_t index);

/* ---- Events, in columns ---- */

/* What a column means depends on the type of the event:
 *              address   size          id             thread
 *   ALLOC      address   bytes         stack id       thread
 *   FREE       address
 *   GC                   bytes         objects
 *   MARKER                             name
 *   OBJECT     address                 type name
 *   REFERENCE  from      to            edge name
 *   SNAPSHOT             0 begin 1 end snapshot id
 *   THREAD                             name           thread
 *   RSS                  bytes
 *   unknown              body length
 * Names are ids in the functions table; columns without meaning are 0. */
typedef struct coffer_mlyze_events {
    uint64_t first; /* number of the first event in the trace */
    size_t count;
    uint64_t *time;
    uint64_t *address;
    uint64_t *size;
    uint64_t *id;
    uint16_t *thread;
    uint8_t *type;
    size_t capacity; /* the columns' own memory; grows, is used again, coffer_mlyze_events_free() */
} coffer_mlyze_events;

#define COFFER_MLYZE_EVENTS_INIT                    \
    {                                               \
        0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0 \
    }

COFFER_API void coffer_mlyze_events_free(coffer_mlyze_events *events);

/* Every trace is a sequence of blocks of at most 65536 bytes of events: those of the file, or, in a plain
 * file, pieces that the first call finds in one pass. */
typedef struct coffer_mlyze_block {
    uint64_t offset; /* in the file */
    uint64_t first_event;
    uint64_t time; /* before its first event */
    uint32_t event_count;
    uint32_t raw_size, stored_size;
} coffer_mlyze_block;

COFFER_API coffer_status coffer_mlyze_block_count(size_t *out, const coffer_mlyze *trace, coffer_error *err);
COFFER_API coffer_mlyze_block coffer_mlyze_block_at(const coffer_mlyze *trace,
                                                    size_t index); /* index < count, after block_count */
/* Whole events of the file; what an event cut off by the end of the file leaves is not counted. */
COFFER_API coffer_status coffer_mlyze_event_count(uint64_t *out, const coffer_mlyze *trace,
                                                  coffer_error *err);
/* Decodes one block; several threads may decode different ones, each into its own columns. A block whose
 * checksum or content is wrong fails with its place and the numbers of the events that are lost. */
COFFER_API coffer_status coffer_mlyze_read_block(coffer_mlyze_events *out, const coffer_mlyze *trace,
                                                 size_t index, coffer_error *err);
/* The block that holds an event, or the first event at or after a time; block count when it is past the end.
 * O(log blocks). */
COFFER_API coffer_status coffer_mlyze_block_of_event(size_t *out, const coffer_mlyze *trace, uint64_t event,
                                                     coffer_error *err);
COFFER_API coffer_status coffer_mlyze_block_of_time(size_t *out, const coffer_mlyze *trace, uint64_t time,
                                                    coffer_error *err);
/* What is wrong with the event area: COFFER_OK, or the first thing that ends it, "truncated event at offset N
 * (K whole events before it)". Everything before that place is readable. */
COFFER_API coffer_status coffer_mlyze_damage(const coffer_mlyze *trace, coffer_error *err);

/* The index: what was live at the start of each block. Loaded from index_path, or built by one pass. */
typedef struct coffer_mlyze_index_entry {
    uint64_t offset, first_event, time;
    uint64_t live_bytes, live_allocs; /* before the block's first event */
    uint64_t high_bytes;              /* high-water mark inside the block */
} coffer_mlyze_index_entry;

/* Borrowed from the handle. count entries, one per block. */
COFFER_API coffer_status coffer_mlyze_index(const coffer_mlyze_index_entry **out, size_t *count,
                                            const coffer_mlyze *trace, const coffer_progress *progress,
                                            coffer_error *err);

/* Event number of a moment that a person wrote: "1.5s", "20ms", "300us" (a time since the start), "1234" (an
 * event), or the name of a marker (its first occurrence; "NAME@2" the second). The number is that of the
 * first event at or after the moment; the event count when there is none. COFFER_E_NOT_FOUND with the markers
 * that there are. */
COFFER_API coffer_status coffer_mlyze_find_moment(uint64_t *event, const coffer_mlyze *trace,
                                                  const char *text, coffer_error *err);

/* ---- Analysis ---- */

typedef struct coffer_mlyze_stats_opts {
    uint32_t struct_size;
    uint64_t begin, end; /* events [begin, end); end UINT64_MAX = all. Blocks that are live at `begin` are
                          * known, whatever came before it is paired all the same */
    /* An allocation is temporary when it is freed before this many others, or within this many microseconds,
     * whichever is given; 0, 0 = before the next allocation of the same thread. */
    uint64_t temporary_allocs, temporary_us;
    uint64_t min_age_us, min_size; /* for what is live at the end: others are left out */
    uint32_t growth_windows;       /* how many for the growth test; 0 = none */
    uint32_t threads;              /* 0 = one per core */
    /* limits->memory_bytes bounds the table of live blocks: past it, it spills to a temporary file. */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool reuse; /* count reused_addresses: the table then holds every address that was ever freed */
} coffer_mlyze_stats_opts;

#define COFFER_MLYZE_STATS_OPTS_INIT                                                        \
    {                                                                                       \
        sizeof(coffer_mlyze_stats_opts), 0, UINT64_MAX, 0, 0, 0, 0, 0, 0, NULL, NULL, false \
    }

/* Of the window, but for live and peak, which count every block that is live whenever it was allocated. */
typedef struct coffer_mlyze_totals {
    uint64_t events, allocs, frees, collections, markers, unknown_events;
    uint64_t total_allocated_bytes;
    uint64_t peak_bytes, peak_allocs, peak_event, peak_time_us; /* state after that event */
    uint64_t live_bytes_at_end, live_allocs_at_end;
    uint64_t duration_us;      /* time of the last event */
    uint64_t reallocs;         /* a free and an allocation at one time by one call */
    uint64_t reused_addresses; /* allocations at an address that was freed before; 0 without query.reuse */
    uint64_t unknown_frees, first_unknown_free; /* of blocks that are not live; number of the first */
    uint64_t double_allocs, first_double_alloc; /* of addresses that are live (address 0 excepted) */
    uint64_t nowhere_allocs;                    /* at address 0: never paired */
    uint64_t temporary_allocs, temporary_bytes;
    uint64_t collected_objects, collected_bytes, peak_rss_bytes;
    uint64_t lost_events; /* in damaged blocks that were passed over */
} coffer_mlyze_totals;

/* What one stack did. stack : index, or SIZE_MAX for ids that the metadata does not list (one row each). */
typedef struct coffer_mlyze_stack_row {
    size_t stack;
    uint64_t id;
    uint64_t allocs, allocated_bytes; /* in the window */
    uint64_t peak_allocs, peak_bytes; /* live at the high-water mark of the whole */
    uint64_t live_allocs, live_bytes; /* live at the end, after min_age and min_size */
    uint64_t oldest_us, newest_us;    /* ages of those at the end of the window; 0 when there are none */
    uint64_t temporary_allocs, temporary_bytes;
    uint64_t freed_allocs, lifetime_us; /* freed in the window; sum of their lifetimes */
    double growth_bytes_per_s;          /* slope of live bytes over the windows; 0 without growth_windows */
    double growth_fit;                  /* r², 0 to 1: how straight the rise is */
} coffer_mlyze_stack_row;

/* What the allocations of one thread did; peak_bytes are those live at the high-water mark of the whole. */
typedef struct coffer_mlyze_thread_row {
    uint16_t thread;
    uint64_t allocs, allocated_bytes, live_allocs, live_bytes, peak_bytes;
} coffer_mlyze_thread_row;

/* Buckets of powers of two: [0], [1], [2, 4), [4, 8) … */
#define COFFER_MLYZE_BUCKETS 65
typedef struct coffer_mlyze_histogram {
    uint64_t count[COFFER_MLYZE_BUCKETS];
    uint64_t bytes[COFFER_MLYZE_BUCKETS];
} coffer_mlyze_histogram;

typedef struct coffer_mlyze_stats coffer_mlyze_stats;

/* One pass that pairs every free with its allocation. Damaged blocks are passed over and counted; the result
 * does not depend on the number of threads. query : NULL = all. */
COFFER_API coffer_status coffer_mlyze_stats_new(coffer_mlyze_stats **out, const coffer_mlyze *trace,
                                                const coffer_mlyze_stats_opts *query, coffer_error *err);
COFFER_API void coffer_mlyze_stats_free(coffer_mlyze_stats *analysis);
COFFER_API const coffer_mlyze_totals *coffer_mlyze_stats_totals(const coffer_mlyze_stats *analysis);
COFFER_API size_t coffer_mlyze_stats_stack_count(const coffer_mlyze_stats *analysis);
COFFER_API const coffer_mlyze_stack_row *coffer_mlyze_stats_stack_at(
    const coffer_mlyze_stats *analysis, size_t index); /* ascending id; index < count */
COFFER_API size_t coffer_mlyze_stats_thread_count(const coffer_mlyze_stats *analysis);
COFFER_API const coffer_mlyze_thread_row *coffer_mlyze_stats_thread_at(
    const coffer_mlyze_stats *analysis, size_t index); /* ascending; index < count */
COFFER_API const coffer_mlyze_histogram *coffer_mlyze_stats_sizes(const coffer_mlyze_stats *analysis);
/* Of what was freed in the window, in microseconds. */
COFFER_API const coffer_mlyze_histogram *coffer_mlyze_stats_lifetimes(const coffer_mlyze_stats *analysis);

/* Markers and collections, in order: at most limits.entries of them. */
typedef struct coffer_mlyze_mark {
    coffer_mlyze_type type; /* MARKER or GC */
    uint64_t event, time_us;
    uint64_t id;         /* name of the marker; objects of the collection */
    uint64_t bytes;      /* of the collection */
    uint64_t live_bytes; /* at that moment */
} coffer_mlyze_mark;

COFFER_API size_t coffer_mlyze_stats_mark_count(const coffer_mlyze_stats *analysis);
COFFER_API const coffer_mlyze_mark *coffer_mlyze_stats_mark_at(const coffer_mlyze_stats *analysis,
                                                               size_t index); /* index < count */

/* What lies between two markers: the first phase begins with the window, each further one with a marker. At
 * most limits.entries of them. */
typedef struct coffer_mlyze_phase {
    uint64_t id; /* name of the marker it begins with; UINT64_MAX for the first */
    uint64_t event, time_us, duration_us;
    uint64_t allocs, allocated_bytes;
    uint64_t peak_bytes; /* highest inside it */
    uint64_t live_bytes_at_begin, live_bytes_at_end;
} coffer_mlyze_phase;

COFFER_API size_t coffer_mlyze_stats_phase_count(const coffer_mlyze_stats *analysis);
COFFER_API const coffer_mlyze_phase *coffer_mlyze_stats_phase_at(const coffer_mlyze_stats *analysis,
                                                                 size_t index); /* index < count */

/* Rows summed by function or by file instead of by stack: "self" counts the innermost frame, "inclusive"
 * every function or file of the stack once. */
typedef enum coffer_mlyze_by {
    COFFER_MLYZE_BY_STACK = 0,
    COFFER_MLYZE_BY_FUNCTION = 1,
    COFFER_MLYZE_BY_FILE = 2
} coffer_mlyze_by;

typedef struct coffer_mlyze_place_row {
    uint64_t id; /* func_id or file_id; UINT64_MAX for stacks that the metadata does not list */
    uint64_t allocs, allocated_bytes, peak_allocs, peak_bytes, live_allocs, live_bytes;
    uint64_t inclusive_allocs, inclusive_allocated_bytes, inclusive_peak_bytes, inclusive_live_bytes;
    uint64_t temporary_allocs, temporary_bytes, inclusive_temporary_bytes;
} coffer_mlyze_place_row;

typedef struct coffer_mlyze_places coffer_mlyze_places;

COFFER_API coffer_status coffer_mlyze_places_new(coffer_mlyze_places **out, const coffer_mlyze *trace,
                                                 const coffer_mlyze_stats *analysis, coffer_mlyze_by by,
                                                 coffer_error *err);
COFFER_API void coffer_mlyze_places_free(coffer_mlyze_places *places);
COFFER_API size_t coffer_mlyze_places_count(const coffer_mlyze_places *places);
COFFER_API const coffer_mlyze_place_row *coffer_mlyze_places_at(const coffer_mlyze_places *places,
                                                                size_t index); /* ascending id */

/* ---- Timeline ---- */

typedef struct coffer_mlyze_timeline_opts {
    uint32_t struct_size;
    uint32_t width;            /* at most this many points */
    uint64_t begin_us, end_us; /* end UINT64_MAX = all */
    /* Decode events even where the index would do: then points also count allocations and bytes, and all
     * markers and collections are given. Without it, large compressed traces are drawn from the index, with
     * the markers that the metadata lists. */
    bool exact;
    uint32_t threads;
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mlyze_timeline_opts;

#define COFFER_MLYZE_TIMELINE_OPTS_INIT                                              \
    {                                                                                \
        sizeof(coffer_mlyze_timeline_opts), 512, 0, UINT64_MAX, false, 0, NULL, NULL \
    }

typedef struct coffer_mlyze_point {
    uint64_t time_us;                 /* where the point begins */
    uint64_t live_bytes, live_allocs; /* at its end */
    uint64_t high_bytes;              /* highest inside it */
    uint64_t events;
    uint64_t allocs, allocated_bytes; /* 0 when drawn from the index */
} coffer_mlyze_point;

typedef struct coffer_mlyze_timeline {
    uint64_t begin_us, end_us; /* points are of equal width */
    size_t count;
    coffer_mlyze_point *points;
    size_t mark_count;
    coffer_mlyze_mark *marks;
    bool exact; /* events were decoded */
} coffer_mlyze_timeline;

COFFER_API coffer_status coffer_mlyze_timeline_new(coffer_mlyze_timeline **out, const coffer_mlyze *trace,
                                                   const coffer_mlyze_timeline_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_timeline_free(coffer_mlyze_timeline *timeline);

/* ---- Comparison ---- */

typedef enum coffer_mlyze_measure {
    COFFER_MLYZE_MEASURE_PEAK = 0,
    COFFER_MLYZE_MEASURE_LIVE = 1,  /* at the end: leaks */
    COFFER_MLYZE_MEASURE_TOTAL = 2, /* allocated in all */
    COFFER_MLYZE_MEASURE_TEMPORARY = 3
} coffer_mlyze_measure;

typedef struct coffer_mlyze_diff_opts {
    uint32_t struct_size;
    coffer_mlyze_measure measure;
    bool lines;         /* a frame is matched by its line too, not by function and file alone */
    bool no_markers;    /* do not compare phase by phase even when both traces have the same markers */
    uint64_t max_shown; /* rows of each kind */
    uint32_t threads;
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mlyze_diff_opts;

#define COFFER_MLYZE_DIFF_OPTS_INIT                                                                \
    {                                                                                              \
        sizeof(coffer_mlyze_diff_opts), COFFER_MLYZE_MEASURE_PEAK, false, false, 20, 0, NULL, NULL \
    }

/* out gets "equal", totals of both, "grew_bytes", and the lists "grew", "shrank", "new", "gone" of stacks;
 * with common markers also "phases". */
COFFER_API coffer_status coffer_mlyze_diff(coffer_node *out, const coffer_mlyze *a, const coffer_mlyze *b,
                                           const coffer_mlyze_diff_opts *opts, coffer_error *err);

/* ---- Writing ---- */

/* A writer serves one thread at a time. A call that is refused for its arguments changes nothing; after a
 * failed write every further call gives that error. */
typedef struct coffer_mlyze_writer coffer_mlyze_writer;

typedef struct coffer_mlyze_writer_opts {
    uint32_t struct_size;
    bool plain; /* version 1 without blocks, checksums, index and extension events */
    int level;  /* 0 = fast LZ4, the default; 1 to 12 = LZ4 HC, smaller and slower to write */
    bool no_checksums;
    bool no_index;  /* do not write PATH.idx */
    bool exclusive; /* fail with COFFER_E_EXISTS instead of replacing a file */
    /* Events and strings go to PATH.part and PATH.strings as they come, so that a recording survives even
     * SIGKILL: coffer_repair or coffer_mlyze_recover makes a trace of them. Else under temporary names. */
    bool recording;
    uint64_t start_time_us; /* since the epoch */
    const char *extra_json; /* an object whose keys go into the metadata: command, pid, host …; NULL = none */
    const coffer_limits *limits;
} coffer_mlyze_writer_opts;

#define COFFER_MLYZE_WRITER_OPTS_INIT                                                         \
    {                                                                                         \
        sizeof(coffer_mlyze_writer_opts), false, 0, false, false, false, false, 0, NULL, NULL \
    }

COFFER_API coffer_status coffer_mlyze_writer_create(coffer_mlyze_writer **out, const char *path,
                                                    const coffer_mlyze_writer_opts *opts, coffer_error *err);

/* Each gives the id of the equal one that is there, or a new one. */
COFFER_API coffer_status coffer_mlyze_writer_add_file(uint64_t *id, coffer_mlyze_writer *writer,
                                                      const char *path, coffer_error *err);
COFFER_API coffer_status coffer_mlyze_writer_add_function(uint64_t *id, coffer_mlyze_writer *writer,
                                                          const char *name, coffer_error *err);
/* Names under ids of the caller's choice, for copies of traces; COFFER_E_DUPLICATE when the id has another.
 */
COFFER_API coffer_status coffer_mlyze_writer_add_file_id(coffer_mlyze_writer *writer, uint64_t id,
                                                         const char *path, coffer_error *err);
COFFER_API coffer_status coffer_mlyze_writer_add_function_id(coffer_mlyze_writer *writer, uint64_t id,
                                                             const char *name, coffer_error *err);
/* A stack from the outside in: the frame `frame` called from the stack `caller` (COFFER_MLYZE_NO_STACK for
 * the outermost). Equal ones are one; stacks share what they have in common. */
#define COFFER_MLYZE_NO_STACK UINT64_MAX
COFFER_API coffer_status coffer_mlyze_writer_add_call(uint64_t *id, coffer_mlyze_writer *writer,
                                                      uint64_t caller, const coffer_mlyze_frame *frame,
                                                      coffer_error *err);
/* A whole stack, innermost frame first. */
COFFER_API coffer_status coffer_mlyze_writer_add_stack(uint64_t *id, coffer_mlyze_writer *writer,
                                                       const coffer_mlyze_frame *frames, size_t depth,
                                                       coffer_error *err);
/* A whole stack under an id of the caller's choice. */
COFFER_API coffer_status coffer_mlyze_writer_add_stack_id(coffer_mlyze_writer *writer, uint64_t id,
                                                          const coffer_mlyze_frame *frames, size_t depth,
                                                          coffer_error *err);

/* Events, with absolute times (µs since the start) that never decrease: one that does is taken as the time
 * of the event before. */
COFFER_API coffer_status coffer_mlyze_writer_put_alloc(coffer_mlyze_writer *writer, uint64_t time,
                                                       uint64_t address, uint64_t size, uint64_t stack,
                                                       uint16_t thread, coffer_error *err);
COFFER_API coffer_status coffer_mlyze_writer_put_free(coffer_mlyze_writer *writer, uint64_t time,
                                                      uint64_t address, coffer_error *err);
COFFER_API coffer_status coffer_mlyze_writer_put_gc(coffer_mlyze_writer *writer, uint64_t time,
                                                    uint64_t objects, uint64_t bytes, coffer_error *err);
COFFER_API coffer_status coffer_mlyze_writer_put_marker(coffer_mlyze_writer *writer, uint64_t time,
                                                        uint64_t name, coffer_error *err);
/* Many events of any type at once, columns as coffer_mlyze_read_block gives them: the fastest way. Extension
 * events into a plain trace are COFFER_E_UNSUPPORTED. */
COFFER_API coffer_status coffer_mlyze_writer_put_events(coffer_mlyze_writer *writer,
                                                        const coffer_mlyze_events *events, coffer_error *err);
/* Makes what was added so far survive the death of the process (recording) or of the machine (sync). */
COFFER_API coffer_status coffer_mlyze_writer_flush(coffer_mlyze_writer *writer, bool sync, coffer_error *err);
/* Makes one file of everything, durable and visible, and frees the writer, whether it succeeds or not: on
 * failure the old file (or none) stands as before; the part files of a recording stay. */
COFFER_API coffer_status coffer_mlyze_writer_commit(coffer_mlyze_writer *writer, coffer_error *err);
/* Frees the writer and drops what was not committed, part files too. */
COFFER_API void coffer_mlyze_writer_discard(coffer_mlyze_writer *writer);

/* Makes the trace `path` of PATH.part and PATH.strings that a killed recording left; `out` says what was
 * found and what may be missing. The parts are removed when the trace stands. */
COFFER_API coffer_status coffer_mlyze_recover(coffer_report *out, const char *path,
                                              const coffer_mlyze_writer_opts *opts, coffer_error *err);

/* Copies a trace with other blocks: compressed, plain, another level; the events stay the same bytes for
 * plain to compressed and back. Unknown extension events are carried along. */
COFFER_API coffer_status coffer_mlyze_rewrite(const coffer_mlyze *trace, const char *out_path,
                                              const coffer_mlyze_writer_opts *opts,
                                              const coffer_progress *progress, coffer_error *err);

COFFER_END_DECLS

#endif
