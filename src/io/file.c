#include "io/file.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/inputs.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#define MAX_LINKS 40 /* as the kernel follows */

static coffer_status fail_reading(const char *what, const char *name, int error_number, coffer_error *err)
{
    return coffer__fail_other(err, coffer__fail_errno(err, what, error_number), name);
}

static coffer_status fail_writing(const char *what, const char *name, int error_number, coffer_error *err)
{
    return coffer__fail_other(err, coffer__fail_output(err, coffer__fail_errno(err, what, error_number)),
                              name);
}

int coffer__file_try_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do
        fd = coffer__os_open(path, flags, mode);
    while (fd < 0 && errno == EINTR);
    if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY))
        coffer__inputs_note(fd);
    if (fd >= 0 && (flags & O_EXCL) && (flags & O_CREAT))
        coffer__inputs_forget(fd);
    return fd;
}

coffer_status coffer__file_open(int *fd, const char *path, int flags, mode_t mode, coffer_error *err)
{
    int opened = coffer__file_try_open(path, flags, mode);
    if (opened < 0) {
        bool writes = (flags & O_ACCMODE) != O_RDONLY;
        return (writes ? fail_writing : fail_reading)("cannot open", NULL, errno, err);
    }
    *fd = opened;
    return COFFER_OK;
}

void coffer__file_close(int fd)
{
    if (fd >= 0)
        coffer__os_close(fd);
}

coffer_status coffer__file_read_at(int fd, void *out, size_t len, uint64_t offset, const char *name,
                                   coffer_error *err)
{
    uint8_t *to = out;
    while (len > 0) {
        ssize_t n = coffer__os_pread(fd, to, len, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_reading("cannot read", name, errno, err);
        if (n == 0)
            return coffer__fail_other(err,
                                      coffer__fail(err, COFFER_E_CHANGED, offset,
                                                   "ends at %" PRIu64 ", %zu bytes before the end of the "
                                                   "range that existed when it was opened",
                                                   offset, len),
                                      name);
        to += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return COFFER_OK;
}

coffer_status coffer__file_read_some(int fd, void *out, size_t len, size_t *got, const char *name,
                                     coffer_error *err)
{
    ssize_t n;
    do
        n = coffer__os_read(fd, out, len);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail_reading("cannot read", name, errno, err);
    *got = (size_t)n;
    return COFFER_OK;
}

coffer_status coffer__file_write_at(int fd, const void *bytes, size_t len, uint64_t offset, const char *name,
                                    coffer_error *err)
{
    const uint8_t *from = bytes;
    while (len > 0) {
        ssize_t n = coffer__os_pwrite(fd, from, len, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_writing("cannot write", name, n < 0 ? errno : EIO, err);
        from += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return COFFER_OK;
}

coffer_status coffer__file_write(int fd, const void *bytes, size_t len, const char *name, coffer_error *err)
{
    const uint8_t *from = bytes;
    while (len > 0) {
        ssize_t n = coffer__os_write(fd, from, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_writing("cannot write", name, n < 0 ? errno : EIO, err);
        from += n;
        len -= (size_t)n;
    }
    return COFFER_OK;
}

coffer_status coffer__file_truncate(int fd, uint64_t size, const char *name, coffer_error *err)
{
    int result;
    do
        result = coffer__os_truncate(fd, size);
    while (result != 0 && errno == EINTR);
    return result == 0 ? COFFER_OK : fail_writing("cannot truncate", name, errno, err);
}

coffer_status coffer__file_sync(int fd, const char *name, coffer_error *err)
{
    int result;
    do
        result = coffer__os_sync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 ? COFFER_OK : fail_writing("cannot sync", name, errno, err);
}

coffer_status coffer__file_sync_data(int fd, const char *name, coffer_error *err)
{
    int result;
    do
        result = coffer__os_sync_data(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 ? COFFER_OK : fail_writing("cannot sync", name, errno, err);
}

coffer_status coffer__file_size(uint64_t *size, int fd, const char *name, coffer_error *err)
{
    struct stat st;
    if (coffer__os_fstat(fd, &st) != 0)
        return fail_reading("cannot get the size", name, errno, err);
    *size = (uint64_t)st.st_size;
    return COFFER_OK;
}

coffer_status coffer__file_unlink(const char *path, coffer_error *err)
{
    if (coffer__os_unlink(path) != 0)
        return fail_writing("cannot remove", path, errno, err);
    return COFFER_OK;
}

size_t coffer__file_folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

bool coffer__file_has_extension(const char *path, const char *extension)
{
    size_t len = strlen(path), extension_len = strlen(extension);
    return len > extension_len && strcasecmp(path + len - extension_len, extension) == 0;
}

coffer_status coffer__file_sync_folder(const char *path, coffer_error *err)
{
    size_t len = coffer__file_folder_len(path);
    char *folder = len > 0 ? coffer__strndup(path, len) : coffer__strdup(".");
    if (!folder)
        return coffer__fail_no_memory(err, len + 1);
    coffer_status status = COFFER_OK;
    int result, fd = coffer__file_try_open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0) {
        /* A folder that may be written but not read cannot be synced by anyone. */
        if (errno != EACCES)
            status = fail_writing("cannot open the folder", NULL, errno, err);
        goto out;
    }
    do
        result = coffer__os_sync(fd);
    while (result != 0 && errno == EINTR);
    /* Some file systems do not know the operation on folders. */
    if (result != 0 && errno != EINVAL && errno != ENOTSUP)
        status = fail_writing("cannot sync the folder", NULL, errno, err);
out:
    coffer__file_close(fd);
    coffer__free(folder);
    return status;
}

/* The path that a link found at `path` leads to. */
static char *behind_link(const char *path, const char *target, size_t target_len)
{
    size_t folder_len = target[0] == '/' ? 0 : coffer__file_folder_len(path);
    char *joined = coffer__malloc(folder_len + target_len + 1);
    if (!joined)
        return NULL;
    memcpy(joined, path, folder_len);
    memcpy(joined + folder_len, target, target_len);
    joined[folder_len + target_len] = '\0';
    return joined;
}

static coffer_status follow_links(char **out, const char *path, coffer_error *err)
{
    char target[PATH_MAX];
    char *now = coffer__strdup(path);
    for (int links = 0; now; links++) {
        ssize_t len = coffer__os_read_link(now, target, sizeof target);
        if (len <= 0) { /* not a link, or it does not exist yet; open() reports other errors */
            *out = now;
            return COFFER_OK;
        }
        if (links == MAX_LINKS || (size_t)len == sizeof target) {
            coffer__free(now);
            return fail_reading("cannot follow the link", NULL, ELOOP, err);
        }
        char *next = behind_link(now, target, (size_t)len);
        coffer__free(now);
        now = next;
    }
    return coffer__fail_no_memory(err, strlen(path) + 1);
}

coffer_status coffer__file_resolve(char **out, const char *path, coffer_error *err)
{
    char *resolved = NULL;
    if (coffer_is_remote(path))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "a remote file can be read, not written; write a local file, then 'coffer put'");
    coffer_status status = follow_links(&resolved, path, err);
    if (status)
        return status;
    /* Links in /proc may refer to files without a path: a pipe, a removed file. */
    struct stat named, found;
    if (strcmp(resolved, path) != 0 && coffer__os_stat(path, &named) == 0 &&
        (coffer__os_stat(resolved, &found) != 0 || found.st_dev != named.st_dev ||
         found.st_ino != named.st_ino)) {
        coffer__free(resolved);
        resolved = coffer__strdup(path);
        if (!resolved)
            return coffer__fail_no_memory(err, strlen(path) + 1);
    }
    *out = resolved;
    return COFFER_OK;
}

coffer_status coffer__file_take_after(int fd, const struct stat *other, const char *name, coffer_error *err)
{
    struct stat own;
    if (coffer__os_fstat(fd, &own) != 0)
        return fail_writing("cannot examine", name, errno, err);
    if (own.st_uid != other->st_uid || own.st_gid != other->st_gid)
        if (coffer__os_chown(fd, other->st_uid, other->st_gid) != 0)
            coffer__os_chown(fd, (uid_t)-1, other->st_gid);
    /* There are file systems without permissions; where they exist, nobody may read more than before. */
    if (coffer__os_chmod(fd, other->st_mode & 0777) != 0 && errno != EPERM && errno != ENOTSUP &&
        errno != ENOSYS)
        return fail_writing("cannot set the permissions", name, errno, err);
    return COFFER_OK;
}

bool coffer__file_name_is_plain(const char *name, size_t len)
{
    if (len == 0 || memchr(name, '\0', len) || memchr(name, '/', len) || memchr(name, '\\', len))
        return false;
    return !(len == 1 && name[0] == '.') && !(len == 2 && name[0] == '.' && name[1] == '.');
}

#define MAX_REPLACEMENTS 100

static coffer_status lock(int fd, coffer_error *err)
{
    int result;
    do
        result = coffer__os_lock(fd);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return COFFER_OK;
    if (errno == EWOULDBLOCK)
        return coffer__fail(err, COFFER_E_LOCKED, COFFER_OFFSET_NONE, "locked by another writer");
    return coffer__fail_errno(err, "cannot lock", errno);
}

/* True when the path still names the file of fd. */
static coffer_status still_there(bool *same, uint64_t *size, int fd, const char *path, coffer_error *err)
{
    struct stat open_file, named_file;
    if (coffer__os_fstat(fd, &open_file) != 0)
        return coffer__fail_errno(err, "cannot examine", errno);
    if (!S_ISREG(open_file.st_mode))
        return coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                            "not a regular file, it cannot be updated in place");
    if (size)
        *size = (uint64_t)open_file.st_size;
    if (coffer__os_stat(path, &named_file) != 0) {
        if (errno != ENOENT)
            return coffer__fail_errno(err, "cannot examine", errno);
        *same = false;
        return COFFER_OK;
    }
    *same = open_file.st_dev == named_file.st_dev && open_file.st_ino == named_file.st_ino;
    return COFFER_OK;
}

static coffer_status open_locked(int *out, const char *path, coffer_error *err)
{
    for (int attempt = 0; attempt < MAX_REPLACEMENTS; attempt++) {
        int fd = -1;
        bool same = false;
        coffer_status status = coffer__file_open(&fd, path, O_RDWR, 0, err);
        if (status)
            return status;
        status = lock(fd, err);
        if (!status)
            status = still_there(&same, NULL, fd, path, err);
        if (!status && same) {
            *out = fd;
            return COFFER_OK;
        }
        coffer__file_close(fd);
        if (status)
            return status;
    }
    return coffer__fail(err, COFFER_E_LOCKED, COFFER_OFFSET_NONE, "replaced %d times while it was locked",
                        MAX_REPLACEMENTS);
}

coffer_status coffer__lock_open(int *out, const char *path, coffer_error *err)
{
    return coffer__fail_output(err, open_locked(out, path, err));
}

coffer_status coffer__lock_check(uint64_t *size, int fd, const char *path, coffer_error *err)
{
    bool same = false;
    coffer_status status = still_there(&same, size, fd, path, err);
    if (!status && !same)
        status = coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE,
                              "replaced or removed while it was open for writing");
    return coffer__fail_output(err, status);
}
