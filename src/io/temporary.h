/* Names of the temporary files in use, kept where a signal handler can reach them
 * (coffer_remove_temporaries). */
#ifndef COFFER_IO_TEMPORARY_H
#define COFFER_IO_TEMPORARY_H

#include "coffer/error.h"

#include <sys/stat.h>

/* Creates ".NAME.XXXXXXXX.tmp" in the folder of `path` (mode as open(2) with 0666 and the umask), registers
 * and locks it, and gives an open descriptor and the name (caller frees with coffer__free). The lock lasts
 * until the name is forgotten and the descriptor closed. Removes the files of this kind that are not locked:
 * their processes died. */
coffer_status coffer__temporary_create(int *fd, char **temporary_path, const char *path, coffer_error *err);
/* Takes the name out of the registry: it was renamed or removed. */
void coffer__temporary_forget(const char *temporary_path);
/* Whether a file is one of those that this process has created and nothing is written to it by a sink yet:
 * the caller then writes to it directly, because it is temporary already. */
bool coffer__temporary_take(const struct stat *file);
/* An unnamed file in $TMPDIR or /tmp for spooling. */
coffer_status coffer__temporary_unnamed(int *fd, coffer_error *err);

#endif
