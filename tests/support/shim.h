/* Stands between the library and the system in the crash and fault tests, which are linked with --wrap for
 * the functions of io/os.h and base/memory.h. Calls pass through unchanged until a fault is armed or an
 * observer is set. */
#ifndef SUPPORT_SHIM_H
#define SUPPORT_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum shim_fault {
    SHIM_NO_FAULT,
    SHIM_NO_MEMORY, /* an allocation gives NULL */
    SHIM_EIO,       /* a file operation fails */
    SHIM_DEAD_DISK, /* it fails, and so do all after it */
    SHIM_ENOSPC,    /* an operation that needs room fails, one that writes after half of it was written */
    SHIM_EINTR,     /* a signal comes before anything is done: the caller has to try again */
    SHIM_SHORT      /* a transfer does half of what was asked: the caller has to do the rest */
} shim_fault;

/* The nth call, from 1, that the fault can hit will be hit. */
void shim_arm(shim_fault fault, uint64_t nth);
void shim_disarm(void);
bool shim_fired(void);           /* true when the fault was injected */
const char *shim_fired_in(void); /* the function, "coffer__os_pwrite" */

/* Every call of the function ("coffer__os_link") fails with this errno, as on a system that does not know it.
 * Up to four functions; NULL ends it for all. */
void shim_refuse(const char *function, int error_number);

/* Callbacks for every operation that changed something and succeeded. NULL callbacks are not called. */
typedef struct shim_observer {
    void (*opened)(void *context, const char *path, int flags, int fd);
    void (*closed)(void *context, int fd);
    void (*wrote)(void *context, int fd, const void *bytes, size_t len, uint64_t offset);
    void (*truncated)(void *context, int fd, uint64_t size);
    void (*synced)(void *context, int fd);
    void (*renamed)(void *context, const char *from, const char *to);
    void (*linked)(void *context, const char *from, const char *to);
    void (*unlinked)(void *context, const char *path);
    void *context;
} shim_observer;

/* NULL ends it. Only one thread may write while it is watched. */
void shim_observe(const shim_observer *observer);

#endif
