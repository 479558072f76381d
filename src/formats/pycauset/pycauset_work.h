/* Work on a payload in equal units, on all cores, with progress. */
#ifndef COFFER_FORMATS_PYCAUSET_WORK_H
#define COFFER_FORMATS_PYCAUSET_WORK_H

#include "base/pool.h"
#include "coffer/progress.h"

typedef struct coffer__work_opts {
    uint32_t threads; /* 0 = one per core */
    const coffer_progress *progress;
} coffer__work_opts;

typedef struct coffer__work coffer__work;

/* opts : NULL = defaults. No more threads than units. */
coffer_status coffer__work_new(coffer__work **out, uint64_t units, const coffer__work_opts *opts,
                               coffer_error *err);
void coffer__work_free(coffer__work *work);
uint32_t coffer__work_threads(const coffer__work *work);
/* Runs the task for every unit; COFFER_E_CANCELLED when the progress said so. */
coffer_status coffer__work_run(coffer__work *work, coffer__pool_task task, void *context, coffer_error *err);

#endif
