/* The contents of a member of a ZIP archive: from front to back, and as a source of bytes. */
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/source_private.h"
#include "io/temporary.h"
#include "outside/archives/unpack.h"
#include "outside/archives/zip.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <string.h>

/* The contents of a member of a ZIP archive, from front to back. */

#define INPUT_SIZE ((size_t)1 << 16)

struct coffer__zip_stream {
    const coffer__zip *zip;
    const coffer__zip_member *member;
    uint64_t taken; /* packed bytes that were read */
    uint64_t given;
    uint32_t crc;
    struct inflate_state *inflate; /* NULL when the member is stored */
    uint8_t *input;
};

static coffer_status prepare_inflate(coffer__zip_stream *stream, coffer_error *err)
{
    stream->inflate = coffer__malloc(sizeof *stream->inflate);
    stream->input = coffer__malloc(INPUT_SIZE);
    if (!stream->inflate || !stream->input)
        return coffer__fail_no_memory(err, sizeof *stream->inflate + INPUT_SIZE);
    isal_inflate_init(stream->inflate);
    return COFFER_OK;
}

static void zip_stream_close(coffer__zip_stream *stream)
{
    if (!stream)
        return;
    coffer__free(stream->inflate);
    coffer__free(stream->input);
    coffer__free(stream);
}

static coffer_status zip_stream_open(coffer__zip_stream **out, const coffer__zip *zip, size_t index,
                                     coffer_error *err)
{
    const coffer__zip_member *member = &zip->members[index];
    if (member->encrypted)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, member->offset, "member \"%s\" is encrypted",
                            member->name);
    if (member->method != COFFER__ZIP_STORED && member->method != COFFER__ZIP_DEFLATED)
        return coffer__fail(err, COFFER_E_UNSUPPORTED, member->offset,
                            "member \"%s\" is packed with method %u; stored and deflated ones are read",
                            member->name, member->method);
    if (member->method == COFFER__ZIP_DEFLATED &&
        member->size > coffer__unpack_limit(member->packed, zip->limits.memory_bytes, &zip->limits))
        return coffer__fail(err, COFFER_E_LIMIT, member->offset,
                            "member \"%s\": %" PRIu64 " bytes come out of %" PRIu64
                            " compressed ones, the limit is %" PRIu64 " (unpack-ratio)",
                            member->name, member->size, member->packed,
                            coffer__unpack_limit(member->packed, zip->limits.memory_bytes, &zip->limits));
    coffer__zip_stream *stream = coffer__calloc(1, sizeof *stream);
    if (!stream)
        return coffer__fail_no_memory(err, sizeof *stream);
    stream->zip = zip;
    stream->member = member;
    coffer_status status = COFFER_OK;
    if (member->method == COFFER__ZIP_DEFLATED)
        status = prepare_inflate(stream, err);
    if (status) {
        zip_stream_close(stream);
        return status;
    }
    *out = stream;
    return COFFER_OK;
}

static coffer_status refill(coffer__zip_stream *stream, coffer_error *err)
{
    uint64_t left = stream->member->packed - stream->taken;
    size_t some = left < INPUT_SIZE ? (size_t)left : INPUT_SIZE;
    coffer_status status = coffer_source_read_at(stream->input, stream->zip->src,
                                                 stream->member->offset + stream->taken, some, err);
    if (status)
        return status;
    stream->taken += some;
    stream->inflate->next_in = stream->input;
    stream->inflate->avail_in = (uint32_t)some;
    return COFFER_OK;
}

static bool is_finished(const coffer__zip_stream *stream)
{
    return stream->inflate->block_state == ISAL_BLOCK_FINISH;
}

/* Gives exactly len bytes, which the member is known to declare. */
static coffer_status inflate(uint8_t *out, size_t len, coffer__zip_stream *stream, coffer_error *err)
{
    const coffer__zip_member *member = stream->member;
    while (len > 0) {
        uint32_t some = len < UINT32_C(1) << 30 ? (uint32_t)len : UINT32_C(1) << 30;
        bool exhausted = stream->inflate->avail_in == 0 && stream->taken == member->packed;
        if (stream->inflate->avail_in == 0 && !exhausted) {
            coffer_status status = refill(stream, err);
            if (status)
                return status;
        }
        stream->inflate->next_out = out;
        stream->inflate->avail_out = some;
        if (!is_finished(stream) && isal_inflate(stream->inflate) < 0)
            return coffer__fail(err, COFFER_E_BAD_VALUE, member->offset,
                                "member \"%s\": the deflated data is damaged within its first %" PRIu64
                                " bytes",
                                member->name, stream->taken);
        size_t made = some - stream->inflate->avail_out;
        if (made == 0 && (is_finished(stream) || exhausted))
            return coffer__fail(err, COFFER_E_TRUNCATED, member->offset,
                                "member \"%s\": %" PRIu64 " bytes come out, %" PRIu64 " were declared",
                                member->name, member->size - len, member->size);
        out += made;
        len -= made;
    }
    return COFFER_OK;
}

/* Nothing may come after the last declared byte. What is left may still be inside the inflater. */
static coffer_status expect_end(coffer__zip_stream *stream, coffer_error *err)
{
    const coffer__zip_member *member = stream->member;
    bool exhausted = false;
    while (!is_finished(stream)) {
        uint8_t surplus;
        if (exhausted)
            return coffer__fail(err, COFFER_E_TRUNCATED, member->offset,
                                "member \"%s\": the deflated data does not end", member->name);
        exhausted = stream->inflate->avail_in == 0 && stream->taken == member->packed;
        if (stream->inflate->avail_in == 0 && !exhausted) {
            coffer_status status = refill(stream, err);
            if (status)
                return status;
        }
        stream->inflate->next_out = &surplus;
        stream->inflate->avail_out = 1;
        if (isal_inflate(stream->inflate) < 0 || stream->inflate->avail_out == 0)
            return coffer__fail(err, COFFER_E_SIZE_MISMATCH, member->offset,
                                "member \"%s\": more than the declared %" PRIu64 " bytes come out",
                                member->name, member->size);
    }
    return COFFER_OK;
}

static coffer_status finish(coffer__zip_stream *stream, coffer_error *err)
{
    coffer_status status = stream->inflate ? expect_end(stream, err) : COFFER_OK;
    if (!status && stream->crc != stream->member->crc)
        status = coffer__fail(err, COFFER_E_BAD_CHECKSUM, stream->member->offset,
                              "member \"%s\": CRC-32 %08" PRIx32 ", the archive says %08" PRIx32,
                              stream->member->name, stream->crc, stream->member->crc);
    return status;
}

/* The next bytes, as many as asked for unless the contents end: *got is then less. With the last byte the
 * CRC-32 is checked: COFFER_E_BAD_CHECKSUM. */
static coffer_status zip_stream_read(void *out, size_t len, size_t *got, coffer__zip_stream *stream,
                                     coffer_error *err)
{
    uint64_t left = stream->member->size - stream->given;
    coffer_status status;
    if (len > left)
        len = (size_t)left;
    *got = 0;
    if (stream->inflate)
        status = inflate(out, len, stream, err);
    else
        status =
            coffer_source_read_at(out, stream->zip->src, stream->member->offset + stream->given, len, err);
    if (status)
        return status;
    stream->crc = coffer__crc32(stream->crc, out, len);
    stream->given += len;
    /* Also of a member without a byte, whenever it is asked for its end. */
    if (len == left)
        status = finish(stream, err);
    if (!status)
        *got = len;
    return status;
}

/* A member of a ZIP archive as a source of bytes. */

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
    coffer_status status = zip_stream_read(state->window, WINDOW_SIZE, &got, state->stream, err);
    state->window_at = status ? UINT64_MAX : state->window_at + state->window_len; /* then it starts over */
    state->window_len = got;
    return status;
}

static coffer_status start_over(forward *state, coffer_error *err)
{
    coffer__zip_stream *stream;
    coffer_status status = zip_stream_open(&stream, state->zip, state->index, err);
    if (status)
        return status;
    zip_stream_close(state->stream);
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
    zip_stream_close(state->stream);
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
    coffer_status status = zip_stream_open(&stream, zip, index, err);
    size_t got = piece_size;
    while (!status && got == piece_size) {
        status = zip_stream_read(piece, piece_size, &got, stream, err);
        if (!status && fd >= 0)
            status = coffer__file_write(fd, piece, got, member->name, err);
    }
    zip_stream_close(stream);
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
