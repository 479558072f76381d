#include "base/work.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"

#include <pthread.h>
#include <stdatomic.h>

struct coffer__work {
    coffer__pool *pool;
    coffer__work_opts opts;
    pthread_t caller;
    _Atomic uint64_t done;
    uint64_t reported; /* by the calling thread */
    coffer__pool_task task;
    void *context;
};

COFFER__INIT_FUNCTION(coffer_progress, COFFER_PROGRESS_INIT)

coffer_status coffer__progress_step(const coffer_progress *progress, uint64_t done, uint64_t total,
                                    coffer_error *err)
{
    if (!progress || !progress->step || progress->step(progress->context, done, total) == 0)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
}

coffer_status coffer__work_new(coffer__work **out, const coffer__work_opts *opts, coffer_error *err)
{
    coffer__work *work = coffer__calloc(1, sizeof *work);
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    if (opts)
        work->opts = *opts;
    uint32_t threads = work->opts.threads ? work->opts.threads : coffer__cpu_count();
    if (work->opts.pieces && work->opts.pieces < threads)
        threads = (uint32_t)work->opts.pieces;
    coffer_status status = coffer__pool_new(&work->pool, threads, err);
    if (status) {
        coffer__free(work);
        return status;
    }
    work->caller = pthread_self();
    *out = work;
    return COFFER_OK;
}

coffer_status coffer__work_new_pieces(coffer__work **out, uint64_t pieces, const coffer__work_opts *opts,
                                      coffer_error *err)
{
    coffer__work_opts settings = opts ? *opts : (coffer__work_opts){ 0 };
    settings.total = settings.pieces = pieces;
    settings.piece = 1;
    return coffer__work_new(out, &settings, err);
}

void coffer__work_free(coffer__work *work)
{
    if (!work)
        return;
    coffer__pool_free(work->pool);
    coffer__free(work);
}

uint32_t coffer__work_threads(const coffer__work *work)
{
    return coffer__pool_threads(work->pool);
}

static coffer_status report(coffer__work *work, uint64_t done, coffer_error *err)
{
    work->reported = done;
    return coffer__progress_step(work->opts.progress, done, work->opts.total, err);
}

coffer_status coffer__work_advance(coffer__work *work, uint64_t amount, coffer_error *err)
{
    uint64_t done = atomic_fetch_add(&work->done, amount) + amount;
    if (!work->opts.progress || !pthread_equal(pthread_self(), work->caller))
        return COFFER_OK;
    return report(work, done, err);
}

static coffer_status run_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    coffer__work *work = context;
    coffer_status status = work->task(work->context, index, worker, err);
    if (status || !work->opts.piece)
        return status;
    return coffer__work_advance(work, work->opts.piece, err);
}

coffer_status coffer__work_run(coffer__work *work, uint64_t count, coffer__pool_task task, void *context,
                               coffer_error *err)
{
    work->task = task;
    work->context = context;
    work->caller = pthread_self();
    coffer_status status = coffer__pool_run(work->pool, count, run_piece, work, err);
    uint64_t done = atomic_load(&work->done);
    if (!status && done != work->reported) /* other threads finished the last pieces */
        status = report(work, done, err);
    return status;
}

/* ---- Pipeline ---- */

typedef struct pipeline_turn {
    const coffer__work_pipeline *pipeline;
    void *context;
    size_t slot; /* the batch being produced; the other one is consumed */
    bool consumes;
} pipeline_turn;

static coffer_status run_turn(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const pipeline_turn *turn = context;
    if (index > 0)
        return turn->pipeline->produce(turn->context, turn->slot, index - 1, worker, err);
    return turn->consumes ? turn->pipeline->consume(turn->context, 1 - turn->slot, err) : COFFER_OK;
}

coffer_status coffer__work_run_pipeline(coffer__work *work, const coffer__work_pipeline *pipeline,
                                        void *context, coffer_error *err)
{
    pipeline_turn turn = { .pipeline = pipeline, .context = context };
    work->caller = pthread_self();
    for (;;) {
        uint64_t pieces = 0;
        coffer_status status = pipeline->prepare(context, turn.slot, &pieces, err);
        if (status || (!pieces && !turn.consumes))
            return status;
        status = coffer__pool_run(work->pool, 1 + pieces, run_turn, &turn, err);
        if (!status && pipeline->turned)
            status = pipeline->turned(context, turn.slot, err);
        if (status)
            return status;
        turn.consumes = pieces > 0;
        turn.slot = 1 - turn.slot;
    }
}
