#include "base/fail.h"
#include "base/memory.h"
#include "formats/mlyze/analyze/mlyze_pass.h"

#include <string.h>

#define LEAST_TABLE ((size_t)256 << 10) /* whatever the limit */

/* ---- Memory ---- */

void coffer__mlyze_pass_free(coffer__mlyze_pass *pass)
{
    coffer__mlyze_results *results = &pass->results;
    coffer__mlyze_free_batches(pass);
    coffer__mlyze_live_free(&pass->live);
    coffer__mlyze_survivors_free(&pass->named.survivors);
    coffer__free(pass->named.blocks);
    coffer__free(pass->last_alloc);
    coffer__free(pass->boundaries.items);
    coffer__free(results->rows);
    coffer__free(results->threads);
    coffer__free(results->leftovers);
    coffer__free(results->marks);
    coffer__free(results->phases);
    coffer__free(results->thread_names);
    coffer__mlyze_growth_free(&pass->growth);
    coffer__mlyze_numbers_free(&pass->stacks);
    coffer__work_free(pass->work);
}

coffer_status coffer__mlyze_pass_init(coffer__mlyze_pass *pass, const coffer_mlyze *trace,
                                      const coffer_mlyze_stats_opts *query, coffer_error *err)
{
    const coffer__work_opts work = { .threads = query->threads };
    memset(pass, 0, sizeof *pass);
    pass->trace = trace;
    pass->opts = *query;
    pass->limits = coffer__limits(query->limits);
    pass->budget.max = pass->limits.memory_bytes < SIZE_MAX ? (size_t)pass->limits.memory_bytes : SIZE_MAX;
    if (pass->budget.max < LEAST_TABLE)
        pass->budget.max = LEAST_TABLE;
    pass->named.survivors.budget = &pass->budget;
    coffer__mlyze_live_init(&pass->live, coffer__mlyze_new_key(), &pass->budget);
    pass->live.remember = query->reuse;
    coffer_status status = coffer__mlyze_get_map(&pass->map, trace, err);
    if (!status)
        status = coffer__work_new(&pass->work, &work, err);
    if (status)
        goto out;
    pass->end_event = query->end < pass->map->event_count ? query->end : pass->map->event_count;
    if (pass->opts.begin > pass->end_event)
        pass->opts.begin = pass->end_event;
    coffer__mlyze_numbers_init(&pass->stacks, &trace->metadata.stacks.ids, pass->limits.entries);
    pass->last_alloc = coffer__alloc_array(COFFER__MLYZE_THREADS, sizeof *pass->last_alloc);
    if (!pass->last_alloc) {
        status = coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *pass->last_alloc);
        goto out;
    }
    status = coffer__mlyze_make_batches(pass, err);
    if (!status)
        status = coffer__mlyze_set_boundaries(pass, err);
out:
    if (status)
        coffer__mlyze_pass_free(pass);
    return status;
}

/* ---- One pass ---- */

static coffer_status start_over(coffer__mlyze_pass *pass, coffer__mlyze_way way, coffer_error *err)
{
    coffer__mlyze_results *results = &pass->results;
    coffer__mlyze_live_free(&pass->live);
    coffer__mlyze_survivors_free(&pass->named.survivors);
    pass->live.remember = pass->opts.reuse;
    pass->named.failed = false;
    pass->way = way;
    pass->state = (coffer__mlyze_state){ .last_type = UINT8_MAX, .lost_block = SIZE_MAX };
    pass->boundaries.next = 0;
    pass->growth.sampled = 0;
    pass->growth.row_count = 0;
    pass->growth.sum_x = pass->growth.sum_xx = 0;
    results->mark_count = results->phase_count = 0;
    memset(pass->last_alloc, 0xff, COFFER__MLYZE_THREADS * sizeof *pass->last_alloc);
    atomic_store(&pass->budget.exceeded, false);
    coffer__free(results->rows);
    coffer__free(results->threads);
    results->rows = NULL;
    results->row_capacity = 0;
    results->threads = coffer__calloc(COFFER__MLYZE_THREADS, sizeof *results->threads);
    if (!results->threads)
        return coffer__fail_no_memory(err, COFFER__MLYZE_THREADS * sizeof *results->threads);
    if (pass->watcher)
        pass->watcher->restart(pass->watcher->context);
    return coffer__mlyze_make_rows(&results->rows, &results->row_capacity,
                                   coffer__mlyze_numbers_count(&pass->stacks), err);
}

coffer_status coffer__mlyze_run_pass(coffer__mlyze_pass *pass, coffer__mlyze_way way, coffer_error *err)
{
    coffer_status status = start_over(pass, way, err);
    if (!status)
        status = coffer__mlyze_pass_boundaries(pass, 0, err);
    if (!status)
        status = coffer__mlyze_read_all(pass, err);
    if (!status)
        status = coffer__mlyze_pass_boundaries(pass, UINT64_MAX, err);
    coffer__mlyze_end_phase(pass);
    return status;
}

/* ---- Blocks that are live at the end ---- */

static void count_leftover(coffer__mlyze_pass *pass, const coffer__mlyze_held *block)
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
    count_leftover(context, block);
}

static coffer_status make_leftovers(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_results *results = &pass->results;
    size_t count = coffer__mlyze_numbers_count(&pass->stacks);
    if (results->leftovers)
        return COFFER_OK;
    results->leftovers = coffer__calloc(count ? count : 1, sizeof *results->leftovers);
    if (!results->leftovers)
        return coffer__fail_no_memory(err, count * sizeof *results->leftovers);
    results->leftover_count = count;
    return COFFER_OK;
}

coffer_status coffer__mlyze_collect_leftovers(coffer__mlyze_pass *pass, const coffer__mlyze_live *live,
                                              coffer_error *err)
{
    coffer_status status = make_leftovers(pass, err);
    if (!status)
        coffer__mlyze_live_each(live, collect, pass);
    return status;
}

static coffer_status collect_survivors(coffer__mlyze_pass *pass, coffer_error *err)
{
    const coffer__mlyze_survivors *survivors = &pass->named.survivors;
    coffer_status status = make_leftovers(pass, err);
    for (size_t i = 0; i < survivors->count && !status; i++) {
        const coffer__mlyze_generation *from = &survivors->items[i];
        for (size_t k = 0; k < from->count; k++) {
            if (from->items[k].stack != COFFER__MLYZE_NO_ROW)
                count_leftover(pass, &from->items[k]);
        }
    }
    return status;
}

/* ---- The whole analysis ---- */

bool coffer__mlyze_pass_is_outdated(const coffer__mlyze_pass *pass)
{
    return !coffer__mlyze_is_current_map(pass->trace, pass->map);
}

/* Frees of an archive name their allocations, but not the addresses. */
static coffer_status run_in_memory(coffer__mlyze_pass *pass, coffer_error *err)
{
    if (coffer__mlyze_has_archive(&pass->trace->header) && !pass->opts.reuse) {
        coffer_status status = coffer__mlyze_run_pass(pass, COFFER__MLYZE_BY_NAME, err);
        if (status || !pass->named.failed)
            return status ? status : collect_survivors(pass, err);
    }
    coffer_status status = coffer__mlyze_run_pass(pass, COFFER__MLYZE_BY_ADDRESS, err);
    return status ? status : coffer__mlyze_collect_leftovers(pass, &pass->live, err);
}

coffer_status coffer__mlyze_run(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer_status status = run_in_memory(pass, err);
    if (status == COFFER_E_LIMIT && atomic_load(&pass->budget.exceeded))
        status = coffer__mlyze_run_spilled(pass, err);
    return status;
}
