/* Operations on files, and the lock of a writer. */
#ifndef COFFER_IO_FILE_H
#define COFFER_IO_FILE_H

#include "coffer/error.h"

#include <sys/stat.h>

/* Whole operations over os.h, which handle EINTR and short transfers and fill coffer_error. `name` is NULL
 * for a file that the caller of the library named: the error is then about the input, or the output where the
 * call writes. Otherwise the error names the file and is about another one. */

/* The descriptor, or −1 with errno set. */
int coffer__file_try_open(const char *path, int flags, mode_t mode);
coffer_status coffer__file_open(int *fd, const char *path, int flags, mode_t mode, coffer_error *err);
void coffer__file_close(int fd); /* −1 allowed */

/* The caller has checked the range against the file's size: an end in between is COFFER_E_CHANGED. */
coffer_status coffer__file_read_at(int fd, void *out, size_t len, uint64_t offset, const char *name,
                                   coffer_error *err);
/* Reads at most len bytes from a stream; *got is 0 at its end. */
coffer_status coffer__file_read_some(int fd, void *out, size_t len, size_t *got, const char *name,
                                     coffer_error *err);
coffer_status coffer__file_write_at(int fd, const void *bytes, size_t len, uint64_t offset, const char *name,
                                    coffer_error *err);
coffer_status coffer__file_write(int fd, const void *bytes, size_t len, const char *name, coffer_error *err);
coffer_status coffer__file_truncate(int fd, uint64_t size, const char *name, coffer_error *err);
coffer_status coffer__file_sync(int fd, const char *name, coffer_error *err);
coffer_status coffer__file_sync_data(int fd, const char *name, coffer_error *err);
/* Makes renames and removals in the folder of `path` durable. */
coffer_status coffer__file_sync_folder(const char *path, coffer_error *err);
coffer_status coffer__file_size(uint64_t *size, int fd, const char *name, coffer_error *err);
coffer_status coffer__file_unlink(const char *path, coffer_error *err);

/* Resolves symbolic links in the path of a file that need not exist yet (caller frees with coffer__free).
 * Journals and temporary files are created next to the resolved path. */
coffer_status coffer__file_resolve(char **out, const char *path, coffer_error *err);
/* Gives an open file the owner, where allowed, and the permissions of another. To be called before there is
 * anything in it to read. */
coffer_status coffer__file_take_after(int fd, const struct stat *other, const char *name, coffer_error *err);
/* True when a name cannot lead out of its folder: no path separator of any system, not "." or "..", no NUL.
 */
bool coffer__file_name_is_plain(const char *name, size_t len);
/* Length of the folder part of a path, with its last slash. */
size_t coffer__file_folder_len(const char *path);
/* True when the name ends in the extension, in any case, and has something before it. */
bool coffer__file_has_extension(const char *path, const char *extension);

/* The advisory write lock: one writer per file; readers never wait. */

/* Opens a regular file for reading and writing and locks it. When a writer replaced the file in between, the
 * new one is opened. COFFER_E_LOCKED: "NAME: locked by another writer". Closing the descriptor unlocks. */
coffer_status coffer__lock_open(int *out, const char *path, coffer_error *err);
/* COFFER_E_CHANGED when the path now names another file, or none: writes to the locked file would be lost,
 * and a journal next to the path would belong to the wrong file. size : the current size; may be NULL. */
coffer_status coffer__lock_check(uint64_t *size, int fd, const char *path, coffer_error *err);

#endif
