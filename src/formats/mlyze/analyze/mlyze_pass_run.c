#include "formats/mlyze/analyze/mlyze_pass.h"

#include "base/work.h"

/* ---- Boundaries ---- */

static coffer_status begin_window(coffer__mlyze_pass *pass, const coffer__mlyze_boundary *boundary,
                                  coffer_error *err)
{
    pass->state.counting = true;
    pass->state.window_piece = pass->course.settled_pieces;
    pass->state.window_alloc = pass->course.settled_allocs;
    pass->state.epoch++;
    pass->state.high = pass->state.level;
    pass->results.totals.peak_bytes = coffer__mlyze_narrow(pass->state.level);
    pass->results.totals.peak_event = boundary->event > 0 ? boundary->event - 1 : 0;
    pass->results.totals.peak_time_us = pass->state.last_time;
    pass->results.totals.duration_us = pass->state.last_time;
    return coffer__mlyze_begin_phase(pass, UINT64_MAX, boundary->event, pass->state.last_time,
                                     pass->state.level, err);
}

static coffer_status end_growth_window(coffer__mlyze_pass *pass, coffer_error *err)
{
    size_t count = coffer__mlyze_numbers_count(&pass->stacks);
    coffer_status status = coffer__mlyze_growth_make_rows(&pass->growth, count, err);
    if (status)
        return status;
    for (size_t row = 0; row < count; row++) {
        uint64_t live = 0;
        for (size_t i = 0; i < pass->shards.count; i++) {
            if (row < pass->shards.items[i].row_capacity)
                live += pass->shards.items[i].rows[row].live_bytes;
        }
        if (live > 0)
            coffer__mlyze_growth_sample(&pass->growth, row, live);
    }
    coffer__mlyze_growth_end_window(&pass->growth);
    return COFFER_OK;
}

coffer_status coffer__mlyze_pass_boundaries(coffer__mlyze_pass *pass, uint64_t event, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    while (!status && pass->boundaries.next < pass->boundaries.count &&
           pass->boundaries.items[pass->boundaries.next].event <= event) {
        const coffer__mlyze_boundary *boundary = &pass->boundaries.items[pass->boundaries.next++];
        if (boundary->begins_window)
            status = begin_window(pass, boundary, err);
        if (!status && boundary->ends_growth_window && pass->kind != COFFER__MLYZE_SPILL)
            status = end_growth_window(pass, err);
    }
    return status;
}

/* ---- Batches ---- */

/* One batch is paired while the next is decoded. */
typedef struct round {
    coffer__mlyze_pass *pass;
    coffer__mlyze_batch *paired, *decoded; /* either may be NULL */
    size_t shards;                         /* tasks before those of decoding */
} round;

/* The pieces of an archive block are decoded in order: the task of the first one decodes them all. */
static coffer_status decode_pieces(const round *now, uint32_t number, uint32_t worker, coffer_error *err)
{
    coffer__mlyze_piece *pieces = now->decoded->pieces;
    const size_t block = pieces[number].block;
    coffer_status status = COFFER_OK;
    if (!now->pass->readers.items)
        return coffer__mlyze_decode(&pieces[number], now->pass, number, worker, err);
    if (number > 0 && pieces[number - 1].block == block)
        return COFFER_OK;
    for (; !status && number < now->decoded->count && pieces[number].block == block; number++)
        status = coffer__mlyze_decode(&pieces[number], now->pass, number, worker, err);
    return status;
}

static coffer_status run_round_task(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    round *now = context;
    if (index < now->shards)
        return coffer__mlyze_pair_batch(now->pass, now->paired, (size_t)index, err);
    return decode_pieces(now, (uint32_t)(index - now->shards), worker, err);
}

static coffer_status run_round(coffer__mlyze_pass *pass, coffer__mlyze_batch *paired,
                               coffer__mlyze_batch *decoded, coffer_error *err)
{
    round now = { pass, paired, decoded, paired ? pass->shards.count : 0 };
    return coffer__pool_run(pass->pool, now.shards + (decoded ? decoded->count : 0), run_round_task, &now,
                            err);
}

static coffer_status run_level_task(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    round *now = context;
    (void)worker;
    (void)err;
    coffer__mlyze_find_level(&now->paired->pieces[index], now->pass);
    return COFFER_OK;
}

static coffer_status run_tail_task(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    round *now = context;
    (void)worker;
    (void)err;
    coffer__mlyze_take_back(now->pass, now->paired, (size_t)index);
    return COFFER_OK;
}

static coffer_status settle_batch(coffer__mlyze_pass *pass, coffer__mlyze_batch *batch, coffer_error *err)
{
    round now = { .pass = pass, .paired = batch };
    bool has_tail = false;
    coffer_status status = coffer__pool_run(pass->pool, batch->count, run_level_task, &now, err);
    if (!status && pass->observe)
        status = pass->observe(pass->observe_context, pass, batch, err);
    if (!status)
        status = coffer__mlyze_settle(&has_tail, pass, batch, err);
    if (!status && has_tail)
        status = coffer__pool_run(pass->pool, pass->shards.count, run_tail_task, &now, err);
    return status;
}

static void note_end(coffer__mlyze_pass *pass, const coffer__mlyze_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const coffer__mlyze_piece *piece = &batch->pieces[i];
        pass->course.done_events += piece->to - piece->from;
        if (piece->begin < piece->end)
            pass->state.last_time = piece->events.time[piece->end - 1];
    }
    pass->course.settled_pieces = batch->first_piece + batch->count;
    pass->course.settled_allocs = pass->course.alloc_count;
}

/* Pairs and settles a batch, while other threads decode the next one; next : NULL = do not. */
static coffer_status run_batch(coffer__mlyze_pass *pass, coffer__mlyze_batch *batch,
                               coffer__mlyze_batch *next, coffer_error *err)
{
    coffer_status status = coffer__mlyze_join(pass, batch, err);
    if (!status)
        status = run_round(pass, batch, next, err);
    if (status)
        return status;
    coffer__mlyze_part_with(pass, batch);
    if (pass->kind != COFFER__MLYZE_SPILL)
        status = settle_batch(pass, batch, err);
    note_end(pass, batch);
    if (!status)
        status = coffer__mlyze_pass_boundaries(pass, batch->ends_at, err);
    if (status)
        return status;
    return coffer__progress_step(pass->opts.progress, pass->course.done_events, pass->course.end_event, err);
}

/* Returns whether there is more to do: a batch without pieces may still reach a boundary. */
static bool plan_after(coffer__mlyze_batch *batch, coffer__mlyze_pass *pass)
{
    uint64_t before = pass->course.next_event;
    coffer__mlyze_plan(batch, pass);
    return batch->count > 0 || batch->ends_at > before;
}

/* A single thread decodes right before it pairs, while the columns are in its cache. */
static coffer_status run_alone(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_batch *batch = &pass->batches[0];
    coffer_status status = COFFER_OK;
    while (!status && plan_after(batch, pass)) {
        status = run_round(pass, NULL, batch, err);
        if (!status)
            status = run_batch(pass, batch, NULL, err);
    }
    return status;
}

static coffer_status run_together(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer__mlyze_batch *batch = &pass->batches[0], *next = &pass->batches[1];
    bool more = plan_after(batch, pass);
    coffer_status status = run_round(pass, NULL, batch, err);
    while (!status && more) {
        more = plan_after(next, pass);
        status = run_batch(pass, batch, more ? next : NULL, err);
        coffer__mlyze_batch *done = batch;
        batch = next;
        next = done;
    }
    return status;
}

coffer_status coffer__mlyze_run_pass(coffer__mlyze_pass *pass, coffer_error *err)
{
    coffer_status status = coffer__mlyze_pass_boundaries(pass, 0, err);
    if (!status)
        status = pass->threads > 1 ? run_together(pass, err) : run_alone(pass, err);
    if (!status)
        status = coffer__mlyze_pass_boundaries(pass, UINT64_MAX, err);
    coffer__mlyze_end_phase(pass, pass->state.last_time, pass->state.level);
    return status;
}
