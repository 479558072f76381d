/* Long work: pieces on all cores, with progress and cancellation. */
#ifndef COFFER_BASE_WORK_H
#define COFFER_BASE_WORK_H

#include "coffer/error.h"
#include "coffer/progress.h"

/* A small thread pool. Workers block all signals but those of faults; a pool used after fork() starts its
 * threads again in the child. */

typedef struct coffer__pool coffer__pool;

/* One piece of work: index < count; worker < threads, for per-thread state. */
typedef coffer_status (*coffer__pool_task)(void *context, uint64_t index, uint32_t worker, coffer_error *err);

/* threads : 0 = one per core the process may use. With 1 everything runs in the caller. */
coffer_status coffer__pool_new(coffer__pool **out, uint32_t threads, coffer_error *err);
void coffer__pool_free(coffer__pool *pool);
uint32_t coffer__pool_threads(const coffer__pool *pool);
/* Runs task for every index in [0, count); the caller works too. Indices are handed out in order, and after a
 * failure no new ones are started. Gives the failure with the lowest index, so the result does not depend on
 * timing. Not reentrant. */
coffer_status coffer__pool_run(coffer__pool *pool, uint64_t count, coffer__pool_task task, void *context,
                               coffer_error *err);
uint32_t coffer__cpu_count(void);

/* Calls progress->step; COFFER_E_CANCELLED when it asks to stop. progress : may be NULL. Only the thread that
 * made the library call may do this. */
coffer_status coffer__progress_step(const coffer_progress *progress, uint64_t done, uint64_t total,
                                    coffer_error *err);

typedef struct coffer__work_opts {
    uint32_t threads; /* 0 = one per core */
    const coffer_progress *progress;
    uint64_t total; /* of the progress */
    uint64_t piece; /* what each finished piece adds to the progress; 0 = call coffer__work_advance instead */
    uint64_t pieces; /* most pieces of a run, if known: no more threads than these; 0 = unknown */
} coffer__work_opts;

typedef struct coffer__work coffer__work;

/* opts : NULL = defaults. */
coffer_status coffer__work_new(coffer__work **out, const coffer__work_opts *opts, coffer_error *err);
/* The same for one run of `pieces`, each of which counts as 1 in the progress. opts : threads and progress.
 */
coffer_status coffer__work_new_pieces(coffer__work **out, uint64_t pieces, const coffer__work_opts *opts,
                                      coffer_error *err);
void coffer__work_free(coffer__work *work);
uint32_t coffer__work_threads(const coffer__work *work);

/* Runs the task for every index in [0, count) as coffer__pool_run does. Progress is reported from the calling
 * thread, while it works on pieces and at the end. */
coffer_status coffer__work_run(coffer__work *work, uint64_t count, coffer__pool_task task, void *context,
                               coffer_error *err);

/* Adds to the progress, from inside a task or between two runs. On the calling thread also reports it:
 * COFFER_E_CANCELLED when the caller asks to stop. */
coffer_status coffer__work_advance(coffer__work *work, uint64_t amount, coffer_error *err);

/* A pipeline of batches: while one batch is consumed, the pieces of the next one are produced. Two batches
 * exist at a time; `slot` (0 or 1) says which memory a call works on. */
typedef struct coffer__work_pipeline {
    /* Prepares the next batch, on the calling thread, while nothing else runs. *pieces : 0 = no more. */
    coffer_status (*prepare)(void *context, size_t slot, uint64_t *pieces, coffer_error *err);
    /* Produces one piece; on any thread. */
    coffer_status (*produce)(void *context, size_t slot, uint64_t piece, uint32_t worker, coffer_error *err);
    /* Consumes a batch that is complete; on any thread, one batch at a time, in order. */
    coffer_status (*consume)(void *context, size_t slot, coffer_error *err);
    /* After each turn, on the calling thread: a batch has been produced in `slot`, the one before it
     * consumed. For progress; may be NULL. */
    coffer_status (*turned)(void *context, size_t slot, coffer_error *err);
} coffer__work_pipeline;

coffer_status coffer__work_run_pipeline(coffer__work *work, const coffer__work_pipeline *pipeline,
                                        void *context, coffer_error *err);

#endif
