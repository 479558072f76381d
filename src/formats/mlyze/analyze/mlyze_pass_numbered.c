/* The analysis of an archive in one loop. Frees name their allocations, so a block that dies in the archive
 * block that allocated it is never searched for. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "formats/mlyze/analyze/mlyze_pass_sums.h"
#include "formats/mlyze/analyze/mlyze_survivors.h"

#include <string.h>

/* The number of events that a single thread decodes at once; their columns stay in its cache. */
#define STEP ((size_t)2048)

/* A block of the archive; with several threads the next one is decoded while one is followed. */
typedef struct chapter {
    coffer__mlyze_unpacker unpacker;
    coffer_mlyze_events events; /* some of them, or all */
    uint64_t end;               /* event after the last one that is wanted */
    bool usable;
} chapter;

typedef struct numbered {
    coffer__mlyze_pass *pass;
    coffer__mlyze_shard *sums;
    chapter chapters[2];
    coffer__mlyze_survivor *blocks; /* by name, of the block that is followed */
    size_t capacity;
    coffer__mlyze_survivors survivors;
} numbered;

/* ---- One event ---- */

/* State of the loop over the columns. */
typedef struct loop {
    const numbered *run;
    coffer_mlyze_events events;
    coffer__wide level, high, top;
    uint64_t epoch, number; /* number : of the next allocation */
    uint64_t frees, reallocs, allocs, allocated;
    size_t high_at;
    uint8_t last_type;
    uint64_t last_time;
    bool counting;
} loop;

static inline bool is_temporary(const loop *at, const coffer__mlyze_survivor *block, uint64_t lifetime)
{
    const coffer__mlyze_pass *pass = at->run->pass;
    const uint64_t number = block->number;
    if (number < pass->state.window_alloc)
        return false;
    if (pass->opts.temporary_allocs == 0 && pass->opts.temporary_us == 0)
        return pass->chains.last_before[block->thread] == number;
    return (pass->opts.temporary_us > 0 && lifetime <= pass->opts.temporary_us) ||
           at->number - number - 1 < pass->opts.temporary_allocs;
}

__attribute__((always_inline)) static inline void follow_alloc(loop *at, size_t i, uint32_t row_number)
{
    const coffer_mlyze_events *events = &at->events;
    coffer__mlyze_shard *sums = at->run->sums;
    uint64_t size = events->size[i], name = events->address[i];
    uint16_t thread_number = events->thread[i];
    coffer__mlyze_row *row = &sums->rows[row_number], *thread = &sums->threads[thread_number];
    at->reallocs += at->last_type == COFFER_MLYZE_FREE && at->last_time == events->time[i];
    at->run->pass->chains.last_before[thread_number] = at->number;
    if (name != 0) {
        at->run->blocks[name - 1] =
            (coffer__mlyze_survivor){ at->number, size, events->time[i], row_number, thread_number };
        coffer__mlyze_row_touch(row, at->epoch);
        row->live_allocs++;
        row->live_bytes += size;
        coffer__mlyze_row_touch(thread, at->epoch);
        thread->live_allocs++;
        thread->live_bytes += size;
        at->level += size;
    }
    at->number++;
    if (!at->counting)
        return;
    unsigned bucket = bucket_of(size);
    row->allocs++;
    row->allocated_bytes = coffer__mlyze_sum(row->allocated_bytes, size);
    thread->allocs++;
    thread->allocated_bytes = coffer__mlyze_sum(thread->allocated_bytes, size);
    sums->sizes.count[bucket]++;
    sums->sizes.bytes[bucket] = coffer__mlyze_sum(sums->sizes.bytes[bucket], size);
    sums->nowhere_allocs += name == 0;
    at->allocs++;
    at->allocated = coffer__mlyze_sum(at->allocated, size);
    at->top = at->level > at->top ? at->level : at->top;
    /* The rows keep their values of this moment when they are next touched. */
    if (at->level > at->high) {
        at->high = at->level;
        at->high_at = i;
        at->epoch++;
    }
}

__attribute__((always_inline)) static inline void follow_free(loop *at, size_t i)
{
    coffer__mlyze_shard *sums = at->run->sums;
    uint64_t name = at->events.address[i];
    at->frees++;
    if (name == 0 || name == UINT64_MAX) {
        if (name != 0 && at->counting)
            note(&sums->unknown_frees, &sums->first_unknown_free, at->events.first + i);
        return;
    }
    const coffer__mlyze_survivor *block = &at->run->blocks[name - 1];
    coffer__mlyze_row *row = &sums->rows[block->row], *thread = &sums->threads[block->thread];
    uint64_t size = block->size;
    coffer__mlyze_row_touch(row, at->epoch);
    row->live_allocs--;
    row->live_bytes -= size;
    coffer__mlyze_row_touch(thread, at->epoch);
    thread->live_allocs--;
    thread->live_bytes -= size;
    at->level -= size;
    if (!at->counting)
        return;
    uint64_t lifetime = coffer__mlyze_since(block->time, at->events.time[i]);
    unsigned bucket = bucket_of(lifetime);
    bool brief = is_temporary(at, block, lifetime);
    row->freed_allocs++;
    row->lifetime += lifetime;
    row->temporary_allocs += brief;
    row->temporary_bytes += brief ? size : 0;
    sums->lifetimes.count[bucket]++;
    sums->lifetimes.bytes[bucket] = coffer__mlyze_sum(sums->lifetimes.bytes[bucket], size);
}

/* ---- Events ---- */

/* The row of a stack that the metadata does not list. */
static coffer_status find_row(uint32_t *out, const numbered *run, uint64_t id, coffer_error *err)
{
    coffer__mlyze_numbers *stacks = &run->pass->stacks;
    coffer_status status = COFFER_OK;
    uint32_t row = coffer__mlyze_numbers_find(stacks, id);
    if (row == COFFER__MLYZE_NO_ROW)
        status = coffer__mlyze_numbers_add(&row, stacks, id, err);
    if (!status)
        status = coffer__mlyze_make_rows(run->sums, coffer__mlyze_numbers_count(stacks), err);
    *out = row;
    return status;
}

static void flush_phase(numbered *run, loop *at)
{
    if (at->counting)
        coffer__mlyze_add_to_phase(run->pass, at->top, at->allocs, at->allocated);
    run->pass->results.totals.allocs += at->allocs;
    at->allocs = at->allocated = 0;
    at->top = at->level;
}

static coffer_status follow_other(numbered *run, loop *at, size_t i, coffer_error *err)
{
    coffer_status status = coffer__mlyze_note_thread(run->pass, &at->events, i, err);
    if (status || !at->counting)
        return status;
    flush_phase(run, at);
    return coffer__mlyze_settle_other(run->pass, &at->events, i, at->level, err);
}

static void settle(numbered *run, const loop *at, size_t from, size_t to)
{
    coffer__mlyze_pass *pass = run->pass;
    coffer_mlyze_totals *totals = &pass->results.totals;
    if (at->counting) {
        totals->events += to - from;
        totals->frees += at->frees;
        totals->reallocs += at->reallocs;
        totals->duration_us = at->last_time;
        if (at->high > pass->state.high) {
            totals->peak_bytes = coffer__mlyze_narrow(at->high);
            totals->peak_event = at->events.first + at->high_at;
            totals->peak_time_us = at->events.time[at->high_at];
        }
    }
    pass->state.level = at->level;
    pass->state.high = at->high;
    pass->state.epoch = at->epoch;
    pass->state.last_type = at->counting ? at->last_type : UINT8_MAX;
    pass->state.last_time = at->last_time;
    pass->course.alloc_count = pass->course.settled_allocs = at->number;
    pass->course.done_events += to - from;
}

/* Follows the events [from, to) of the columns, between two boundaries. */
static coffer_status follow(numbered *run, const chapter *part, size_t from, size_t to, coffer_error *err)
{
    coffer__mlyze_pass *pass = run->pass;
    const coffer__mlyze_ids listed = *pass->stacks.listed;
    loop at = { .run = run,
                .events = part->events,
                .level = pass->state.level,
                .high = pass->state.high,
                .top = pass->state.level,
                .epoch = pass->state.epoch,
                .number = pass->course.alloc_count,
                .last_type = pass->state.last_type,
                .last_time = pass->state.last_time,
                .counting = pass->state.counting };
    bool *seen = pass->chains.seen_by[0];
    coffer_status status = COFFER_OK;
    for (size_t i = from; i < to && !status; i++) {
        uint8_t type = at.events.type[i];
        if (type == COFFER_MLYZE_ALLOC) {
            size_t listed_row = coffer__mlyze_ids_find(&listed, at.events.id[i]);
            uint32_t row = (uint32_t)listed_row;
            if (listed_row == SIZE_MAX)
                status = find_row(&row, run, at.events.id[i], err);
            if (status)
                break;
            seen[at.events.thread[i]] = true;
            follow_alloc(&at, i, row);
        } else if (type == COFFER_MLYZE_FREE) {
            follow_free(&at, i);
        } else {
            loop copy = at; /* its address is passed on, that of `at` is not: it stays in registers */
            status = follow_other(run, &copy, i, err);
            at = copy;
        }
        at.last_type = type;
        at.last_time = at.events.time[i];
    }
    loop end = at;
    flush_phase(run, &end);
    settle(run, &end, from, to);
    return status;
}

/* Stops at the boundaries of windows. */
static coffer_status follow_columns(numbered *run, const chapter *part, coffer_error *err)
{
    coffer__mlyze_pass *pass = run->pass;
    const uint64_t first = part->events.first;
    size_t from = 0;
    coffer_status status = COFFER_OK;
    while (!status && from < part->events.count) {
        uint64_t stop = coffer__mlyze_next_stop(pass) - first;
        size_t to = stop < part->events.count ? (size_t)stop : part->events.count;
        status = follow(run, part, from, to, err);
        pass->course.next_event = first + to;
        if (!status)
            status = coffer__mlyze_pass_boundaries(pass, first + to, err);
        from = to;
    }
    return status;
}

/* ---- Blocks ---- */

/* Gets the blocks that were allocated before and are freed here. */
static coffer_status begin_block(numbered *run, chapter *part, coffer_error *err)
{
    const coffer__mlyze_unpacker *unpacker = &part->unpacker;
    size_t names = (size_t)unpacker->import_count + unpacker->alloc_count;
    if (run->capacity < names) {
        coffer__free(run->blocks);
        run->capacity = 0;
        run->blocks = coffer__alloc_array(names, sizeof *run->blocks);
        if (!run->blocks)
            return coffer__fail_no_memory(err, names * sizeof *run->blocks);
        run->capacity = names;
    }
    part->usable &=
        unpacker->first_alloc == run->pass->course.alloc_count &&
        coffer__mlyze_survivors_take(run->blocks, &run->survivors, unpacker->values, unpacker->import_count);
    return COFFER_OK;
}

static bool is_live(const coffer__mlyze_unpacker *unpacker, uint32_t name)
{
    return unpacker->classes[name] != COFFER__MLYZE_CLASS_GONE;
}

/* Keeps what is still live. */
static coffer_status end_block(numbered *run, const chapter *part, coffer_error *err)
{
    const coffer__mlyze_unpacker *unpacker = &part->unpacker;
    coffer__mlyze_survivor *kept = NULL;
    size_t live = 0;
    for (uint32_t i = 0; i < unpacker->known; i++)
        live += is_live(unpacker, i);
    if (live == 0)
        return COFFER_OK;
    coffer_status status = coffer__mlyze_survivors_add(&kept, &run->survivors, live, err);
    for (uint32_t i = 0; i < unpacker->known && !status; i++) {
        if (is_live(unpacker, i))
            *kept++ = run->blocks[i];
    }
    return status;
}

static coffer_status count_leftovers(const numbered *run, coffer_error *err)
{
    coffer_status status = coffer__mlyze_make_leftovers(run->pass, err);
    for (size_t i = 0; i < run->survivors.count && !status; i++) {
        const coffer__mlyze_generation *from = &run->survivors.items[i];
        for (size_t k = 0; k < from->count; k++) {
            coffer__mlyze_held held = { .size = from->items[k].size,
                                        .time = from->items[k].time,
                                        .stack = from->items[k].row };
            if (held.stack != COFFER__MLYZE_NO_ROW)
                coffer__mlyze_count_leftover(run->pass, &held);
        }
    }
    return status;
}

static coffer_status unpack(chapter *part, size_t max, coffer_error *err)
{
    uint64_t left = part->end - part->unpacker.block.first_event - part->unpacker.event;
    coffer_status status =
        coffer__mlyze_unpack_some(&part->events, &part->unpacker, left < max ? (size_t)left : max, err);
    part->usable &= !part->unpacker.replaces;
    return status;
}

/* Opens a block and decodes its first events, or all of them. Damage makes it unusable. */
static coffer_status open_chapter(chapter *part, const numbered *run, size_t index, coffer_error *err)
{
    const coffer__mlyze_pass *pass = run->pass;
    const size_t step = pass->threads > 1 ? COFFER__MLYZE_ARCHIVE_EVENTS_MAX : STEP;
    coffer_error found = COFFER_ERROR_INIT;
    coffer__mlyze_block block;
    part->usable = true;
    coffer_status status = coffer__mlyze_find_block(&block, pass->trace, index, &found);
    if (!status)
        status = coffer__mlyze_unpack_open(&part->unpacker, pass->trace, &block, true, &found);
    if (!status) {
        part->end = block.first_event + block.event_count;
        part->end = part->end < pass->course.end_event ? part->end : pass->course.end_event;
        status =
            coffer__mlyze_events_reserve_rows(&part->events,
                                              step < block.event_count ? step : block.event_count, &found);
    }
    if (!status)
        status = unpack(part, step, &found);
    if (status && coffer__is_about_file(status)) {
        part->usable = false;
        return COFFER_OK;
    }
    return status ? coffer__fail_copy(err, &found) : COFFER_OK;
}

static coffer_status follow_chapter(numbered *run, chapter *part, coffer_error *err)
{
    coffer_status status = part->usable ? begin_block(run, part, err) : COFFER_OK;
    while (!status && part->usable) {
        coffer_error found = COFFER_ERROR_INIT;
        status = follow_columns(run, part, err);
        if (status || part->events.first + part->events.count >= part->end)
            break;
        if (unpack(part, STEP, &found))
            part->usable = false;
    }
    return !status && part->usable ? end_block(run, part, err) : status;
}

/* ---- The trace ---- */

typedef struct round {
    numbered *run;
    size_t block, count;
} round;

static coffer_status run_task(void *context, uint64_t task, uint32_t worker, coffer_error *err)
{
    const round *now = context;
    (void)worker;
    if (task == 0)
        return follow_chapter(now->run, &now->run->chapters[now->block % 2], err);
    return open_chapter(&now->run->chapters[(now->block + 1) % 2], now->run, now->block + 1, err);
}

static bool is_wanted(const coffer__mlyze_pass *pass, size_t block)
{
    return block < pass->map->count && pass->map->items[block].first_event < pass->course.end_event;
}

static coffer_status run_blocks(bool *suffices, numbered *run, coffer_error *err)
{
    coffer__mlyze_pass *pass = run->pass;
    coffer_status status = is_wanted(pass, 0) ? open_chapter(&run->chapters[0], run, 0, err) : COFFER_OK;
    for (size_t i = 0; !status && *suffices && is_wanted(pass, i); i++) {
        round now = { .run = run, .block = i };
        status = coffer__pool_run(pass->pool, is_wanted(pass, i + 1) ? 2 : 1, run_task, &now, err);
        *suffices = run->chapters[i % 2].usable;
        if (!status)
            status = coffer__progress_step(pass->opts.progress, pass->course.done_events,
                                           pass->course.end_event, err);
    }
    return status;
}

coffer_status coffer__mlyze_run_numbered(bool *suffices, coffer__mlyze_pass *pass, coffer_error *err)
{
    numbered run = { .pass = pass, .sums = pass->shards.items, .survivors.budget = &pass->budget };
    for (size_t i = 0; i < 2; i++)
        run.chapters[i].events = (coffer_mlyze_events)COFFER_MLYZE_EVENTS_INIT;
    coffer_status status = coffer__mlyze_make_rows(run.sums, coffer__mlyze_numbers_count(&pass->stacks), err);
    if (!status)
        status = coffer__mlyze_pass_boundaries(pass, 0, err);
    if (!status)
        status = run_blocks(suffices, &run, err);
    if (!status && *suffices)
        status = coffer__mlyze_pass_boundaries(pass, UINT64_MAX, err);
    if (!status && *suffices)
        status = count_leftovers(&run, err);
    coffer__mlyze_end_phase(pass, pass->state.last_time, pass->state.level);
    for (size_t i = 0; i < 2; i++) {
        coffer__mlyze_unpacker_free(&run.chapters[i].unpacker);
        coffer_mlyze_events_free(&run.chapters[i].events);
    }
    coffer__mlyze_survivors_free(&run.survivors);
    coffer__free(run.blocks);
    return status;
}
