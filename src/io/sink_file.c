/* The life of a sink: what it writes to, and how a new file takes its name. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/inputs.h"
#include "io/journal.h"
#include "io/os.h"
#include "io/sink_private.h"
#include "io/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static coffer_status new_sink(coffer__sink **out, enum coffer__sink_kind kind, coffer_error *err)
{
    coffer__sink *sink = coffer__calloc(1, sizeof *sink);
    if (!sink)
        return coffer__fail_no_memory(err, sizeof *sink);
    sink->kind = kind;
    sink->fd = -1;
    sink->folder = -1;
    sink->buffer = coffer__malloc(SINK_BUFFER_SIZE);
    if (!sink->buffer) {
        coffer__sink_discard(sink);
        return coffer__fail_no_memory(err, SINK_BUFFER_SIZE);
    }
    *out = sink;
    return COFFER_OK;
}

coffer_status coffer__sink_to_buffer(coffer__sink **out, coffer__buffer *buffer, coffer_error *err)
{
    coffer_status status = new_sink(out, SINK_MEMORY, err);
    if (status)
        return status;
    (*out)->memory = buffer;
    (*out)->memory_start = buffer->len;
    return COFFER_OK;
}

static coffer_status fail_exists(coffer_error *err)
{
    return coffer__fail_output(err, coffer__fail(err, COFFER_E_EXISTS, COFFER_OFFSET_NONE, "already exists"));
}

/* Takes up what an earlier one left, if nobody else is writing it. */
static coffer_status open_partial(coffer__sink *sink, coffer_error *err)
{
    size_t size = strlen(sink->path) + sizeof ".partial";
    sink->keeps_temporary = true;
    sink->temporary = coffer__malloc(size);
    if (!sink->temporary)
        return coffer__fail_no_memory(err, size);
    snprintf(sink->temporary, size, "%s.partial", sink->path);
    sink->fd = coffer__file_try_open(sink->temporary, O_RDWR | O_CREAT, 0666);
    if (sink->fd < 0)
        return coffer__fail_errno(err, "cannot create a file in the folder", errno);
    coffer__file_close(sink->fd);
    sink->fd = -1;
    coffer_status status = coffer__lock_open(&sink->fd, sink->temporary, err);
    if (status)
        return status;
    return coffer__file_size(&sink->written, sink->fd, NULL, err);
}

/* Facts about what has the name; with no_follow about a symbolic link itself. */
static bool examine(struct stat *out, const coffer__sink *sink, const char *path)
{
    if (!sink->opts.no_follow)
        return coffer__os_stat(path, out) == 0;
    /* Not through coffer__file_try_open: a file that is only looked at is not an input. */
    int fd;
    do
        fd = coffer__os_open(path, O_PATH | O_NOFOLLOW, 0);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return false;
    bool known = coffer__os_fstat(fd, out) == 0;
    coffer__file_close(fd);
    return known;
}

static coffer_status choose_path(coffer__sink *sink, const char *path, coffer_error *err)
{
    if (!sink->opts.no_follow)
        return coffer__file_resolve(&sink->path, path, err);
    sink->path = coffer__strdup(path);
    return sink->path ? COFFER_OK : coffer__fail_no_memory(err, strlen(path) + 1);
}

/* Examines the path and opens the file that will be written. */
static coffer_status open_target(coffer__sink *sink, const char *path, coffer_error *err)
{
    if (strcmp(path, "-") == 0) {
        sink->kind = SINK_STREAM;
        sink->fd = STDOUT_FILENO;
        sink->is_terminal = isatty(STDOUT_FILENO) == 1;
        return COFFER_OK;
    }
    struct stat replaced;
    bool exists = examine(&replaced, sink, path);
    if (!exists && errno != ENOENT)
        return coffer__fail_errno(err, "cannot create", errno);
    if (exists && sink->opts.no_follow && S_ISLNK(replaced.st_mode)) {
        if (sink->opts.exclusive)
            return fail_exists(err);
        exists = false; /* the new file takes the place of the link */
    }
    if (exists && sink->opts.no_follow && !S_ISREG(replaced.st_mode) && !S_ISDIR(replaced.st_mode))
        return coffer__fail(err, COFFER_E_UNSAFE_PATH, COFFER_OFFSET_NONE, "not a regular file");
    if (exists && S_ISDIR(replaced.st_mode))
        return coffer__fail_errno(err, "cannot write", EISDIR);
    if (exists && !S_ISREG(replaced.st_mode)) {
        sink->kind = SINK_STREAM;
        sink->owns_fd = true;
        coffer_status opened = coffer__file_open(&sink->fd, path, O_WRONLY, 0, err);
        sink->is_terminal = !opened && isatty(sink->fd);
        return opened;
    }
    coffer_status status =
        exists && !sink->opts.rewrites ? coffer__inputs_check_output(&replaced, err) : COFFER_OK;
    if (!status && exists && sink->opts.exclusive)
        status = fail_exists(err);
    if (!status)
        status = choose_path(sink, path, err);
    if (status)
        return status;
    sink->owns_fd = true;
    if (exists && !sink->opts.partial && coffer__temporary_take(&replaced)) {
        sink->is_direct = true;
        status = coffer__file_open(&sink->fd, sink->path, O_RDWR, 0, err);
        return status ? status : coffer__file_truncate(sink->fd, 0, NULL, err);
    }
    status = sink->opts.partial ? open_partial(sink, err)
                                : coffer__temporary_create(&sink->fd, &sink->temporary, sink->path, err);
    if (!status && exists)
        status = coffer__file_take_after(sink->fd, &replaced, NULL, err);
    return status;
}

coffer_status coffer__sink_create(coffer__sink **out, const char *path, const coffer__sink_opts *opts,
                                  coffer_error *err)
{
    coffer__sink *sink;
    coffer_status status = new_sink(&sink, SINK_FILE, err);
    if (status)
        return status;
    if (opts)
        sink->opts = *opts;
    status = open_target(sink, path, err);
    if (status) {
        coffer__sink_discard(sink);
        return coffer__fail_output(err, status);
    }
    *out = sink;
    return COFFER_OK;
}

coffer_status coffer__sink_lock(coffer__sink *sink, coffer_error *err)
{
    int result;
    if (sink->kind != SINK_FILE)
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                                     "not a file that can be locked"));
    if (sink->is_direct) /* by temporary.c */
        return COFFER_OK;
    do
        result = coffer__os_lock(sink->fd);
    while (result != 0 && errno == EINTR);
    return result == 0 ? COFFER_OK : coffer__fail_output(err, coffer__fail_errno(err, "cannot lock", errno));
}

coffer_status coffer__sink_read_back(int *fd, coffer__sink *sink, coffer_error *err)
{
    if (sink->kind != SINK_FILE)
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                                     "not a file that can be read back"));
    coffer_status status = coffer__sink_flush(sink, err);
    if (!status)
        *fd = sink->fd;
    return status;
}

/* Takes the name only when nothing has it, on file systems that know how and on those that do not. */
static int rename_exclusively(const char *from, const char *to)
{
    if (coffer__os_rename_new(from, to) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (coffer__os_link(from, to) == 0) {
        coffer__os_unlink(from);
        return 0;
    }
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    struct stat st;
    if (coffer__os_stat(to, &st) == 0) {
        errno = EEXIST;
        return -1;
    }
    return coffer__os_rename(from, to);
}

/* Once more before the name is taken: inputs may have been opened after the sink. */
static coffer_status check_replaced(const coffer__sink *sink, coffer_error *err)
{
    struct stat replaced;
    if (sink->opts.rewrites || coffer__os_stat(sink->path, &replaced) != 0)
        return COFFER_OK;
    return coffer__inputs_check_output(&replaced, err);
}

static coffer_status take_name(coffer__sink *sink, coffer_error *err)
{
    coffer_status status = check_replaced(sink, err);
    if (!status && !sink->opts.no_sync)
        status = coffer__file_sync(sink->fd, NULL, err);
    if (status || sink->is_direct)
        return status;
    status = coffer__journal_clear(sink->path, err);
    if (status)
        return status;
    int result = sink->opts.exclusive ? rename_exclusively(sink->temporary, sink->path)
                                      : coffer__os_rename(sink->temporary, sink->path);
    if (result != 0)
        return errno == EEXIST ? fail_exists(err)
                               : coffer__fail_errno(err, "cannot rename the new file to its name", errno);
    coffer__temporary_forget(sink->temporary);
    coffer__free(sink->temporary);
    sink->temporary = NULL;
    return sink->opts.no_sync ? COFFER_OK : coffer__file_sync_folder(sink->path, err);
}

static coffer_status finish(coffer__sink *sink, coffer_error *err)
{
    coffer_status status = coffer__sink_flush(sink, err);
    if (!status && sink->kind == SINK_FILE)
        status = take_name(sink, err);
    if (!status && sink->kind == SINK_STREAM)
        status = coffer__sink_end_stream(sink, err);
    return coffer__fail_output(err, status);
}

coffer_status coffer__sink_rest(coffer__sink *sink, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = coffer__sink_flush(sink, err);
    if (status)
        return status;
    if (sink->kind == SINK_FILE && !sink->opts.no_sync && coffer__file_sync(sink->fd, NULL, &failure))
        return coffer__sink_stick(sink, &failure, err);
    coffer__free(sink->buffer);
    sink->buffer = NULL;
    return COFFER_OK;
}

coffer_status coffer__sink_commit(coffer__sink *sink, coffer_error *err)
{
    coffer_status status = finish(sink, err);
    coffer__sink_discard(sink);
    return status;
}

coffer_status coffer__sink_commit_open(coffer__sink *sink, int *fd, coffer_error *err)
{
    coffer_status status;
    if (sink->kind == SINK_FILE)
        status = finish(sink, err);
    else
        status = coffer__fail_output(err, coffer__fail(err, COFFER_E_UNSUPPORTED, COFFER_OFFSET_NONE,
                                                       "not a file that can be kept open"));
    if (!status) {
        *fd = sink->fd;
        sink->owns_fd = false;
    }
    coffer__sink_discard(sink);
    return status;
}

void coffer__sink_discard(coffer__sink *sink)
{
    if (!sink)
        return;
    if (sink->temporary && !sink->keeps_temporary) {
        coffer__os_unlink(sink->temporary);
        coffer__temporary_forget(sink->temporary);
    }
    coffer__file_close(sink->folder);
    if (sink->owns_fd)
        coffer__file_close(sink->fd);
    coffer__free(sink->temporary);
    coffer__free(sink->path);
    coffer__free(sink->buffer);
    coffer__free(sink);
}
