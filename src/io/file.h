/* Whole transfers over os.h: EINTR and short reads and writes handled. */
#ifndef COFFER_IO_FILE_H
#define COFFER_IO_FILE_H

#include "coffer/error.h"

coffer_status coffer__file_read_at(int fd, void *out, size_t len, uint64_t offset, const char *name,
                                   coffer_error *err);
coffer_status coffer__file_write_at(int fd, const void *bytes, size_t len, uint64_t offset, const char *name,
                                    coffer_error *err);
coffer_status coffer__file_write(int fd, const void *bytes, size_t len, const char *name, coffer_error *err);
/* Makes renames and removals in the folder of `path` durable. */
coffer_status coffer__file_sync_folder(const char *path, coffer_error *err);

#endif
