/* Records the allocations of a program for the benchmarks: LD_PRELOAD this, name a file in COFFER_TRACE_RAW.
 * Each event is five little-endian u64: time in microseconds, kind and thread, address, size, caller. Only
 * the direct caller is kept: enough to measure files and readers with real addresses, sizes and times. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_ALLOC, RECORD_FREE, EARLY_SIZE = 65536, BUFFERED = 1 << 14 };

typedef struct event {
    uint64_t time, kind, address, size, caller;
} event;

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t), *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static event buffered[BUFFERED];
static size_t buffered_count;
static int output = -1;
static _Thread_local int busy;
static _Thread_local uint64_t
    own_thread; /* a system call for each event would stretch the times between them */

/* dlsym itself allocates before the real functions are known. */
static _Alignas(16) char early[EARLY_SIZE];
static size_t early_used;

static void *early_alloc(size_t size)
{
    size_t start = (early_used + 15) & ~(size_t)15;
    if (size > EARLY_SIZE - start)
        return NULL;
    early_used = start + size;
    return early + start;
}

static int is_early(const void *pointer)
{
    return (const char *)pointer >= early && (const char *)pointer < early + EARLY_SIZE;
}

static void find(void *out, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(out, &found, sizeof found);
}

static void flush(void)
{
    const char *at = (const char *)buffered;
    size_t left = buffered_count * sizeof *buffered;
    while (left > 0) {
        ssize_t written = write(output, at, left);
        if (written <= 0)
            break;
        at += written;
        left -= (size_t)written;
    }
    buffered_count = 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("COFFER_TRACE_RAW");
    busy = 1;
    find(&real_calloc, "calloc");
    find(&real_malloc, "malloc");
    find(&real_realloc, "realloc");
    find(&real_posix_memalign, "posix_memalign");
    find(&real_aligned_alloc, "aligned_alloc");
    find(&real_free, "free");
    /* The children of a compiler driver would write over it. */
    if (path)
        output = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0644);
    busy = 0;
}

__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&lock);
    if (output >= 0)
        flush();
    output = -1;
    pthread_mutex_unlock(&lock);
}

static void record(int kind, const void *address, size_t size, const void *caller)
{
    struct timespec now;
    int saved = errno;
    if (output < 0 || busy || !address)
        return;
    busy = 1;
    if (!own_thread)
        own_thread = (uint64_t)(syscall(SYS_gettid) & 0xffff);
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_MONOTONIC, &now);
    buffered[buffered_count++] =
        (event){ (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000,
                 (uint64_t)kind | own_thread << 8, (uintptr_t)address, size, (uintptr_t)caller };
    if (buffered_count == BUFFERED)
        flush();
    pthread_mutex_unlock(&lock);
    busy = 0;
    errno = saved;
}

#define CALLER __builtin_return_address(0)
#define PUBLIC __attribute__((visibility("default")))

PUBLIC void *malloc(size_t size)
{
    if (!real_malloc)
        return early_alloc(size);
    void *address = real_malloc(size);
    record(RECORD_ALLOC, address, size, CALLER);
    return address;
}

PUBLIC void *calloc(size_t count, size_t size)
{
    if (!real_calloc)
        return early_alloc(count * size); /* still zero */
    void *address = real_calloc(count, size);
    record(RECORD_ALLOC, address, count * size, CALLER);
    return address;
}

PUBLIC void *realloc(void *old, size_t size)
{
    if (is_early(old)) {
        void *address = malloc(size);
        if (address)
            memcpy(address, old, size < EARLY_SIZE ? size : EARLY_SIZE);
        return address;
    }
    record(RECORD_FREE, old, 0, CALLER);
    void *address = real_realloc(old, size);
    record(RECORD_ALLOC, address, size, CALLER);
    return address;
}

PUBLIC int posix_memalign(void **out, size_t alignment, size_t size)
{
    int result = real_posix_memalign(out, alignment, size);
    if (result == 0)
        record(RECORD_ALLOC, *out, size, CALLER);
    return result;
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    void *address = real_aligned_alloc(alignment, size);
    record(RECORD_ALLOC, address, size, CALLER);
    return address;
}

PUBLIC void free(void *address)
{
    if (!address || is_early(address))
        return;
    record(RECORD_FREE, address, 0, CALLER);
    real_free(address);
}
