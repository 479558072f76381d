#include "formats/mlyze/analyze/mlyze_analyze.h"

#include "base/array.h"

/* How the size of an event of each type, after pairing, counts into what is live. */
static const int8_t signs[256] = {
    [COFFER__MLYZE_PAIRED_ALLOC] = 1, [COFFER__MLYZE_PAIRED_FREE] = -1, [COFFER__MLYZE_REPLACING] = 1
};

/* The size of the block that an allocation takes the place of. */
static inline uint64_t replaced_size(const coffer__mlyze_piece *piece, size_t event,
                                     const coffer__mlyze_pass *pass)
{
    uint64_t place = piece->events.address[event];
    return pass->shards[place >> 48].replaced[place & UINT32_MAX].size;
}

coffer__mlyze_wide coffer__mlyze_change(const coffer__mlyze_piece *piece, size_t event,
                                        const coffer__mlyze_pass *pass)
{
    uint8_t type = piece->events.type[event];
    coffer__mlyze_wide change = (coffer__mlyze_wide)piece->events.size[event] * signs[type];
    return type == COFFER__MLYZE_REPLACING ? change - replaced_size(piece, event, pass) : change;
}

/* A level that is followed from event to event, and its highest so far. */
typedef struct walk {
    coffer__mlyze_wide level, high;
    size_t high_at;
} walk;

/* No level is lower. */
#define NO_LEVEL (-((coffer__mlyze_wide)1 << 100))
/* All sizes of a piece, 2^15 events with at most two each, sum up in 63 bits when none has more than these.
 */
#define USUAL_BITS 46

/* Does nothing and says so when there are sizes that are out of the ordinary. */
static inline bool walk_usual(walk *at, const coffer__mlyze_piece *piece, size_t from, size_t to,
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
        *at = (walk){ at->level + level, at->level + high, high_at };
    return true;
}

/* at->high is that of these events alone. */
static void walk_to(walk *at, const coffer__mlyze_piece *piece, size_t from, size_t to,
                    const coffer__mlyze_pass *pass)
{
    if (walk_usual(at, piece, from, to, pass))
        return;
    for (size_t i = from; i < to; i++) {
        at->level += coffer__mlyze_change(piece, i, pass);
        if (at->level > at->high) {
            at->high = at->level;
            at->high_at = i;
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
    walk whole = { 0, NO_LEVEL, piece->begin };
    size_t from = piece->begin;
    for (size_t i = 0; i <= piece->mark_count; i++) {
        coffer__mlyze_stop_over *stop = &piece->stops[i];
        size_t to = i < piece->mark_count ? piece->marks[i] : piece->end;
        walk part = { whole.level, NO_LEVEL, from };
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

void coffer__mlyze_end_phase(coffer__mlyze_pass *pass, uint64_t time, coffer__mlyze_wide level)
{
    if (pass->phase_count == 0)
        return;
    coffer_mlyze_phase *phase = &pass->phases[pass->phase_count - 1];
    phase->duration_us = time - phase->time_us;
    phase->live_bytes_at_end = coffer__mlyze_narrow(level);
}

coffer_status coffer__mlyze_begin_phase(coffer__mlyze_pass *pass, uint64_t name, uint64_t event,
                                        uint64_t time, coffer__mlyze_wide level, coffer_error *err)
{
    const uint64_t now = coffer__mlyze_narrow(level);
    if (pass->phase_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&pass->phases, &pass->phase_capacity, pass->phase_count,
                                                     sizeof *pass->phases, err);
    if (status)
        return status;
    coffer__mlyze_end_phase(pass, time, level);
    pass->phases[pass->phase_count++] = (coffer_mlyze_phase){ .id = name,
                                                              .event = event,
                                                              .time_us = time,
                                                              .peak_bytes = now,
                                                              .live_bytes_at_begin = now,
                                                              .live_bytes_at_end = now };
    return COFFER_OK;
}

/* high : from the level at the piece's begin. */
static void add_to_phase(coffer__mlyze_pass *pass, coffer__mlyze_wide high, uint64_t allocs,
                         uint64_t allocated)
{
    coffer_mlyze_phase *phase = &pass->phases[pass->phase_count - 1];
    coffer__mlyze_wide peak = pass->level + high;
    phase->allocs += allocs;
    phase->allocated_bytes = coffer__mlyze_sum(phase->allocated_bytes, allocated);
    if (peak > phase->peak_bytes)
        phase->peak_bytes = coffer__mlyze_narrow(peak);
}

/* ---- Marks and rarer events ---- */

static coffer_status keep_mark(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece, size_t event,
                               coffer__mlyze_wide level, coffer_error *err)
{
    const coffer_mlyze_events *events = &piece->events;
    if (pass->mark_count >= pass->limits.entries)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&pass->marks, &pass->mark_capacity, pass->mark_count,
                                                     sizeof *pass->marks, err);
    if (status)
        return status;
    pass->marks[pass->mark_count++] = (coffer_mlyze_mark){ .type = (coffer_mlyze_type)events->type[event],
                                                           .event = events->first + event,
                                                           .time_us = events->time[event],
                                                           .id = events->id[event],
                                                           .bytes = events->size[event],
                                                           .live_bytes = coffer__mlyze_narrow(level) };
    return COFFER_OK;
}

static coffer_status settle_other(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece, size_t event,
                                  coffer__mlyze_wide level, coffer_error *err)
{
    coffer_mlyze_totals *totals = &pass->totals;
    uint64_t size = piece->events.size[event];
    switch (piece->events.type[event]) {
    case COFFER_MLYZE_GC:
        totals->collections++;
        totals->collected_objects = coffer__mlyze_sum(totals->collected_objects, piece->events.id[event]);
        totals->collected_bytes = coffer__mlyze_sum(totals->collected_bytes, size);
        return keep_mark(pass, piece, event, level, err);
    case COFFER_MLYZE_MARKER: {
        totals->markers++;
        coffer_status status =
            coffer__mlyze_begin_phase(pass, piece->events.id[event], piece->events.first + event,
                                      piece->events.time[event], level, err);
        return status ? status : keep_mark(pass, piece, event, level, err);
    }
    case COFFER_MLYZE_RSS:
        if (size > totals->peak_rss_bytes)
            totals->peak_rss_bytes = size;
        return COFFER_OK;
    default:
        totals->unknown_events += piece->events.type[event] > COFFER_MLYZE_RSS;
        return COFFER_OK;
    }
}

static coffer_status settle_others(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece,
                                   coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (!piece->has_markers)
        add_to_phase(pass, piece->high, piece->allocs, piece->allocated);
    for (size_t i = 0; i <= piece->mark_count && !status; i++) {
        const coffer__mlyze_stop_over *stop = &piece->stops[i];
        if (piece->has_markers)
            add_to_phase(pass, stop->high, stop->allocs, stop->allocated);
        if (i < piece->mark_count)
            status = settle_other(pass, piece, piece->marks[i], pass->level + stop->level, err);
    }
    return status;
}

/* ---- The whole ---- */

static void settle_counts(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece)
{
    coffer_mlyze_totals *totals = &pass->totals;
    const uint64_t *time = piece->events.time;
    totals->events += piece->end - piece->begin;
    totals->allocs += piece->allocs;
    totals->frees += piece->frees;
    totals->reallocs += piece->reallocs;
    if (pass->last_type == COFFER_MLYZE_FREE && piece->first_type == COFFER_MLYZE_ALLOC &&
        pass->last_time == time[piece->begin])
        totals->reallocs++;
    totals->duration_us = time[piece->end - 1];
}

/* Says whether the high-water mark lies in the piece. */
static bool settle_high(coffer__mlyze_pass *pass, const coffer__mlyze_piece *piece)
{
    coffer__mlyze_wide high = pass->level + piece->high;
    if (high <= pass->high)
        return false;
    pass->high = high;
    pass->totals.peak_bytes = coffer__mlyze_narrow(high);
    pass->totals.peak_event = piece->events.first + piece->high_at;
    pass->totals.peak_time_us = piece->events.time[piece->high_at];
    return true;
}

coffer_status coffer__mlyze_settle(bool *has_tail, coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch,
                                   coffer_error *err)
{
    coffer_status status = COFFER_OK;
    bool has_high = false;
    for (size_t i = 0; i < batch->count && !status; i++) {
        const coffer__mlyze_piece *piece = &batch->pieces[i];
        if (pass->counting)
            pass->totals.lost_events += piece->lost;
        if (piece->begin == piece->end) {
            pass->last_type = UINT8_MAX;
            continue;
        }
        if (pass->counting) {
            settle_counts(pass, piece);
            status = settle_others(pass, piece, err);
            if (settle_high(pass, piece)) {
                has_high = true;
                pass->tail_after = (uint64_t)i << 16 | piece->high_at;
            }
        }
        pass->level += piece->sum;
        pass->last_type = pass->counting ? piece->last_type : UINT8_MAX;
        pass->last_time = piece->events.time[piece->end - 1];
    }
    pass->epoch += has_high;
    *has_tail = has_high;
    return status;
}
