/* Every state that a crash may leave. */
#ifndef SUPPORT_CRASH_H
#define SUPPORT_CRASH_H

#include "support/acts.h"
#include "support/temp.h"

typedef struct crash_test {
    /* Fills a new, empty folder: what is there before, all of it durable. May be NULL. */
    void (*setup)(const char *folder, void *context);
    /* The operation; it is run once, must succeed, and leaves nothing open. */
    void (*run)(const char *folder, void *context);
    /* Looks at the folder after a crash; may change it. finished : the operation had returned before, so what
     * it promised must be there. Gives NULL, or what is wrong. */
    const char *(*verify)(const char *folder, void *context, bool finished);
    void *context;
} crash_test;

/* Runs the operation while its file operations are recorded, then builds the folder as a crash after each of
 * them may leave it, and verifies every state that differs from those before:
 *  - what was written to a file since its last sync is there in part: any set of 512-byte sectors, all sets
 *    where they are few, else a fixed choice of them; the file may have its new size without the bytes
 *  - names made, changed and removed since the last sync of the folder: the first few of them, any number
 * Gives the number of states, and prints it. */
size_t crash_enumerate(const crash_test *test);

/* For verify, of a file that a format checks: it opens, a full check finds no error and no warning, and
 * `look` accepts it; the same again after a writer has rolled it back. Gives NULL, or what is wrong.
 * is_new : the operation makes the file, so it may be absent before the end. */
typedef const char *(*crash_look)(coffer_source *src, const void *context, bool finished);
const char *crash_verify_file(const char *path, bool is_new, bool finished, crash_look look,
                              const void *context);

#endif
