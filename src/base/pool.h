/* A small thread pool. Workers block all signals but those of faults; a pool used after fork() starts its
 * threads again in the child. */
#ifndef COFFER_IO_POOL_H
#define COFFER_IO_POOL_H

#include "coffer/error.h"

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

#endif
