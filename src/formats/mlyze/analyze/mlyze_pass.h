/* One pass over a trace. Threads decode columns ahead (mlyze_pass_read.c); one loop follows the events in
 * order, pairs frees with allocations and adds everything up (mlyze_pass_follow.c). The loop finds blocks in
 * one of three ways: by address in a table, by the names that the frees of an archive have, or, when the
 * table does not fit into memory, from a temporary file that was made before (mlyze_spill.c). */
#ifndef COFFER_FORMATS_MLYZE_PASS_H
#define COFFER_FORMATS_MLYZE_PASS_H

#include "base/options.h"
#include "base/work.h"
#include "formats/mlyze/analyze/mlyze_growth.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/analyze/mlyze_rows.h"
#include "formats/mlyze/analyze/mlyze_survivors.h"
#include "formats/mlyze/archive/mlyze_archive.h"
#include "formats/mlyze/mlyze_private.h"

/* Events that are decoded together: a block, or a part of an archive block. */
typedef struct coffer__mlyze_chapter {
    size_t block;
    uint64_t from, to; /* numbers of the events that are wanted */
    coffer_mlyze_events events;
    bool lost; /* damaged */
    /* Of an archive: */
    bool begins_block, ends_block;
    bool replaces; /* has met an allocation at a live address */
    const coffer__mlyze_unpacker *unpacker;
    uint64_t first_alloc;
    uint32_t alloc_count, import_count;
} coffer__mlyze_chapter;

typedef struct coffer__mlyze_batch {
    coffer__mlyze_chapter *chapters;
    size_t count;
    bool is_archive; /* one thread decodes them all, in order */
} coffer__mlyze_batch;

/* Events where a window begins or ends, ascending. */
typedef struct coffer__mlyze_boundary {
    uint64_t event;
    bool begins_window;
    bool ends_growth_window;
} coffer__mlyze_boundary;

typedef enum coffer__mlyze_way {
    COFFER__MLYZE_BY_ADDRESS,
    COFFER__MLYZE_BY_NAME,
    COFFER__MLYZE_DIVIDE,    /* write allocations and frees to the spill, by address */
    COFFER__MLYZE_FROM_SPILL /* read there which blocks they free or replace */
} coffer__mlyze_way;

/* Blocks of a stack that are live at the end and match min_age and min_size. */
typedef struct coffer__mlyze_leftover {
    uint64_t allocs, bytes, oldest, newest; /* times of allocation */
} coffer__mlyze_leftover;

typedef struct coffer__mlyze_boundaries {
    coffer__mlyze_boundary *items;
    size_t count, next;
} coffer__mlyze_boundaries;

/* Sums over a stretch of events, for those who watch a pass. */
typedef struct coffer__mlyze_stretch {
    uint64_t events, allocs, allocated;
    coffer__wide level, top; /* at its end; the highest */
    uint64_t live, top_live; /* blocks: likewise */
} coffer__mlyze_stretch;

/* Watches a pass, in stretches that it chooses. */
typedef struct coffer__mlyze_watcher {
    void *context;
    void (*restart)(void *context);
    /* A stretch begins at this time. Returns the time of the first event that is not part of it. */
    uint64_t (*begin)(void *context, uint64_t time);
    void (*end)(void *context, const coffer__mlyze_stretch *stretch);
} coffer__mlyze_watcher;

/* How far the pass is, and the state there. */
typedef struct coffer__mlyze_state {
    size_t next_block;
    uint64_t next_event, done_events; /* planned and followed */
    size_t lost_block;                /* the last one, or SIZE_MAX */
    bool counting;                    /* the window has begun */
    uint64_t window_alloc;            /* first allocation of the window */
    uint64_t alloc_count;
    coffer__wide level, high; /* bytes: now, and the highest of the window */
    uint64_t live;            /* blocks */
    uint64_t epoch;
    uint64_t threads; /* bits that the numbers of the threads have */
    uint8_t last_type;
    uint64_t last_time;
} coffer__mlyze_state;

typedef struct coffer__mlyze_results {
    coffer_mlyze_totals totals;
    coffer_mlyze_histogram sizes, lifetimes;
    coffer__mlyze_row *rows; /* by stack */
    size_t row_capacity;
    coffer__mlyze_row *threads;
    coffer__mlyze_leftover *leftovers;
    size_t leftover_count;
    coffer_mlyze_mark *marks;
    size_t mark_count, mark_capacity;
    coffer_mlyze_phase *phases; /* the last one has not ended */
    size_t phase_count, phase_capacity;
    uint64_t *thread_names; /* by thread, from THREAD events, + 1; 0 = none. NULL = no such event */
} coffer__mlyze_results;

/* State of a pass by name. */
typedef struct coffer__mlyze_named {
    coffer__mlyze_held *blocks; /* by name, of the archive block that is followed */
    size_t capacity;
    coffer__mlyze_survivors survivors;
    bool failed; /* damage, or an allocation at a live address: run the pass by address */
} coffer__mlyze_named;

typedef struct coffer__mlyze_spill coffer__mlyze_spill;

typedef struct coffer__mlyze_pass {
    const coffer_mlyze *trace;
    const coffer__mlyze_map *map; /* of its blocks */
    coffer_mlyze_stats_opts opts;
    coffer_limits limits;
    uint64_t end_event;
    coffer__mlyze_way way;
    coffer__work *work;
    coffer__mlyze_batch batches[2];
    size_t batch_room; /* chapters in each */
    coffer__mlyze_unpacker unpackers[2];
    coffer__mlyze_budget budget;
    coffer__mlyze_live live;
    coffer__mlyze_named named;
    coffer__mlyze_spill *spill;
    coffer__mlyze_numbers stacks;
    uint64_t *last_alloc; /* by thread */
    coffer__mlyze_boundaries boundaries;
    coffer__mlyze_growth growth;
    coffer__mlyze_state state;
    coffer__mlyze_stretch stretch; /* the last one */
    coffer__mlyze_results results;
    const coffer__mlyze_watcher *watcher; /* NULL = none */
} coffer__mlyze_pass;

/* ---- Decoding (mlyze_pass_read.c) ---- */

coffer_status coffer__mlyze_make_batches(coffer__mlyze_pass *pass, coffer_error *err);
void coffer__mlyze_free_batches(coffer__mlyze_pass *pass);
/* Decodes the whole trace, and follows it. */
coffer_status coffer__mlyze_read_all(coffer__mlyze_pass *pass, coffer_error *err);

/* ---- Archives by name (mlyze_survivors.c) ---- */

/* Before and after the events of an archive block. pass->named.failed : see there. */
coffer_status coffer__mlyze_begin_names(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                        coffer_error *err);
coffer_status coffer__mlyze_end_names(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                      coffer_error *err);

/* ---- The loop (mlyze_pass_follow.c) ---- */

coffer_status coffer__mlyze_follow_chapter(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                           coffer_error *err);

/* ---- Rare events, phases (mlyze_pass_marks.c) ---- */

/* An event other than an allocation or free, at this level. */
coffer_status coffer__mlyze_note_other(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                       size_t event, coffer__wide level, coffer_error *err);
/* peak : the highest level of these allocations. */
void coffer__mlyze_add_to_phase(coffer__mlyze_pass *pass, coffer__wide peak, uint64_t allocs,
                                uint64_t allocated);
/* Ends the current phase and begins another. */
coffer_status coffer__mlyze_begin_phase(coffer__mlyze_pass *pass, uint64_t name, uint64_t event,
                                        uint64_t time, coffer__wide level, coffer_error *err);
void coffer__mlyze_end_phase(coffer__mlyze_pass *pass);

/* ---- The whole analysis (mlyze_pass_run.c) ---- */

coffer_status coffer__mlyze_pass_init(coffer__mlyze_pass *pass, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats_opts *query, coffer_error *err);
void coffer__mlyze_pass_free(coffer__mlyze_pass *pass);
/* Starts over at the first event, with empty tables and sums, and follows the whole trace. */
coffer_status coffer__mlyze_run_pass(coffer__mlyze_pass *pass, coffer__mlyze_way way, coffer_error *err);
/* Runs the analysis, in memory or, when that is too small, through a temporary file. The results are in the
 * pass. */
coffer_status coffer__mlyze_run(coffer__mlyze_pass *pass, coffer_error *err);
/* Whether the index turned out to be wrong: then the pass must be repeated. */
bool coffer__mlyze_pass_is_outdated(const coffer__mlyze_pass *pass);
/* Adds the live blocks of a table to the leftovers. */
coffer_status coffer__mlyze_collect_leftovers(coffer__mlyze_pass *pass, const coffer__mlyze_live *live,
                                              coffer_error *err);

/* ---- Windows (mlyze_pass_window.c) ---- */

/* The time of an event, or of its block if that is damaged. The trace must have a block. */
uint64_t coffer__mlyze_time_of_event(const coffer__mlyze_pass *pass, uint64_t event);
uint64_t coffer__mlyze_event_after(const coffer__mlyze_pass *pass, uint64_t time); /* the first */
/* Boundaries of the window and of the growth test. */
coffer_status coffer__mlyze_set_boundaries(coffer__mlyze_pass *pass, coffer_error *err);
/* The windows that begin or end at this event or before it. */
coffer_status coffer__mlyze_pass_boundaries(coffer__mlyze_pass *pass, uint64_t event, coffer_error *err);
/* The next boundary, or `end` if that is before it. */
uint64_t coffer__mlyze_next_stop(const coffer__mlyze_pass *pass, uint64_t end);

/* ---- Through a temporary file (mlyze_spill.c) ---- */

/* The result of pairing an allocation or a free. */
typedef struct coffer__mlyze_finding {
    enum {
        COFFER__MLYZE_FOUND_NOTHING, /* a new block, or a free of what is not live */
        COFFER__MLYZE_FOUND_AGAIN,   /* an allocation at an address that was freed before */
        COFFER__MLYZE_FOUND_BLOCK    /* the block that it frees or replaces */
    } what;
    coffer__mlyze_held block;
} coffer__mlyze_finding;

coffer_status coffer__mlyze_run_spilled(coffer__mlyze_pass *pass, coffer_error *err);
/* Writes an allocation or, without a block, a free. */
coffer_status coffer__mlyze_spill_put(coffer__mlyze_spill *spill, uint64_t hash, uint64_t address,
                                      const coffer__mlyze_held *block, coffer_error *err);
coffer_status coffer__mlyze_spill_get(coffer__mlyze_finding *out, coffer__mlyze_spill *spill, uint64_t hash,
                                      coffer_error *err);

#endif
