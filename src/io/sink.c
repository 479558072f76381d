/* Writing into a sink. How one is created and finished is in sink_file.c. */
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/work.h"
#include "io/file.h"
#include "io/os.h"
#include "io/sink_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The kernel copies at most this much in one call. */
#define COPY_RANGE_MAX ((uint64_t)1 << 30)

coffer_status coffer__sink_stick(coffer__sink *sink, const coffer_error *failure, coffer_error *err)
{
    if (!sink->failure.status) {
        sink->failure = *failure;
        coffer__fail_output(&sink->failure, failure->status);
    }
    if (err)
        *err = sink->failure;
    return sink->failure.status;
}

/* A text that is shown may contain anything that a file contained. */
static coffer_status write_to_terminal(coffer__sink *sink, const void *bytes, size_t len, bool is_last,
                                       coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT, safe = COFFER__BUFFER_INIT;
    coffer_status status;
    coffer__buffer_append(&text, sink->incomplete, sink->incomplete_len);
    coffer__buffer_append(&text, bytes, len);
    size_t used = coffer__utf8_make_safe(&safe, text.data, text.len, is_last);
    if (text.failed || safe.failed) {
        status = coffer__fail_no_memory(err, len);
    } else {
        sink->incomplete_len = text.len - used;
        if (used < text.len)
            memcpy(sink->incomplete, text.data + used, text.len - used);
        status = coffer__file_write(sink->fd, safe.data, safe.len, NULL, err);
    }
    coffer__buffer_free(&text);
    coffer__buffer_free(&safe);
    return status;
}

coffer_status coffer__sink_end_stream(coffer__sink *sink, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    if (sink->is_terminal && sink->incomplete_len > 0 && write_to_terminal(sink, NULL, 0, true, &failure))
        return coffer__sink_stick(sink, &failure, err);
    return COFFER_OK;
}

/* Hands bytes to where they go, past the buffer. */
static coffer_status write_out(coffer__sink *sink, const void *bytes, size_t len, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer_status status = COFFER_OK;
    switch (sink->kind) {
    case SINK_FILE:
        status = coffer__file_write_at(sink->fd, bytes, len, sink->written, NULL, &failure);
        break;
    case SINK_STREAM:
        status = sink->is_terminal ? write_to_terminal(sink, bytes, len, false, &failure)
                                   : coffer__file_write(sink->fd, bytes, len, NULL, &failure);
        break;
    case SINK_MEMORY:
        if (!coffer__buffer_append(sink->memory, bytes, len))
            status = coffer__fail(&failure, COFFER_E_NO_MEMORY, sink->written,
                                  "out of memory for %zu more bytes after %" PRIu64, len, sink->written);
        break;
    }
    if (status)
        return coffer__sink_stick(sink, &failure, err);
    sink->written += len;
    return COFFER_OK;
}

coffer_status coffer__sink_flush(coffer__sink *sink, coffer_error *err)
{
    if (sink->failure.status)
        return coffer__sink_stick(sink, &sink->failure, err);
    coffer_status status = write_out(sink, sink->buffer, sink->buffered, err);
    if (!status)
        sink->buffered = 0;
    return status;
}

coffer_status coffer__sink_write(coffer__sink *sink, const void *bytes, size_t len, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (sink->failure.status)
        return coffer__sink_stick(sink, &sink->failure, err);
    if (len == 0)
        return COFFER_OK;
    if (sink->crc_wanted)
        sink->crc = coffer__crc32(sink->crc, bytes, len);
    if (len > SINK_BUFFER_SIZE - sink->buffered)
        status = coffer__sink_flush(sink, err);
    if (status)
        return status;
    if (len >= SINK_BUFFER_SIZE)
        return write_out(sink, bytes, len, err);
    memcpy(sink->buffer + sink->buffered, bytes, len);
    sink->buffered += len;
    return COFFER_OK;
}

coffer_status coffer__sink_fill(coffer__sink *sink, uint8_t byte, uint64_t count, coffer_error *err)
{
    uint8_t piece[4096];
    memset(piece, byte, sizeof piece);
    while (count > 0) {
        size_t len = count < sizeof piece ? (size_t)count : sizeof piece;
        coffer_status status = coffer__sink_write(sink, piece, len, err);
        if (status)
            return status;
        count -= len;
    }
    return COFFER_OK;
}

/* The part of a patch that has left the buffer. */
static coffer_status patch_written(coffer__sink *sink, uint64_t offset, const void *bytes, size_t len,
                                   coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    if (sink->kind == SINK_MEMORY) {
        memcpy(sink->memory->data + sink->memory_start + offset, bytes, len);
        return COFFER_OK;
    }
    if (coffer__file_write_at(sink->fd, bytes, len, offset, NULL, &failure))
        return coffer__sink_stick(sink, &failure, err);
    return COFFER_OK;
}

coffer_status coffer__sink_patch(coffer__sink *sink, uint64_t offset, const void *bytes, size_t len,
                                 coffer_error *err)
{
    coffer_status status = COFFER_OK;
    const uint8_t *from = bytes;
    if (sink->failure.status)
        return coffer__sink_stick(sink, &sink->failure, err);
    if (sink->kind == SINK_STREAM)
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_UNSUPPORTED, offset,
                                                     "bytes written to a stream cannot be changed"));
    if (!coffer__range_fits(offset, len, coffer__sink_position(sink)))
        return coffer__fail_output(err, coffer__fail(err, COFFER_E_INVALID_ARGUMENT, offset,
                                                     "cannot change %zu bytes at %" PRIu64 ", %" PRIu64
                                                     " are written",
                                                     len, offset, coffer__sink_position(sink)));
    if (offset < sink->written) {
        size_t out = sink->written - offset < len ? (size_t)(sink->written - offset) : len;
        status = patch_written(sink, offset, from, out, err);
        from += out;
        offset += out;
        len -= out;
    }
    if (!status && len > 0)
        memcpy(sink->buffer + (size_t)(offset - sink->written), from, len);
    return status;
}

/* The part of a cut that has left the buffer. */
static coffer_status cut_written(coffer__sink *sink, uint64_t position, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    sink->buffered = 0;
    if (sink->kind == SINK_MEMORY)
        sink->memory->len = sink->memory_start + (size_t)position;
    else if (coffer__file_truncate(sink->fd, position, NULL, &failure))
        return coffer__sink_stick(sink, &failure, err);
    sink->written = position;
    return COFFER_OK;
}

coffer_status coffer__sink_cut(coffer__sink *sink, uint64_t position, coffer_error *err)
{
    if (sink->failure.status)
        return coffer__sink_stick(sink, &sink->failure, err);
    if (sink->kind == SINK_STREAM || position > coffer__sink_position(sink))
        return coffer__fail_output(
            err,
            coffer__fail(err, sink->kind == SINK_STREAM ? COFFER_E_UNSUPPORTED : COFFER_E_INVALID_ARGUMENT,
                         position, "cannot truncate to %" PRIu64 " bytes, %" PRIu64 " are written", position,
                         coffer__sink_position(sink)));
    if (position < sink->written)
        return cut_written(sink, position, err);
    sink->buffered = (size_t)(position - sink->written);
    return COFFER_OK;
}

uint64_t coffer__sink_position(const coffer__sink *sink)
{
    return sink->written + sink->buffered;
}

void coffer__sink_crc_begin(coffer__sink *sink)
{
    sink->crc_wanted = true;
    sink->crc = 0;
}

uint32_t coffer__sink_crc(const coffer__sink *sink)
{
    return sink->crc;
}

bool coffer__sink_can_patch(const coffer__sink *sink)
{
    return sink->kind != SINK_STREAM;
}

/* Lets the kernel copy as much as it can; *done is the number of bytes. A kernel that cannot copy is not an
 * error. */
static coffer_status copy_in_kernel(coffer__sink *sink, int fd, uint64_t offset, uint64_t len, uint64_t *done,
                                    coffer_error *err)
{
    *done = 0;
    if (sink->kind != SINK_FILE || sink->crc_wanted)
        return COFFER_OK;
    coffer_status status = coffer__sink_flush(sink, err);
    while (!status && *done < len) {
        size_t part = (size_t)(len - *done < COPY_RANGE_MAX ? len - *done : COPY_RANGE_MAX);
        ssize_t n = coffer__os_copy_range(fd, offset + *done, sink->fd, sink->written, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* the read and write below report an error, if there is one */
        sink->written += (uint64_t)n;
        *done += (uint64_t)n;
    }
    return status;
}

coffer_status coffer__sink_copy_file(coffer__sink *sink, int fd, uint64_t offset, uint64_t len,
                                     const char *name, coffer_error *err)
{
    uint64_t done;
    if (sink->failure.status)
        return coffer__sink_stick(sink, &sink->failure, err);
    coffer_status status = copy_in_kernel(sink, fd, offset, len, &done, err);
    if (status || done == len)
        return status;
    size_t size = len - done < SINK_BUFFER_SIZE ? (size_t)(len - done) : SINK_BUFFER_SIZE;
    uint8_t *piece = coffer__malloc(size);
    if (!piece)
        return coffer__fail_no_memory(err, size);
    while (!status && done < len) {
        size_t part = len - done < size ? (size_t)(len - done) : size;
        status = coffer__file_read_at(fd, piece, part, offset + done, name, err);
        if (!status)
            status = coffer__sink_write(sink, piece, part, err);
        done += part;
    }
    coffer__free(piece);
    return status;
}

coffer_status coffer__sink_copy_source(coffer__sink *sink, coffer_source *src, uint64_t offset, uint64_t len,
                                       const coffer_progress *progress, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    uint8_t *piece = coffer__malloc(SINK_BUFFER_SIZE);
    if (!piece)
        return coffer__fail_no_memory(err, SINK_BUFFER_SIZE);
    for (uint64_t done = 0; !status && done < len;) {
        size_t part = len - done < SINK_BUFFER_SIZE ? (size_t)(len - done) : SINK_BUFFER_SIZE;
        status = coffer_source_read_at(piece, src, offset + done, part, err);
        if (!status)
            status = coffer__sink_write(sink, piece, part, err);
        done += part;
        if (!status)
            status = coffer__progress_step(progress, done, len, err);
    }
    coffer__free(piece);
    return status ? status : coffer_source_intact(src, err);
}
