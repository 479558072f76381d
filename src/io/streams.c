#include "io/streams.h"

#include "coffer/source.h"

#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>

enum { MOST_STREAMS = 64 }; /* more than a command line has; the next ones can be read once */

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
