#include "io/streams.h"

#include "base/fail.h"
#include "coffer/source.h"
#include "io/file.h"
#include "io/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STREAMS = 64, /* more than a command line has; the next ones can be read once */
    PIPE_WAIT = 60,    /* seconds; COFFER_PIPE_WAIT changes it */
    PIPE_STEP = 100    /* milliseconds */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool keep;
    size_t count;
    struct {
        dev_t device;
        ino_t inode;
        int fd;
        uint64_t size;
    } kept[MOST_STREAMS];
} streams;

void coffer_keep_streams(void)
{
    pthread_mutex_lock(&mutex);
    streams.keep = true;
    pthread_mutex_unlock(&mutex);
}

bool coffer__streams_find(int *fd, uint64_t *size, const struct stat *stream)
{
    int found = -1;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < streams.count; i++) {
        if (streams.kept[i].device != stream->st_dev || streams.kept[i].inode != stream->st_ino)
            continue;
        found = fcntl(streams.kept[i].fd, F_DUPFD_CLOEXEC, 0);
        *size = streams.kept[i].size;
    }
    pthread_mutex_unlock(&mutex);
    if (found >= 0)
        *fd = found;
    return found >= 0;
}

void coffer__streams_add(const struct stat *stream, int fd, uint64_t size)
{
    pthread_mutex_lock(&mutex);
    int kept = streams.keep && streams.count < MOST_STREAMS ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (kept >= 0) {
        streams.kept[streams.count].device = stream->st_dev;
        streams.kept[streams.count].inode = stream->st_ino;
        streams.kept[streams.count].fd = kept;
        streams.kept[streams.count++].size = size;
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- Opening ---- */

static int seconds_to_wait(void)
{
    const char *text = getenv("COFFER_PIPE_WAIT");
    return text && *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 6 ? atoi(text)
                                                                                           : PIPE_WAIT;
}

/* Waits until a program has the named pipe open for writing. `fd` does not block; it does afterwards. */
static coffer_status wait_for_writer(coffer__stream *pipe, coffer_error *err)
{
    int most = 1000 * seconds_to_wait();
    for (int waited = 0;; waited += PIPE_STEP) {
        struct pollfd state = { .fd = pipe->fd, .events = POLLIN };
        int ready = poll(&state, 1, waited < most ? PIPE_STEP : 0);
        if (ready > 0) /* something was written, or a writer came and went */
            break;
        ssize_t n = coffer__os_read(pipe->fd, &pipe->first, 1);
        pipe->has_first = n > 0;
        if (n > 0 || (n < 0 && errno == EAGAIN)) /* a writer that has nothing to say yet */
            break;
        if (n < 0 && errno != EINTR)
            return coffer__fail_errno(err, "cannot read", errno);
        if (waited >= most)
            return coffer__fail_errno(err, "no program has opened this pipe for writing", ETIMEDOUT);
    }
    int flags = fcntl(pipe->fd, F_GETFL);
    if (flags < 0 || fcntl(pipe->fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return coffer__fail_errno(err, "cannot read", errno);
    return COFFER_OK;
}

coffer_status coffer__stream_open(coffer__stream *out, const char *path, coffer_error *err)
{
    struct stat st;
    bool is_pipe = coffer__os_stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    coffer__stream opened = { .fd = coffer__file_try_open(path, O_RDONLY | (is_pipe ? O_NONBLOCK : 0), 0) };
    if (opened.fd < 0)
        return coffer__fail_errno(err, "cannot open", errno);
    coffer_status status = is_pipe ? wait_for_writer(&opened, err) : COFFER_OK;
    if (status)
        coffer__file_close(opened.fd);
    else
        *out = opened;
    return status;
}
