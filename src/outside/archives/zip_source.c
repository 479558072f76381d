/* A member of a ZIP archive as a source of bytes. */
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_private.h"
#include "io/temporary.h"
#include "outside/archives/zip_private.h"

#include <pthread.h>
#include <string.h>

/* Size of the window of recent bytes: seeking back within it is free. */
#define WINDOW_SIZE ((size_t)1 << 16)

/* ---- Forward: through a stream ---- */

typedef struct forward {
    const coffer__zip *zip;
    size_t index;
    pthread_mutex_t lock;
    coffer__zip_stream *stream;
    uint64_t window_at; /* of window[0] in the contents */
    size_t window_len;
    uint8_t window[WINDOW_SIZE];
} forward;

static coffer_status next_window(forward *state, coffer_error *err)
{
    size_t got = 0;
    coffer_status status = coffer__zip_stream_read(state->window, WINDOW_SIZE, &got, state->stream, err);
    state->window_at = status ? UINT64_MAX : state->window_at + state->window_len; /* then it starts over */
    state->window_len = got;
    return status;
}

static coffer_status start_over(forward *state, coffer_error *err)
{
    coffer__zip_stream *stream;
    coffer_status status = coffer__zip_stream_open(&stream, state->zip, state->index, err);
    if (status)
        return status;
    coffer__zip_stream_close(state->stream);
    state->stream = stream;
    state->window_at = 0;
    state->window_len = 0;
    return COFFER_OK;
}

static coffer_status read_forward(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    forward *state = context;
    uint8_t *to = out;
    coffer_status status = COFFER_OK;
    pthread_mutex_lock(&state->lock);
    if (offset < state->window_at)
        status = start_over(state, err);
    while (!status && len > 0) {
        uint64_t end = state->window_at + state->window_len;
        if (offset >= end) {
            status = next_window(state, err);
            continue;
        }
        size_t some = end - offset < len ? (size_t)(end - offset) : len;
        memcpy(to, state->window + (offset - state->window_at), some);
        to += some;
        offset += some;
        len -= some;
    }
    pthread_mutex_unlock(&state->lock);
    return status;
}

static void close_forward(void *context)
{
    forward *state = context;
    coffer__zip_stream_close(state->stream);
    pthread_mutex_destroy(&state->lock);
    coffer__free(state);
}

static coffer_status open_forward(coffer_source **out, const coffer__zip *zip, size_t index,
                                  coffer_error *err)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops,
                                           .read_at = read_forward,
                                           .close = close_forward };
    const coffer__zip_member *member = &zip->members[index];
    forward *state = coffer__malloc(sizeof *state);
    if (!state)
        return coffer__fail_no_memory(err, sizeof *state);
    state->zip = zip;
    state->index = index;
    state->stream = NULL;
    state->window_at = 0;
    state->window_len = 0;
    pthread_mutex_init(&state->lock, NULL);
    coffer_status status = start_over(state, err);
    if (!status)
        status = coffer_source_new(out, &ops, state, member->size, member->name, err);
    if (status)
        close_forward(state);
    return status;
}

/* ---- Random: the archive itself, or a temporary file ---- */

typedef struct range {
    coffer_source *src;
    uint64_t offset;
} range;

static coffer_status read_range(void *context, void *out, uint64_t offset, size_t len, coffer_error *err)
{
    const range *state = context;
    return coffer_source_read_at(out, state->src, state->offset + offset, len, err);
}

static const uint8_t *view_range(void *context, uint64_t offset, size_t len)
{
    const range *state = context;
    return coffer_source_view(state->src, state->offset + offset, len);
}

static coffer_status range_intact(void *context, coffer_error *err)
{
    const range *state = context;
    return coffer_source_intact(state->src, err);
}

static coffer_status open_range(coffer_source **out, const coffer__zip *zip, size_t index, coffer_error *err)
{
    static const coffer_source_ops ops = { .struct_size = sizeof ops,
                                           .read_at = read_range,
                                           .view = view_range,
                                           .intact = range_intact,
                                           .close = coffer_free };
    const coffer__zip_member *member = &zip->members[index];
    range *state = coffer__malloc(sizeof *state);
    if (!state)
        return coffer__fail_no_memory(err, sizeof *state);
    *state = (range){ zip->src, member->offset };
    coffer_status status = coffer_source_new(out, &ops, state, member->size, member->name, err);
    if (status)
        coffer__free(state);
    return status;
}

/* Reads all of a member, which checks it, and writes it to fd unless that is −1. */
static coffer_status read_through(int fd, const coffer__zip *zip, size_t index, coffer_error *err)
{
    const coffer__zip_member *member = &zip->members[index];
    const size_t piece_size = (size_t)1 << 20;
    coffer__zip_stream *stream = NULL;
    uint8_t *piece = coffer__malloc(piece_size);
    if (!piece)
        return coffer__fail_no_memory(err, piece_size);
    coffer_status status = coffer__zip_stream_open(&stream, zip, index, err);
    size_t got = piece_size;
    while (!status && got == piece_size) {
        status = coffer__zip_stream_read(piece, piece_size, &got, stream, err);
        if (!status && fd >= 0)
            status = coffer__file_write(fd, piece, got, member->name, err);
    }
    coffer__zip_stream_close(stream);
    coffer__free(piece);
    return status;
}

static coffer_status open_spooled(coffer_source **out, const coffer__zip *zip, size_t index,
                                  coffer_error *err)
{
    const coffer__zip_member *member = &zip->members[index];
    int fd;
    coffer_status status = coffer__temporary_unnamed(&fd, err);
    if (status)
        return status;
    status = read_through(fd, zip, index, err);
    if (!status)
        status = coffer__source_over_fd(out, fd, true, member->size, member->name, NULL, err);
    if (status)
        coffer__file_close(fd);
    return status;
}

coffer_status coffer__zip_source(coffer_source **out, const coffer__zip *zip, size_t index,
                                 coffer__zip_access access, coffer_error *err)
{
    if (access == COFFER__ZIP_FORWARD)
        return open_forward(out, zip, index, err);
    if (zip->members[index].method != COFFER__ZIP_STORED)
        return open_spooled(out, zip, index, err);
    coffer_status status = read_through(-1, zip, index, err);
    return status ? status : open_range(out, zip, index, err);
}
