#include "support/shim.h"

#include "base/memory.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Faults ---- */

static shim_fault armed;
static atomic_uint_least64_t calls_left; /* until the fault comes */
static atomic_bool fired;
static const char *_Atomic fired_in;
static const shim_observer *observer;

void shim_arm(shim_fault fault, uint64_t nth)
{
    armed = fault;
    atomic_store(&calls_left, nth);
    atomic_store(&fired, false);
    atomic_store(&fired_in, "");
}

void shim_disarm(void)
{
    armed = SHIM_NO_FAULT;
}

bool shim_fired(void)
{
    return atomic_load(&fired);
}

const char *shim_fired_in(void)
{
    return atomic_load(&fired_in);
}

void shim_observe(const shim_observer *new_observer)
{
    observer = new_observer;
}

#define TELL(event, ...)                                     \
    do {                                                     \
        if (observer && observer->event)                     \
            observer->event(observer->context, __VA_ARGS__); \
    } while (0)

static struct {
    const char *function;
    int error_number;
} refused[4];

void shim_refuse(const char *function, int error_number)
{
    size_t i = 0;
    if (!function) {
        memset(refused, 0, sizeof refused);
        return;
    }
    while (refused[i].function)
        i++;
    refused[i].function = function;
    refused[i].error_number = error_number;
}

static bool is_refused(const char *function)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (refused[i].function && strcmp(refused[i].function, function) == 0) {
            errno = refused[i].error_number;
            return true;
        }
    }
    return false;
}

/* What a function can suffer from. */
enum { EVERY = 1, TAKES_ROOM = 2, INTERRUPTIBLE = 4, TRANSFERS = 8, ALLOCATES = 16 };

static unsigned suffers(shim_fault fault)
{
    switch (fault) {
    case SHIM_NO_MEMORY:
        return ALLOCATES;
    case SHIM_EIO:
    case SHIM_DEAD_DISK:
        return EVERY;
    case SHIM_ENOSPC:
        return TAKES_ROOM;
    case SHIM_EINTR:
        return INTERRUPTIBLE;
    case SHIM_SHORT:
        return TRANSFERS;
    default:
        return 0;
    }
}

/* Whether this call is the one. */
static bool hit(const char *function, unsigned nature)
{
    if (!(nature & suffers(armed)))
        return false;
    if (armed == SHIM_DEAD_DISK && atomic_load(&fired))
        return true;
    if (atomic_fetch_sub(&calls_left, 1) != 1)
        return false;
    atomic_store(&fired_in, function);
    atomic_store(&fired, true);
    return true;
}

static bool fails(const char *function, unsigned nature)
{
    if (is_refused(function))
        return true;
    if (!hit(function, nature))
        return false;
    errno = armed == SHIM_ENOSPC ? ENOSPC : armed == SHIM_EINTR ? EINTR : EIO;
    return true;
}

/* The same for transfers, which may also do only a part. *len is what shall be done now. */
static bool transfer_fails(const char *function, unsigned nature, size_t *len)
{
    if (armed == SHIM_SHORT && !is_refused(function)) {
        if (*len > 1 && hit(function, nature))
            *len /= 2;
        return false;
    }
    return fails(function, nature);
}

#define WRAPPED(type, name, ...)             \
    type __real_coffer__##name(__VA_ARGS__); \
    type __wrap_coffer__##name(__VA_ARGS__); \
    type __wrap_coffer__##name(__VA_ARGS__)
#define ME __func__ + sizeof "__wrap_" - 1

/* ---- Memory ---- */

WRAPPED(void *, malloc, size_t size)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__malloc(size);
}

WRAPPED(void *, calloc, size_t count, size_t size)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__calloc(count, size);
}

WRAPPED(void *, realloc, void *old, size_t size)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__realloc(old, size);
}

WRAPPED(void *, alloc_array, size_t count, size_t size)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__alloc_array(count, size);
}

WRAPPED(char *, strndup, const char *text, size_t len)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__strndup(text, len);
}

WRAPPED(char *, strdup, const char *text)
{
    return hit(ME, ALLOCATES) ? NULL : __real_coffer__strdup(text);
}

/* ---- Opening ---- */

WRAPPED(int, os_open, const char *path, int flags, mode_t mode)
{
    if (fails(ME, EVERY | INTERRUPTIBLE | (flags & O_CREAT ? TAKES_ROOM : 0)))
        return -1;
    int fd = __real_coffer__os_open(path, flags, mode);
    if (fd >= 0)
        TELL(opened, path, flags, fd);
    return fd;
}

WRAPPED(int, os_open_at, int folder, const char *name, int flags)
{
    if (fails(ME, EVERY | INTERRUPTIBLE))
        return -1;
    return __real_coffer__os_open_at(folder, name, flags);
}

WRAPPED(int, os_make_folder, const char *path, mode_t mode)
{
    if (fails(ME, EVERY | TAKES_ROOM))
        return -1;
    return __real_coffer__os_make_folder(path, mode);
}

WRAPPED(int, os_remove_folder, const char *path)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_remove_folder(path);
}

WRAPPED(void *, os_open_folder, const char *path)
{
    return fails(ME, EVERY) ? NULL : __real_coffer__os_open_folder(path);
}

WRAPPED(const char *, os_next_name, void *folder, unsigned char *type)
{
    return fails(ME, EVERY) ? NULL : __real_coffer__os_next_name(folder, type);
}

WRAPPED(int, os_stat_in, void *folder, const char *name, struct stat *out)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_stat_in(folder, name, out);
}

WRAPPED(void, os_close_folder, void *folder)
{
    __real_coffer__os_close_folder(folder);
}

WRAPPED(int, os_close, int fd)
{
    TELL(closed, fd);
    return __real_coffer__os_close(fd);
}

WRAPPED(int, os_lock, int fd)
{
    return fails(ME, EVERY | INTERRUPTIBLE) ? -1 : __real_coffer__os_lock(fd);
}

WRAPPED(int, os_stat, const char *path, struct stat *out)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_stat(path, out);
}

WRAPPED(char *, os_real_path, const char *path)
{
    return fails(ME, EVERY) ? NULL : __real_coffer__os_real_path(path);
}

WRAPPED(int, os_fstat, int fd, struct stat *out)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_fstat(fd, out);
}

WRAPPED(ssize_t, os_read_link, const char *path, char *out, size_t size)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_read_link(path, out, size);
}

WRAPPED(void *, os_map, int fd, size_t len, int writable_copy)
{
    return fails(ME, EVERY) ? MAP_FAILED : __real_coffer__os_map(fd, len, writable_copy);
}

WRAPPED(int, os_protect, void *address, size_t len)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_protect(address, len);
}

WRAPPED(int, os_unmap, void *address, size_t len)
{
    return __real_coffer__os_unmap(address, len);
}

/* ---- Transfers ---- */

WRAPPED(ssize_t, os_pread, int fd, void *out, size_t len, uint64_t offset)
{
    if (transfer_fails(ME, EVERY | INTERRUPTIBLE | TRANSFERS, &len))
        return -1;
    return __real_coffer__os_pread(fd, out, len, offset);
}

WRAPPED(ssize_t, os_read, int fd, void *out, size_t len)
{
    if (transfer_fails(ME, EVERY | INTERRUPTIBLE | TRANSFERS, &len))
        return -1;
    return __real_coffer__os_read(fd, out, len);
}

WRAPPED(ssize_t, os_pwrite, int fd, const void *bytes, size_t len, uint64_t offset)
{
    if (transfer_fails(ME, EVERY | INTERRUPTIBLE | TRANSFERS | TAKES_ROOM, &len)) {
        int error_number = errno;
        if (error_number == ENOSPC) /* a disk that runs full has taken a part */
            __real_coffer__os_pwrite(fd, bytes, len / 2, offset);
        errno = error_number;
        return -1;
    }
    ssize_t n = __real_coffer__os_pwrite(fd, bytes, len, offset);
    if (n > 0)
        TELL(wrote, fd, bytes, (size_t)n, offset);
    return n;
}

WRAPPED(ssize_t, os_write, int fd, const void *bytes, size_t len)
{
    if (transfer_fails(ME, EVERY | INTERRUPTIBLE | TRANSFERS | TAKES_ROOM, &len))
        return -1;
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t n = __real_coffer__os_write(fd, bytes, len);
    if (n > 0 && offset >= 0)
        TELL(wrote, fd, bytes, (size_t)n, (uint64_t)offset);
    return n;
}

/* The observer wants to see the bytes that the kernel copied. */
static void show_copied(int fd, uint64_t offset, size_t len)
{
    void *bytes = malloc(len);
    if (bytes && pread(fd, bytes, len, (off_t)offset) == (ssize_t)len) {
        TELL(wrote, fd, bytes, len, offset);
    } else {
        fputs("shim: cannot read back what was copied\n", stderr);
        abort();
    }
    free(bytes);
}

WRAPPED(ssize_t, os_copy_range, int from, uint64_t from_offset, int to, uint64_t to_offset, size_t len)
{
    if (transfer_fails(ME, EVERY | INTERRUPTIBLE | TRANSFERS | TAKES_ROOM, &len))
        return -1;
    ssize_t n = __real_coffer__os_copy_range(from, from_offset, to, to_offset, len);
    if (n > 0 && observer && observer->wrote)
        show_copied(to, to_offset, (size_t)n);
    return n;
}

WRAPPED(int, os_truncate, int fd, uint64_t size)
{
    if (fails(ME, EVERY | INTERRUPTIBLE))
        return -1;
    int result = __real_coffer__os_truncate(fd, size);
    if (result == 0)
        TELL(truncated, fd, size);
    return result;
}

WRAPPED(int, os_sync_data, int fd)
{
    if (fails(ME, EVERY | INTERRUPTIBLE | TAKES_ROOM))
        return -1;
    int result = __real_coffer__os_sync_data(fd);
    if (result == 0)
        TELL(synced, fd);
    return result;
}

WRAPPED(int, os_sync, int fd)
{
    if (fails(ME, EVERY | INTERRUPTIBLE | TAKES_ROOM))
        return -1;
    int result = __real_coffer__os_sync(fd);
    if (result == 0)
        TELL(synced, fd);
    return result;
}

/* ---- Names ---- */

WRAPPED(int, os_rename, const char *from, const char *to)
{
    if (fails(ME, EVERY | TAKES_ROOM))
        return -1;
    int result = __real_coffer__os_rename(from, to);
    if (result == 0)
        TELL(renamed, from, to);
    return result;
}

WRAPPED(int, os_rename_new, const char *from, const char *to)
{
    if (fails(ME, EVERY | TAKES_ROOM))
        return -1;
    int result = __real_coffer__os_rename_new(from, to);
    if (result == 0)
        TELL(renamed, from, to);
    return result;
}

WRAPPED(int, os_link, const char *from, const char *to)
{
    if (fails(ME, EVERY | TAKES_ROOM))
        return -1;
    int result = __real_coffer__os_link(from, to);
    if (result == 0)
        TELL(linked, from, to);
    return result;
}

WRAPPED(int, os_unlink, const char *path)
{
    if (fails(ME, EVERY))
        return -1;
    int result = __real_coffer__os_unlink(path);
    if (result == 0)
        TELL(unlinked, path);
    return result;
}

WRAPPED(int, os_chmod, int fd, mode_t mode)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_chmod(fd, mode);
}

WRAPPED(int, os_chown, int fd, uid_t owner, gid_t group)
{
    return fails(ME, EVERY) ? -1 : __real_coffer__os_chown(fd, owner, group);
}
