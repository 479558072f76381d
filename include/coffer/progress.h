#ifndef COFFER_PROGRESS_H
#define COFFER_PROGRESS_H

#include "coffer/api.h"

COFFER_BEGIN_DECLS

/* Long work calls `step` now and then, always from the thread that made the call, with the work done so far
 * and the total (0 when unknown). A result other than 0 cancels: the call returns COFFER_E_CANCELLED and
 * leaves no file that is only partly written. */
typedef struct coffer_progress {
    uint32_t struct_size;
    int (*step)(void *context, uint64_t done, uint64_t total);
    void *context; /* passed to `step` */
} coffer_progress;

#define COFFER_PROGRESS_INIT                \
    {                                       \
        sizeof(coffer_progress), NULL, NULL \
    }

COFFER_API void coffer_progress_init(coffer_progress *progress, uint32_t struct_size);

COFFER_END_DECLS

#endif
