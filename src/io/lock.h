/* The advisory write lock: one writer per file; readers never wait. */
#ifndef COFFER_IO_LOCK_H
#define COFFER_IO_LOCK_H

#include "coffer/error.h"

/* Opens a regular file for reading and writing and locks it. When a writer replaced the file in between, the
 * new one is opened. COFFER_E_LOCKED: "NAME: locked by another writer". Closing the descriptor unlocks. */
coffer_status coffer__lock_open(int *out, const char *path, coffer_error *err);
/* COFFER_E_CHANGED when the path now names another file, or none: writes to the locked file would be lost,
 * and a journal next to the path would belong to the wrong file. size : the current size; may be NULL. */
coffer_status coffer__lock_check(uint64_t *size, int fd, const char *path, coffer_error *err);

#endif
