#include "io/lock.h"

#include "base/fail.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>

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
