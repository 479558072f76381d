#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

#define PIECES_ALONE 1         /* the columns stay in the cache of the thread */
#define PIECES_PER_THREAD 4    /* threads wait for each other less often */
#define SEGMENTS_PER_THREAD 64 /* a whole block of an archive, so that threads decode different blocks */
#define MAX_PIECES 1024
#define LEAST_TABLE ((size_t)256 << 10) /* of each shard, whatever the limit */
/* Of each share when spilled: a table uses half of it before it grows, and every share costs a whole pass. */
#define LEAST_SHARE ((size_t)512 << 10)

/* ---- Memory of a pass ---- */

static coffer_status make_batches(coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t pieces = pass->threads == 1 ? PIECES_ALONE : (size_t)pass->threads * PIECES_PER_THREAD;
    if (pass->readers.items && pass->threads > 1)
        pieces = pass->threads * SEGMENTS_PER_THREAD;
    pass->batch_pieces = pieces < MAX_PIECES ? pieces : MAX_PIECES;
    for (size_t i = 0; i < 2; i++) {
        pass->batches[i].pieces = coffer__calloc(pass->batch_pieces, sizeof(coffer__mlyze_piece));
        if (!pass->batches[i].pieces)
            return coffer__fail_no_memory(err, pass->batch_pieces * sizeof(coffer__mlyze_piece));
    }
    return COFFER_OK;
}

static coffer_status make_thread_tables(coffer__mlyze_pass *pass, coffer_error *err)
{
    pass->chains.last_before = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->chains.last_before);
    pass->chains.first_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->chains.first_here);
    pass->chains.last_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->chains.last_here);
    pass->chains.threads_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->chains.threads_here);
    pass->chains.span_of = coffer__calloc(pass->threads, sizeof *pass->chains.span_of);
    pass->chains.seen_by = coffer__calloc(pass->threads, sizeof *pass->chains.seen_by);
    if (!pass->chains.last_before || !pass->chains.first_here || !pass->chains.last_here ||
        !pass->chains.threads_here || !pass->chains.span_of || !pass->chains.seen_by)
        return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *pass->chains.last_before);
    for (uint32_t i = 0; i < pass->threads; i++) {
        pass->chains.span_of[i] = coffer__calloc(COFFER__MLYZE_THREADS, sizeof **pass->chains.span_of);
        pass->chains.seen_by[i] = coffer__calloc(COFFER__MLYZE_THREADS, sizeof **pass->chains.seen_by);
        if (!pass->chains.span_of[i] || !pass->chains.seen_by[i])
            return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof **pass->chains.span_of);
    }
    return COFFER_OK;
}

static void free_shards(coffer__mlyze_pass *pass)
{
    for (size_t i = 0; i < pass->shards.count; i++) {
        coffer__mlyze_shard *shard = &pass->shards.items[i];
        coffer__mlyze_live_free(&shard->live);
        coffer__free(shard->rows);
        coffer__free(shard->threads);
        coffer__free(shard->replaced);
        for (size_t k = 0; k < shard->stream_count; k++)
            coffer__mlyze_stream_free(&shard->streams[k]);
        coffer__free(shard->streams);
    }
    coffer__free(pass->shards.items);
    pass->shards.items = NULL;
    pass->shards.count = 0;
}

void coffer__mlyze_pass_free(coffer__mlyze_pass *pass)
{
    free_shards(pass);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; pass->batches[i].pieces && k < pass->batch_pieces; k++)
            coffer__mlyze_piece_free(&pass->batches[i].pieces[k]);
        coffer__free(pass->batches[i].pieces);
    }
    for (uint32_t i = 0; pass->chains.span_of && i < pass->threads; i++)
        coffer__free(pass->chains.span_of[i]);
    for (uint32_t i = 0; pass->chains.seen_by && i < pass->threads; i++)
        coffer__free(pass->chains.seen_by[i]);
    coffer__free(pass->chains.span_of);
    coffer__free(pass->chains.seen_by);
    coffer__free(pass->chains.last_before);
    coffer__free(pass->chains.first_here);
    coffer__free(pass->chains.last_here);
    coffer__free(pass->chains.threads_here);
    coffer__free(pass->boundaries.items);
    coffer__free(pass->results.leftovers);
    coffer__free(pass->results.marks);
    coffer__free(pass->results.phases);
    coffer__free(pass->results.thread_names);
    coffer__mlyze_readers_free(pass);
    coffer__mlyze_growth_free(&pass->growth);
    coffer__mlyze_numbers_free(&pass->stacks);
    coffer__pool_free(pass->pool);
}

/* ---- Beginning ---- */

coffer_status coffer__mlyze_pass_init(coffer__mlyze_pass *pass, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats_opts *query, coffer_error *err)
{
    memset(pass, 0, sizeof *pass);
    pass->trace = trace;
    pass->opts = *query;
    pass->limits = coffer__limits(query->limits);
    pass->key = coffer__mlyze_new_key();
    coffer_status status = coffer__mlyze_get_map(&pass->map, trace, err);
    if (!status)
        status = coffer__pool_new(&pass->pool, query->threads, err);
    if (status)
        goto out;
    pass->threads = coffer__pool_threads(pass->pool);
    pass->shards.max = pass->threads < COFFER__MLYZE_MAX_SHARDS ? pass->threads : COFFER__MLYZE_MAX_SHARDS;
    pass->budget.max = pass->limits.memory_bytes < SIZE_MAX ? (size_t)pass->limits.memory_bytes : SIZE_MAX;
    if (pass->budget.max < pass->shards.max * LEAST_TABLE)
        pass->budget.max = pass->shards.max * LEAST_TABLE;
    pass->course.end_event = query->end < pass->map->event_count ? query->end : pass->map->event_count;
    if (pass->opts.begin > pass->course.end_event)
        pass->opts.begin = pass->course.end_event;
    coffer__mlyze_numbers_init(&pass->stacks, &trace->metadata.stacks.ids, pass->limits.entries);
    status = coffer__mlyze_readers_init(pass, err);
    if (!status)
        status = make_batches(pass, err);
    if (!status)
        status = make_thread_tables(pass, err);
    if (status)
        goto out;
    status = coffer__mlyze_set_boundaries(pass, err);
out:
    if (status)
        coffer__mlyze_pass_free(pass);
    return status;
}

static void rewind_pass(coffer__mlyze_pass *pass)
{
    pass->boundaries.next = 0;
    pass->course.next_block = 0;
    pass->course.next_event = 0;
    pass->course.done_events = 0;
    pass->course.piece_count = pass->course.alloc_count = 0;
    pass->course.settled_pieces = pass->course.settled_allocs = 0;
    pass->state.counting = false;
    pass->state.window_piece = pass->state.window_alloc = 0;
    pass->state.level = pass->state.high = 0;
    pass->state.epoch = 0;
    pass->state.last_type = UINT8_MAX;
    pass->state.last_time = 0;
    pass->results.mark_count = pass->results.phase_count = 0;
    pass->chains.threads_here_count = 0;
    memset(&pass->results.totals, 0, sizeof pass->results.totals);
    memset(pass->chains.first_here, 0xff, COFFER__MLYZE_THREADS * sizeof *pass->chains.first_here);
    memset(pass->chains.last_before, 0xff, COFFER__MLYZE_THREADS * sizeof *pass->chains.last_before);
    pass->growth.sampled = 0;
    pass->growth.row_count = 0;
    pass->growth.sum_x = pass->growth.sum_xx = 0;
    atomic_store(&pass->budget.exceeded, false);
}

coffer_status coffer__mlyze_pass_begin(coffer__mlyze_pass *pass, coffer__mlyze_pass_kind kind,
                                       size_t shard_count, coffer_error *err)
{
    free_shards(pass);
    rewind_pass(pass);
    coffer__mlyze_readers_rewind(pass);
    pass->kind = kind;
    pass->shards.sees_all = kind == COFFER__MLYZE_IN_MEMORY && shard_count == 1;
    pass->shards.items = coffer__calloc(shard_count, sizeof *pass->shards.items);
    if (!pass->shards.items)
        return coffer__fail_no_memory(err, shard_count * sizeof *pass->shards.items);
    pass->shards.count = shard_count;
    for (size_t i = 0; i < shard_count; i++) {
        coffer__mlyze_shard *shard = &pass->shards.items[i];
        uint64_t share = UINT64_MAX / shard_count;
        pass->shards.low[i] = i * share + (i > 0);
        pass->shards.high[i] = i + 1 < shard_count ? (i + 1) * share : UINT64_MAX;
        shard->budget.max = pass->budget.max / shard_count;
        if (shard->budget.max < LEAST_SHARE)
            shard->budget.max = LEAST_SHARE;
        coffer__mlyze_live_init(&shard->live, pass->key,
                                kind == COFFER__MLYZE_SPILL ? &shard->budget : &pass->budget);
        shard->live.remember = pass->opts.reuse;
        if (kind == COFFER__MLYZE_SPILL)
            continue;
        shard->threads = coffer__calloc(COFFER__MLYZE_THREADS, sizeof *shard->threads);
        if (!shard->threads)
            return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *shard->threads);
    }
    return pass->observe ? pass->observe(pass->observe_context, pass, NULL, err) : COFFER_OK;
}

/* ---- Ending ---- */

void coffer__mlyze_count_leftover(coffer__mlyze_pass *pass, const coffer__mlyze_held *block)
{
    coffer__mlyze_leftover *leftover = &pass->results.leftovers[block->stack];
    if (block->size < pass->opts.min_size ||
        coffer__mlyze_since(block->time, pass->state.last_time) < pass->opts.min_age_us)
        return;
    if (leftover->allocs == 0 || block->time < leftover->oldest)
        leftover->oldest = block->time;
    if (block->time > leftover->newest)
        leftover->newest = block->time;
    leftover->allocs++;
    leftover->bytes = coffer__mlyze_sum(leftover->bytes, block->size);
}

static void collect(void *context, const coffer__mlyze_held *block)
{
    coffer__mlyze_count_leftover(context, block);
}

coffer_status coffer__mlyze_make_leftovers(coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t count = coffer__mlyze_numbers_count(&pass->stacks);
    if (count > pass->results.leftover_count) {
        coffer__mlyze_leftover *larger = coffer__calloc(count, sizeof *larger);
        if (!larger)
            return coffer__fail_no_memory(err, count * sizeof *larger);
        if (pass->results.leftover_count)
            memcpy(larger, pass->results.leftovers, pass->results.leftover_count * sizeof *larger);
        coffer__free(pass->results.leftovers);
        pass->results.leftovers = larger;
        pass->results.leftover_count = count;
    }
    return COFFER_OK;
}

coffer_status coffer__mlyze_collect_leftovers(coffer__mlyze_pass *pass, size_t shard, coffer_error *err)
{
    coffer_status status = coffer__mlyze_make_leftovers(pass, err);
    if (!status)
        coffer__mlyze_live_each(&pass->shards.items[shard].live, collect, pass);
    return status;
}

bool coffer__mlyze_saw_thread(const coffer__mlyze_pass *pass, size_t thread)
{
    for (uint32_t i = 0; i < pass->threads; i++) {
        if (pass->chains.seen_by[i][thread])
            return true;
    }
    return false;
}

bool coffer__mlyze_pass_is_outdated(const coffer__mlyze_pass *pass)
{
    const coffer__mlyze_map *map = pass->map;
    return !coffer__mlyze_get_map(&map, pass->trace, NULL) && map != pass->map;
}

/* Frees of an archive name their allocations, but not the addresses. */
static coffer_status run_in_memory(coffer__mlyze_pass *pass, coffer_error *err)
{
    bool suffices = pass->readers.items && !pass->opts.reuse && !pass->observe;
    coffer_status status = COFFER_OK;
    if (suffices) {
        status = coffer__mlyze_pass_begin(pass, COFFER__MLYZE_IN_MEMORY, 1, err);
        if (!status)
            status = coffer__mlyze_run_numbered(&suffices, pass, err);
    }
    if (status || suffices)
        return status;
    status = coffer__mlyze_pass_begin(pass, COFFER__MLYZE_IN_MEMORY, pass->shards.max, err);
    return status ? status : coffer__mlyze_run_pass(pass, err);
}

coffer_status coffer__mlyze_run(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer_status status = run_in_memory(pass, err);
    if (status == COFFER_E_LIMIT && atomic_load(&pass->budget.exceeded))
        return coffer__mlyze_run_spilled(pass, err);
    for (size_t i = 0; i < pass->shards.count && !status; i++)
        status = coffer__mlyze_collect_leftovers(pass, i, err);
    return status;
}
