/* The kept bytes of pipes and standard input (coffer_keep_streams). Programs open an input more than once: to
 * identify it, to read it, to compare it with its copy. The stream itself gives its bytes only once, and
 * waits for a writer when it is opened again. */
#ifndef COFFER_IO_STREAMS_H
#define COFFER_IO_STREAMS_H

#include "coffer/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* A new descriptor of what the stream gave before, which the caller closes; false when it was not kept. */
bool coffer__streams_find(int *fd, uint64_t *size, const struct stat *stream);
/* Keeps a spooled stream under its device and inode. fd : stays the caller's. */
void coffer__streams_add(const struct stat *stream, int fd, uint64_t size);

/* A file, pipe or device that is open for reading, and what was read of it to see whether somebody writes. */
typedef struct coffer__stream {
    int fd;
    uint8_t first;
    bool has_first;
} coffer__stream;

/* Waits for a named pipe until a program has it open for writing, but at most COFFER_PIPE_WAIT seconds (60):
 * a plain open would wait for ever without a writer. */
coffer_status coffer__stream_open(coffer__stream *out, const char *path, coffer_error *err);

#endif
