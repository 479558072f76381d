/* Pairs the frees of one shard with their allocations: in memory, into a temporary file, or out of it. */
#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_live_slots.h"
#include "formats/mlyze/analyze/mlyze_pass_sums.h"

#include <string.h>

/* Events whose slots are searched together, while those of the next group are being prefetched. */
#define GROUP 32

/* ---- Temporary allocations ---- */

/* The number stored with a block, from which `is_temporary` decides. */
static inline uint64_t order_of(const coffer__mlyze_shard_work *work, size_t event)
{
    if (work->pass->opts.temporary_allocs > 0)
        return work->piece->allocs_before + work->piece->order[event];
    return work->serial << 16 | event;
}

/* Whether the thread of the block has not allocated since. Evaluates both cases to avoid a branch. */
static inline bool is_last_of_thread(const coffer__mlyze_shard_work *work, const coffer__mlyze_held *block,
                                     size_t event, uint64_t is_free)
{
    uint64_t batch_begin = work->batch->first_piece << 16;
    uint64_t here = (work->serial << 16 | event) - batch_begin;
    uint64_t is_here = is_free & (0 - (uint64_t)(block->order >= batch_begin));
    uint64_t place = choose(is_here, block->order - batch_begin, here);
    if (work->sees_all)
        return work->last_before[block->thread] == block->order;
    bool last_here = work->batch->pieces[place >> 16].order[place & UINT16_MAX] > here;
    bool last_before = (work->last_before[block->thread] == block->order) &
                       (work->pass->chains.first_here[block->thread] > here);
    return is_here ? last_here : last_before;
}

/* is_free : all ones or 0; with 0 the block is invalid and the result is false. */
__attribute__((always_inline)) static inline bool is_temporary(const coffer__mlyze_shard_work *work,
                                                               const coffer__mlyze_held *block, size_t event,
                                                               uint64_t is_free)
{
    const coffer_mlyze_stats_opts *query = &work->pass->opts;
    if (query->temporary_allocs == 0 && query->temporary_us == 0)
        return (block->order >= work->pass->state.window_piece << 16) &
               is_last_of_thread(work, block, event, is_free) & (bool)is_free;
    if (query->temporary_us > 0 &&
        coffer__mlyze_since(block->time, work->events.time[event]) <= query->temporary_us)
        return block->order >= (query->temporary_allocs > 0 ? work->pass->state.window_alloc
                                                            : work->pass->state.window_piece << 16);
    if (query->temporary_allocs == 0 || block->order < work->pass->state.window_alloc)
        return false;
    return order_of(work, event) - block->order - 1 < query->temporary_allocs;
}

/* ---- Pairing ---- */

static inline coffer_status pair_alloc(coffer__mlyze_finding *found, const coffer__mlyze_shard_work *work,
                                       size_t event, coffer_error *err)
{
    static const uint8_t found_by_put[] = { COFFER__MLYZE_FOUND_NOTHING, COFFER__MLYZE_FOUND_AGAIN,
                                            COFFER__MLYZE_FOUND_BLOCK };
    const coffer_mlyze_events *events = &work->events;
    uint64_t address = events->address[event];
    coffer__mlyze_held block = { .size = events->size[event],
                                 .time = events->time[event],
                                 .order = order_of(work, event),
                                 .stack = work->row[event],
                                 .thread = events->thread[event] };
    coffer__mlyze_put what;
    coffer_status status =
        coffer__mlyze_live_put(&what, &work->shard->live, coffer__mlyze_hash(&work->pass->key, address),
                               address, &block, &found->block, err);
    if (!status)
        found->what = found_by_put[what];
    note_thread(work, block.thread, event);
    return status;
}

static inline void pair_free(coffer__mlyze_finding *found, const coffer__mlyze_shard_work *work, size_t event)
{
    uint64_t address = work->events.address[event];
    if (!coffer__mlyze_live_take(&found->block, &work->shard->live,
                                 coffer__mlyze_hash(&work->pass->key, address), address))
        found->what = COFFER__MLYZE_FOUND_NOTHING;
    else
        found->what = is_temporary(work, &found->block, event, UINT64_MAX) ? COFFER__MLYZE_FOUND_BRIEF
                                                                           : COFFER__MLYZE_FOUND_BLOCK;
}

static coffer_status pair_slowly(const coffer__mlyze_shard_work *work, size_t event, coffer_error *err)
{
    coffer__mlyze_finding found;
    coffer_status status = COFFER_OK;
    if (work->events.address[event] == 0) {
        sum_nowhere(work, event);
    } else if (work->events.type[event] == COFFER_MLYZE_FREE) {
        pair_free(&found, work, event);
        sum_free(work, event, &found);
    } else {
        status = pair_alloc(&found, work, event, err);
        if (!status)
            status = sum_alloc(work, event, &found, err);
    }
    return status;
}

/* The slot of an event's address at the start of the group; it may have changed since. */
typedef struct located {
    uint64_t hash;
    coffer__mlyze_part *part;
    coffer__mlyze_slot *slot;
} located;

/* Computes hashes and prefetches slots. */
static inline void approach(located *out, const coffer__mlyze_shard_work *work, const uint16_t *list,
                            size_t count)
{
    const coffer__mlyze_key key = work->pass->key;
    const uint64_t *address = work->events.address;
    for (size_t i = 0; i < count; i++) {
        out[i].hash = coffer__mlyze_hash(&key, address[list[i]]);
        out[i].part = &work->shard->live.parts[out[i].hash % COFFER__MLYZE_PARTS];
        coffer__mlyze_prefetch(out[i].part, out[i].hash);
    }
}

/* Searches all slots before the group changes any. Otherwise each search would wait for the previous store:
 * allocators reuse addresses at once, so the processor predicts that each load depends on the last store. */
static inline void locate(located *where, const coffer__mlyze_shard_work *work, const uint16_t *list,
                          size_t count)
{
    const uint64_t *address = work->events.address;
    for (size_t i = 0; i < count; i++)
        where[i].slot = coffer__mlyze_find_slot(where[i].part, where[i].hash, address[list[i]]);
}

/* Adds what was found to the sums: an allocation of `fresh`, or a free of `block`. */
__attribute__((always_inline)) static inline void sum_pair(const coffer__mlyze_shard_work *work, size_t event,
                                                           coffer__mlyze_held fresh, coffer__mlyze_held block,
                                                           uint64_t is_alloc)
{
    const coffer_mlyze_events *events = &work->events;
    uint64_t now = fresh.time;
    uint64_t is_brief = 0 - (uint64_t)is_temporary(work, &block, event, ~is_alloc);
    uint64_t lifetime = coffer__mlyze_since(choose(is_alloc, now, block.time), now);
    block.size = choose(is_alloc, fresh.size, block.size);
    block.stack = (uint32_t)choose(is_alloc, fresh.stack, block.stack);
    block.thread = (uint16_t)choose(is_alloc, fresh.thread, block.thread);
    events->size[event] = block.size;
    events->thread[event] = block.thread;
    work->row[event] = block.stack;
    if (work->sees_all) /* a free stores the old value */
        work->last_before[block.thread] = choose(is_alloc, fresh.order, work->last_before[block.thread]);
    sum_block(work, &block, lifetime, is_alloc, is_brief);
}

/* Handles an allocation of a new block or a free of a live one without a branch on the type, since their
 * order is unpredictable. Returns false and changes nothing in all other cases. */
static inline bool pair_quickly(const coffer__mlyze_shard_work *work, size_t event, const located *where)
{
    const coffer_mlyze_events *events = &work->events;
    coffer__mlyze_part *part = where->part;
    coffer__mlyze_slot *slot = where->slot;
    uint64_t address = events->address[event], now = events->time[event];
    uint64_t is_alloc = 0 - (uint64_t)(events->type[event] == COFFER_MLYZE_ALLOC);
    if (part->used >= part->max_used || address == 0)
        return false;
    coffer__mlyze_held fresh = { .size = events->size[event],
                                 .time = now,
                                 .order = order_of(work, event),
                                 .stack = work->row[event],
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
    work->shard->reused += is_alloc & !is_new & work->counting;

    sum_pair(work, event, fresh, block, is_alloc);
    return true;
}

static coffer_status pair_group(located *where, const coffer__mlyze_shard_work *work, const uint16_t *list,
                                size_t count, coffer_error *err)
{
    locate(where, work, list, count);
    for (size_t i = 0; i < count; i++) {
        if (pair_quickly(work, list[i], &where[i]))
            continue;
        coffer_status status = pair_slowly(work, list[i], err);
        if (status)
            return status;
        locate(where + i + 1, work, list + i + 1, count - i - 1);
    }
    return COFFER_OK;
}

static size_t group_at(size_t count, size_t from)
{
    return from >= count ? 0 : count - from < GROUP ? count - from : GROUP;
}

static coffer_status pair_in_memory(const coffer__mlyze_shard_work *work, const uint16_t *list, size_t count,
                                    coffer_error *err)
{
    coffer_status status = COFFER_OK;
    located groups[2][GROUP], *now = groups[0], *next = groups[1];
    approach(now, work, list, group_at(count, 0));
    for (size_t from = 0; from < count && !status; from += GROUP) {
        approach(next, work, list + from + GROUP, group_at(count, from + GROUP));
        status = pair_group(now, work, list + from, group_at(count, from), err);
        located *done = now;
        now = next;
        next = done;
    }
    return status;
}

static coffer_status pair_to_stream(const coffer__mlyze_shard_work *work, const uint16_t *list, size_t count,
                                    coffer_error *err)
{
    const coffer_mlyze_events *events = &work->events;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        size_t event = list[i];
        coffer__mlyze_finding found;
        if (events->address[event] == 0)
            continue;
        if (events->type[event] == COFFER_MLYZE_FREE)
            pair_free(&found, work, event);
        else
            status = pair_alloc(&found, work, event, err);
        if (!status)
            status = coffer__mlyze_stream_put(work->shard->streams, work->pass->spool, &found, err);
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

static coffer_status pair_from_streams(const coffer__mlyze_shard_work *work, const uint16_t *list,
                                       size_t count, coffer_error *err)
{
    const coffer_mlyze_events *events = &work->events;
    coffer_status status = COFFER_OK;
    for (size_t i = 0; i < count && !status; i++) {
        size_t event = list[i];
        uint64_t address = events->address[event];
        coffer__mlyze_finding found;
        if (address == 0) {
            sum_nowhere(work, event);
            continue;
        }
        status =
            coffer__mlyze_stream_get(&found,
                                     stream_of(work->shard, coffer__mlyze_hash(&work->pass->key, address)),
                                     work->pass->spool, err);
        if (status)
            break;
        if (events->type[event] == COFFER_MLYZE_FREE)
            sum_free(work, event, &found);
        else
            status = sum_alloc(work, event, &found, err);
    }
    return status;
}

coffer_status coffer__mlyze_make_rows(coffer__mlyze_shard *shard, size_t count, coffer_error *err)
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
    static coffer_status (*const pair[])(const coffer__mlyze_shard_work *, const uint16_t *, size_t,
                                         coffer_error *) = { pair_in_memory, pair_to_stream,
                                                             pair_from_streams };
    coffer__mlyze_shard *mine = &pass->shards.items[shard];
    coffer_status status = COFFER_OK;
    if (mine->overflowed)
        return COFFER_OK;
    if (pass->kind != COFFER__MLYZE_SPILL)
        status = coffer__mlyze_make_rows(mine, coffer__mlyze_numbers_count(&pass->stacks), err);
    mine->replaced_count = 0;
    for (size_t i = 0; i < batch->count && !status; i++) {
        coffer__mlyze_shard_work work = coffer__mlyze_shard_on(pass, batch, i, shard);
        status = pair[pass->kind](&work, coffer__mlyze_listed(work.piece, shard),
                                  work.piece->list_count[shard], err);
    }
    if (status == COFFER_E_LIMIT && pass->kind == COFFER__MLYZE_SPILL) {
        mine->overflowed = true;
        coffer__mlyze_live_free(&mine->live);
        return COFFER_OK;
    }
    return status;
}
