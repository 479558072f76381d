#include "io/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

int coffer__os_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags | O_CLOEXEC, mode);
}

int coffer__os_open_at(int folder, const char *name, int flags)
{
    return openat(folder, name, flags | O_CLOEXEC);
}

int coffer__os_make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode);
}

int coffer__os_remove_folder(const char *path)
{
    return rmdir(path);
}

void *coffer__os_open_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

const char *coffer__os_next_name(void *folder, unsigned char *type)
{
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (!entry)
        return NULL;
    *type = entry->d_type;
    return entry->d_name;
}

void coffer__os_close_folder(void *folder)
{
    closedir(folder);
}

int coffer__os_stat_in(void *folder, const char *name, struct stat *out)
{
    return fstatat(dirfd(folder), name, out, AT_SYMLINK_NOFOLLOW);
}

int coffer__os_close(int fd)
{
    return close(fd);
}

ssize_t coffer__os_pread(int fd, void *out, size_t len, uint64_t offset)
{
    return pread(fd, out, len, (off_t)offset);
}

ssize_t coffer__os_read(int fd, void *out, size_t len)
{
    return read(fd, out, len);
}

ssize_t coffer__os_pwrite(int fd, const void *bytes, size_t len, uint64_t offset)
{
    return pwrite(fd, bytes, len, (off_t)offset);
}

ssize_t coffer__os_write(int fd, const void *bytes, size_t len)
{
    return write(fd, bytes, len);
}

ssize_t coffer__os_copy_range(int from, uint64_t from_offset, int to, uint64_t to_offset, size_t len)
{
    off_t in = (off_t)from_offset, out = (off_t)to_offset;
    return copy_file_range(from, &in, to, &out, len, 0);
}

int coffer__os_truncate(int fd, uint64_t size)
{
    return ftruncate(fd, (off_t)size);
}

int coffer__os_sync_data(int fd)
{
    return fdatasync(fd);
}

int coffer__os_sync(int fd)
{
    return fsync(fd);
}

int coffer__os_rename(const char *from, const char *to)
{
    return rename(from, to);
}

int coffer__os_rename_new(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int coffer__os_link(const char *from, const char *to)
{
    return link(from, to);
}

int coffer__os_unlink(const char *path)
{
    return unlink(path);
}

ssize_t coffer__os_read_link(const char *path, char *out, size_t size)
{
    return readlink(path, out, size);
}

char *coffer__os_real_path(const char *path)
{
    return realpath(path, NULL);
}

int coffer__os_stat(const char *path, struct stat *out)
{
    return stat(path, out);
}

int coffer__os_fstat(int fd, struct stat *out)
{
    return fstat(fd, out);
}

int coffer__os_chmod(int fd, mode_t mode)
{
    return fchmod(fd, mode);
}

int coffer__os_chown(int fd, uid_t owner, gid_t group)
{
    return fchown(fd, owner, group);
}

int coffer__os_lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB);
}

void *coffer__os_map(int fd, size_t len, int writable_copy)
{
    return mmap(NULL, len, writable_copy ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE, fd, 0);
}

int coffer__os_protect(void *address, size_t len)
{
    return mprotect(address, len, PROT_READ);
}

int coffer__os_unmap(void *address, size_t len)
{
    return munmap(address, len);
}
