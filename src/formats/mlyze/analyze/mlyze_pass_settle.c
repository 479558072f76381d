/* Adds up the levels of the pieces in order: high-water mark, phases and marks; then corrects the rows for
 * the events after that mark. */
#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"
#include "formats/mlyze/analyze/mlyze_pass_sums.h"

/* The level of live bytes within a piece, relative to its start. */

/* The sign with which an event's size counts as live bytes, by type after pairing. */
static const int8_t signs[256] = {
    [COFFER__MLYZE_PAIRED_ALLOC] = 1, [COFFER__MLYZE_PAIRED_FREE] = -1, [COFFER__MLYZE_REPLACING] = 1
};

/* The size of the block that an allocation replaces. */
static inline uint64_t replaced_size(const coffer__mlyze_piece *piece, size_t event,
                                     const coffer__mlyze_pass *pass)
{
    uint64_t place = piece->events.address[event];
    return pass->shards.items[place >> 48].replaced[place & UINT32_MAX].size;
}

coffer__wide coffer__mlyze_change(const coffer__mlyze_piece *piece, size_t event,
                                  const coffer__mlyze_pass *pass)
{
    uint8_t type = piece->events.type[event];
    coffer__wide change = (coffer__wide)piece->events.size[event] * signs[type];
    return type == COFFER__MLYZE_REPLACING ? change - replaced_size(piece, event, pass) : change;
}

/* A level followed from event to event, and its maximum so far. */
typedef struct level_walk {
    coffer__wide level, high;
    size_t high_at;
} level_walk;

/* Lower than any level. */
#define NO_LEVEL (-(coffer__wide)(UINT64_C(1) << 50) * (UINT64_C(1) << 50))
/* All sizes of a piece, 2^15 events with at most two each, add up to at most 63 bits when none has more bits
 * than this. */
#define USUAL_BITS 46

/* Returns false and changes nothing when a size is larger than usual. */
static inline bool walk_usual(level_walk *walk, const coffer__mlyze_piece *piece, size_t from, size_t to,
                              const coffer__mlyze_pass *pass)
{
    int64_t level = 0, high = INT64_MIN;
    uint64_t seen = 0;
    size_t high_at = from;
    for (size_t i = from; i < to; i++) {
        uint8_t type = piece->events.type[i];
        uint64_t size = piece->events.size[i];
        uint64_t change = size * (uint64_t)(int64_t)signs[type];
        seen |= size;
        if (type == COFFER__MLYZE_REPLACING) {
            uint64_t old = replaced_size(piece, i, pass);
            seen |= old;
            change -= old;
        }
        level = (int64_t)((uint64_t)level + change);
        high_at = level > high ? i : high_at;
        high = level > high ? level : high;
    }
    if (seen >> USUAL_BITS)
        return false;
    if (from < to)
        *walk = (level_walk){ walk->level + level, walk->level + high, high_at };
    return true;
}

/* Sets walk->high to the maximum of these events alone. */
static void walk_to(level_walk *walk, const coffer__mlyze_piece *piece, size_t from, size_t to,
                    const coffer__mlyze_pass *pass)
{
    if (walk_usual(walk, piece, from, to, pass))
        return;
    for (size_t i = from; i < to; i++) {
        walk->level += coffer__mlyze_change(piece, i, pass);
        if (walk->level > walk->high) {
            walk->high = walk->level;
            walk->high_at = i;
        }
    }
}

static void count_range(coffer__mlyze_stop_over *stop, const coffer__mlyze_piece *piece, size_t from,
                        size_t to)
{
    for (size_t i = from; i < to; i++) {
        uint8_t type = piece->events.type[i];
        bool is_alloc = type == COFFER__MLYZE_PAIRED_ALLOC || type == COFFER__MLYZE_REPLACING ||
                        type == COFFER__MLYZE_NOWHERE;
        stop->allocs += is_alloc;
        stop->allocated += is_alloc ? piece->events.size[i] : 0;
    }
}

void coffer__mlyze_find_level(coffer__mlyze_piece *piece, const coffer__mlyze_pass *pass)
{
    level_walk whole = { 0, NO_LEVEL, piece->begin };
    size_t from = piece->begin;
    for (size_t i = 0; i <= piece->mark_count; i++) {
        coffer__mlyze_stop_over *stop = &piece->stops[i];
        size_t to = i < piece->mark_count ? piece->marks[i] : piece->end;
        level_walk part = { whole.level, NO_LEVEL, from };
        walk_to(&part, piece, from, to, pass);
        *stop = (coffer__mlyze_stop_over){ .level = part.level, .high = part.high };
        if (piece->has_markers)
            count_range(stop, piece, from, to);
        if (part.high > whole.high) {
            whole.high = part.high;
            whole.high_at = part.high_at;
        }
        whole.level = part.level;
        from = to;
    }
    piece->sum = whole.level;
    piece->high = whole.high;
    piece->high_at = whole.high_at;
}

/* ---- Phases ---- */

void coffer__mlyze_end_phase(coffer__mlyze_pass *pass, uint64_t time, coffer__wide level)
{
    if (pass->results.phase_count == 0)
        return;
    coffer_mlyze_phase *phase = &pass->results.phases[pass->results.phase_count - 1];
    phase->duration_us = time - phase->time_us;
    phase->live_bytes_at_end = coffer__mlyze_narrow(level);
}

coffer_status coffer__mlyze_begin_phase(coffer__mlyze_pass *pass, uint64_t name, uint64_t event,
                                        uint64_t time, coffer__wide level, coffer_error *err)
{
    const uint64_t now = coffer__mlyze_narrow(level);
    if (pass->results.phase_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&pass->results.phases, &pass->results.phase_capacity,
                                  pass->results.phase_count, sizeof *pass->results.phases, err);
    if (status)
        return status;
    coffer__mlyze_end_phase(pass, time, level);
    pass->results.phases[pass->results.phase_count++] = (coffer_mlyze_phase){ .id = name,
                                                                              .event = event,
                                                                              .time_us = time,
                                                                              .peak_bytes = now,
                                                                              .live_bytes_at_begin = now,
                                                                              .live_bytes_at_end = now };
    return COFFER_OK;
}

void coffer__mlyze_add_to_phase(coffer__mlyze_pass *pass, coffer__wide peak, uint64_t allocs,
                                uint64_t allocated)
{
    coffer_mlyze_phase *phase = &pass->results.phases[pass->results.phase_count - 1];
    phase->allocs += allocs;
    phase->allocated_bytes = coffer__mlyze_sum(phase->allocated_bytes, allocated);
    if (peak > phase->peak_bytes)
        phase->peak_bytes = coffer__mlyze_narrow(peak);
}

/* ---- Marks and rarer events ---- */

static coffer_status keep_mark(coffer__mlyze_pass *pass, const coffer_mlyze_events *events, size_t event,
                               coffer__wide level, coffer_error *err)
{
    if (pass->results.mark_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status =
        coffer__array_reserve_one(&pass->results.marks, &pass->results.mark_capacity,
                                  pass->results.mark_count, sizeof *pass->results.marks, err);
    if (status)
        return status;
    pass->results.marks[pass->results.mark_count++] =
        (coffer_mlyze_mark){ .type = (coffer_mlyze_type)events->type[event],
                             .event = events->first + event,
                             .time_us = events->time[event],
                             .id = events->id[event],
                             .bytes = events->size[event],
                             .live_bytes = coffer__mlyze_narrow(level) };
    return COFFER_OK;
}

coffer_status coffer__mlyze_settle_other(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                         size_t event, coffer__wide level, coffer_error *err)
{
    coffer_mlyze_totals *totals = &pass->results.totals;
    uint64_t size = events->size[event];
    switch (events->type[event]) {
    case COFFER_MLYZE_GC:
        totals->collections++;
        totals->collected_objects = coffer__mlyze_sum(totals->collected_objects, events->id[event]);
        totals->collected_bytes = coffer__mlyze_sum(totals->collected_bytes, size);
        return keep_mark(pass, events, event, level, err);
    case COFFER_MLYZE_MARKER: {
        totals->markers++;
        coffer_status status = coffer__mlyze_begin_phase(pass, events->id[event], events->first + event,
                                                         events->time[event], level, err);
        return status ? status : keep_mark(pass, events, event, level, err);
    }
    case COFFER_MLYZE_RSS:
        if (size > totals->peak_rss_bytes)
            totals->peak_rss_bytes = size;
        return COFFER_OK;
    default:
        totals->unknown_events += events->type[event] > COFFER_MLYZE_RSS;
        return COFFER_OK;
    }
}

static coffer_status settle_others(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece,
                                   coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!piece->has_markers)
        coffer__mlyze_add_to_phase(pass, pass->state.level + piece->high, piece->allocs, piece->allocated);
    for (size_t i = 0; i <= piece->mark_count && !status; i++) {
        const coffer__mlyze_stop_over *stop = &piece->stops[i];
        if (piece->has_markers)
            coffer__mlyze_add_to_phase(pass, pass->state.level + stop->high, stop->allocs, stop->allocated);
        if (i < piece->mark_count)
            status = coffer__mlyze_settle_other(pass, &piece->events, piece->marks[i],
                                                pass->state.level + stop->level, err);
    }
    return status;
}

/* Names of threads hold for the whole trace, also when they are set before the window. */
coffer_status coffer__mlyze_note_thread(coffer__mlyze_pass *pass, const coffer_mlyze_events *events,
                                        size_t event, coffer_error *err)
{
    coffer__mlyze_results *results = &pass->results;
    if (events->type[event] != COFFER_MLYZE_THREAD)
        return COFFER_OK;
    if (!results->thread_names)
        results->thread_names = coffer__calloc(COFFER__MLYZE_THREADS, sizeof *results->thread_names);
    if (!results->thread_names)
        return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *results->thread_names);
    results->thread_names[events->thread[event]] = events->id[event] + 1;
    return COFFER_OK;
}

/* ---- Totals ---- */

static void settle_counts(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece)
{
    coffer_mlyze_totals *totals = &pass->results.totals;
    const uint64_t *time = piece->events.time;
    totals->events += piece->end - piece->begin;
    totals->allocs += piece->allocs;
    totals->frees += piece->frees;
    totals->reallocs += piece->reallocs;
    if (pass->state.last_type == COFFER_MLYZE_FREE && piece->first_type == COFFER_MLYZE_ALLOC &&
        pass->state.last_time == time[piece->begin])
        totals->reallocs++;
    totals->duration_us = time[piece->end - 1];
}

/* Returns whether the high-water mark is in the piece. */
static bool settle_high(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece)
{
    coffer__wide high = pass->state.level + piece->high;
    if (high <= pass->state.high)
        return false;
    pass->state.high = high;
    pass->results.totals.peak_bytes = coffer__mlyze_narrow(high);
    pass->results.totals.peak_event = piece->events.first + piece->high_at;
    pass->results.totals.peak_time_us = piece->events.time[piece->high_at];
    return true;
}

coffer_status coffer__mlyze_settle(bool *has_tail, coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch,
                                   coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool has_high = false;
    for (size_t i = 0; i < batch->count && !status; i++) {
        const coffer__mlyze_piece *piece = &batch->pieces[i];
        if (pass->state.counting) {
            pass->results.totals.lost_events += piece->lost;
            pass->results.totals.lost_blocks += piece->lost > 0;
        }
        if (piece->begin == piece->end) {
            pass->state.last_type = UINT8_MAX;
            continue;
        }
        for (size_t k = 0; k < piece->mark_count && !status; k++)
            status = coffer__mlyze_note_thread(pass, &piece->events, piece->marks[k], err);
        if (status)
            break;
        if (pass->state.counting) {
            settle_counts(pass, piece);
            status = settle_others(pass, piece, err);
            if (settle_high(pass, piece)) {
                has_high = true;
                pass->state.tail_after = (uint64_t)i << 16 | piece->high_at;
            }
        }
        pass->state.level += piece->sum;
        pass->state.last_type = pass->state.counting ? piece->last_type : UINT8_MAX;
        pass->state.last_time = piece->events.time[piece->end - 1];
    }
    pass->state.epoch += has_high;
    *has_tail = has_high;
    return status;
}

/* ---- After the high-water mark ---- */

/* Rows of the new epoch start with the bytes live after the batch. */
static void take_back(coffer__mlyze_row *row, uint64_t allocs, uint64_t bytes, uint64_t epoch)
{
    coffer__mlyze_row_touch(row, epoch);
    row->peak_allocs -= allocs;
    row->peak_bytes -= bytes;
}

static void take_back_event(const coffer__mlyze_shard_work *work, size_t event)
{
    const coffer_mlyze_events *events = &work->events;
    coffer__mlyze_row *row = &work->shard->rows[work->row[event]];
    coffer__mlyze_row *thread = &work->shard->threads[events->thread[event]];
    uint64_t size = events->size[event], epoch = work->epoch;
    switch (events->type[event]) {
    case COFFER__MLYZE_PAIRED_FREE:
        take_back(row, UINT64_MAX, 0 - size, epoch); /* −1 block: one more */
        take_back(thread, UINT64_MAX, 0 - size, epoch);
        break;
    case COFFER__MLYZE_REPLACING: {
        const coffer__mlyze_held *old = &work->shard->replaced[events->address[event] & UINT32_MAX];
        take_back(&work->shard->rows[old->stack], UINT64_MAX, 0 - old->size, epoch);
        take_back(&work->shard->threads[old->thread], UINT64_MAX, 0 - old->size, epoch);
    } /* fall through */
    case COFFER__MLYZE_PAIRED_ALLOC:
        take_back(row, 1, size, epoch);
        take_back(thread, 1, size, epoch);
        break;
    default:
        break;
    }
}

void coffer__mlyze_take_back(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch, size_t shard)
{
    for (size_t i = (size_t)(pass->state.tail_after >> 16); i < batch->count; i++) {
        coffer__mlyze_shard_work work = coffer__mlyze_shard_on(pass, batch, i, shard);
        const uint16_t *list = coffer__mlyze_listed(work.piece, shard);
        for (size_t k = work.piece->list_count[shard]; k > 0; k--) {
            size_t event = list[k - 1];
            if (((uint64_t)i << 16 | event) <= pass->state.tail_after)
                break;
            take_back_event(&work, event);
        }
    }
}
