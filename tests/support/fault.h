/* Runs a scenario once for every call that can fail in it. */
#ifndef SUPPORT_FAULT_H
#define SUPPORT_FAULT_H

#include "coffer/error.h"
#include "support/shim.h"
#include "support/temp.h"

typedef struct fault_case {
    shim_fault fault;
    uint64_t nth;         /* which call was hit, from 1 */
    bool fired;           /* false in the last run of each kind: the scenario had fewer calls */
    const char *function; /* that was hit, "coffer__os_rename"; "" when none was */
    coffer_status status; /* what `run` gave */
    coffer_error error;
} fault_case;

typedef struct fault_test {
    /* Fills a new, empty folder; nothing fails here. May be NULL. */
    void (*setup)(const char *folder, void *context);
    /* The scenario. Must release all it holds, however it ends, and give the status of what failed first. */
    coffer_status (*run)(const char *folder, void *context, coffer_error *err);
    /* Nothing fails here. Gives NULL, or what is wrong. A dead disk (SHIM_DEAD_DISK) may leave temporary
     * files and a journal; the state that a reader sees must be old or new even so. */
    const char *(*verify)(const char *folder, void *context, const fault_case *which);
    void *context;
} fault_test;

/* For every kind of fault: the scenario with the first call failing, then the second, until it ends without
 * one. What must hold always is checked here: without a fault, with EINTR and with short transfers the
 * scenario succeeds; a failure has a text. */
void fault_each(const fault_test *test);

#endif
