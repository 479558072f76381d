#ifndef COFFER_PROGRESS_H
#define COFFER_PROGRESS_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* Long work calls `step` now and then, always from the thread that made the call, with work done so far and
 * in all (0 when unknown). A result other than 0 stops the work, which then returns COFFER_E_CANCELLED and
 * leaves nothing behind. */
typedef struct coffer_progress {
    int (*step)(void *context, uint64_t done, uint64_t total);
    void *context;
} coffer_progress;

COFFER_END_DECLS

#endif
