#include "base/work.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define MAX_THREADS 1024

struct worker {
    coffer__pool *pool;
    uint32_t number;
    uint64_t round; /* the last one it took part in */
    pthread_t thread;
};

struct coffer__pool {
    uint32_t threads;
    pid_t process;    /* threads do not survive fork(): a child starts its own */
    uint32_t started; /* threads running, the caller not counted */
    struct worker *workers;

    pthread_mutex_t mutex;
    pthread_cond_t work_there, work_done;
    uint64_t round;   /* goes up with every run */
    uint32_t working; /* threads that have not finished this round */
    bool stopping;

    coffer__pool_task task;
    void *context;
    uint64_t count;
    atomic_uint_least64_t next;
    atomic_bool failed;
    uint64_t failed_index;
    coffer_error failure;
};

uint32_t coffer__cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

static void prepare(coffer__pool *pool)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work_there, NULL);
    pthread_cond_init(&pool->work_done, NULL);
    pool->process = getpid();
    pool->started = 0;
}

coffer_status coffer__pool_new(coffer__pool **out, uint32_t threads, coffer_error *err)
{
    if (threads == 0)
        threads = coffer__cpu_count();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    coffer__pool *pool = coffer__calloc(1, sizeof *pool);
    if (!pool)
        return coffer__fail_no_memory(err, sizeof *pool);
    pool->workers = coffer__calloc(threads, sizeof *pool->workers);
    if (!pool->workers) {
        coffer__free(pool);
        return coffer__fail_no_memory(err, threads * sizeof *pool->workers);
    }
    pool->threads = threads;
    prepare(pool);
    *out = pool;
    return COFFER_OK;
}

uint32_t coffer__pool_threads(const coffer__pool *pool)
{
    return pool->threads;
}

static void keep_failure(coffer__pool *pool, uint64_t index, coffer_status status,
                         const coffer_error *failure)
{
    pthread_mutex_lock(&pool->mutex);
    if (!atomic_load(&pool->failed) || index < pool->failed_index) {
        pool->failed_index = index;
        pool->failure = *failure;
        pool->failure.status = status;
    }
    atomic_store(&pool->failed, true);
    pthread_mutex_unlock(&pool->mutex);
}

/* An index that was taken is always run: all lower ones were taken before it, so the failure with the lowest
 * index is the same whatever the timing. */
static void work(coffer__pool *pool, uint32_t number)
{
    while (!atomic_load(&pool->failed)) {
        uint64_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= pool->count)
            return;
        coffer_error failure = COFFER_ERROR_INIT;
        coffer_status status = pool->task(pool->context, index, number, &failure);
        if (status)
            keep_failure(pool, index, status, &failure);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    coffer__pool *pool = worker->pool;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->stopping && pool->round == worker->round)
            pthread_cond_wait(&pool->work_there, &pool->mutex);
        if (pool->stopping)
            break;
        worker->round = pool->round;
        pthread_mutex_unlock(&pool->mutex);
        work(pool, worker->number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->working == 0)
            pthread_cond_signal(&pool->work_done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Signals go to the program's own threads. Those that this very thread raises must stay open: the kernel
 * kills a process that blocks a fault, mapped sources live on SIGBUS, and a closed pipe ends the program as
 * if its own thread had written. */
void coffer__thread_block_signals(sigset_t *before)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPIPE };
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* When a thread cannot be started, the pool continues with fewer. */
static void start_threads(coffer__pool *pool, uint32_t wanted)
{
    sigset_t before;
    if (pool->started >= wanted)
        return;
    coffer__thread_block_signals(&before);
    while (pool->started < wanted) {
        struct worker *worker = &pool->workers[pool->started];
        worker->pool = pool;
        worker->number = pool->started + 1;
        worker->round = pool->round;
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
            break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void run_with_threads(coffer__pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->round++;
    pool->working = pool->started;
    pthread_cond_broadcast(&pool->work_there);
    pthread_mutex_unlock(&pool->mutex);
    work(pool, 0);
    pthread_mutex_lock(&pool->mutex);
    while (pool->working > 0)
        pthread_cond_wait(&pool->work_done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

coffer_status coffer__pool_run(coffer__pool *pool, uint64_t count, coffer__pool_task task, void *context,
                               coffer_error *err)
{
    if (pool->process != getpid())
        prepare(pool);
    pool->task = task;
    pool->context = context;
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->failed, false);
    if (count > 1)
        start_threads(pool, count < pool->threads ? (uint32_t)count - 1 : pool->threads - 1);
    if (count > 1 && pool->started > 0)
        run_with_threads(pool);
    else
        work(pool, 0);
    if (!atomic_load(&pool->failed))
        return COFFER_OK;
    if (err)
        *err = pool->failure;
    return pool->failure.status;
}

void coffer__pool_free(coffer__pool *pool)
{
    if (!pool)
        return;
    if (pool->process == getpid()) {
        pthread_mutex_lock(&pool->mutex);
        pool->stopping = true;
        pthread_cond_broadcast(&pool->work_there);
        pthread_mutex_unlock(&pool->mutex);
        for (uint32_t i = 0; i < pool->started; i++)
            pthread_join(pool->workers[i].thread, NULL);
        pthread_cond_destroy(&pool->work_there);
        pthread_cond_destroy(&pool->work_done);
        pthread_mutex_destroy(&pool->mutex);
    }
    coffer__free(pool->workers);
    coffer__free(pool);
}

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
