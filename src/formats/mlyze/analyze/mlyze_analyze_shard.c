#include "formats/mlyze/analyze/mlyze_analyze.h"

#include "base/array.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_live_slots.h"

#include <string.h>

/* Events whose slots are looked for together, while those of the next ones are on their way from memory. */
#define GROUP 32

/* One piece in the hands of a shard, and what every event needs of it and of the pass. */
typedef struct work {
    coffer__mlyze_pass *pass;
    const coffer__mlyze_batch *batch;
    coffer__mlyze_piece *piece;
    coffer__mlyze_shard *shard;
    uint64_t serial; /* of the piece in the pass */
    coffer_mlyze_events events;
    uint32_t *row;
    uint64_t *last_before;
    uint64_t epoch;
    bool counting, sees_all;
} work;

static work work_on(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch, size_t piece, size_t shard)
{
    return (work){ .pass = pass,
                   .batch = batch,
                   .piece = &batch->pieces[piece],
                   .shard = &pass->shards[shard],
                   .serial = batch->first_piece + piece,
                   .events = batch->pieces[piece].events,
                   .row = batch->pieces[piece].row,
                   .last_before = pass->last_before,
                   .epoch = pass->epoch,
                   .counting = pass->counting,
                   .sees_all = pass->sees_all };
}

/* yes where the mask is all ones, no where it is none. */
static inline uint64_t choose(uint64_t mask, uint64_t yes, uint64_t no)
{
    return no ^ ((yes ^ no) & mask);
}

/* ---- Temporary allocations ---- */

/* The number that the table keeps with a block: from it `is_temporary` can tell. */
static inline uint64_t order_of(const work *at, size_t event)
{
    if (at->pass->query.temporary_allocs > 0)
        return at->piece->allocs_before + at->piece->order[event];
    return at->serial << 16 | event;
}

/* A shard that sees every allocation keeps the last one of each thread; else decoding has chained them. */
static inline void note_thread(const work *at, uint16_t thread, size_t event)
{
    if (at->sees_all)
        at->last_before[thread] = at->serial << 16 | event;
}

/* Whether the thread of the block has not allocated since. Looks at both places where that may stand, so that
 * there is no branch. */
static inline bool is_last_of_thread(const work *at, const coffer__mlyze_held *block, size_t event,
                                     uint64_t is_free)
{
    uint64_t batch_begin = at->batch->first_piece << 16;
    uint64_t here = (at->serial << 16 | event) - batch_begin;
    uint64_t is_here = is_free & (0 - (uint64_t)(block->order >= batch_begin));
    uint64_t place = choose(is_here, block->order - batch_begin, here);
    if (at->sees_all)
        return at->last_before[block->thread] == block->order;
    bool last_here = at->batch->pieces[place >> 16].order[place & UINT16_MAX] > here;
    bool last_before =
        (at->last_before[block->thread] == block->order) & (at->pass->first_here[block->thread] > here);
    return is_here ? last_here : last_before;
}

/* is_free : all ones, or none; then the block is none and so is the answer. */
__attribute__((always_inline)) static inline bool is_temporary(const work *at,
                                                               const coffer__mlyze_held *block, size_t event,
                                                               uint64_t is_free)
{
    const coffer_mlyze_stats_opts *query = &at->pass->query;
    if (query->temporary_allocs == 0 && query->temporary_us == 0)
        return (block->order >= at->pass->window_piece << 16) & is_last_of_thread(at, block, event, is_free) &
               (bool)is_free;
    if (query->temporary_us > 0 &&
        coffer__mlyze_since(block->time, at->events.time[event]) <= query->temporary_us)
        return block->order >=
               (query->temporary_allocs > 0 ? at->pass->window_alloc : at->pass->window_piece << 16);
    if (query->temporary_allocs == 0 || block->order < at->pass->window_alloc)
        return false;
    return order_of(at, event) - block->order - 1 < query->temporary_allocs;
}

/* ---- Sums ---- */

static inline unsigned bucket_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

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

static inline void count_alloc(const work *at, coffer__mlyze_row *row, coffer__mlyze_row *thread,
                               uint64_t size)
{
    unsigned bucket = bucket_of(size);
    row->allocs++;
    row->allocated_bytes = coffer__mlyze_sum(row->allocated_bytes, size);
    thread->allocs++;
    thread->allocated_bytes = coffer__mlyze_sum(thread->allocated_bytes, size);
    at->shard->sizes.count[bucket]++;
    at->shard->sizes.bytes[bucket] = coffer__mlyze_sum(at->shard->sizes.bytes[bucket], size);
}

static void note(uint64_t *count, uint64_t *first, uint64_t event)
{
    if ((*count)++ == 0)
        *first = event;
}

static coffer_status sum_replaced(const work *at, size_t event, const coffer__mlyze_held *old,
                                  coffer_error *err)
{
    coffer__mlyze_shard *shard = at->shard;
    size_t number = (size_t)(shard - at->pass->shards);
    coffer_status status = coffer__array_reserve_one(&shard->replaced, &shard->replaced_capacity,
                                                     shard->replaced_count, sizeof *shard->replaced, err);
    if (status)
        return status;
    at->events.type[event] = COFFER__MLYZE_REPLACING;
    at->events.address[event] = (uint64_t)number << 48 | shard->replaced_count;
    shard->replaced[shard->replaced_count++] = *old;
    remove_live(&shard->rows[old->stack], old->size, at->epoch);
    remove_live(&shard->threads[old->thread], old->size, at->epoch);
    if (at->counting)
        note(&shard->double_allocs, &shard->first_double_alloc, at->events.first + event);
    return COFFER_OK;
}

static inline coffer_status sum_alloc(const work *at, size_t event, const coffer__mlyze_finding *found,
                                      coffer_error *err)
{
    const coffer_mlyze_events *events = &at->events;
    coffer__mlyze_row *row = &at->shard->rows[at->row[event]];
    coffer__mlyze_row *thread = &at->shard->threads[events->thread[event]];
    uint64_t size = events->size[event];
    coffer_status status = COFFER_OK;
    if (found->what == COFFER__MLYZE_FOUND_BLOCK)
        status = sum_replaced(at, event, &found->block, err);
    add_live(row, size, at->epoch);
    add_live(thread, size, at->epoch);
    if (at->counting) {
        count_alloc(at, row, thread, size);
        at->shard->reused += found->what == COFFER__MLYZE_FOUND_AGAIN;
    }
    return status;
}

static inline void sum_free(const work *at, size_t event, const coffer__mlyze_finding *found)
{
    const coffer_mlyze_events *events = &at->events;
    coffer__mlyze_shard *shard = at->shard;
    const coffer__mlyze_held *block = &found->block;
    if (found->what < COFFER__MLYZE_FOUND_BLOCK) {
        events->type[event] = COFFER__MLYZE_UNPAIRED;
        if (at->counting)
            note(&shard->unknown_frees, &shard->first_unknown_free, events->first + event);
        return;
    }
    coffer__mlyze_row *row = &shard->rows[block->stack];
    events->size[event] = block->size;
    events->thread[event] = block->thread;
    at->row[event] = block->stack;
    remove_live(row, block->size, at->epoch);
    remove_live(&shard->threads[block->thread], block->size, at->epoch);
    if (!at->counting)
        return;
    uint64_t lifetime = coffer__mlyze_since(block->time, events->time[event]);
    unsigned bucket = bucket_of(lifetime);
    row->freed_allocs++;
    row->lifetime += lifetime;
    shard->lifetimes.count[bucket]++;
    shard->lifetimes.bytes[bucket] += block->size;
    if (found->what == COFFER__MLYZE_FOUND_BRIEF) {
        row->temporary_allocs++;
        row->temporary_bytes += block->size;
    }
}

/* Address 0 stands for one that is not known: allocated, never live. */
static void sum_nowhere(const work *at, size_t event)
{
    const coffer_mlyze_events *events = &at->events;
    if (events->type[event] == COFFER_MLYZE_FREE) {
        events->type[event] = COFFER__MLYZE_UNPAIRED;
        return;
    }
    events->type[event] = COFFER__MLYZE_NOWHERE;
    note_thread(at, events->thread[event], event);
    if (!at->counting)
        return;
    at->shard->nowhere_allocs++;
    count_alloc(at, &at->shard->rows[at->row[event]], &at->shard->threads[events->thread[event]],
                events->size[event]);
}

/* ---- Pairing ---- */

static inline coffer_status pair_alloc(coffer__mlyze_finding *found, const work *at, size_t event,
                                       coffer_error *err)
{
    static const uint8_t found_by_put[] = { COFFER__MLYZE_FOUND_NOTHING, COFFER__MLYZE_FOUND_AGAIN,
                                            COFFER__MLYZE_FOUND_BLOCK };
    const coffer_mlyze_events *events = &at->events;
    uint64_t address = events->address[event];
    coffer__mlyze_held block = { .size = events->size[event],
                                 .time = events->time[event],
                                 .order = order_of(at, event),
                                 .stack = at->row[event],
                                 .thread = events->thread[event] };
    coffer__mlyze_put what;
    coffer_status status =
        coffer__mlyze_live_put(&what, &at->shard->live, coffer__mlyze_hash(&at->pass->key, address), address,
                               &block, &found->block, err);
    if (!status)
        found->what = found_by_put[what];
    note_thread(at, block.thread, event);
    return status;
}

static inline void pair_free(coffer__mlyze_finding *found, const work *at, size_t event)
{
    uint64_t address = at->events.address[event];
    if (!coffer__mlyze_live_take(&found->block, &at->shard->live, coffer__mlyze_hash(&at->pass->key, address),
                                 address))
        found->what = COFFER__MLYZE_FOUND_NOTHING;
    else
        found->what = is_temporary(at, &found->block, event, UINT64_MAX) ? COFFER__MLYZE_FOUND_BRIEF
                                                                         : COFFER__MLYZE_FOUND_BLOCK;
}

static coffer_status pair_slowly(const work *at, size_t event, coffer_error *err)
{
    coffer__mlyze_finding found;
    coffer_status status = COFFER_OK;
    if (at->events.address[event] == 0) {
        sum_nowhere(at, event);
    } else if (at->events.type[event] == COFFER_MLYZE_FREE) {
        pair_free(&found, at, event);
        sum_free(at, event, &found);
    } else {
        status = pair_alloc(&found, at, event, err);
        if (!status)
            status = sum_alloc(at, event, &found, err);
    }
    return status;
}

/* Sums one allocation or free. is_alloc : all ones, or none. */
static inline void sum_block(const work *at, const coffer__mlyze_held *block, uint64_t lifetime,
                             uint64_t is_alloc, uint64_t is_brief)
{
    coffer__mlyze_shard *shard = at->shard;
    uint64_t size = block->size, epoch = at->epoch, counts = 0 - (uint64_t)at->counting;
    uint64_t one = choose(is_alloc, 1, UINT64_MAX), change = choose(is_alloc, size, 0 - size);
    coffer__mlyze_row *row = &shard->rows[block->stack], *thread = &shard->threads[block->thread];
    coffer__mlyze_row_touch(row, epoch);
    row->live_allocs += one;
    row->live_bytes += change;
    coffer__mlyze_row_touch(thread, epoch);
    thread->live_allocs += one;
    thread->live_bytes += change;
    uint64_t counts_alloc = counts & is_alloc, counts_free = counts & ~is_alloc;
    row->allocs += counts_alloc & 1;
    row->allocated_bytes = coffer__mlyze_sum(row->allocated_bytes, counts_alloc & size);
    thread->allocs += counts_alloc & 1;
    thread->allocated_bytes = coffer__mlyze_sum(thread->allocated_bytes, counts_alloc & size);
    row->freed_allocs += counts_free & 1;
    row->lifetime += counts_free & lifetime;
    row->temporary_allocs += counts_free & is_brief & 1;
    row->temporary_bytes += counts_free & is_brief & size;
    coffer_mlyze_histogram *histogram = is_alloc ? &shard->sizes : &shard->lifetimes;
    unsigned bucket = bucket_of(choose(is_alloc, size, lifetime));
    histogram->count[bucket] += counts & 1;
    histogram->bytes[bucket] = coffer__mlyze_sum(histogram->bytes[bucket], counts & size);
}

/* Where the slot of an event's address was when the group was begun: it may have been taken since. */
typedef struct located {
    uint64_t hash;
    coffer__mlyze_part *part;
    coffer__mlyze_slot *slot;
} located;

/* Hashes, and slots on their way from memory. */
static inline void approach(located *out, const work *at, const uint16_t *list, size_t count)
{
    const coffer__mlyze_key key = at->pass->key;
    const uint64_t *address = at->events.address;
    for (size_t i = 0; i < count; i++) {
        out[i].hash = coffer__mlyze_hash(&key, address[list[i]]);
        out[i].part = &at->shard->live.parts[out[i].hash % COFFER__MLYZE_PARTS];
        coffer__mlyze_prefetch(out[i].part, out[i].hash);
    }
}

/* Slots are looked for before any of the group changes one. Else each search would wait for the place of the
 * last change to be known: an allocator gives the same address out again at once, and the processor has
 * learned that what it loads was stored just before. */
static inline void locate(located *where, const work *at, const uint16_t *list, size_t count)
{
    const uint64_t *address = at->events.address;
    for (size_t i = 0; i < count; i++)
        where[i].slot = coffer__mlyze_find_slot(where[i].part, where[i].hash, address[list[i]]);
}

/* An allocation of a new block or a free of a live one, without a branch that depends on which it is: no
 * predictor learns their order. False for everything else, with nothing changed. */
static inline bool pair_quickly(const work *at, size_t event, const located *where)
{
    const coffer_mlyze_events *events = &at->events;
    coffer__mlyze_part *part = where->part;
    coffer__mlyze_slot *slot = where->slot;
    uint64_t address = events->address[event], now = events->time[event];
    uint64_t is_alloc = 0 - (uint64_t)(events->type[event] == COFFER_MLYZE_ALLOC);
    if (part->used >= part->max_used || address == 0)
        return false;
    coffer__mlyze_held fresh = { .size = events->size[event],
                                 .time = now,
                                 .order = order_of(at, event),
                                 .stack = at->row[event],
                                 .thread = events->thread[event] };
    coffer__mlyze_held block;
    coffer__mlyze_slot packed;
    bool is_new = slot->address == 0, is_taken = slot->address != address;
    bool is_live = !is_new && !coffer__mlyze_is_dead(slot);
    if ((!is_new && is_taken) || is_live == (is_alloc != 0) || coffer__mlyze_is_wide(slot) ||
        !coffer__mlyze_fits_slot(&fresh) || slot >= part->end)
        return false;
    coffer__mlyze_unpack(&block, slot);
    coffer__mlyze_pack(&packed, &fresh);
    slot->address = address;
    slot->sized = packed.sized & is_alloc;
    slot->timed = choose(is_alloc, packed.timed, slot->timed | COFFER__MLYZE_DEAD);
    slot->placed = choose(is_alloc, packed.placed, slot->placed);
    part->used += is_new;
    part->live += (uint32_t)choose(is_alloc, 1, UINT64_MAX);
    at->shard->reused += is_alloc & !is_new & at->counting;

    uint64_t is_brief = 0 - (uint64_t)is_temporary(at, &block, event, ~is_alloc);
    uint64_t lifetime = coffer__mlyze_since(choose(is_alloc, now, block.time), now);
    block.size = choose(is_alloc, fresh.size, block.size);
    block.stack = (uint32_t)choose(is_alloc, fresh.stack, block.stack);
    block.thread = (uint16_t)choose(is_alloc, fresh.thread, block.thread);
    events->size[event] = block.size;
    events->thread[event] = block.thread;
    at->row[event] = block.stack;
    if (at->sees_all) /* a free writes what is there */
        at->last_before[block.thread] = choose(is_alloc, fresh.order, at->last_before[block.thread]);
    sum_block(at, &block, lifetime, is_alloc, is_brief);
    return true;
}

static coffer_status pair_group(located *where, const work *at, const uint16_t *list, size_t count,
                                coffer_error *err)
{
    locate(where, at, list, count);
    for (size_t i = 0; i < count; i++) {
        if (pair_quickly(at, list[i], &where[i]))
            continue;
        coffer_status status = pair_slowly(at, list[i], err);
        if (status)
            return status;
        locate(where + i + 1, at, list + i + 1, count - i - 1);
    }
    return COFFER_OK;
}

static size_t group_at(size_t count, size_t from)
{
    return from >= count ? 0 : count - from < GROUP ? count - from : GROUP;
}

static coffer_status pair_in_memory(const work *at, const uint16_t *list, size_t count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    located groups[2][GROUP], *now = groups[0], *next = groups[1];
    approach(now, at, list, group_at(count, 0));
    for (size_t from = 0; from < count && !status; from += GROUP) {
        approach(next, at, list + from + GROUP, group_at(count, from + GROUP));
        status = pair_group(now, at, list + from, group_at(count, from), err);
        located *done = now;
        now = next;
        next = done;
    }
    return status;
}

static coffer_status pair_to_stream(const work *at, const uint16_t *list, size_t count, coffer_error *err)
{
    const coffer_mlyze_events *events = &at->events;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        size_t event = list[i];
        coffer__mlyze_finding found;
        if (events->address[event] == 0)
            continue;
        if (events->type[event] == COFFER_MLYZE_FREE)
            pair_free(&found, at, event);
        else
            status = pair_alloc(&found, at, event, err);
        if (!status)
            status = coffer__mlyze_stream_put(at->shard->streams, at->pass->spool, &found, err);
    }
    return status;
}

static coffer__mlyze_stream *stream_of(const coffer__mlyze_shard *shard, uint64_t hash)
{
    size_t low = 0, high = shard->stream_count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hash > shard->streams[middle].high)
            low = middle + 1;
        else
            high = middle;
    }
    return &shard->streams[low];
}

static coffer_status pair_from_streams(const work *at, const uint16_t *list, size_t count, coffer_error *err)
{
    const coffer_mlyze_events *events = &at->events;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        size_t event = list[i];
        uint64_t address = events->address[event];
        coffer__mlyze_finding found;
        if (address == 0) {
            sum_nowhere(at, event);
            continue;
        }
        status = coffer__mlyze_stream_get(&found,
                                          stream_of(at->shard, coffer__mlyze_hash(&at->pass->key, address)),
                                          at->pass->spool, err);
        if (status)
            break;
        if (events->type[event] == COFFER_MLYZE_FREE)
            sum_free(at, event, &found);
        else
            status = sum_alloc(at, event, &found, err);
    }
    return status;
}

static coffer_status make_rows(coffer__mlyze_shard *shard, size_t count, coffer_error *err)
{
    if (count <= shard->row_capacity)
        return COFFER_OK;
    size_t capacity = count + count / 2;
    coffer__mlyze_row *rows = coffer__calloc(capacity, sizeof *rows);
    if (!rows)
        return coffer__fail_no_memory(err, capacity * sizeof *rows);
    if (shard->row_capacity)
        memcpy(rows, shard->rows, shard->row_capacity * sizeof *rows);
    coffer__free(shard->rows);
    shard->rows = rows;
    shard->row_capacity = capacity;
    return COFFER_OK;
}

coffer_status coffer__mlyze_pair_batch(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch,
                                       size_t shard, coffer_error *err)
{
    static coffer_status (*const pair[])(const work *, const uint16_t *, size_t,
                                         coffer_error *) = { pair_in_memory, pair_to_stream,
                                                             pair_from_streams };
    coffer__mlyze_shard *mine = &pass->shards[shard];
    coffer_status status = COFFER_OK;
    if (mine->overflowed)
        return COFFER_OK;
    if (pass->kind != COFFER__MLYZE_SPILL)
        status = make_rows(mine, coffer__mlyze_numbers_count(&pass->stacks), err);
    mine->replaced_count = 0;
    for (size_t i = 0; i < batch->count && !status; i++) {
        work at = work_on(pass, batch, i, shard);
        status = pair[pass->kind](&at, at.piece->listed + shard * at.piece->capacity,
                                  at.piece->list_count[shard], err);
    }
    if (status == COFFER_E_LIMIT && pass->kind == COFFER__MLYZE_SPILL) {
        mine->overflowed = true;
        coffer__mlyze_live_free(&mine->live);
        return COFFER_OK;
    }
    return status;
}

/* ---- After the high-water mark ---- */

/* Rows of the new epoch begin with what is live after the batch. */
static void take_back(coffer__mlyze_row *row, uint64_t allocs, uint64_t bytes, uint64_t epoch)
{
    coffer__mlyze_row_touch(row, epoch);
    row->peak_allocs -= allocs;
    row->peak_bytes -= bytes;
}

static void take_back_event(const work *at, size_t event)
{
    const coffer_mlyze_events *events = &at->events;
    coffer__mlyze_row *row = &at->shard->rows[at->row[event]];
    coffer__mlyze_row *thread = &at->shard->threads[events->thread[event]];
    uint64_t size = events->size[event], epoch = at->epoch;
    switch (events->type[event]) {
    case COFFER__MLYZE_PAIRED_FREE:
        take_back(row, UINT64_MAX, 0 - size, epoch); /* −1 block: one more */
        take_back(thread, UINT64_MAX, 0 - size, epoch);
        break;
    case COFFER__MLYZE_REPLACING: {
        const coffer__mlyze_held *old = &at->shard->replaced[events->address[event] & UINT32_MAX];
        take_back(&at->shard->rows[old->stack], UINT64_MAX, 0 - old->size, epoch);
        take_back(&at->shard->threads[old->thread], UINT64_MAX, 0 - old->size, epoch);
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
    for (size_t i = (size_t)(pass->tail_after >> 16); i < batch->count; i++) {
        work at = work_on(pass, batch, i, shard);
        const uint16_t *list = at.piece->listed + shard * at.piece->capacity;
        for (size_t k = at.piece->list_count[shard]; k > 0; k--) {
            size_t event = list[k - 1];
            if (((uint64_t)i << 16 | event) <= pass->tail_after)
                break;
            take_back_event(&at, event);
        }
    }
}
