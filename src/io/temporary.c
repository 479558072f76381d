#include "io/temporary.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/table.h"
#include "coffer/source.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* A signal handler may read this table at any moment: no lock, no allocation. A slot's path is written while
 * its state is TAKEN and read while it is REMOVING; only the owner of a LIVE slot gives it back. */
enum { FREE, TAKEN, LIVE, REMOVING };

static struct {
    atomic_int state;
    atomic_int process; /* a child after fork() must not remove what its parent writes */
    atomic_uint_least64_t hash;
    atomic_int lock; /* a copy of the descriptor, which keeps the lock until the name is forgotten; or −1 */
    atomic_bool written; /* a sink writes to it directly */
    dev_t device;        /* of the file; written while TAKEN */
    ino_t inode;
    char path[PATH_MAX];
} slots[64];

#define SLOT_COUNT (sizeof slots / sizeof slots[0])

static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
enum { RANDOM_LETTERS = 8, NAME_SPACE = NAME_MAX - (int)sizeof "..XXXXXXXX.tmp" + 1, MAX_SEARCHES = 16 };

/* With a full table the file is still written, a signal just does not find it. The index, or SLOT_COUNT. */
static size_t remember(const char *path)
{
    size_t len = strlen(path);
    if (len >= PATH_MAX)
        return SLOT_COUNT;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&slots[i].state, &expected, TAKEN))
            continue;
        memcpy(slots[i].path, path, len + 1);
        atomic_store(&slots[i].process, (int)getpid());
        atomic_store(&slots[i].hash, coffer__hash(path, len));
        atomic_store(&slots[i].lock, -1);
        atomic_store(&slots[i].written, true); /* until it is known which file it is */
        atomic_store(&slots[i].state, LIVE);
        return i;
    }
    return SLOT_COUNT;
}

void coffer__temporary_forget(const char *path)
{
    uint64_t hash = coffer__hash(path, strlen(path));
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        int expected = LIVE;
        if (atomic_load(&slots[i].state) == LIVE && atomic_load(&slots[i].hash) == hash) {
            int lock = atomic_exchange(&slots[i].lock, -1);
            atomic_compare_exchange_strong(&slots[i].state, &expected, FREE);
            if (lock >= 0)
                close(lock);
            return;
        }
    }
}

bool coffer__temporary_take(const struct stat *file)
{
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        bool expected = false;
        if (atomic_load(&slots[i].state) == LIVE && atomic_load(&slots[i].process) == (int)getpid() &&
            !atomic_load(&slots[i].written) && slots[i].device == file->st_dev &&
            slots[i].inode == file->st_ino)
            return atomic_compare_exchange_strong(&slots[i].written, &expected, true);
    }
    return false;
}

void coffer_remove_temporaries(void)
{
    int saved = errno, self = (int)getpid();
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        int expected = LIVE;
        if (atomic_load(&slots[i].process) != self ||
            !atomic_compare_exchange_strong(&slots[i].state, &expected, REMOVING))
            continue;
        coffer__os_unlink(slots[i].path);
        atomic_store(&slots[i].state, FREE);
    }
    errno = saved;
}

static uint64_t random_number(void)
{
    static atomic_uint calls;
    uint64_t number;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    number = (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 32 ^ (uint64_t)atomic_fetch_add(&calls, 1) << 20;
    return number * UINT64_C(0x9E3779B97F4A7C15);
}

/* ".NAME.XXXXXXXX.tmp" beside `path`; a long NAME is cut so that the whole fits NAME_MAX. */
static void write_name(char *out, size_t size, const char *path)
{
    size_t folder_len = coffer__file_folder_len(path);
    char random[RANDOM_LETTERS + 1] = "";
    uint64_t number = random_number();
    for (int i = 0; i < RANDOM_LETTERS; i++, number >>= 5)
        random[i] = letters[number & 31];
    snprintf(out, size, "%.*s.%.*s.%s.tmp", (int)folder_len, path, NAME_SPACE, path + folder_len, random);
}

/* ---- Files that dead processes left ---- */

/* Whoever writes a temporary file has it locked. One that can be locked has lost its writer. */
static void remove_stale(const char *path)
{
    struct stat st;
    int fd = coffer__file_try_open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (coffer__os_lock(fd) == 0 && coffer__os_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_uid == geteuid())
        coffer__os_unlink(path);
    coffer__file_close(fd);
}

static bool is_temporary_of(const char *name, const char *base, size_t base_len)
{
    if (name[0] != '.' || strncmp(name + 1, base, base_len) != 0 || name[1 + base_len] != '.')
        return false;
    const char *random = name + base_len + 2;
    return strspn(random, letters) >= RANDOM_LETTERS && strcmp(random + RANDOM_LETTERS, ".tmp") == 0;
}

/* Removes the temporary files of earlier attempts at `path`. A folder with many files is not searched for
 * each of them that a process writes. */
static void collect_stale(const char *path)
{
    static atomic_int searches;
    size_t folder_len = coffer__file_folder_len(path), base_len = strlen(path) - folder_len;
    const char *name;
    unsigned char type;
    if (base_len > NAME_SPACE)
        base_len = NAME_SPACE;
    if (atomic_fetch_add(&searches, 1) >= MAX_SEARCHES)
        return;
    char *folder = coffer__strndup(folder_len ? path : ".", folder_len ? folder_len : 1);
    void *open_folder = folder ? coffer__os_open_folder(folder) : NULL;
    while (open_folder && (name = coffer__os_next_name(open_folder, &type))) {
        char stale[PATH_MAX];
        if (!is_temporary_of(name, path + folder_len, base_len))
            continue;
        int len = snprintf(stale, sizeof stale, "%.*s%s", (int)folder_len, path, name);
        if (len > 0 && (size_t)len < sizeof stale)
            remove_stale(stale);
    }
    if (open_folder)
        coffer__os_close_folder(open_folder);
    coffer__free(folder);
}

/* Locks a new file. False when another process took it for a stale one in the moment before: it is gone. A
 * file system without locks leaves it unlocked, and then nobody else can lock it either. */
static bool lock_new(int fd, const char *name, size_t slot)
{
    struct stat opened, named;
    if (coffer__os_lock(fd) != 0 && errno == EWOULDBLOCK)
        return false;
    if (coffer__os_fstat(fd, &opened) != 0)
        return true;
    if (coffer__os_stat(name, &named) != 0)
        return errno != ENOENT;
    if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
        return false;
    if (slot < SLOT_COUNT) {
        slots[slot].device = opened.st_dev;
        slots[slot].inode = opened.st_ino;
        atomic_store(&slots[slot].lock, fcntl(fd, F_DUPFD_CLOEXEC, 0));
        atomic_store(&slots[slot].written, false);
    }
    return true;
}

coffer_status coffer__temporary_create(int *fd, char **temporary_path, const char *path, coffer_error *err)
{
    size_t size = strlen(path) + sizeof "..XXXXXXXX.tmp";
    char *name = coffer__malloc(size);
    if (!name)
        return coffer__fail_no_memory(err, size);
    collect_stale(path);
    int opened = -1, error_number = EEXIST;
    for (int attempt = 0; attempt < 100 && error_number == EEXIST; attempt++) {
        write_name(name, size, path);
        /* Known before it exists: a signal in between leaves nothing. */
        size_t slot = remember(name);
        opened = coffer__file_try_open(name, O_RDWR | O_CREAT | O_EXCL, 0666);
        if (opened >= 0 && lock_new(opened, name, slot)) {
            *fd = opened;
            *temporary_path = name;
            return COFFER_OK;
        }
        error_number = opened >= 0 ? EEXIST : errno;
        coffer__file_close(opened);
        coffer__temporary_forget(name);
    }
    coffer__free(name);
    return coffer__fail_output(err,
                               coffer__fail_errno(err, "cannot create a file in the folder", error_number));
}

coffer_status coffer__temporary_unnamed(int *fd, coffer_error *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || folder[0] == '\0')
        folder = "/tmp";
    int opened = -1;
#ifdef O_TMPFILE
    opened = coffer__file_try_open(folder, O_RDWR | O_TMPFILE | O_EXCL, 0600);
    if (opened >= 0) {
        *fd = opened;
        return COFFER_OK;
    }
#endif
    /* Not every file system supports O_TMPFILE. */
    size_t size = strlen(folder) + sizeof "/coffer";
    char *path = coffer__malloc(size), *name = NULL;
    if (!path)
        return coffer__fail_no_memory(err, size);
    snprintf(path, size, "%s/coffer", folder);
    coffer_status status =
        coffer__fail_other(err, coffer__temporary_create(&opened, &name, path, err), folder);
    if (!status) {
        status = coffer__file_unlink(name, err);
        coffer__temporary_forget(name);
    }
    if (!status)
        *fd = opened;
    else
        coffer__file_close(opened);
    coffer__free(name);
    coffer__free(path);
    return status;
}

coffer_status coffer_temporary_create(char **out, const char *path, coffer_error *err)
{
    int fd;
    char *name;
    coffer_status status = coffer__temporary_create(&fd, &name, path, err);
    if (status)
        return status;
    coffer__os_close(fd);
    *out = name;
    return COFFER_OK;
}

void coffer_temporary_remove(char *temporary)
{
    if (!temporary)
        return;
    coffer__os_unlink(temporary);
    coffer__temporary_forget(temporary);
    coffer__free(temporary);
}
