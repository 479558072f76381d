/* One pass over a trace, in batches of pieces (blocks, or parts of them). Every batch takes these steps:
 *
 *   decode   one piece:  columns, and a list of its allocations and frees for each shard
 *   join     one thread: what depends on the previous piece (rows of new stacks, next allocations of threads)
 *   pair     one shard of the addresses: pairs frees with allocations, sums by stack and thread
 *   level    one piece:  its sum and its highest level, relative to its start
 *   settle   one thread: levels of the whole trace, a new high-water mark; then corrects the rows after it
 *
 * All sums are sums of integers, so that no result depends on the number of threads. */
#ifndef COFFER_FORMATS_MLYZE_PASS_H
#define COFFER_FORMATS_MLYZE_PASS_H

#include "base/options.h"
#include "base/work.h"
#include "formats/mlyze/analyze/mlyze_growth.h"
#include "formats/mlyze/analyze/mlyze_live.h"
#include "formats/mlyze/analyze/mlyze_rows.h"
#include "formats/mlyze/analyze/mlyze_spill.h"
#include "formats/mlyze/archive/mlyze_archive.h"
#include "formats/mlyze/mlyze_private.h"

#define COFFER__MLYZE_MAX_SHARDS 16
#define COFFER__MLYZE_NO_EVENT UINT32_MAX
#define COFFER__MLYZE_SEGMENT 4096 /* events of a piece of an archive block */

/* Values of the column `type` after pairing; other events keep their type. */
enum {
    COFFER__MLYZE_PAIRED_ALLOC = COFFER_MLYZE_ALLOC,
    COFFER__MLYZE_PAIRED_FREE = COFFER_MLYZE_FREE, /* size, thread and row are those of the allocation */
    COFFER__MLYZE_REPLACING =
        0xfd, /* alloc at a live address: its column `address` is an index in the shard's `replaced` */
    COFFER__MLYZE_NOWHERE = 0xfe, /* alloc of address 0 */
    COFFER__MLYZE_UNPAIRED = 0xff /* free of what is not live, or of address 0 */
};

typedef struct coffer__mlyze_span {
    uint16_t thread, first, last; /* the thread's first and last allocation in the piece */
} coffer__mlyze_span;

/* The state of a piece at one of its marks. */
typedef struct coffer__mlyze_stop_over {
    coffer__wide level, high;   /* relative to the start of the piece; high : since the previous mark */
    uint64_t allocs, allocated; /* since the previous mark; only in a piece with markers */
} coffer__mlyze_stop_over;

typedef struct coffer__mlyze_piece {
    size_t block;
    uint64_t from, to;          /* the numbers of the events that are wanted */
    coffer_mlyze_events events; /* of the whole block */
    size_t begin, end;          /* those that are wanted */
    uint64_t lost;
    uint32_t *row;    /* column: the stack's row */
    uint32_t *order;  /* column: the next allocation of the same thread, or allocations before it */
    uint16_t *listed; /* events for each shard: those of shard s begin at s × capacity */
    size_t capacity;  /* of these columns */
    size_t list_count[COFFER__MLYZE_MAX_SHARDS + 1]; /* the last one for events that no shard takes */
    uint16_t *marks;                                 /* events other than allocations and frees */
    size_t mark_count, mark_capacity;
    coffer__mlyze_stop_over *stops; /* one for each mark, and one for the end */
    size_t stop_capacity;
    bool has_markers;
    coffer__mlyze_span *spans;
    size_t span_count, span_capacity;
    bool has_unlisted;              /* stacks that have no row yet */
    uint64_t allocs, allocs_before; /* before : in the pass */
    uint64_t frees, reallocs, allocated;
    uint8_t first_type, last_type; /* before pairing */
    coffer__wide sum, high;        /* level at its end and its maximum, relative to its start */
    size_t high_at;
} coffer__mlyze_piece;

/* The events of a piece that belong to a shard; NULL for a piece without events. */
static inline const uint16_t *coffer__mlyze_listed(const coffer__mlyze_piece *piece, size_t shard)
{
    return piece->listed ? piece->listed + shard * piece->capacity : NULL;
}

typedef struct coffer__mlyze_batch {
    coffer__mlyze_piece *pieces;
    size_t count;
    uint64_t first_piece; /* numbers of pieces in the pass */
    uint64_t ends_at;     /* the event after it */
} coffer__mlyze_batch;

typedef struct coffer__mlyze_shard {
    coffer__mlyze_live live;
    coffer__mlyze_row *rows; /* by stack */
    size_t row_capacity;
    coffer__mlyze_row *threads;
    coffer__mlyze_held *replaced; /* of this batch */
    size_t replaced_count, replaced_capacity;
    uint64_t unknown_frees, first_unknown_free, double_allocs, first_double_alloc;
    uint64_t nowhere_allocs, reused;
    coffer_mlyze_histogram sizes, lifetimes;
    coffer__mlyze_stream *streams; /* when spilled: written to the first, or read from all, by hash */
    size_t stream_count;
    coffer__mlyze_budget budget; /* when spilled */
    bool overflowed;             /* its table was too large: the stream ends in the middle */
} coffer__mlyze_shard;

/* Events where a batch has to end, ascending. */
typedef struct coffer__mlyze_boundary {
    uint64_t event;
    bool begins_window;
    bool ends_growth_window;
} coffer__mlyze_boundary;

typedef enum coffer__mlyze_pass_kind {
    COFFER__MLYZE_IN_MEMORY, /* tables pair, rows are summed */
    COFFER__MLYZE_SPILL,     /* tables pair a part of the addresses and write their findings to a file */
    COFFER__MLYZE_UNSPILL    /* the findings are read from the file, rows are summed */
} coffer__mlyze_pass_kind;

/* Blocks of a stack that are live at the end and match min_age and min_size. */
typedef struct coffer__mlyze_leftover {
    uint64_t allocs, bytes, oldest, newest; /* times of allocation */
} coffer__mlyze_leftover;

/* The shards of a pass, and the hashes that each takes. */
typedef struct coffer__mlyze_shards {
    coffer__mlyze_shard *items;
    size_t count, max;
    uint64_t low[COFFER__MLYZE_MAX_SHARDS], high[COFFER__MLYZE_MAX_SHARDS]; /* included; ascending */
    bool sees_all; /* there is one shard, and it takes every address */
} coffer__mlyze_shards;

/* Where batches end, and which boundary is next. */
typedef struct coffer__mlyze_boundaries {
    coffer__mlyze_boundary *items;
    size_t count, next;
} coffer__mlyze_boundaries;

/* The allocations of each thread, to tell whether a block was freed before the next one. */
typedef struct coffer__mlyze_chains {
    uint32_t **span_of; /* for each worker and thread number: its span in the piece, from 1 */
    bool **seen_by;     /* for each worker and thread number: whether it has allocated */
    /* Allocations as piece << 16 | event: the last one before the batch, and the first and last ones in it
     * (numbers of pieces in the batch). */
    uint64_t *last_before;
    uint32_t *first_here, *last_here;
    uint16_t *threads_here;
    size_t threads_here_count;
} coffer__mlyze_chains;

/* How far the pass is. */
typedef struct coffer__mlyze_course {
    size_t next_block;
    uint64_t next_event, end_event, done_events;
    uint64_t piece_count, alloc_count; /* planned and joined so far */
    uint64_t settled_pieces, settled_allocs;
} coffer__mlyze_course;

/* The state after the last settled batch. */
typedef struct coffer__mlyze_state {
    bool counting;                       /* the window has begun */
    uint64_t window_piece, window_alloc; /* first piece and allocation of the window */
    coffer__wide level, high;            /* now, and the highest of the window */
    uint64_t epoch;
    uint64_t tail_after; /* the high-water mark of this batch: piece << 16 | event */
    uint8_t last_type;
    uint64_t last_time;
} coffer__mlyze_state;

/* The results of the pass, except the sums of the shards. */
typedef struct coffer__mlyze_results {
    coffer_mlyze_totals totals;
    coffer__mlyze_leftover *leftovers;
    size_t leftover_count;
    coffer_mlyze_mark *marks;
    size_t mark_count, mark_capacity;
    coffer_mlyze_phase *phases; /* the last one has not ended */
    size_t phase_count, phase_capacity;
    uint64_t *thread_names; /* by thread, from THREAD events, + 1; 0 = none. NULL = no such event */
} coffer__mlyze_results;

/* The blocks of an archive that are being decoded, piece by piece. Block b uses reader b % count. */
typedef struct coffer__mlyze_reader {
    coffer__mlyze_unpacker unpacker;
    size_t block; /* SIZE_MAX = none */
    bool failed;
} coffer__mlyze_reader;

typedef struct coffer__mlyze_readers {
    coffer__mlyze_reader *items; /* NULL = the trace is not an archive */
    size_t count;
} coffer__mlyze_readers;

typedef struct coffer__mlyze_pass {
    const coffer_mlyze *trace;
    const coffer__mlyze_map *map; /* of its blocks */
    coffer_mlyze_stats_opts opts;
    coffer_limits limits;
    coffer__mlyze_pass_kind kind;
    coffer__pool *pool;
    uint32_t threads;
    coffer__mlyze_key key;
    coffer__mlyze_budget budget;
    coffer__mlyze_spool *spool;
    coffer__mlyze_numbers stacks;
    coffer__mlyze_shards shards;
    coffer__mlyze_readers readers;
    coffer__mlyze_boundaries boundaries;
    coffer__mlyze_growth growth;
    coffer__mlyze_batch batches[2];
    size_t batch_pieces; /* room in each */
    coffer__mlyze_chains chains;
    coffer__mlyze_course course;
    coffer__mlyze_state state;
    coffer__mlyze_results results;
    /* Called in order for each paired batch before it is settled, and with NULL when the pass starts over.
     * NULL = not called. */
    coffer_status (*observe)(void *context, const struct coffer__mlyze_pass *pass,
                             const coffer__mlyze_batch *batch, coffer_error *err);
    void *observe_context;
} coffer__mlyze_pass;

/* ---- Batches (mlyze_pass_decode.c) ---- */

/* The next pieces, up to a boundary; none at the end. */
void coffer__mlyze_plan(coffer__mlyze_batch *batch, coffer__mlyze_pass *pass);
coffer_status coffer__mlyze_decode(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass,
                                   uint32_t number, uint32_t worker, coffer_error *err);
coffer_status coffer__mlyze_join(coffer__mlyze_pass *pass, coffer__mlyze_batch *batch, coffer_error *err);
/* Call after the batch was paired: its last allocations become the ones before the next batch. */
void coffer__mlyze_part_with(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch);
void coffer__mlyze_piece_free(coffer__mlyze_piece *piece);

/* ---- Archives (mlyze_pass_archive.c) ---- */

coffer_status coffer__mlyze_readers_init(coffer__mlyze_pass *pass, coffer_error *err);
/* Forgets what was decoded. */
void coffer__mlyze_readers_rewind(coffer__mlyze_pass *pass);
void coffer__mlyze_readers_free(coffer__mlyze_pass *pass);
/* The events of a piece. The pieces of a block are read in order, by one thread at a time. */
coffer_status coffer__mlyze_read_segment(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass,
                                         coffer_error *err);

/* The analysis of an archive in one loop (mlyze_pass_numbered.c), after coffer__mlyze_pass_begin with one
 * shard. *suffices : false for damage, or an allocation at a live address: then run it by addresses. */
coffer_status coffer__mlyze_run_numbered(bool *suffices, coffer__mlyze_pass *pass, coffer_error *err);

/* ---- Shards (mlyze_pass_pair.c) ---- */

/* Rows for the stacks that are known now. */
coffer_status coffer__mlyze_make_rows(coffer__mlyze_shard *shard, size_t count, coffer_error *err);

coffer_status coffer__mlyze_pair_batch(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch,
                                       size_t shard, coffer_error *err);
/* Removes the events after the high-water mark of the batch from the peak values of the rows. */
void coffer__mlyze_take_back(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch, size_t shard);

/* ---- In order (mlyze_pass_settle.c) ---- */

void coffer__mlyze_find_level(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass);
/* A mark or a rarer event, at this level. */
coffer_status coffer__mlyze_settle_other(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                         size_t event, coffer__wide level, coffer_error *err);
/* The name of a thread, if the event sets one. */
coffer_status coffer__mlyze_note_thread(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                        size_t event, coffer_error *err);
/* peak : the highest level of these allocations. */
void coffer__mlyze_add_to_phase(coffer__mlyze_pass *pass, coffer__wide peak, uint64_t allocs,
                                uint64_t allocated);
/* Ends the current phase and begins another. */
coffer_status coffer__mlyze_begin_phase(coffer__mlyze_pass *pass, uint64_t name, uint64_t event,
                                        uint64_t time, coffer__wide level, coffer_error *err);
void coffer__mlyze_end_phase(coffer__mlyze_pass *pass, uint64_t time, coffer__wide level);
/* How much an event adds to what is live. */
coffer__wide coffer__mlyze_change(const coffer__mlyze_piece *piece, size_t event,
                                  const coffer__mlyze_pass *pass);
/* Sets *has_tail when rows have to be taken back. */
coffer_status coffer__mlyze_settle(bool *has_tail, coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch,
                                   coffer_error *err);

/* ---- One pass (mlyze_pass_run.c) ---- */

/* Runs over the trace once, after coffer__mlyze_pass_begin. */
coffer_status coffer__mlyze_run_pass(coffer__mlyze_pass *pass, coffer_error *err);
/* The windows that begin or end at this event or before it. */
coffer_status coffer__mlyze_pass_boundaries(coffer__mlyze_pass *pass, uint64_t event, coffer_error *err);
/* The first boundary after the next event. */
uint64_t coffer__mlyze_next_stop(const coffer__mlyze_pass *pass);

/* ---- Setting up (mlyze_pass_setup.c, mlyze_pass_window.c) ---- */

coffer_status coffer__mlyze_pass_init(coffer__mlyze_pass *pass, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats_opts *query, coffer_error *err);
/* Starts over at the first event, with empty tables and sums. */
coffer_status coffer__mlyze_pass_begin(coffer__mlyze_pass *pass, coffer__mlyze_pass_kind kind,
                                       size_t shard_count, coffer_error *err);
void coffer__mlyze_pass_free(coffer__mlyze_pass *pass);
/* Whether the thread may have allocated; the rows of all others can be skipped. */
bool coffer__mlyze_saw_thread(const coffer__mlyze_pass *pass, size_t thread);
/* Whether the index turned out to be wrong: then the pass must be repeated. */
bool coffer__mlyze_pass_is_outdated(const coffer__mlyze_pass *pass);
/* Room for the leftovers of all stacks; then add one block that is live at the end, if it matches. */
coffer_status coffer__mlyze_make_leftovers(coffer__mlyze_pass *pass, coffer_error *err);
void coffer__mlyze_count_leftover(coffer__mlyze_pass *pass, const coffer__mlyze_held *block);
/* Adds the live blocks of a shard's table to the leftovers. */
coffer_status coffer__mlyze_collect_leftovers(coffer__mlyze_pass *pass, size_t shard, coffer_error *err);
/* Runs the whole analysis, in memory or, when that is too small, through a temporary file. The results are in
 * the pass. */
coffer_status coffer__mlyze_run(coffer__mlyze_pass *pass, coffer_error *err);
/* The same through a temporary file. */
coffer_status coffer__mlyze_run_spilled(coffer__mlyze_pass *pass, coffer_error *err);
/* The time of an event, or of its block if that is damaged. The trace must have a block. */
uint64_t coffer__mlyze_time_of_event(const coffer__mlyze_pass *pass, uint64_t event);
uint64_t coffer__mlyze_event_after(const coffer__mlyze_pass *pass, uint64_t time); /* the first */
/* Boundaries of the window and of the growth test. */
coffer_status coffer__mlyze_set_boundaries(coffer__mlyze_pass *pass, coffer_error *err);

#endif
