#include "outside/archives/byte_stream.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"
#include "outside/archives/unpack.h"

#include <inttypes.h>
#include <string.h>

#define WINDOW ((size_t)256 << 10)
#define HEAD_SIZE 8

struct coffer__byte_stream {
    coffer_source *src;
    coffer__unpack *unpack; /* NULL: the bytes are as they are in the source */
    uint64_t position;
    size_t window_at, window_len; /* of the source, after the position */
    uint8_t window[WINDOW];
};

coffer_status coffer__byte_stream_open(coffer__byte_stream **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err)
{
    uint8_t head[HEAD_SIZE];
    size_t len = coffer_source_size(src) < sizeof head ? (size_t)coffer_source_size(src) : sizeof head;
    coffer_status status = coffer_source_read_at(head, src, 0, len, err);
    if (status)
        return status;
    coffer__byte_stream *stream = coffer__malloc(sizeof *stream);
    if (!stream)
        return coffer__fail_no_memory(err, sizeof *stream);
    memset(stream, 0, offsetof(coffer__byte_stream, window));
    stream->src = src;
    if (coffer__packing_of(head, len) != COFFER__PACKING_NONE)
        status = coffer__unpack_open(&stream->unpack, src, limits, err);
    if (status) {
        coffer__byte_stream_close(stream);
        return status;
    }
    *out = stream;
    return COFFER_OK;
}

void coffer__byte_stream_close(coffer__byte_stream *stream)
{
    if (!stream)
        return;
    coffer__unpack_close(stream->unpack);
    coffer__free(stream);
}

uint64_t coffer__byte_stream_position(const coffer__byte_stream *stream)
{
    return stream->position;
}

uint64_t coffer__byte_stream_left(const coffer__byte_stream *stream)
{
    return stream->unpack ? UINT64_MAX : coffer_source_size(stream->src) - stream->position;
}

static coffer_status read_unpacked(uint8_t *out, size_t len, size_t *got, coffer__byte_stream *stream,
                                   coffer_error *err)
{
    size_t part = 1;
    for (*got = 0; *got < len && part; *got += part) {
        coffer_status status = coffer__unpack_read(out + *got, len - *got, &part, stream->unpack, err);
        if (status)
            return status;
    }
    stream->position += *got;
    return COFFER_OK;
}

/* Small reads out of the window, large ones straight from the source. */
static coffer_status read_plain(uint8_t *out, size_t len, coffer__byte_stream *stream, coffer_error *err)
{
    size_t kept = stream->window_len - stream->window_at;
    coffer_status status = COFFER_OK;
    if (len > kept && len < WINDOW / 4) {
        uint64_t left = coffer_source_size(stream->src) - stream->position;
        stream->window_at = 0;
        stream->window_len = kept = left < WINDOW ? (size_t)left : WINDOW;
        status = coffer_source_read_at(stream->window, stream->src, stream->position, kept, err);
    }
    if (!status && len > kept) {
        status = coffer_source_read_at(out, stream->src, stream->position, len, err);
        stream->window_at = stream->window_len = 0;
    } else if (!status) {
        memcpy(out, stream->window + stream->window_at, len);
        stream->window_at += len;
    }
    stream->position += len;
    return status;
}

coffer_status coffer__byte_stream_read(void *out, size_t len, size_t *got, coffer__byte_stream *stream,
                                       coffer_error *err)
{
    if (stream->unpack)
        return read_unpacked(out, len, got, stream, err);
    uint64_t left = coffer__byte_stream_left(stream);
    *got = len < left ? len : (size_t)left;
    return read_plain(out, *got, stream, err);
}

static void step_over(coffer__byte_stream *stream, uint64_t len)
{
    size_t kept = stream->window_len - stream->window_at;
    stream->window_at += len < kept ? (size_t)len : kept;
    stream->position += len;
}

const uint8_t *coffer__byte_stream_view(coffer__byte_stream *stream, size_t len)
{
    if (stream->unpack)
        return NULL;
    const uint8_t *view = coffer_source_view(stream->src, stream->position, len);
    if (view)
        step_over(stream, len);
    return view;
}

coffer_status coffer__byte_stream_skip(coffer__byte_stream *stream, uint64_t len, coffer_error *err)
{
    uint64_t begin = stream->position, left = coffer__byte_stream_left(stream);
    size_t got = 1;
    if (!stream->unpack && len <= left) {
        step_over(stream, len);
        return COFFER_OK;
    }
    while (stream->unpack && got && stream->position - begin < len) {
        uint64_t rest = len - (stream->position - begin);
        coffer_status status =
            read_unpacked(stream->window, rest < WINDOW ? (size_t)rest : WINDOW, &got, stream, err);
        if (status)
            return status;
    }
    if (stream->unpack && stream->position - begin == len)
        return COFFER_OK;
    return coffer__fail_other(err,
                              coffer__fail(err, COFFER_E_TRUNCATED, begin,
                                           "ends %" PRIu64 " bytes after byte %" PRIu64 ", %" PRIu64
                                           " were expected",
                                           stream->unpack ? stream->position - begin : left, begin, len),
                              coffer__source_other_name(stream->src));
}
