/* The level of live bytes within a piece, relative to its start. */
#include "formats/mlyze/analyze/mlyze_pass.h"

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
