/* Opens a file of any kind for reading, also while a writer updates or replaces it. */
#include "base/fail.h"

#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/os.h"
#include "io/remote/remote.h"
#include "io/source_struct.h"
#include "io/streams.h"
#include "io/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_ATTEMPTS 100
#define SPOOL_CHUNK ((size_t)1 << 20)
#define DEVICE_MAX (UINT64_C(1) << 30) /* pipes end; /dev/zero does not */

COFFER__INIT_FUNCTION(coffer_source_opts, COFFER_SOURCE_OPTS_INIT)

static coffer_status over_descriptor(coffer_source **out, int fd, uint64_t size, const char *name,
                                     coffer_access access, coffer__journal *journal, coffer_error *err)
{
    /* Direct reads bypass the cached pages that a journal is applied to. */
    if (access == COFFER_ACCESS_DIRECT && !journal)
        return coffer__source_over_direct(out, fd, size, name, err);
    if (access == COFFER_ACCESS_AUTO || access == COFFER_ACCESS_MAP || access == COFFER_ACCESS_COPY) {
        coffer_status status = coffer__source_over_map(out, fd, size, name, journal, access, err);
        if (!status || access == COFFER_ACCESS_MAP)
            return status;
    }
    return coffer__source_over_fd(out, fd, true, size, name, journal, err);
}

/* Copies what a stream gives until its end. */
static coffer_status spool(int *out, uint64_t *size, const coffer__stream *from, uint64_t max,
                           coffer_error *err)
{
    int fd = -1;
    uint64_t written = from->has_first;
    uint8_t *chunk = coffer__malloc(SPOOL_CHUNK);
    if (!chunk)
        return coffer__fail_no_memory(err, SPOOL_CHUNK);
    coffer_status status = coffer__temporary_unnamed(&fd, err);
    if (!status && from->has_first)
        status = coffer__file_write_at(fd, &from->first, 1, 0, "temporary file", err);
    while (!status) {
        size_t got;
        status = coffer__file_read_some(from->fd, chunk, SPOOL_CHUNK, &got, NULL, err);
        if (status || got == 0)
            break;
        status = coffer__file_write_at(fd, chunk, got, written, "temporary file", err);
        written += got;
        if (!status && written > max)
            status = coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                                  "the device gives more than %" PRIu64 " bytes", max);
    }
    coffer__free(chunk);
    if (status) {
        coffer__file_close(fd);
        return status;
    }
    *out = fd;
    *size = written;
    return COFFER_OK;
}

static coffer_status open_stream(coffer_source **out, const coffer__stream *from, const char *name,
                                 coffer_access access, coffer_error *err)
{
    struct stat st;
    bool known = coffer__os_fstat(from->fd, &st) == 0;
    int fd = -1;
    uint64_t size = 0;
    coffer_status status = COFFER_OK;
    if (!known || !coffer__streams_find(&fd, &size, &st)) {
        status = spool(&fd, &size, from, known && S_ISCHR(st.st_mode) ? DEVICE_MAX : UINT64_MAX, err);
        if (!status && known)
            coffer__streams_add(&st, fd, size);
    }
    if (status)
        return status;
    status = over_descriptor(out, fd, size, name, access, NULL, err);
    if (status)
        coffer__file_close(fd);
    return status;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Not the time of change: a new name or a removal leaves the bytes as they are. */
static bool same_content(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A journal beside the path says something about our file only while the path still leads to it. */
static bool is_still_at_its_path(const coffer_source *src)
{
    struct stat now;
    return coffer__os_stat(src->facts.path, &now) == 0 && same_file(&now, &src->facts.file);
}

bool coffer__source_settled(const coffer_source *src)
{
    struct stat now;
    if (!src->facts.path)
        return true;
    if (coffer__os_fstat(src->fd, &now) != 0)
        return false;
    bool named = is_still_at_its_path(src);
    if (src->watches_journal && named && !coffer__journal_mark_holds(&src->facts.journal, src->facts.path))
        return false;
    /* Under its journal the bytes shown stay the same, whatever the writer does to the file. A file that has
     * lost its name may never have been the one that the journal speaks of. */
    return src->interrupted ? named : same_content(&now, &src->facts.file);
}

/* After an attempt that failed: whether another file has taken the name since. What was wrong may then be
 * that the one was read with the journal of the other. */
static bool was_replaced(int fd, const char *resolved)
{
    struct stat opened, now;
    return coffer__os_fstat(fd, &opened) == 0 && coffer__os_stat(resolved, &now) == 0 &&
           !same_file(&opened, &now);
}

/* One attempt. *settled is false when a writer was at work in between: what was opened may be torn, and a
 * failure may have come of that. */
static coffer_status open_regular(coffer_source **out, bool *settled, int fd, const char *resolved,
                                  const char *name, const coffer_source_opts *opts, coffer_error *err)
{
    coffer__file_facts facts = { 0 };
    coffer__journal *journal = NULL;
    coffer_source *src = NULL;
    coffer_status status = COFFER_OK;
    if (!opts->ignore_journal)
        status = coffer__journal_load(&journal, &facts.journal, resolved, fd, err);
    if (status)
        return status;
    facts.path = coffer__strdup(resolved);
    if (!facts.path)
        status = coffer__fail_no_memory(err, strlen(resolved) + 1);
    else if (coffer__os_fstat(fd, &facts.file) != 0)
        status = coffer__fail_errno(err, "cannot examine", errno);
    else
        status = over_descriptor(&src, fd, (uint64_t)facts.file.st_size, name, opts->access, journal, err);
    if (!src) {
        coffer__free(facts.path);
        coffer__journal_free(journal);
        return status;
    }
    src->facts = facts;
    src->watches_journal = !opts->ignore_journal;
    *settled = coffer__source_settled(src);
    *out = src;
    return COFFER_OK;
}

/* A pipe that was read before, without opening it: that would wait for another writer. */
static bool open_kept(coffer_source **out, const char *resolved, const char *name,
                      const coffer_source_opts *opts, coffer_error *err)
{
    struct stat st;
    int fd = -1;
    uint64_t size = 0;
    if (coffer__os_stat(resolved, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
        !coffer__streams_find(&fd, &size, &st))
        return false;
    if (!over_descriptor(out, fd, size, name, opts->access, NULL, err))
        return true;
    coffer__file_close(fd);
    return false;
}

static coffer_status open_once(coffer_source **out, bool *settled, const char *resolved, const char *name,
                               const coffer_source_opts *opts, coffer_error *err)
{
    struct stat st;
    *settled = true;
    if (open_kept(out, resolved, name, opts, err))
        return COFFER_OK;
    coffer__stream from;
    coffer_status status = coffer__stream_open(&from, resolved, err);
    if (status)
        return status;
    int fd = from.fd;
    bool regular = false;
    if (coffer__os_fstat(fd, &st) != 0) {
        status = coffer__fail_errno(err, "cannot examine", errno);
    } else if (S_ISDIR(st.st_mode)) {
        status = coffer__fail_errno(err, "cannot read", EISDIR);
    } else if (S_ISREG(st.st_mode)) {
        regular = true;
        status = open_regular(out, settled, fd, resolved, name, opts, err);
        if (status)
            *settled = !was_replaced(fd, resolved);
    } else {
        status = open_stream(out, &from, name, opts->access, err);
    }
    if (status || !regular)
        coffer__file_close(fd);
    return status;
}

static coffer_status open_settled(coffer_source **out, const char *resolved, const char *name,
                                  const coffer_source_opts *opts, coffer_error *err)
{
    for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        coffer_source *src = NULL;
        bool settled;
        coffer_status status = open_once(&src, &settled, resolved, name, opts, err);
        if (settled) {
            if (!status)
                *out = src;
            return status;
        }
        coffer_source_close(src);
    }
    return coffer__fail(err, COFFER_E_CHANGED, COFFER_OFFSET_NONE, "changed %d times while it was opened",
                        MAX_ATTEMPTS);
}

coffer_status coffer_source_open(coffer_source **out, const char *path, const coffer_source_opts *opts,
                                 coffer_error *err)
{
    coffer_source_opts known = COFFER_SOURCE_OPTS_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, opts, err);
    if (status)
        return status;
    if (coffer_is_remote(path))
        return coffer__source_over_remote(out, path, err);
    if (strcmp(path, "-") == 0)
        return open_stream(out, &(coffer__stream){ .fd = STDIN_FILENO }, "standard input", known.access, err);
    char *resolved;
    status = coffer__file_resolve(&resolved, path, err);
    if (status)
        return status;
    status = open_settled(out, resolved, path, &known, err);
    coffer__free(resolved);
    return status;
}

coffer_status coffer__source_open_other(coffer_source **out, const char *path, const coffer_source_opts *opts,
                                        coffer_error *err)
{
    coffer_source *src = NULL;
    coffer_status status = coffer_source_open(&src, path, opts, err);
    if (!src)
        return coffer__fail_other(err, status, path);
    src->other = true;
    *out = src;
    return COFFER_OK;
}

const char *coffer__source_path(const coffer_source *src)
{
    return src->facts.path;
}

int coffer__source_descriptor(const coffer_source *src)
{
    return src->interrupted ? -1 : src->fd;
}

bool coffer__source_is_open_as(const coffer_source *src, int fd)
{
    struct stat read, other;
    return src->fd >= 0 && fd >= 0 && coffer__os_fstat(src->fd, &read) == 0 &&
           coffer__os_fstat(fd, &other) == 0 && same_file(&read, &other);
}

bool coffer__source_same_file(const coffer_source *a, const coffer_source *b)
{
    return coffer__source_is_open_as(a, b->fd);
}

/* Files whose names come from other files: they stay inside their folder. */

static coffer_status fail_open_in(int error_number, coffer_error *err)
{
    if (error_number == ELOOP || error_number == EMLINK)
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "a symbolic link, which is not followed here");
    if (error_number == ENOENT)
        return coffer__fail(err, COFFER_E_NOT_FOUND, COFFER_OFFSET_NONE, "the file does not exist");
    return coffer__fail_errno(err, "cannot open", error_number);
}

/* The descriptor of a regular file; a pipe or a device is not waited for. */
static coffer_status open_regular_in(int *out, uint64_t *size, const char *folder, bool follow,
                                     const char *name, coffer_error *err)
{
    struct stat st;
    coffer_status status = COFFER_OK;
    int in = coffer__file_try_open(folder, O_RDONLY | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW), 0), fd;
    if (in < 0) /* Linux says ENOTDIR of a link that is not to be followed */
        return coffer__fail_other(err, fail_open_in(errno == ENOTDIR && !follow ? ELOOP : errno, err),
                                  folder);
    do
        fd = coffer__os_open_at(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        status = fail_open_in(errno, err);
    else if (coffer__os_fstat(fd, &st) != 0)
        status = coffer__fail_errno(err, "cannot examine", errno);
    else if (!S_ISREG(st.st_mode))
        status = coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "not a regular file");
    coffer__file_close(in);
    if (!status)
        coffer__inputs_note(fd);
    if (status) {
        coffer__file_close(fd);
        return coffer__fail_other(err, status, name);
    }
    *out = fd;
    *size = (uint64_t)st.st_size;
    return COFFER_OK;
}

coffer_status coffer__source_open_in(coffer_source **out, const char *folder, bool follow, const char *name,
                                     coffer_error *err)
{
    uint64_t size = 0;
    int fd = -1;
    if (!coffer__file_name_is_plain(name, strlen(name)))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE,
                            "\"%s\" is not a plain file name: it could lead out of the folder", name);
    size_t path_size = strlen(folder) + strlen(name) + 2;
    char *path = coffer__malloc(path_size);
    if (!path)
        return coffer__fail_no_memory(err, path_size);
    snprintf(path, path_size, "%s/%s", folder, name);
    coffer_status status = open_regular_in(&fd, &size, folder, follow, name, err);
    if (!status && coffer__source_over_map(out, fd, size, path, NULL, COFFER_ACCESS_AUTO, NULL)) {
        status = coffer__source_over_fd(out, fd, true, size, path, NULL, err);
        if (status)
            coffer__file_close(fd);
    }
    if (!status)
        (*out)->other = true;
    coffer__free(path);
    return status;
}
