/* The advisory write lock: one writer a file, readers are never held up. */
#ifndef COFFER_IO_LOCK_H
#define COFFER_IO_LOCK_H

#include "coffer/error.h"

/* Opens a regular file for reading and writing and locks it. When a writer replaced the file in between, the
 * new one is opened. COFFER_E_LOCKED: "NAME: locked by another writer". Closing the descriptor unlocks. */
coffer_status coffer__lock_open(int *out, const char *path, coffer_error *err);

#endif
