/* The first failure of a writer is kept, and every later call of that writer repeats it. */
#ifndef COFFER_BASE_STICKY_H
#define COFFER_BASE_STICKY_H

#include "coffer/error.h"

typedef struct coffer__sticky {
    coffer_error failure; /* status COFFER_OK: nothing has failed */
} coffer__sticky;

#define COFFER__STICKY_INIT \
    {                       \
        COFFER_ERROR_INIT   \
    }

/* Call it first in every function of the writer. */
static inline coffer_status coffer__sticky_check(const coffer__sticky *sticky, coffer_error *err)
{
    if (sticky->failure.status && err)
        *err = sticky->failure;
    return sticky->failure.status;
}

/* Keeps a failure that leaves the writer unusable. failure : from an error of the function's own, since the
 * caller's err may be NULL. A status of COFFER_OK is passed through; a second failure repeats the first. */
static inline coffer_status coffer__sticky_keep(coffer__sticky *sticky, coffer_status status,
                                                const coffer_error *failure, coffer_error *err)
{
    if (!status)
        return COFFER_OK;
    if (!sticky->failure.status) {
        sticky->failure = *failure;
        sticky->failure.status = status;
    }
    return coffer__sticky_check(sticky, err);
}

#endif
