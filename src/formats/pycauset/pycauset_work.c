#include "formats/pycauset/pycauset_work.h"

#include "base/fail.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>

struct coffer__work {
    coffer__pool *pool;
    uint64_t units;
    const coffer_progress *progress;
    pthread_t caller;
    _Atomic uint64_t done;
    coffer__pool_task task;
    void *context;
};

coffer_status coffer__work_new(coffer__work **out, uint64_t units, const coffer__work_opts *opts,
                               coffer_error *err)
{
    coffer__work *work = coffer__calloc(1, sizeof *work);
    uint64_t threads = opts && opts->threads ? opts->threads : coffer__cpu_count();
    if (!work)
        return coffer__fail_no_memory(err, sizeof *work);
    threads = threads < units ? threads : units;
    work->units = units;
    work->progress = opts ? opts->progress : NULL;
    coffer_status status = coffer__pool_new(&work->pool, threads ? (uint32_t)threads : 1, err);
    if (status) {
        coffer__free(work);
        return status;
    }
    *out = work;
    return COFFER_OK;
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

static coffer_status run_unit(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    coffer__work *work = context;
    coffer_status status = work->task(work->context, index, worker, err);
    uint64_t done = atomic_fetch_add(&work->done, 1) + 1;
    if (status || !work->progress || !pthread_equal(pthread_self(), work->caller))
        return status;
    if (work->progress->step(work->progress->context, done, work->units) != 0)
        return coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "stopped on request");
    return COFFER_OK;
}

coffer_status coffer__work_run(coffer__work *work, coffer__pool_task task, void *context, coffer_error *err)
{
    work->task = task;
    work->context = context;
    work->caller = pthread_self();
    atomic_store(&work->done, 0);
    return coffer__pool_run(work->pool, work->units, run_unit, work, err);
}
