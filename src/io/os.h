/* Every operating-system call on files, one function each, nothing added: results and errno as the system
 * gives them (retrying EINTR and finishing short transfers is the caller's work, in file.h). The crash and
 * fault tests are linked with --wrap for these names, so what a test sees is what a disk would see. No other
 * file of the library calls the system on a file. */
#ifndef COFFER_IO_OS_H
#define COFFER_IO_OS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

int coffer__os_open(const char *path, int flags, mode_t mode); /* O_CLOEXEC is added */
/* A name inside an open folder; the same. */
int coffer__os_open_at(int folder, const char *name, int flags);
int coffer__os_make_folder(const char *path, mode_t mode); /* mkdir */
int coffer__os_remove_folder(const char *path);            /* rmdir: an empty one */
/* A folder to list; no symbolic link. NULL on error. */
void *coffer__os_open_folder(const char *path);
/* The next name and what it is (DT_REG …), or NULL: at the end errno is 0. */
const char *coffer__os_next_name(void *folder, unsigned char *type);
void coffer__os_close_folder(void *folder);
int coffer__os_stat_in(void *folder, const char *name, struct stat *out); /* of a link itself */
int coffer__os_close(int fd);
ssize_t coffer__os_pread(int fd, void *out, size_t len, uint64_t offset);
ssize_t coffer__os_read(int fd, void *out, size_t len);
ssize_t coffer__os_pwrite(int fd, const void *bytes, size_t len, uint64_t offset);
ssize_t coffer__os_write(int fd, const void *bytes, size_t len);
/* copy_file_range */
ssize_t coffer__os_copy_range(int from, uint64_t from_offset, int to, uint64_t to_offset, size_t len);
int coffer__os_truncate(int fd, uint64_t size);
int coffer__os_sync_data(int fd); /* fdatasync */
int coffer__os_sync(int fd);      /* fsync */
int coffer__os_rename(const char *from, const char *to);
int coffer__os_rename_new(const char *from, const char *to); /* EEXIST when `to` is there */
int coffer__os_link(const char *from, const char *to);
int coffer__os_unlink(const char *path);
ssize_t coffer__os_read_link(const char *path, char *out, size_t size); /* no NUL is added */
int coffer__os_stat(const char *path, struct stat *out);
/* The absolute path without links and dots (free); NULL on failure. */
char *coffer__os_real_path(const char *path);
int coffer__os_fstat(int fd, struct stat *out);
int coffer__os_chmod(int fd, mode_t mode);
int coffer__os_chown(int fd, uid_t owner, gid_t group);
int coffer__os_lock(int fd); /* exclusive, does not wait: EWOULDBLOCK when another has it */
void *coffer__os_map(int fd, size_t len, int writable_copy); /* MAP_PRIVATE; MAP_FAILED on error */
int coffer__os_protect(void *address, size_t len);           /* from now on read-only */
int coffer__os_unmap(void *address, size_t len);

#endif
