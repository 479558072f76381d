#ifndef COFFER_MLYZE_H
#define COFFER_MLYZE_H

#include "coffer/error.h"
#include "coffer/limits.h"
#include "coffer/progress.h"
#include "coffer/report.h"
#include "coffer/source.h"

COFFER_BEGIN_DECLS

/* MLYZE: every allocation and release of a program, in order, with the call stack of each allocation.
 * docs/formats/mlyze.md describes the file. Times are microseconds since the start of the recording.
 *
 * coffer_mlyze_frame, coffer_mlyze_events and coffer_mlyze_live_block are packed for speed and never grow;
 * every other struct may gain members at its end. */

typedef enum coffer_mlyze_type {
    COFFER_MLYZE_ALLOC = 0,
    COFFER_MLYZE_FREE = 1,
    COFFER_MLYZE_GC = 2,
    COFFER_MLYZE_MARKER = 3,
    COFFER_MLYZE_OBJECT = 4,
    COFFER_MLYZE_REFERENCE = 5,
    COFFER_MLYZE_SNAPSHOT = 6,
    COFFER_MLYZE_THREAD = 7,
    COFFER_MLYZE_RSS = 8 /* higher numbers are unknown extensions: skipped and counted */
} coffer_mlyze_type;

/* ---- Reading ---- */

typedef struct coffer_mlyze coffer_mlyze;

/* The order in which the metadata of a file lists the frames of a stack. The functions of this header always
 * give and take the innermost frame first. */
typedef enum coffer_mlyze_order {
    COFFER_MLYZE_ORDER_AUTO = 0,
    COFFER_MLYZE_ORDER_OUTERMOST_FIRST = 1,
    COFFER_MLYZE_ORDER_INNERMOST_FIRST = 2
} coffer_mlyze_order;

typedef struct coffer_mlyze_open_opts {
    uint32_t struct_size;
    /* The index file to load, and to write after the index had to be built; failing to write it is not an
     * error. It is derived data: a missing, stale or damaged one is built again. NULL = build the index in
     * memory when it is needed. */
    const char *index_path;
    const coffer_limits *limits;
    coffer_mlyze_order stack_order; /* for files that do not say it; AUTO = as described at
                                     * coffer_mlyze_stack_order */
} coffer_mlyze_open_opts;

#define COFFER_MLYZE_OPEN_OPTS_INIT                                         \
    {                                                                       \
        sizeof(coffer_mlyze_open_opts), NULL, NULL, COFFER_MLYZE_ORDER_AUTO \
    }
COFFER_API void coffer_mlyze_open_opts_init(coffer_mlyze_open_opts *opts, uint32_t struct_size);

/* Opens a trace. src : borrowed, must outlive the handle.     opts : NULL = defaults.
 * Reads the header and the metadata, but no events: damaged events are found when they are read
 * (coffer_mlyze_damage). Thread safety: after success, all calls with a const handle may run concurrently. */
COFFER_API_STATUS coffer_mlyze_open(coffer_mlyze **out, coffer_source *src,
                                    const coffer_mlyze_open_opts *opts, coffer_error *err);
/* Opens a trace by path ("-" is standard input). The handle owns its source. */
COFFER_API_STATUS coffer_mlyze_open_path(coffer_mlyze **out, const char *path,
                                         const coffer_mlyze_open_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_close(coffer_mlyze *trace);

/* ---- Recordings and profiles of other programs ---- */

typedef struct coffer_mlyze_profile_opts {
    uint32_t struct_size;
    const char *kind; /* "heaptrack", "massif", "dhat", "pprof", "memray", "tracemalloc" or "collapsed"; NULL
                         = by content and name */
    bool partial;     /* read a truncated recording as far as it goes */
    bool merge;       /* a profile of more than max_events: let each event represent several blocks; bytes
                       * stay exact, counts do not. Otherwise COFFER_E_LIMIT */
    uint64_t max_events;
    coffer_mlyze_order stack_order; /* of a trace; see coffer_mlyze_open_opts */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mlyze_profile_opts;

#define COFFER_MLYZE_MAX_EVENTS (UINT64_C(1) << 22)
#define COFFER_MLYZE_PROFILE_OPTS_INIT                                                  \
    {                                                                                   \
        sizeof(coffer_mlyze_profile_opts), NULL, false, false, COFFER_MLYZE_MAX_EVENTS, \
            COFFER_MLYZE_ORDER_AUTO, NULL, NULL                                         \
    }
COFFER_API void coffer_mlyze_profile_opts_init(coffer_mlyze_profile_opts *opts, uint32_t struct_size);

/* Opens a recording or profile of another program, also one compressed with gzip or zstd, as a trace that
 * every function of this header reads. It is converted into a temporary file in $TMPDIR or /tmp, which
 * disappears with the handle. src : borrowed during the call. A trace (also compressed) is opened too.
 * Profiles have sums instead of events: their events are made up to match, and coffer_mlyze_source_of says
 * which answers come from the profile. */
COFFER_API_STATUS coffer_mlyze_open_profile(coffer_mlyze **out, coffer_source *src,
                                            const coffer_mlyze_profile_opts *opts, coffer_error *err);

/* The file of another program that a trace was made of, as its metadata says it. */
typedef struct coffer_mlyze_source_info {
    uint32_t struct_size;
    const char *format;        /* "massif"; NULL = the trace was not made of one */
    bool synthetic;            /* the events are made up to match the sums of a profile */
    const char *time_unit;     /* "instructions", "bytes"; NULL = times are microseconds */
    bool has_total;            /* the profile knows all allocations */
    bool has_peak;             /* it knows what was live at the peak */
    bool has_leaks;            /* it knows what was never freed */
    bool has_order;            /* it knows single events: lifetimes, temporaries, growth */
    uint64_t blocks_per_event; /* over 1: events represent several blocks, at most so many on average */
} coffer_mlyze_source_info;

#define COFFER_MLYZE_SOURCE_INFO_INIT                                                      \
    {                                                                                      \
        sizeof(coffer_mlyze_source_info), NULL, false, NULL, false, false, false, false, 1 \
    }
COFFER_API void coffer_mlyze_source_info_init(coffer_mlyze_source_info *info, uint32_t struct_size);
COFFER_API_STATUS coffer_mlyze_source_of(coffer_mlyze_source_info *out, const coffer_mlyze *trace,
                                         coffer_error *err);

COFFER_API uint32_t coffer_mlyze_version(const coffer_mlyze *trace);
COFFER_API uint32_t coffer_mlyze_flags(const coffer_mlyze *trace);
COFFER_API uint64_t coffer_mlyze_start_time(const coffer_mlyze *trace); /* µs since the epoch */
COFFER_API bool coffer_mlyze_compressed(const coffer_mlyze *trace);
/* How the events are stored: "plain", "lz4" or "archive". */
COFFER_API const char *coffer_mlyze_form(const coffer_mlyze *trace);
/* The name of a known set of quirks of the program that wrote the file, or NULL. "memlyze": empty tables,
 * address 0 and repeated deltas. */
COFFER_API const char *coffer_mlyze_profile_name(const coffer_mlyze *trace);
/* The metadata as stored in the file: UTF-8 JSON without the trailing spaces. Borrowed. */
COFFER_API const char *coffer_mlyze_metadata(const coffer_mlyze *trace, size_t *len);
/* The text under a key of the metadata's outermost object, such as "command" or "host"; NULL when the key is
 * missing or its value is not text. Borrowed. */
COFFER_API const char *coffer_mlyze_metadata_text(const coffer_mlyze *trace, const char *key);

/* A value of the metadata as JSON text. path : keys of objects and positions in arrays with "." between them,
 * such as "source.format" or "stack_traces.7"; "" = all of it. COFFER_E_NOT_FOUND when the trace has no such
 * value. out : NUL-terminated, coffer_free(). */
COFFER_API_STATUS coffer_mlyze_metadata_json(char **out, size_t *len, const coffer_mlyze *trace,
                                             const char *path, coffer_error *err);

/* Names are UTF-8, NUL-terminated and borrowed; NULL when the metadata does not list the id. O(1). */
COFFER_API const char *coffer_mlyze_file_name(const coffer_mlyze *trace, uint64_t id);
COFFER_API const char *coffer_mlyze_function_name(const coffer_mlyze *trace, uint64_t id);
COFFER_API const char *coffer_mlyze_thread_name(const coffer_mlyze *trace, uint16_t thread);

/* The average number of bytes between two recorded blocks of a sampled trace; 0 = every block was recorded.
 * The size of a recorded block then includes those around it: sums of bytes are estimates, and counts are
 * numbers of recorded blocks. */
COFFER_API uint64_t coffer_mlyze_sampling_bytes(const coffer_mlyze *trace);
/* With 95 % probability a sum over `allocs` recorded blocks is at most this many bytes away from the truth:
 * 1.96 √allocs intervals, less where blocks are larger than the interval. 0 without sampling. */
COFFER_API uint64_t coffer_mlyze_sampling_error(const coffer_mlyze *trace, uint64_t allocs);

typedef struct coffer_mlyze_frame {
    uint64_t file_id, line, func_id;
} coffer_mlyze_frame;

/* The order of frames in the file: what its key "stack_order" says; else outermost first, except in
 * compressed files of Coffer 0.1, which wrote the innermost frame first. *known (may be NULL) is false for a
 * plain file that Coffer 0.1 may have written: nothing in it tells. */
COFFER_API coffer_mlyze_order coffer_mlyze_stack_order(const coffer_mlyze *trace, bool *known);
COFFER_API size_t coffer_mlyze_stack_count(const coffer_mlyze *trace);
/* COFFER_MLYZE_NO_STACK past the end. */
#define COFFER_MLYZE_NO_STACK UINT64_MAX
COFFER_API uint64_t coffer_mlyze_stack_id(const coffer_mlyze *trace, size_t index);
/* Index of the stack with that id, or COFFER_INDEX_NONE. O(1). */
COFFER_API size_t coffer_mlyze_find_stack(const coffer_mlyze *trace, uint64_t id);
/* The frames of a stack, innermost first whatever the order in the file; NULL and *depth 0 past the end.
 * Borrowed. */
COFFER_API const coffer_mlyze_frame *coffer_mlyze_frames(size_t *depth, const coffer_mlyze *trace,
                                                         size_t index);
/* Writes the name of a frame as text: "grab", or with `place` "grab (grow.c:9)". A function without a name is
 * named by its place, and "?" when that is unknown too. Like snprintf: writes at most size - 1 bytes and a
 * NUL, and returns the length of the whole text. */
COFFER_API size_t coffer_mlyze_frame_text(char *out, size_t size, const coffer_mlyze *trace,
                                          const coffer_mlyze_frame *frame, bool place);

/* ---- Events, in columns ---- */

/* The meaning of a column depends on the type of the event:
 *              address   size          id             thread
 *   ALLOC      address   bytes         stack id       thread
 *   FREE       address
 *   GC                   bytes         objects
 *   MARKER                             name
 *   OBJECT     address   bytes (0 = not known) type name
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
    size_t capacity; /* rows that the memory of the columns has room for; 0 = the caller's own memory */
} coffer_mlyze_events;

#define COFFER_MLYZE_EVENTS_INIT                    \
    {                                               \
        0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0 \
    }

/* Frees the columns. A struct of zeros is valid, and may be filled and freed again. */
COFFER_API void coffer_mlyze_events_free(coffer_mlyze_events *events);

/* Every trace is a sequence of blocks of at most 65536 bytes of events: the blocks of the file, or, in a
 * plain file, pieces that the first call finds in one pass. A block of an archive has up to 2^20 events. */
typedef struct coffer_mlyze_block {
    uint32_t struct_size;
    uint64_t offset; /* in the file */
    uint64_t first_event;
    uint64_t time; /* before its first event */
    uint32_t event_count;
    uint32_t raw_size, stored_size; /* raw_size is 0 when the header of the block is damaged */
} coffer_mlyze_block;

#define COFFER_MLYZE_BLOCK_INIT                      \
    {                                                \
        sizeof(coffer_mlyze_block), 0, 0, 0, 0, 0, 0 \
    }
COFFER_API void coffer_mlyze_block_init(coffer_mlyze_block *block, uint32_t struct_size);

COFFER_API_STATUS coffer_mlyze_block_count(size_t *out, const coffer_mlyze *trace, coffer_error *err);
COFFER_API_STATUS coffer_mlyze_get_block(coffer_mlyze_block *out, const coffer_mlyze *trace, size_t index,
                                         coffer_error *err);
/* Number of whole events in the file; an event that the end of the file cuts off is not counted. */
COFFER_API_STATUS coffer_mlyze_event_count(uint64_t *out, const coffer_mlyze *trace, coffer_error *err);
/* Decodes one block. Threads may decode blocks concurrently, each into its own columns. The error of a
 * damaged block has its offset and the numbers of the lost events. */
COFFER_API_STATUS coffer_mlyze_read_block(coffer_mlyze_events *out, const coffer_mlyze *trace, size_t index,
                                          coffer_error *err);
/* The block that contains an event, or the first event at or after a time; the number of blocks when that is
 * past the end. O(log blocks). */
COFFER_API_STATUS coffer_mlyze_block_of_event(size_t *out, const coffer_mlyze *trace, uint64_t event,
                                              coffer_error *err);
COFFER_API_STATUS coffer_mlyze_block_of_time(size_t *out, const coffer_mlyze *trace, uint64_t time,
                                             coffer_error *err);
/* COFFER_OK, or the error that ends the event area early: "truncated event at offset N (K whole events before
 * it)". Everything before that offset is readable. */
COFFER_API_STATUS coffer_mlyze_damage(const coffer_mlyze *trace, coffer_error *err);

/* The damaged blocks that calls with this handle have skipped so far, and the number of events in them. Zero
 * after a pass over the whole trace means that every block was read. */
COFFER_API void coffer_mlyze_lost(uint64_t *blocks, uint64_t *events, const coffer_mlyze *trace);
/* COFFER_OK, or an error that says what an earlier repair of this file lost or could not verify. */
COFFER_API_STATUS coffer_mlyze_repaired(const coffer_mlyze *trace, coffer_error *err);

/* The index: how much was live at the start of each block. Loaded from index_path, or built by one pass over
 * the events. */
typedef struct coffer_mlyze_index_entry {
    uint64_t offset, first_event, time;
    uint64_t live_bytes, live_allocs; /* before the block's first event */
    uint64_t high_bytes;              /* high-water mark inside the block */
    uint64_t high_allocs;             /* most allocations live inside it */
} coffer_mlyze_index_entry;

typedef struct coffer_mlyze_index_opts {
    uint32_t struct_size;
    const coffer_progress *progress;
} coffer_mlyze_index_opts;

#define COFFER_MLYZE_INDEX_OPTS_INIT          \
    {                                         \
        sizeof(coffer_mlyze_index_opts), NULL \
    }
COFFER_API void coffer_mlyze_index_opts_init(coffer_mlyze_index_opts *opts, uint32_t struct_size);

/* Loads or builds the index. count : number of entries, one per block. */
COFFER_API_STATUS coffer_mlyze_load_index(size_t *count, const coffer_mlyze *trace,
                                          const coffer_mlyze_index_opts *opts, coffer_error *err);
/* NULL past the end, and before coffer_mlyze_load_index. Borrowed from the handle. */
COFFER_API const coffer_mlyze_index_entry *coffer_mlyze_index_at(const coffer_mlyze *trace, size_t index);

/* Parses a moment and finds its event number. text : "1.5s", "20ms", "300us" (a time since the start), "1234"
 * (an event), or the name of a marker (the first one of that name; "NAME@2" is the second). The number is
 * that of the first event at or after the moment, or the event count past the end. The error of an unknown
 * moment, COFFER_E_NOT_FOUND, lists the markers of the trace. */
COFFER_API_STATUS coffer_mlyze_find_moment(uint64_t *event, const coffer_mlyze *trace, const char *text,
                                           coffer_error *err);

/* ---- Live blocks ---- */

/* A table that pairs frees with allocations while a caller walks through the events in order. One thread at a
 * time. */
typedef struct coffer_mlyze_live coffer_mlyze_live;

typedef struct coffer_mlyze_live_block {
    uint64_t size, time;
    uint64_t tag;   /* a number of the caller's */
    uint32_t stack; /* likewise: an index of a stack, for example */
    uint16_t thread;
} coffer_mlyze_live_block;

COFFER_API_STATUS coffer_mlyze_live_new(coffer_mlyze_live **out, coffer_error *err);
COFFER_API void coffer_mlyze_live_free(coffer_mlyze_live *live);
/* Adds an allocation. When the address was live, *replaced is true and *old is the block that was there.
 * Address 0 means that the writer did not know the address: it is never live. */
COFFER_API_STATUS coffer_mlyze_live_put(bool *replaced, coffer_mlyze_live_block *old, coffer_mlyze_live *live,
                                        uint64_t address, const coffer_mlyze_live_block *block,
                                        coffer_error *err);
/* Removes the block at an address; false when none is live there. */
COFFER_API bool coffer_mlyze_live_take(coffer_mlyze_live_block *out, coffer_mlyze_live *live,
                                       uint64_t address);
/* Finds the block at an address and keeps it; false when none is live there. */
COFFER_API bool coffer_mlyze_live_get(coffer_mlyze_live_block *out, const coffer_mlyze_live *live,
                                      uint64_t address);
COFFER_API uint64_t coffer_mlyze_live_count(const coffer_mlyze_live *live);

/* ---- Statistics ---- */

typedef struct coffer_mlyze_stats_opts {
    uint32_t struct_size;
    uint64_t begin, end; /* events [begin, end); end UINT64_MAX = all. Blocks allocated before `begin` are
                          * known: their frees are paired as well */
    /* An allocation is temporary when it is freed before this many other allocations, or within this many
     * microseconds, whichever is set; 0, 0 = before the next allocation of the same thread. */
    uint64_t temporary_allocs, temporary_us;
    uint64_t min_age_us, min_size; /* of blocks that are live at the end; others are left out */
    uint32_t growth_windows;       /* number of windows for the growth test; 0 = no growth test */
    uint32_t threads;              /* 0 = one per core */
    /* limits->memory_bytes bounds the table of live blocks: a larger one spills to a temporary file. */
    const coffer_limits *limits;
    const coffer_progress *progress;
    bool reuse; /* count reused_addresses: the table then keeps every address that was ever freed */
} coffer_mlyze_stats_opts;

#define COFFER_MLYZE_STATS_OPTS_INIT                                                        \
    {                                                                                       \
        sizeof(coffer_mlyze_stats_opts), 0, UINT64_MAX, 0, 0, 0, 0, 0, 0, NULL, NULL, false \
    }
COFFER_API void coffer_mlyze_stats_opts_init(coffer_mlyze_stats_opts *opts, uint32_t struct_size);

/* Totals of the window; live and peak count every live block, no matter when it was allocated. */
typedef struct coffer_mlyze_totals {
    uint64_t events, allocs, frees, collections, markers, unknown_events;
    uint64_t total_allocated_bytes;
    uint64_t peak_bytes, peak_allocs, peak_event, peak_time_us; /* state after that event */
    uint64_t live_bytes_at_end, live_allocs_at_end;
    uint64_t duration_us;      /* time of the last event */
    uint64_t reallocs;         /* a free and an allocation at the same time by one call */
    uint64_t reused_addresses; /* allocations at an address that was freed before; 0 without opts.reuse */
    uint64_t unknown_frees,
        first_unknown_free; /* frees of addresses that are not live; number of the first */
    uint64_t double_allocs, first_double_alloc; /* allocations at a live address (except address 0) */
    uint64_t nowhere_allocs;                    /* at address 0: never paired */
    uint64_t temporary_allocs, temporary_bytes;
    uint64_t collected_objects, collected_bytes, peak_rss_bytes;
    uint64_t lost_events; /* in damaged blocks that were skipped */
    uint64_t lost_blocks;
    /* 1: the growth test used equal numbers of events instead of equal times, because the events have too
     * few different times; growth_bytes_per_s is then in bytes per event. */
    uint64_t growth_by_events;
} coffer_mlyze_totals;

/* The allocations of one stack. stack : index, or COFFER_INDEX_NONE for an id that the metadata does not list
 * (one row each). */
typedef struct coffer_mlyze_stack_row {
    size_t stack;
    uint64_t id;
    uint64_t allocs, allocated_bytes; /* in the window */
    uint64_t peak_allocs, peak_bytes; /* live at the high-water mark of the whole trace */
    uint64_t live_allocs, live_bytes; /* live at the end, after min_age and min_size */
    uint64_t oldest_us, newest_us;    /* their ages at the end of the window; 0 without any */
    uint64_t temporary_allocs, temporary_bytes;
    uint64_t freed_allocs, lifetime_us; /* freed in the window; sum of their lifetimes */
    double growth_bytes_per_s;          /* slope of live bytes over the windows; 0 without growth_windows.
                                         * Per event with totals.growth_by_events */
    double growth_fit;                  /* r², 0 to 1: how straight the rise is */
} coffer_mlyze_stack_row;

/* The allocations of one thread; peak_bytes are live at the high-water mark of the whole trace. */
typedef struct coffer_mlyze_thread_row {
    uint16_t thread;
    uint64_t allocs, allocated_bytes, live_allocs, live_bytes, peak_bytes;
    const char *name; /* by THREAD events, else as coffer_mlyze_thread_name; NULL = unknown. Borrowed from the
                       * trace */
} coffer_mlyze_thread_row;

/* Buckets are powers of two: [0], [1], [2, 4), [4, 8) … */
#define COFFER_MLYZE_BUCKETS 65
typedef struct coffer_mlyze_histogram {
    uint64_t count[COFFER_MLYZE_BUCKETS];
    uint64_t bytes[COFFER_MLYZE_BUCKETS];
} coffer_mlyze_histogram;

typedef struct coffer_mlyze_stats coffer_mlyze_stats;

/* Pairs every free with its allocation in one pass. Damaged blocks are skipped and counted. The result does
 * not depend on the number of threads. opts : NULL = the whole trace. Rows are borrowed from the handle;
 * `_at` past the end is NULL. */
COFFER_API_STATUS coffer_mlyze_stats_new(coffer_mlyze_stats **out, const coffer_mlyze *trace,
                                         const coffer_mlyze_stats_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_stats_free(coffer_mlyze_stats *stats);
COFFER_API const coffer_mlyze_totals *coffer_mlyze_stats_totals(const coffer_mlyze_stats *stats);
/* In ascending order of id. */
COFFER_API size_t coffer_mlyze_stats_stack_count(const coffer_mlyze_stats *stats);
COFFER_API const coffer_mlyze_stack_row *coffer_mlyze_stats_stack_at(const coffer_mlyze_stats *stats,
                                                                     size_t index);
/* In ascending order of thread. */
COFFER_API size_t coffer_mlyze_stats_thread_count(const coffer_mlyze_stats *stats);
COFFER_API const coffer_mlyze_thread_row *coffer_mlyze_stats_thread_at(const coffer_mlyze_stats *stats,
                                                                       size_t index);
/* Sizes of the allocations in the window. */
COFFER_API const coffer_mlyze_histogram *coffer_mlyze_stats_sizes(const coffer_mlyze_stats *stats);
/* Lifetimes of the blocks freed in the window, in microseconds. */
COFFER_API const coffer_mlyze_histogram *coffer_mlyze_stats_lifetimes(const coffer_mlyze_stats *stats);

/* Markers and collections, in order: at most limits.entries of them. */
typedef struct coffer_mlyze_mark {
    coffer_mlyze_type type; /* MARKER or GC */
    uint64_t event, time_us;
    uint64_t id;         /* name of the marker; objects of the collection */
    uint64_t bytes;      /* of the collection */
    uint64_t live_bytes; /* at that moment */
} coffer_mlyze_mark;

COFFER_API size_t coffer_mlyze_stats_mark_count(const coffer_mlyze_stats *stats);
COFFER_API const coffer_mlyze_mark *coffer_mlyze_stats_mark_at(const coffer_mlyze_stats *stats, size_t index);

/* The time between two markers: the first phase begins with the window, each further one with a marker. At
 * most limits.entries of them. */
typedef struct coffer_mlyze_phase {
    uint64_t id; /* name of the marker it begins with; UINT64_MAX for the first */
    uint64_t event, time_us, duration_us;
    uint64_t allocs, allocated_bytes;
    uint64_t peak_bytes; /* highest inside it */
    uint64_t live_bytes_at_begin, live_bytes_at_end;
} coffer_mlyze_phase;

COFFER_API size_t coffer_mlyze_stats_phase_count(const coffer_mlyze_stats *stats);
COFFER_API const coffer_mlyze_phase *coffer_mlyze_stats_phase_at(const coffer_mlyze_stats *stats,
                                                                 size_t index);

/* Which bytes of a stack are meant. */
typedef enum coffer_mlyze_measure {
    COFFER_MLYZE_MEASURE_PEAK = 0,
    COFFER_MLYZE_MEASURE_LIVE = 1,  /* at the end: leaks */
    COFFER_MLYZE_MEASURE_TOTAL = 2, /* all allocations */
    COFFER_MLYZE_MEASURE_TEMPORARY = 3
} coffer_mlyze_measure;

/* The bytes and allocations of a row or of the totals under a measure. */
COFFER_API uint64_t coffer_mlyze_stack_row_bytes(const coffer_mlyze_stack_row *row,
                                                 coffer_mlyze_measure measure);
COFFER_API uint64_t coffer_mlyze_stack_row_allocs(const coffer_mlyze_stack_row *row,
                                                  coffer_mlyze_measure measure);
COFFER_API uint64_t coffer_mlyze_totals_bytes(const coffer_mlyze_totals *totals,
                                              coffer_mlyze_measure measure);
COFFER_API uint64_t coffer_mlyze_totals_allocs(const coffer_mlyze_totals *totals,
                                               coffer_mlyze_measure measure);

/* True when the live bytes of the stack rise steadily: the slope is positive and growth_fit is at least
 * COFFER_MLYZE_GROWTH_FIT_MIN, so that the rise is neither a single step nor noise. */
#define COFFER_MLYZE_GROWTH_FIT_MIN 0.5
COFFER_API bool coffer_mlyze_stack_row_is_growing(const coffer_mlyze_stack_row *row);

/* ---- Suppressions ---- */

/* Patterns that hide known stacks, such as leaks in a library. A pattern is compared with the function and
 * file names of every frame: "*" matches any text, and a pattern without "*" matches anywhere in a name. */
typedef struct coffer_mlyze_suppressions coffer_mlyze_suppressions;

COFFER_API_STATUS coffer_mlyze_suppressions_new(coffer_mlyze_suppressions **out, coffer_error *err);
COFFER_API void coffer_mlyze_suppressions_free(coffer_mlyze_suppressions *list);
COFFER_API_STATUS coffer_mlyze_suppressions_add(coffer_mlyze_suppressions *list, const char *pattern,
                                                coffer_error *err);
/* Adds the patterns of a file, one per line, as LeakSanitizer reads them: lines that begin with "#" are
 * comments, and "leak:" before a pattern is optional. At most 1 MiB. */
COFFER_API_STATUS coffer_mlyze_suppressions_add_file(coffer_mlyze_suppressions *list, coffer_source *src,
                                                     coffer_error *err);
COFFER_API size_t coffer_mlyze_suppressions_count(const coffer_mlyze_suppressions *list);
/* Whether a pattern matches a frame of the stack; false for COFFER_INDEX_NONE. */
COFFER_API bool coffer_mlyze_suppressions_match(const coffer_mlyze_suppressions *list,
                                                const coffer_mlyze *trace, size_t stack);

/* ---- Functions and files ---- */

/* Rows summed by function or by file instead of by stack. "self" counts the innermost frame, "inclusive"
 * counts every function or file of the stack once. */
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

COFFER_API_STATUS coffer_mlyze_places_new(coffer_mlyze_places **out, const coffer_mlyze *trace,
                                          const coffer_mlyze_stats *stats, coffer_mlyze_by by,
                                          coffer_error *err);
typedef struct coffer_mlyze_places_opts {
    uint32_t struct_size;
    coffer_mlyze_by by;
    const coffer_mlyze_suppressions *focus;  /* only stacks that match; NULL or empty = all */
    const coffer_mlyze_suppressions *ignore; /* without stacks that match; NULL = none */
    bool growing;                            /* only stacks that grow */
} coffer_mlyze_places_opts;

#define COFFER_MLYZE_PLACES_OPTS_INIT                                                 \
    {                                                                                 \
        sizeof(coffer_mlyze_places_opts), COFFER_MLYZE_BY_FUNCTION, NULL, NULL, false \
    }
COFFER_API void coffer_mlyze_places_opts_init(coffer_mlyze_places_opts *opts, uint32_t struct_size);
/* The same for some of the stacks. */
COFFER_API_STATUS coffer_mlyze_places_select(coffer_mlyze_places **out, const coffer_mlyze *trace,
                                             const coffer_mlyze_stats *stats,
                                             const coffer_mlyze_places_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_places_free(coffer_mlyze_places *places);
/* In ascending order of id. */
COFFER_API size_t coffer_mlyze_places_count(const coffer_mlyze_places *places);
COFFER_API const coffer_mlyze_place_row *coffer_mlyze_places_at(const coffer_mlyze_places *places,
                                                                size_t index);

/* ---- Stack tree ---- */

/* The stacks merged by their common frames, for flame graphs: each node has the bytes of its frame and of
 * everything below it. */
typedef struct coffer_mlyze_tree coffer_mlyze_tree;

typedef struct coffer_mlyze_tree_opts {
    uint32_t struct_size;
    coffer_mlyze_measure measure; /* stacks without allocations under it are left out */
    bool lines;                   /* frames of one function at different lines are different nodes */
    bool inverted;      /* the innermost frames are the children of the root, their callers below them */
    uint32_t max_depth; /* deeper frames are counted with the last frame kept (default 512) */
    const coffer_mlyze_suppressions *focus;  /* only stacks that match; NULL or empty = all */
    const coffer_mlyze_suppressions *ignore; /* without stacks that match; NULL = none */
} coffer_mlyze_tree_opts;

#define COFFER_MLYZE_TREE_OPTS_INIT                                                                        \
    {                                                                                                      \
        sizeof(coffer_mlyze_tree_opts), COFFER_MLYZE_MEASURE_PEAK, false, false, UINT32_C(512), NULL, NULL \
    }
COFFER_API void coffer_mlyze_tree_opts_init(coffer_mlyze_tree_opts *opts, uint32_t struct_size);

typedef struct coffer_mlyze_tree_node {
    size_t parent, first_child, next_sibling; /* COFFER_INDEX_NONE = none; the largest child is first */
    size_t child_count;
    uint32_t depth;           /* 0 for the root */
    uint64_t bytes, allocs;   /* with everything below */
    uint64_t own_bytes;       /* of stacks that end here */
    const char *name;         /* coffer_mlyze_frame_text with place = opts.lines; "all" for the root */
    coffer_mlyze_frame frame; /* ids are UINT64_MAX for the root and for stacks that are not listed */
    const char *place;        /* "grow.c:9", "grow.c" or "" */
    /* The bytes in the first and in the second tree of a comparison; in other trees 0 and `bytes`. */
    uint64_t before_bytes, after_bytes;
} coffer_mlyze_tree_node;

/* trace : borrowed during the call only; names are copied. */
COFFER_API_STATUS coffer_mlyze_tree_new(coffer_mlyze_tree **out, const coffer_mlyze *trace,
                                        const coffer_mlyze_stats *stats, const coffer_mlyze_tree_opts *opts,
                                        coffer_error *err);
/* Two trees as one, for a differential flame graph: nodes match by their names and those of their callers.
 * `bytes` of a node has room for both, so that what is gone stays visible: those of its children, and the
 * larger of the bytes that end in it. a, b : borrowed during the call only. */
COFFER_API_STATUS coffer_mlyze_tree_diff(coffer_mlyze_tree **out, const coffer_mlyze_tree *a,
                                         const coffer_mlyze_tree *b, coffer_error *err);
COFFER_API void coffer_mlyze_tree_free(coffer_mlyze_tree *tree);
COFFER_API size_t coffer_mlyze_tree_count(const coffer_mlyze_tree *tree);
/* Node 0 is the root; NULL past the end. */
COFFER_API const coffer_mlyze_tree_node *coffer_mlyze_tree_at(const coffer_mlyze_tree *tree, size_t index);
/* The next node in depth-first order, parents before children; COFFER_INDEX_NONE after the last. */
COFFER_API size_t coffer_mlyze_tree_next(const coffer_mlyze_tree *tree, size_t index);
COFFER_API uint32_t coffer_mlyze_tree_depth(const coffer_mlyze_tree *tree); /* of the deepest node */

/* ---- Timeline ---- */

typedef struct coffer_mlyze_timeline_opts {
    uint32_t struct_size;
    uint32_t width;            /* maximum number of points */
    uint64_t begin_us, end_us; /* end UINT64_MAX = all */
    /* Decode the events even where the index is precise enough: then points also count allocations and bytes,
     * and all markers and collections are listed. Otherwise large compressed traces use the index, with the
     * markers that the metadata lists. */
    bool exact;
    uint32_t threads; /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mlyze_timeline_opts;

#define COFFER_MLYZE_TIMELINE_OPTS_INIT                                              \
    {                                                                                \
        sizeof(coffer_mlyze_timeline_opts), 512, 0, UINT64_MAX, false, 0, NULL, NULL \
    }
COFFER_API void coffer_mlyze_timeline_opts_init(coffer_mlyze_timeline_opts *opts, uint32_t struct_size);

typedef struct coffer_mlyze_point {
    uint64_t time_us;                 /* start of the point */
    uint64_t live_bytes, live_allocs; /* at its end */
    uint64_t high_bytes;              /* highest inside it */
    uint64_t events;
    uint64_t allocs, allocated_bytes; /* 0 when the timeline is not exact */
    uint64_t high_allocs;             /* most blocks live inside it */
} coffer_mlyze_point;

/* Live memory over time, in points of equal width. */
typedef struct coffer_mlyze_timeline coffer_mlyze_timeline;

COFFER_API_STATUS coffer_mlyze_timeline_new(coffer_mlyze_timeline **out, const coffer_mlyze *trace,
                                            const coffer_mlyze_timeline_opts *opts, coffer_error *err);
COFFER_API void coffer_mlyze_timeline_free(coffer_mlyze_timeline *timeline);
COFFER_API uint64_t coffer_mlyze_timeline_begin_us(const coffer_mlyze_timeline *timeline);
COFFER_API uint64_t coffer_mlyze_timeline_end_us(const coffer_mlyze_timeline *timeline);
/* Whether events were decoded. */
COFFER_API bool coffer_mlyze_timeline_is_exact(const coffer_mlyze_timeline *timeline);
COFFER_API size_t coffer_mlyze_timeline_count(const coffer_mlyze_timeline *timeline);
COFFER_API const coffer_mlyze_point *coffer_mlyze_timeline_at(const coffer_mlyze_timeline *timeline,
                                                              size_t index);
/* Markers and collections of the timeline, in order. */
COFFER_API size_t coffer_mlyze_timeline_mark_count(const coffer_mlyze_timeline *timeline);
COFFER_API const coffer_mlyze_mark *coffer_mlyze_timeline_mark_at(const coffer_mlyze_timeline *timeline,
                                                                  size_t index);

/* ---- Comparison ---- */

typedef struct coffer_mlyze_diff_opts {
    uint32_t struct_size;
    coffer_mlyze_measure measure;
    bool lines;         /* frames match by line too, not by function and file alone */
    bool no_markers;    /* do not compare phases even when both traces have the same markers */
    uint64_t max_shown; /* maximum number of rows of each kind */
    uint32_t threads;   /* 0 = one per core */
    const coffer_limits *limits;
    const coffer_progress *progress;
} coffer_mlyze_diff_opts;

#define COFFER_MLYZE_DIFF_OPTS_INIT                                                                \
    {                                                                                              \
        sizeof(coffer_mlyze_diff_opts), COFFER_MLYZE_MEASURE_PEAK, false, false, 20, 0, NULL, NULL \
    }
COFFER_API void coffer_mlyze_diff_opts_init(coffer_mlyze_diff_opts *opts, uint32_t struct_size);

/* out gets "equal", the totals of both, "grew_bytes", and the lists "grew", "shrank", "new" and "gone" of
 * stacks; with common markers also "phases". */
COFFER_API_STATUS coffer_mlyze_diff(coffer_node *out, const coffer_mlyze *a, const coffer_mlyze *b,
                                    const coffer_mlyze_diff_opts *opts, coffer_error *err);

/* ---- Writing ---- */

/* A writer may be used by one thread at a time. A call with invalid arguments fails and changes nothing;
 * after a failed write every further call returns the same error. */
typedef struct coffer_mlyze_writer coffer_mlyze_writer;

typedef struct coffer_mlyze_writer_opts {
    uint32_t struct_size;
    bool plain; /* version 1 without blocks, checksums, index and extension events */
    int level;  /* 0 = fast LZ4 (default); 1 to 12 = LZ4 HC, smaller and slower to write */
    bool no_checksums;
    bool no_index;  /* do not write PATH.idx */
    bool overwrite; /* replace an existing file; false = COFFER_E_EXISTS */
    /* Write events and names to PATH.part and PATH.strings as they arrive, so that a recording survives even
     * SIGKILL: coffer_repair or coffer_mlyze_recover turns them into a trace. Otherwise they go to a
     * temporary file. */
    bool recording;
    uint64_t start_time_us; /* since the epoch */
    const char
        *extra_json; /* an object whose keys are added to the metadata: command, pid, host …; NULL = none */
    const coffer_limits *limits;
    const coffer_progress *progress; /* used by coffer_mlyze_rewrite */
    bool drop_extensions;            /* coffer_mlyze_rewrite leaves out extension events */
    /* Write archive blocks, the smallest form: columns coded separately, and zstd. `level` is then that of
     * zstd, 1 to 19 (0 = 9). A recording becomes an archive when it is committed. */
    bool archive;
} coffer_mlyze_writer_opts;

#define COFFER_MLYZE_WRITER_OPTS_INIT                                                                       \
    {                                                                                                       \
        sizeof(coffer_mlyze_writer_opts), false, 0, false, false, false, false, 0, NULL, NULL, NULL, false, \
            false                                                                                           \
    }
COFFER_API void coffer_mlyze_writer_opts_init(coffer_mlyze_writer_opts *opts, uint32_t struct_size);

COFFER_API_STATUS coffer_mlyze_writer_create(coffer_mlyze_writer **out, const char *path,
                                             const coffer_mlyze_writer_opts *opts, coffer_error *err);

/* Each returns the id of the existing equal entry, or a new id. */
COFFER_API_STATUS coffer_mlyze_writer_add_file(uint64_t *id, coffer_mlyze_writer *writer, const char *path,
                                               coffer_error *err);
COFFER_API_STATUS coffer_mlyze_writer_add_function(uint64_t *id, coffer_mlyze_writer *writer,
                                                   const char *name, coffer_error *err);
/* Names under ids that the caller chooses, to copy a trace; COFFER_E_DUPLICATE when the id has another name.
 */
COFFER_API_STATUS coffer_mlyze_writer_add_file_id(coffer_mlyze_writer *writer, uint64_t id, const char *path,
                                                  coffer_error *err);
COFFER_API_STATUS coffer_mlyze_writer_add_function_id(coffer_mlyze_writer *writer, uint64_t id,
                                                      const char *name, coffer_error *err);
/* Builds a stack from the outermost frame: `frame` is called from the stack `caller` (COFFER_MLYZE_NO_STACK
 * for the outermost). Equal stacks get the same id, and stacks share the frames they have in common. */
COFFER_API_STATUS coffer_mlyze_writer_add_call(uint64_t *id, coffer_mlyze_writer *writer, uint64_t caller,
                                               const coffer_mlyze_frame *frame, coffer_error *err);
/* A whole stack, innermost frame first. */
COFFER_API_STATUS coffer_mlyze_writer_add_stack(uint64_t *id, coffer_mlyze_writer *writer,
                                                const coffer_mlyze_frame *frames, size_t depth,
                                                coffer_error *err);
/* A whole stack under an id that the caller chooses. */
COFFER_API_STATUS coffer_mlyze_writer_add_stack_id(coffer_mlyze_writer *writer, uint64_t id,
                                                   const coffer_mlyze_frame *frames, size_t depth,
                                                   coffer_error *err);

/* Events. Times are µs since the start and must not decrease: an earlier time is replaced by the time of the
 * previous event. */
COFFER_API_STATUS coffer_mlyze_writer_put_alloc(coffer_mlyze_writer *writer, uint64_t time, uint64_t address,
                                                uint64_t size, uint64_t stack, uint16_t thread,
                                                coffer_error *err);
COFFER_API_STATUS coffer_mlyze_writer_put_free(coffer_mlyze_writer *writer, uint64_t time, uint64_t address,
                                               coffer_error *err);
COFFER_API_STATUS coffer_mlyze_writer_put_gc(coffer_mlyze_writer *writer, uint64_t time, uint64_t objects,
                                             uint64_t bytes, coffer_error *err);
COFFER_API_STATUS coffer_mlyze_writer_put_marker(coffer_mlyze_writer *writer, uint64_t time, uint64_t name,
                                                 coffer_error *err);
/* Adds many events of any type, with the columns of coffer_mlyze_read_block: the fastest way. Extension
 * events in a plain trace are COFFER_E_UNSUPPORTED. */
COFFER_API_STATUS coffer_mlyze_writer_put_events(coffer_mlyze_writer *writer,
                                                 const coffer_mlyze_events *events, coffer_error *err);
/* Makes everything added so far survive a crash of the process (when recording) or of the machine (with
 * sync). */
COFFER_API_STATUS coffer_mlyze_writer_flush(coffer_mlyze_writer *writer, bool sync, coffer_error *err);
/* Finishes the file, makes it durable and visible, and frees the writer, whether it succeeds or not. After a
 * failure the previous file, if any, is unchanged, and the part files of a recording are kept. */
COFFER_API_STATUS coffer_mlyze_writer_commit(coffer_mlyze_writer *writer, coffer_error *err);
/* Frees the writer and deletes everything that was not committed, part files included. */
COFFER_API void coffer_mlyze_writer_discard(coffer_mlyze_writer *writer);

/* Builds the trace `path` from the PATH.part and PATH.strings that a killed recording left, and then deletes
 * them. `out` gets a finding for everything that may be missing. */
COFFER_API_STATUS coffer_mlyze_recover(coffer_report *out, const char *path,
                                       const coffer_mlyze_writer_opts *opts, coffer_error *err);

/* Copies a trace with other blocks: compressed, plain, another level. The bytes of the events stay the same
 * from plain to compressed and back; unknown extension events are copied unchanged. */
COFFER_API_STATUS coffer_mlyze_rewrite(const coffer_mlyze *trace, const char *out_path,
                                       const coffer_mlyze_writer_opts *opts, coffer_error *err);

COFFER_END_DECLS

#include "coffer/mlyze_heap.h"

#endif
