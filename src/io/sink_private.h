#ifndef COFFER_IO_SINK_PRIVATE_H
#define COFFER_IO_SINK_PRIVATE_H

#include "io/sink.h"

#define SINK_BUFFER_SIZE ((size_t)1 << 20)

enum coffer__sink_kind { SINK_FILE, SINK_STREAM, SINK_MEMORY };

struct coffer__sink {
    enum coffer__sink_kind kind;
    coffer__sink_opts opts;
    coffer_error failure; /* the first one; sticks */
    int fd;
    bool owns_fd;
    int folder; /* that the path leads through (coffer__sink_create_in), or −1 */
    char *path; /* with symbolic links resolved */
    char *temporary;
    bool keeps_temporary;
    bool is_direct;        /* the path is a temporary file of this process: no second one, no rename */
    bool is_terminal;      /* a stream: what could harm a terminal is written as escapes */
    uint8_t incomplete[4]; /* a character whose other bytes are still to come */
    size_t incomplete_len;
    coffer__buffer *memory;
    size_t memory_start; /* length of the caller's buffer before */
    uint64_t written;    /* bytes that have left the buffer */
    uint8_t *buffer;
    size_t buffered;
    bool crc_wanted;
    uint32_t crc;
};

/* Keeps the first failure and gives it out. */
coffer_status coffer__sink_stick(coffer__sink *sink, const coffer_error *failure, coffer_error *err);
coffer_status coffer__sink_flush(coffer__sink *sink, coffer_error *err);
/* Writes what a terminal was not given yet. */
coffer_status coffer__sink_end_stream(coffer__sink *sink, coffer_error *err);

#endif
