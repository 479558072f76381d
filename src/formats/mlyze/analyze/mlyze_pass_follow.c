/* The loop over the events. */
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

#include <string.h>

#define HOT __attribute__((always_inline)) static inline
#define AHEAD 16 /* events whose slots are being prefetched */

/* State of the loop. It is a copy, which the compiler keeps in registers. Levels are relative to `base`, so
 * that 64 bits suffice for all but huge blocks. */
typedef struct walk {
    coffer__mlyze_pass *pass;
    coffer_mlyze_events events;
    coffer__wide base, wide_high, wide_top; /* as far as huge blocks have changed them */
    int64_t level, high, top;
    uint64_t live, top_live;
    uint64_t epoch, number; /* number : of the next allocation */
    uint64_t frees, reallocs, allocs, allocated, threads;
    size_t high_at;
    uint8_t last_type;
    uint64_t last_time;
} walk;

/* The sizes of smaller blocks within the events of a chapter add up to fewer than 63 bits. */
#define HUGE_SIZE (UINT64_C(1) << 40)

static coffer__wide high_of(const walk *at)
{
    return at->wide_high > at->base + at->high ? at->wide_high : at->base + at->high;
}

static coffer__wide top_of(const walk *at)
{
    return at->wide_top > at->base + at->top ? at->wide_top : at->base + at->top;
}

/* Makes this level the base. */
static void set_base(walk *at, coffer__wide level)
{
    at->wide_high = high_of(at);
    at->wide_top = top_of(at);
    at->base = level;
    at->level = at->top = 0;
    at->high = at->wide_high - level < INT64_MAX ? (int64_t)(at->wide_high - level) : INT64_MAX;
}

/* An allocation or a free of a huge block. */
static void change_level(walk *at, coffer__wide change, size_t i)
{
    coffer__wide level = at->base + at->level + change;
    if (level > high_of(at)) {
        at->wide_high = level;
        at->high_at = i;
        at->epoch++;
    }
    set_base(at, level);
}

/* Calls that get the address of the state go through a copy, so that `at` itself can be in registers. */
#define WITH_COPY(at, call) \
    do {                    \
        walk copy = *(at);  \
        call;               \
        *(at) = copy;       \
    } while (0)

static inline unsigned bucket_of(uint64_t value)
{
    return 64 - (unsigned)__builtin_clzll(value | 1) - (value == 0);
}

static inline void count(coffer_mlyze_histogram *histogram, uint64_t value, uint64_t bytes)
{
    unsigned bucket = bucket_of(value);
    histogram->count[bucket]++;
    histogram->bytes[bucket] = coffer__mlyze_sum(histogram->bytes[bucket], bytes);
}

static void note(uint64_t *count, uint64_t *first, uint64_t event)
{
    if ((*count)++ == 0)
        *first = event;
}

/* ---- Sums ---- */

static inline void add_live(coffer__mlyze_row *row, uint64_t size, uint64_t epoch)
{
    coffer__mlyze_row_touch(row, epoch);
    row->live_allocs++;
    row->live_bytes += size;
}

static inline void remove_live(coffer__mlyze_row *row, uint64_t size, uint64_t epoch)
{
    coffer__mlyze_row_touch(row, epoch);
    row->live_allocs--;
    row->live_bytes -= size;
}

static inline void count_alloc(coffer__mlyze_row *row, uint64_t size)
{
    row->allocs++;
    row->allocated_bytes = coffer__mlyze_sum(row->allocated_bytes, size);
}

/* is_live : false for an allocation at address 0, which means unknown. */
HOT void sum_alloc(walk *at, const coffer__mlyze_held *block, size_t i, bool is_live)
{
    coffer__mlyze_results *results = &at->pass->results;
    coffer__mlyze_row *row = &results->rows[block->stack], *thread = &results->threads[block->thread];
    const uint64_t size = block->size;
    at->reallocs += (at->last_type == COFFER_MLYZE_FREE) & (at->last_time == block->time);
    at->pass->last_alloc[block->thread] = block->order;
    at->threads |= block->thread;
    at->number++;
    at->allocs++;
    at->allocated = coffer__mlyze_sum(at->allocated, size);
    count_alloc(row, size);
    count_alloc(thread, size);
    count(&results->sizes, size, size);
    if (!is_live)
        return;
    add_live(row, size, at->epoch);
    add_live(thread, size, at->epoch);
    at->live++;
    at->top_live = at->live > at->top_live ? at->live : at->top_live;
    if (size >= HUGE_SIZE) {
        WITH_COPY(at, change_level(&copy, size, i));
        return;
    }
    at->level += (int64_t)size;
    at->top = at->level > at->top ? at->level : at->top;
    /* The rows keep their values of this moment when they are next touched. */
    if (at->level > at->high) {
        at->high = at->level;
        at->high_at = i;
        at->epoch++;
    }
}

HOT void remove_block(walk *at, const coffer__mlyze_held *block, size_t i)
{
    coffer__mlyze_results *results = &at->pass->results;
    remove_live(&results->rows[block->stack], block->size, at->epoch);
    remove_live(&results->threads[block->thread], block->size, at->epoch);
    at->live--;
    if (block->size >= HUGE_SIZE)
        WITH_COPY(at, change_level(&copy, -(coffer__wide)block->size, i));
    else
        at->level -= (int64_t)block->size;
}

static inline bool is_temporary(const walk *at, const coffer__mlyze_held *block, uint64_t lifetime)
{
    const coffer_mlyze_stats_opts *opts = &at->pass->opts;
    if (opts->temporary_allocs == 0 && opts->temporary_us == 0)
        return (at->pass->last_alloc[block->thread] == block->order) &
               (block->order >= at->pass->state.window_alloc);
    return block->order >= at->pass->state.window_alloc &&
           ((opts->temporary_us > 0 && lifetime <= opts->temporary_us) ||
            at->number - block->order - 1 < opts->temporary_allocs);
}

HOT void sum_free(walk *at, const coffer__mlyze_held *block, size_t i)
{
    coffer__mlyze_results *results = &at->pass->results;
    coffer__mlyze_row *row = &results->rows[block->stack];
    const uint64_t lifetime = coffer__mlyze_since(block->time, at->events.time[i]);
    const bool brief = is_temporary(at, block, lifetime);
    remove_block(at, block, i);
    row->freed_allocs++;
    row->lifetime += lifetime;
    row->temporary_allocs += brief;
    row->temporary_bytes += brief ? block->size : 0;
    count(&results->lifetimes, lifetime, block->size);
}

/* ---- One event ---- */

/* An allocation at a live address. */
static void sum_replaced(walk *at, const coffer__mlyze_held *old, size_t i)
{
    coffer_mlyze_totals *totals = &at->pass->results.totals;
    remove_block(at, old, i);
    note(&totals->double_allocs, &totals->first_double_alloc, at->events.first + i);
}

HOT coffer__mlyze_held block_of(const walk *at, size_t i, uint32_t row)
{
    return (coffer__mlyze_held){ .size = at->events.size[i],
                                 .time = at->events.time[i],
                                 .order = at->number,
                                 .stack = row,
                                 .thread = at->events.thread[i] };
}

static coffer_status put_slowly(walk *at, uint64_t hash, uint32_t row, size_t i, coffer_error *err)
{
    const coffer__mlyze_held block = block_of(at, i, row);
    coffer__mlyze_put what;
    coffer__mlyze_held old;
    coffer_status status =
        coffer__mlyze_live_put(&what, &at->pass->live, hash, at->events.address[i], &block, &old, err);
    if (!status && what == COFFER__MLYZE_PUT_REPLACED)
        sum_replaced(at, &old, i);
    if (!status && at->pass->opts.reuse)
        at->pass->results.totals.reused_addresses += what == COFFER__MLYZE_PUT_AGAIN;
    return status;
}

HOT coffer_status put_from_spill(walk *at, uint64_t hash, size_t i, coffer_error *err)
{
    coffer__mlyze_finding found;
    coffer_status status = coffer__mlyze_spill_get(&found, at->pass->spill, hash, err);
    if (!status && found.what == COFFER__MLYZE_FOUND_BLOCK)
        WITH_COPY(at, sum_replaced(&copy, &found.block, i));
    if (!status && at->pass->opts.reuse)
        at->pass->results.totals.reused_addresses += found.what == COFFER__MLYZE_FOUND_AGAIN;
    return status;
}

static coffer_status find_row(uint32_t *out, coffer__mlyze_pass *pass, uint64_t id, coffer_error *err);

HOT coffer_status follow_alloc(walk *at, size_t i, uint32_t row, uint64_t hash, coffer__mlyze_way way,
                               coffer_error *err)
{
    coffer__mlyze_pass *pass = at->pass;
    const uint64_t address = at->events.address[i];
    const coffer__mlyze_held block = block_of(at, i, row);
    coffer_status status = COFFER_OK;
    if (address == 0)
        pass->results.totals.nowhere_allocs++;
    else if (way == COFFER__MLYZE_BY_NAME)
        pass->named.blocks[address - 1] = block;
    else if (way == COFFER__MLYZE_DIVIDE)
        status = coffer__mlyze_spill_put(pass->spill, hash, address, &block, err);
    else if (way == COFFER__MLYZE_FROM_SPILL)
        status = put_from_spill(at, hash, i, err);
    else if (!coffer__mlyze_put_fast(&pass->live, hash, address, &block))
        WITH_COPY(at, status = put_slowly(&copy, hash, row, i, err));
    if (!status && way != COFFER__MLYZE_DIVIDE)
        sum_alloc(at, &block, i, address != 0);
    else
        at->number++;
    return status;
}

/* The block that a free frees; *found is false without one. */
HOT coffer_status take_block(coffer__mlyze_held *out, bool *found, walk *at, size_t i, uint64_t hash,
                             coffer__mlyze_way way, coffer_error *err)
{
    coffer__mlyze_pass *pass = at->pass;
    const uint64_t address = at->events.address[i];
    coffer__mlyze_finding finding;
    coffer_status status = COFFER_OK;
    if (way == COFFER__MLYZE_BY_NAME) {
        *found = address != UINT64_MAX;
        if (*found)
            *out = pass->named.blocks[address - 1];
    } else if (way == COFFER__MLYZE_FROM_SPILL) {
        status = coffer__mlyze_spill_get(&finding, pass->spill, hash, err);
        *found = finding.what == COFFER__MLYZE_FOUND_BLOCK;
        *out = finding.block;
    } else {
        coffer__mlyze_held slow;
        *found = coffer__mlyze_take_fast(out, &pass->live, hash, address);
        if (!*found) {
            *found = coffer__mlyze_live_take(&slow, &pass->live, hash, address);
            *out = slow;
        }
    }
    return status;
}

HOT coffer_status follow_free(walk *at, size_t i, uint64_t hash, coffer__mlyze_way way, coffer_error *err)
{
    coffer__mlyze_pass *pass = at->pass;
    const uint64_t address = at->events.address[i];
    coffer__mlyze_held block;
    bool found = false;
    at->frees++;
    if (address == 0)
        return COFFER_OK;
    if (way == COFFER__MLYZE_DIVIDE)
        return coffer__mlyze_spill_put(pass->spill, hash, address, NULL, err);
    coffer_status status = take_block(&block, &found, at, i, hash, way, err);
    if (!status && found)
        sum_free(at, &block, i);
    else if (!status)
        note(&pass->results.totals.unknown_frees, &pass->results.totals.first_unknown_free,
             at->events.first + i);
    return status;
}

/* Hands on what was added up since the last call. */
static void flush(walk *at)
{
    coffer__mlyze_stretch *stretch = &at->pass->stretch;
    stretch->allocs += at->allocs;
    stretch->allocated = coffer__mlyze_sum(stretch->allocated, at->allocated);
    stretch->top = top_of(at) > stretch->top ? top_of(at) : stretch->top;
    if (at->pass->results.phase_count > 0)
        coffer__mlyze_add_to_phase(at->pass, top_of(at), at->allocs, at->allocated);
    at->pass->results.totals.allocs += at->allocs;
    at->allocs = at->allocated = 0;
    at->wide_top = at->base + at->level;
    at->top = at->level;
}

static coffer_status follow_other(walk *at, size_t i, coffer_error *err)
{
    flush(at);
    return coffer__mlyze_note_other(at->pass, &at->events, i, at->base + at->level, err);
}

/* ---- A stretch of events ---- */

/* Looks up the block that a later event will need. */
HOT uint64_t approach(const walk *at, size_t i, coffer__mlyze_key key, coffer__mlyze_way way)
{
    const uint64_t address = at->events.address[i];
    if (way == COFFER__MLYZE_BY_NAME) {
        const coffer__mlyze_named *named = &at->pass->named;
        __builtin_prefetch(&named->blocks[address - 1 < named->capacity ? address - 1 : 0], 1);
        return 0;
    }
    const uint64_t hash = coffer__mlyze_hash(&key, address);
    if (way == COFFER__MLYZE_BY_ADDRESS)
        coffer__mlyze_prefetch(&at->pass->live, hash);
    return hash;
}

HOT coffer_status run(walk *out, size_t from, size_t to, coffer__mlyze_way way, coffer_error *err)
{
    walk at = *out;
    coffer__mlyze_pass *pass = at.pass;
    const coffer__mlyze_ids listed = *pass->stacks.listed;
    const coffer__mlyze_key key = pass->live.key;
    uint64_t hashes[AHEAD];
    coffer_status status = COFFER_OK;
    for (size_t i = from; i < to && i < from + AHEAD; i++)
        hashes[i % AHEAD] = approach(&at, i, key, way);
    for (size_t i = from; i < to && !status; i++) {
        const uint64_t hash = hashes[i % AHEAD];
        const uint8_t type = at.events.type[i];
        if (i + AHEAD < to)
            hashes[i % AHEAD] = approach(&at, i + AHEAD, key, way);
        if (type == COFFER_MLYZE_ALLOC) {
            const size_t number = coffer__mlyze_ids_find(&listed, at.events.id[i]);
            uint32_t row = (uint32_t)number, unlisted;
            if (number == SIZE_MAX) {
                status = find_row(&unlisted, pass, at.events.id[i], err);
                row = unlisted;
            }
            if (!status)
                status = follow_alloc(&at, i, row, hash, way, err);
        } else if (type == COFFER_MLYZE_FREE) {
            status = follow_free(&at, i, hash, way, err);
        } else if (way != COFFER__MLYZE_DIVIDE) {
            WITH_COPY(&at, status = follow_other(&copy, i, err));
        }
        at.last_type = type;
        at.last_time = at.events.time[i];
    }
    *out = at;
    return status;
}

static coffer_status run_by_address(walk *at, size_t from, size_t to, coffer_error *err)
{
    return run(at, from, to, COFFER__MLYZE_BY_ADDRESS, err);
}

static coffer_status run_by_name(walk *at, size_t from, size_t to, coffer_error *err)
{
    return run(at, from, to, COFFER__MLYZE_BY_NAME, err);
}

static coffer_status run_dividing(walk *at, size_t from, size_t to, coffer_error *err)
{
    return run(at, from, to, COFFER__MLYZE_DIVIDE, err);
}

static coffer_status run_from_spill(walk *at, size_t from, size_t to, coffer_error *err)
{
    return run(at, from, to, COFFER__MLYZE_FROM_SPILL, err);
}

static coffer_status find_row(uint32_t *out, coffer__mlyze_pass *pass, uint64_t id, coffer_error *err)
{
    coffer__mlyze_numbers *stacks = &pass->stacks;
    coffer_status status = COFFER_OK;
    uint32_t row = coffer__mlyze_numbers_find(stacks, id);
    if (row == COFFER__MLYZE_NO_ROW)
        status = coffer__mlyze_numbers_add(&row, stacks, id, err);
    if (!status)
        status = coffer__mlyze_make_rows(&pass->results.rows, &pass->results.row_capacity,
                                         coffer__mlyze_numbers_count(stacks), err);
    *out = row;
    return status;
}

static void settle(const walk *at, size_t from, size_t to)
{
    coffer__mlyze_pass *pass = at->pass;
    coffer__mlyze_state *state = &pass->state;
    coffer_mlyze_totals *totals = &pass->results.totals;
    totals->events += to - from;
    totals->frees += at->frees;
    totals->reallocs += at->reallocs;
    totals->duration_us = at->last_time;
    if (high_of(at) > state->high) {
        totals->peak_bytes = coffer__mlyze_narrow(high_of(at));
        totals->peak_event = at->events.first + at->high_at;
        totals->peak_time_us = at->events.time[at->high_at];
    }
    state->level = at->base + at->level;
    state->high = high_of(at);
    state->live = at->live;
    state->epoch = at->epoch;
    state->threads |= at->threads;
    state->last_type = at->last_type;
    state->last_time = at->last_time;
    state->alloc_count = at->number;
}

/* Follows the events [from, to) of the columns, between two boundaries. */
static coffer_status follow(coffer__mlyze_pass *pass, const coffer_mlyze_events *events, size_t from,
                            size_t to, coffer_error *err)
{
    static coffer_status (*const ways[])(walk *, size_t, size_t,
                                         coffer_error *) = { run_by_address, run_by_name, run_dividing,
                                                             run_from_spill };
    const coffer__mlyze_state *state = &pass->state;
    walk at = { .pass = pass,
                .events = *events,
                .base = state->level,
                .wide_high = state->high,
                .wide_top = state->level,
                .live = state->live,
                .top_live = state->live,
                .epoch = state->epoch,
                .number = state->alloc_count,
                .last_type = state->last_type,
                .last_time = state->last_time };
    set_base(&at, state->level);
    pass->stretch = (coffer__mlyze_stretch){ .events = to - from, .top = state->level };
    coffer_status status = ways[pass->way](&at, from, to, err);
    flush(&at);
    settle(&at, from, to);
    pass->stretch.level = at.base + at.level;
    pass->stretch.live = at.live;
    pass->stretch.top_live = at.top_live;
    return status;
}

/* Cuts a stretch where the watcher wants it. */
static coffer_status follow_watched(coffer__mlyze_pass *pass, const coffer_mlyze_events *events, size_t from,
                                    size_t to, coffer_error *err)
{
    const coffer__mlyze_watcher *watcher = pass->watcher;
    coffer_status status = COFFER_OK;
    while (!status && from < to) {
        const uint64_t end_time = watcher->begin(watcher->context, events->time[from]);
        size_t end = from + 1, high = to;
        while (end < high) {
            size_t middle = end + (high - end) / 2;
            if (events->time[middle] < end_time)
                end = middle + 1;
            else
                high = middle;
        }
        status = follow(pass, events, from, end, err);
        watcher->end(watcher->context, &pass->stretch);
        from = end;
    }
    return status;
}

static void lose(coffer__mlyze_pass *pass, size_t block, uint64_t events)
{
    coffer_mlyze_totals *totals = &pass->results.totals;
    totals->lost_events += events;
    totals->lost_blocks += pass->state.lost_block != block;
    pass->state.lost_block = block;
    pass->state.last_type = UINT8_MAX;
}

coffer_status coffer__mlyze_follow_chapter(coffer__mlyze_pass *pass, const coffer__mlyze_chapter *chapter,
                                           coffer_error *err)
{
    const coffer_mlyze_events *events = &chapter->events;
    const uint64_t first = chapter->lost ? chapter->to : events->first, end = first + events->count;
    uint64_t from = chapter->from;
    coffer_status status = coffer__mlyze_pass_boundaries(pass, from, err);
    while (!status && from < chapter->to) {
        uint64_t to = coffer__mlyze_next_stop(pass, chapter->to);
        uint64_t known = to < end ? to : end; /* a block may have fewer events than the map says */
        if (chapter->lost)
            lose(pass, chapter->block, to - from);
        else if (pass->watcher && pass->way != COFFER__MLYZE_DIVIDE)
            status = follow_watched(pass, events, (size_t)(from - first), (size_t)(known - first), err);
        else if (from < known)
            status = follow(pass, events, (size_t)(from - first), (size_t)(known - first), err);
        pass->state.done_events += to - from;
        from = to;
        if (!status)
            status = coffer__mlyze_pass_boundaries(pass, from, err);
    }
    return status;
}
