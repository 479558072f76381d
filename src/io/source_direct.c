/* A file read past the page cache (O_DIRECT): for payloads that are read once and are larger than memory.
 * The system wants aligned places, lengths and memory; what the caller asks for goes through aligned buffers
 * where it is not. Where the file system refuses, the page cache is used after all. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/os.h"
#include "io/source_struct.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ALIGNMENT ((size_t)4096)
#define BOUNCE ((size_t)1 << 20)
#define KEPT 16 /* buffers that wait for the next read */

struct direct_file {
    int fd;     /* through the page cache */
    int direct; /* past it */
    atomic_bool refused;
    pthread_mutex_t mutex;
    uint8_t *kept[KEPT];
    size_t kept_count;
};

/* ---- Aligned buffers; `memory` is what has to be freed ---- */

static uint8_t *align_pointer(uint8_t *memory)
{
    return memory + (0 - (uintptr_t)memory) % ALIGNMENT;
}

static uint8_t *take_buffer(struct direct_file *file)
{
    uint8_t *memory = NULL;
    pthread_mutex_lock(&file->mutex);
    if (file->kept_count > 0)
        memory = file->kept[--file->kept_count];
    pthread_mutex_unlock(&file->mutex);
    return memory ? memory : coffer__malloc(BOUNCE + ALIGNMENT);
}

static void give_back(struct direct_file *file, uint8_t *memory)
{
    pthread_mutex_lock(&file->mutex);
    if (file->kept_count < KEPT) {
        file->kept[file->kept_count++] = memory;
        memory = NULL;
    }
    pthread_mutex_unlock(&file->mutex);
    coffer__free(memory);
}

/* ---- Reading ---- */

/* Reads an aligned range into aligned memory until it has `wanted` bytes; the range may end after the end of
 * the file. False when the file system does not support direct reads. */
static bool read_aligned(coffer_status *status, struct direct_file *file, uint8_t *out, size_t len,
                         size_t wanted, uint64_t offset, coffer_error *err)
{
    size_t done = 0;
    *status = COFFER_OK;
    while (done < wanted) {
        ssize_t n = coffer__os_pread(file->direct, out + done, len - done, offset + done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL)
            return false;
        if (n < 0) {
            *status = coffer__fail_errno(err, "cannot read", errno);
            return true;
        }
        size_t reached = done + (size_t)n;
        if (reached < wanted) /* the next read must start at an aligned offset */
            reached -= reached % ALIGNMENT;
        if (reached == done) { /* not a whole block more: the file has ended */
            *status = coffer__fail(err, COFFER_E_CHANGED, offset + done,
                                   "truncated to %" PRIu64 " bytes while it was read", offset + done);
            return true;
        }
        done = reached;
    }
    return true;
}

/* One piece, straight into the caller's memory or through a buffer. *done : bytes of the caller's. */
static bool read_piece(coffer_status *status, size_t *done, struct direct_file *file, uint8_t *buffer,
                       uint8_t *out, uint64_t offset, size_t len, coffer_error *err)
{
    size_t skip = (size_t)(offset % ALIGNMENT), n, span;
    if (skip == 0 && (uintptr_t)out % ALIGNMENT == 0 && len >= ALIGNMENT) {
        *done = len - len % ALIGNMENT;
        return read_aligned(status, file, out, *done, *done, offset, err);
    }
    n = len < BOUNCE - skip ? len : BOUNCE - skip;
    span = skip + n;
    span += (0 - span) % ALIGNMENT;
    if (!read_aligned(status, file, buffer, span, skip + n, offset - skip, err))
        return false;
    if (!*status)
        memcpy(out, buffer + skip, n);
    *done = n;
    return true;
}

static coffer_status direct_read_at(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    struct direct_file *file = context;
    uint8_t *to = out, *memory;
    coffer_status status = COFFER_OK;
    if (atomic_load(&file->refused))
        return coffer__file_read_at(file->fd, out, len, offset, NULL, err);
    memory = take_buffer(file);
    if (!memory)
        return coffer__fail_no_memory(err, BOUNCE + ALIGNMENT);
    while (!status && len > 0) {
        size_t done = 0;
        if (!read_piece(&status, &done, file, align_pointer(memory), to, offset, len, err)) {
            atomic_store(&file->refused, true);
            status = coffer__file_read_at(file->fd, to, len, offset, NULL, err);
            done = len;
        }
        to += done;
        offset += done;
        len -= done;
    }
    give_back(file, memory);
    return status;
}

static void direct_close(void *context)
{
    struct direct_file *file = context;
    for (size_t i = 0; i < file->kept_count; i++)
        coffer__free(file->kept[i]);
    pthread_mutex_destroy(&file->mutex);
    coffer__file_close(file->direct);
    coffer__file_close(file->fd);
    coffer__free(file);
}

coffer_status coffer__source_over_direct(coffer_source **out, int fd, uint64_t size, const char *name,
                                         coffer_error *err)
{
    static const coffer_source_ops ops = {
        .struct_size = sizeof ops,
        .read_at = direct_read_at,
        .close = direct_close,
    };
    struct direct_file *file;
    coffer_source *src;
    coffer_status status;
    char path[64];
    int direct;
    /* The same file, even if its path now names another. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    direct = coffer__file_try_open(path, O_RDONLY | O_DIRECT, 0);
    if (direct < 0)
        return coffer__source_over_fd(out, fd, true, size, name, NULL, err);
    file = coffer__calloc(1, sizeof *file);
    if (!file) {
        coffer__file_close(direct);
        return coffer__fail_no_memory(err, sizeof *file);
    }
    status = coffer_source_new(&src, &ops, file, size, name, err);
    if (status) {
        coffer__file_close(direct);
        coffer__free(file);
        return status;
    }
    file->fd = fd;
    file->direct = direct;
    pthread_mutex_init(&file->mutex, NULL);
    src->fd = fd;
    *out = src;
    return COFFER_OK;
}
