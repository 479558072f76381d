/* The command with a SIGINT at a chosen call, for tests of Ctrl-C that do not depend on time. Point 2N − 1 is
 * before the Nth call that changes a file, point 2N after it.
 *
 *   COFFER_TEST_INTERRUPT=POINT   send the signal there
 *   COFFER_TEST_SIGNAL=NUMBER     another signal than SIGINT
 *   COFFER_TEST_CALLS=FILE        write the number of calls to FILE at the end */
#include "io/os.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t wanted;
static int number = SIGINT;
static atomic_uint_least64_t calls;

__attribute__((constructor)) static void read_environment(void)
{
    const char *point = getenv("COFFER_TEST_INTERRUPT");
    const char *signal_number = getenv("COFFER_TEST_SIGNAL");
    wanted = point ? strtoull(point, NULL, 10) : 0;
    if (signal_number)
        number = (int)strtol(signal_number, NULL, 10);
}

__attribute__((destructor)) static void write_calls(void)
{
    const char *path = getenv("COFFER_TEST_CALLS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%" PRIu64 "\n", (uint64_t)atomic_load(&calls));
    fclose(file);
}

static void pass_point(uint64_t point)
{
    if (point == wanted)
        kill(getpid(), number);
}

#define WRAP(type, name, parameters, ...)                    \
    type __real_coffer__os_##name parameters;                \
    type __wrap_coffer__os_##name parameters;                \
    type __wrap_coffer__os_##name parameters                 \
    {                                                        \
        uint64_t call = atomic_fetch_add(&calls, 1);         \
        pass_point(2 * call + 1);                            \
        type result = __real_coffer__os_##name(__VA_ARGS__); \
        pass_point(2 * call + 2);                            \
        return result;                                       \
    }

WRAP(ssize_t, write, (int fd, const void *bytes, size_t len), fd, bytes, len)
WRAP(ssize_t, pwrite, (int fd, const void *bytes, size_t len, uint64_t offset), fd, bytes, len, offset)
WRAP(int, truncate, (int fd, uint64_t size), fd, size)
WRAP(int, sync_data, (int fd), fd)
WRAP(int, sync, (int fd), fd)
WRAP(int, rename, (const char *from, const char *to), from, to)
WRAP(int, rename_new, (const char *from, const char *to), from, to)
WRAP(int, link, (const char *from, const char *to), from, to)
WRAP(int, unlink, (const char *path), path)
