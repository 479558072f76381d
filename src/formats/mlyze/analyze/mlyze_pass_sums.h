/* Sums of one shard by stack and by thread. In a header, so that the loop over the events of a piece, in
 * mlyze_pass_pair.c, has them inline. */
#ifndef COFFER_FORMATS_MLYZE_PASS_SUMS_H
#define COFFER_FORMATS_MLYZE_PASS_SUMS_H

#include "base/buffer.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

/* One piece that a shard works on, with copies of what every event needs. */
typedef struct coffer__mlyze_shard_work {
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
} coffer__mlyze_shard_work;

static inline coffer__mlyze_shard_work coffer__mlyze_shard_on(coffer__mlyze_pass *pass,
                                                              const coffer__mlyze_batch *batch, size_t piece,
                                                              size_t shard)
{
    return (coffer__mlyze_shard_work){ .pass = pass,
                                       .batch = batch,
                                       .piece = &batch->pieces[piece],
                                       .shard = &pass->shards.items[shard],
                                       .serial = batch->first_piece + piece,
                                       .events = batch->pieces[piece].events,
                                       .row = batch->pieces[piece].row,
                                       .last_before = pass->chains.last_before,
                                       .epoch = pass->state.epoch,
                                       .counting = pass->state.counting,
                                       .sees_all = pass->shards.sees_all };
}

/* `yes` if the mask is all ones, `no` if it is 0. */
static inline uint64_t choose(uint64_t mask, uint64_t yes, uint64_t no)
{
    return no ^ ((yes ^ no) & mask);
}

/* A shard that sees every allocation tracks the last one of each thread; otherwise decoding has chained them.
 */
static inline void note_thread(const coffer__mlyze_shard_work *work, uint16_t thread, size_t event)
{
    if (work->sees_all)
        work->last_before[thread] = work->serial << 16 | event;
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

static inline void count_alloc(const coffer__mlyze_shard_work *work, coffer__mlyze_row *row,
                               coffer__mlyze_row *thread, uint64_t size)
{
    unsigned bucket = bucket_of(size);
    row->allocs++;
    row->allocated_bytes = coffer__mlyze_sum(row->allocated_bytes, size);
    thread->allocs++;
    thread->allocated_bytes = coffer__mlyze_sum(thread->allocated_bytes, size);
    work->shard->sizes.count[bucket]++;
    work->shard->sizes.bytes[bucket] = coffer__mlyze_sum(work->shard->sizes.bytes[bucket], size);
}

static inline void note(uint64_t *count, uint64_t *first, uint64_t event)
{
    if ((*count)++ == 0)
        *first = event;
}

static inline coffer_status sum_replaced(const coffer__mlyze_shard_work *work, size_t event,
                                         const coffer__mlyze_held *old, coffer_error *err)
{
    coffer__mlyze_shard *shard = work->shard;
    size_t number = (size_t)(shard - work->pass->shards.items);
    coffer_status status = coffer__array_reserve_one(&shard->replaced, &shard->replaced_capacity,
                                                     shard->replaced_count, sizeof *shard->replaced, err);
    if (status)
        return status;
    work->events.type[event] = COFFER__MLYZE_REPLACING;
    work->events.address[event] = (uint64_t)number << 48 | shard->replaced_count;
    shard->replaced[shard->replaced_count++] = *old;
    remove_live(&shard->rows[old->stack], old->size, work->epoch);
    remove_live(&shard->threads[old->thread], old->size, work->epoch);
    if (work->counting)
        note(&shard->double_allocs, &shard->first_double_alloc, work->events.first + event);
    return COFFER_OK;
}

static inline coffer_status sum_alloc(const coffer__mlyze_shard_work *work, size_t event,
                                      const coffer__mlyze_finding *found, coffer_error *err)
{
    const coffer_mlyze_events *events = &work->events;
    coffer__mlyze_row *row = &work->shard->rows[work->row[event]];
    coffer__mlyze_row *thread = &work->shard->threads[events->thread[event]];
    uint64_t size = events->size[event];
    coffer_status status = COFFER_OK;
    if (found->what == COFFER__MLYZE_FOUND_BLOCK)
        status = sum_replaced(work, event, &found->block, err);
    add_live(row, size, work->epoch);
    add_live(thread, size, work->epoch);
    if (work->counting) {
        count_alloc(work, row, thread, size);
        work->shard->reused += found->what == COFFER__MLYZE_FOUND_AGAIN;
    }
    return status;
}

static inline void sum_free(const coffer__mlyze_shard_work *work, size_t event,
                            const coffer__mlyze_finding *found)
{
    const coffer_mlyze_events *events = &work->events;
    coffer__mlyze_shard *shard = work->shard;
    const coffer__mlyze_held *block = &found->block;
    if (found->what < COFFER__MLYZE_FOUND_BLOCK) {
        events->type[event] = COFFER__MLYZE_UNPAIRED;
        if (work->counting)
            note(&shard->unknown_frees, &shard->first_unknown_free, events->first + event);
        return;
    }
    coffer__mlyze_row *row = &shard->rows[block->stack];
    events->size[event] = block->size;
    events->thread[event] = block->thread;
    work->row[event] = block->stack;
    remove_live(row, block->size, work->epoch);
    remove_live(&shard->threads[block->thread], block->size, work->epoch);
    if (!work->counting)
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

/* Address 0 means unknown: the block is allocated, but never live. */
static inline void sum_nowhere(const coffer__mlyze_shard_work *work, size_t event)
{
    const coffer_mlyze_events *events = &work->events;
    if (events->type[event] == COFFER_MLYZE_FREE) {
        events->type[event] = COFFER__MLYZE_UNPAIRED;
        return;
    }
    events->type[event] = COFFER__MLYZE_NOWHERE;
    note_thread(work, events->thread[event], event);
    if (!work->counting)
        return;
    work->shard->nowhere_allocs++;
    count_alloc(work, &work->shard->rows[work->row[event]], &work->shard->threads[events->thread[event]],
                events->size[event]);
}

/* Adds one allocation or free to the sums. is_alloc : all ones or 0. */
static inline void sum_block(const coffer__mlyze_shard_work *work, const coffer__mlyze_held *block,
                             uint64_t lifetime, uint64_t is_alloc, uint64_t is_brief)
{
    coffer__mlyze_shard *shard = work->shard;
    uint64_t size = block->size, epoch = work->epoch, counts = 0 - (uint64_t)work->counting;
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

#endif
