#include "formats/mlyze/analyze/mlyze_analyze.h"

#include "base/fail.h"
#include "base/memory.h"

#include <string.h>

#define PIECES_ALONE 1      /* what one thread works on stays in its cache */
#define PIECES_PER_THREAD 4 /* several threads have to wait for each other less often */
#define MAX_PIECES 1024
#define LEAST_TABLE ((size_t)256 << 10) /* of each shard, whatever the limit */
/* Of each share when spilled: a table takes half of it before it grows, and a share that holds few blocks
 * costs a whole pass. */
#define LEAST_SHARE ((size_t)512 << 10)

/* ---- Memory of a pass ---- */

static coffer_status make_batches(coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t pieces = pass->threads == 1 ? PIECES_ALONE : (size_t)pass->threads * PIECES_PER_THREAD;
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
    pass->last_before = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->last_before);
    pass->first_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->first_here);
    pass->last_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->last_here);
    pass->threads_here = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->threads_here);
    pass->span_of = coffer__calloc(pass->threads, sizeof *pass->span_of);
    pass->seen_by = coffer__calloc(pass->threads, sizeof *pass->seen_by);
    if (!pass->last_before || !pass->first_here || !pass->last_here || !pass->threads_here ||
        !pass->span_of || !pass->seen_by)
        return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *pass->last_before);
    for (uint32_t i = 0; i < pass->threads; i++) {
        pass->span_of[i] = coffer__calloc(COFFER__MLYZE_THREADS, sizeof **pass->span_of);
        pass->seen_by[i] = coffer__calloc(COFFER__MLYZE_THREADS, sizeof **pass->seen_by);
        if (!pass->span_of[i] || !pass->seen_by[i])
            return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof **pass->span_of);
    }
    return COFFER_OK;
}

static void free_shards(coffer__mlyze_pass *pass)
{
    for (size_t i = 0; i < pass->shard_count; i++) {
        coffer__mlyze_shard *shard = &pass->shards[i];
        coffer__mlyze_live_free(&shard->live);
        coffer__free(shard->rows);
        coffer__free(shard->threads);
        coffer__free(shard->replaced);
        for (size_t k = 0; k < shard->stream_count; k++)
            coffer__mlyze_stream_free(&shard->streams[k]);
        coffer__free(shard->streams);
    }
    coffer__free(pass->shards);
    pass->shards = NULL;
    pass->shard_count = 0;
}

void coffer__mlyze_pass_free(coffer__mlyze_pass *pass)
{
    free_shards(pass);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; pass->batches[i].pieces && k < pass->batch_pieces; k++)
            coffer__mlyze_piece_free(&pass->batches[i].pieces[k]);
        coffer__free(pass->batches[i].pieces);
    }
    for (uint32_t i = 0; pass->span_of && i < pass->threads; i++)
        coffer__free(pass->span_of[i]);
    for (uint32_t i = 0; pass->seen_by && i < pass->threads; i++)
        coffer__free(pass->seen_by[i]);
    coffer__free(pass->span_of);
    coffer__free(pass->seen_by);
    coffer__free(pass->last_before);
    coffer__free(pass->first_here);
    coffer__free(pass->last_here);
    coffer__free(pass->threads_here);
    coffer__free(pass->boundaries);
    coffer__free(pass->leftovers);
    coffer__free(pass->marks);
    coffer__free(pass->phases);
    coffer__mlyze_growth_free(&pass->growth);
    coffer__mlyze_numbers_free(&pass->stacks);
    coffer__pool_free(pass->pool);
}

/* ---- Beginning ---- */

coffer_status coffer__mlyze_pass_init(coffer__mlyze_pass *pass, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats_opts *query, coffer_error *err)
{
    coffer_status status;
    memset(pass, 0, sizeof *pass);
    pass->trace = trace;
    pass->query = *query;
    pass->limits = coffer__limits(query->limits);
    pass->key = coffer__mlyze_new_key();
    if ((status = coffer__mlyze_get_map(&pass->map, trace, err)) ||
        (status = coffer__pool_new(&pass->pool, query->threads, err)))
        goto out;
    pass->threads = coffer__pool_threads(pass->pool);
    pass->max_shards = pass->threads < COFFER__MLYZE_MAX_SHARDS ? pass->threads : COFFER__MLYZE_MAX_SHARDS;
    pass->budget.max = pass->limits.memory_bytes < SIZE_MAX ? (size_t)pass->limits.memory_bytes : SIZE_MAX;
    if (pass->budget.max < pass->max_shards * LEAST_TABLE)
        pass->budget.max = pass->max_shards * LEAST_TABLE;
    pass->end_event = query->end < pass->map->event_count ? query->end : pass->map->event_count;
    if (pass->query.begin > pass->end_event)
        pass->query.begin = pass->end_event;
    coffer__mlyze_numbers_init(&pass->stacks, &trace->metadata.stacks.ids, pass->key, pass->limits.entries);
    if ((status = make_batches(pass, err)) || (status = make_thread_tables(pass, err)))
        goto out;
    status = coffer__mlyze_set_boundaries(pass, err);
out:
    if (status)
        coffer__mlyze_pass_free(pass);
    return status;
}

static void rewind_pass(coffer__mlyze_pass *pass)
{
    pass->next_boundary = 0;
    pass->next_block = 0;
    pass->next_event = 0;
    pass->done_events = 0;
    pass->piece_count = pass->alloc_count = 0;
    pass->settled_pieces = pass->settled_allocs = 0;
    pass->counting = false;
    pass->window_piece = pass->window_alloc = 0;
    pass->level = pass->high = 0;
    pass->epoch = 0;
    pass->last_type = UINT8_MAX;
    pass->last_time = 0;
    pass->mark_count = pass->phase_count = 0;
    pass->threads_here_count = 0;
    memset(&pass->totals, 0, sizeof pass->totals);
    memset(pass->first_here, 0xff, COFFER__MLYZE_THREADS * sizeof *pass->first_here);
    memset(pass->last_before, 0xff, COFFER__MLYZE_THREADS * sizeof *pass->last_before);
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
    pass->kind = kind;
    pass->sees_all = kind == COFFER__MLYZE_IN_MEMORY && shard_count == 1;
    pass->shards = coffer__calloc(shard_count, sizeof *pass->shards);
    if (!pass->shards)
        return coffer__fail_no_memory(err, shard_count * sizeof *pass->shards);
    pass->shard_count = shard_count;
    for (size_t i = 0; i < shard_count; i++) {
        coffer__mlyze_shard *shard = &pass->shards[i];
        uint64_t share = UINT64_MAX / shard_count;
        pass->shard_low[i] = i * share + (i > 0);
        pass->shard_high[i] = i + 1 < shard_count ? (i + 1) * share : UINT64_MAX;
        shard->budget.max = pass->budget.max / shard_count;
        if (shard->budget.max < LEAST_SHARE)
            shard->budget.max = LEAST_SHARE;
        coffer__mlyze_live_init(&shard->live, pass->key,
                                kind == COFFER__MLYZE_SPILL ? &shard->budget : &pass->budget);
        shard->live.remember = pass->query.reuse;
        if (kind == COFFER__MLYZE_SPILL)
            continue;
        shard->threads = coffer__calloc(COFFER__MLYZE_THREADS, sizeof *shard->threads);
        if (!shard->threads)
            return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *shard->threads);
    }
    return pass->observe ? pass->observe(pass->observe_context, pass, NULL, err) : COFFER_OK;
}

/* ---- Ending ---- */

static void collect(void *context, const coffer__mlyze_held *block)
{
    coffer__mlyze_pass *pass = context;
    coffer__mlyze_leftover *leftover = &pass->leftovers[block->stack];
    if (block->size < pass->query.min_size ||
        coffer__mlyze_since(block->time, pass->last_time) < pass->query.min_age_us)
        return;
    if (leftover->allocs == 0 || block->time < leftover->oldest)
        leftover->oldest = block->time;
    if (block->time > leftover->newest)
        leftover->newest = block->time;
    leftover->allocs++;
    leftover->bytes = coffer__mlyze_sum(leftover->bytes, block->size);
}

coffer_status coffer__mlyze_collect_leftovers(coffer__mlyze_pass *pass, size_t shard, coffer_error *err)
{
    size_t count = coffer__mlyze_numbers_count(&pass->stacks);
    if (count > pass->leftover_count) {
        coffer__mlyze_leftover *larger = coffer__calloc(count, sizeof *larger);
        if (!larger)
            return coffer__fail_no_memory(err, count * sizeof *larger);
        if (pass->leftover_count)
            memcpy(larger, pass->leftovers, pass->leftover_count * sizeof *larger);
        coffer__free(pass->leftovers);
        pass->leftovers = larger;
        pass->leftover_count = count;
    }
    coffer__mlyze_live_each(&pass->shards[shard].live, collect, pass);
    return COFFER_OK;
}

bool coffer__mlyze_saw_thread(const coffer__mlyze_pass *pass, size_t thread)
{
    for (uint32_t i = 0; i < pass->threads; i++) {
        if (pass->seen_by[i][thread])
            return true;
    }
    return false;
}

bool coffer__mlyze_pass_is_outdated(const coffer__mlyze_pass *pass)
{
    const coffer__mlyze_map *map = pass->map;
    return !coffer__mlyze_get_map(&map, pass->trace, NULL) && map != pass->map;
}

coffer_status coffer__mlyze_run(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer_status status = coffer__mlyze_pass_begin(pass, COFFER__MLYZE_IN_MEMORY, pass->max_shards, err);
    if (!status)
        status = coffer__mlyze_run_pass(pass, err);
    if (status == COFFER_E_LIMIT && atomic_load(&pass->budget.exceeded))
        return coffer__mlyze_run_spilled(pass, err);
    for (size_t i = 0; i < pass->shard_count && !status; i++)
        status = coffer__mlyze_collect_leftovers(pass, i, err);
    return status;
}
