#include "io/temporary.h"

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
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
    char path[PATH_MAX];
} slots[64];

#define SLOT_COUNT (sizeof slots / sizeof slots[0])

/* With a full table the file is still written, a signal just does not find it. */
static void remember(const char *path)
{
    size_t len = strlen(path);
    if (len >= PATH_MAX)
        return;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        int expected = FREE;
        if (!atomic_compare_exchange_strong(&slots[i].state, &expected, TAKEN))
            continue;
        memcpy(slots[i].path, path, len + 1);
        atomic_store(&slots[i].process, (int)getpid());
        atomic_store(&slots[i].hash, coffer__hash(path, len));
        atomic_store(&slots[i].state, LIVE);
        return;
    }
}

void coffer__temporary_forget(const char *path)
{
    uint64_t hash = coffer__hash(path, strlen(path));
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        int expected = LIVE;
        if (atomic_load(&slots[i].state) == LIVE && atomic_load(&slots[i].hash) == hash) {
            atomic_compare_exchange_strong(&slots[i].state, &expected, FREE);
            return;
        }
    }
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
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    size_t folder_len = coffer__file_folder_len(path);
    int name_max = NAME_MAX - (int)strlen("..XXXXXXXX.tmp");
    char random[9] = "";
    uint64_t number = random_number();
    for (int i = 0; i < 8; i++, number >>= 5)
        random[i] = letters[number & 31];
    snprintf(out, size, "%.*s.%.*s.%s.tmp", (int)folder_len, path, name_max, path + folder_len, random);
}

coffer_status coffer__temporary_create(int *fd, char **temporary_path, const char *path, coffer_error *err)
{
    size_t size = strlen(path) + sizeof "..XXXXXXXX.tmp";
    char *name = coffer__malloc(size);
    if (!name)
        return coffer__fail_no_memory(err, size);
    int opened = -1, error_number = EEXIST;
    for (int attempt = 0; attempt < 100 && error_number == EEXIST; attempt++) {
        write_name(name, size, path);
        /* Known before it exists: a signal in between leaves nothing. */
        remember(name);
        opened = coffer__file_try_open(name, O_RDWR | O_CREAT | O_EXCL, 0666);
        if (opened >= 0) {
            *fd = opened;
            *temporary_path = name;
            return COFFER_OK;
        }
        error_number = errno;
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
