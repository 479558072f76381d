/* The advisory write lock: one writer a file, readers are never held up. */
#ifndef COFFER_IO_LOCK_H
#define COFFER_IO_LOCK_H

#include "coffer/error.h"

/* Opens a regular file for reading and writing and locks it. When a writer replaced the file in between, the
 * new one is opened. COFFER_E_LOCKED: "NAME: locked by another writer". Closing the descriptor unlocks. */
coffer_status coffer__lock_open(int *out, const char *path, coffer_error *err);
/* COFFER_E_CHANGED when another file has taken the path since, or none has it: what would be written to the
 * locked one is lost, and a journal beside the path would speak of the wrong file. size : that the file has
 * now; may be NULL. */
coffer_status coffer__lock_check(uint64_t *size, int fd, const char *path, coffer_error *err);

#endif
