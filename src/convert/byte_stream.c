#include "convert/byte_stream.h"

#include "base/fail.h"
#include "base/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WINDOW ((size_t)256 << 10)

struct coffer__byte_stream {
    coffer_source *src;
    uint64_t position;
    struct archive *unpacker; /* NULL: the bytes are as they stand in the source */
    uint64_t packed_at;       /* how far the unpacker has been fed */
    coffer_error failure;     /* of the source, while the unpacker had it */
    /* What the unpacker has given and was not taken yet. */
    const uint8_t *ready;
    size_t ready_len;
    uint8_t window[WINDOW];
    size_t window_at, window_len; /* unpacked: of the source, behind the position */
};

/* gzip, zstd, xz, bzip2 */
static bool is_packed(const uint8_t *head, size_t len)
{
    return (len >= 3 && memcmp(head, "\x1f\x8b\x08", 3) == 0) ||
           (len >= 4 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0) ||
           (len >= 6 && memcmp(head, "\xfd\x37zXZ\0", 6) == 0) || (len >= 3 && memcmp(head, "BZh", 3) == 0);
}

static la_ssize_t feed(struct archive *unpacker, void *context, const void **bytes)
{
    coffer__byte_stream *stream = context;
    uint64_t left = coffer_source_size(stream->src) - stream->packed_at;
    size_t len = left < WINDOW ? (size_t)left : WINDOW;
    *bytes = stream->window;
    if (coffer_source_read_at(stream->window, stream->src, stream->packed_at, len, &stream->failure)) {
        archive_set_error(unpacker, EIO, "%s", stream->failure.text);
        return ARCHIVE_FATAL;
    }
    stream->packed_at += len;
    return (la_ssize_t)len;
}

static coffer_status fail_unpack(coffer__byte_stream *stream, coffer_error *err)
{
    if (stream->failure.status) {
        if (err)
            *err = stream->failure;
        return stream->failure.status;
    }
    const char *text = archive_error_string(stream->unpacker);
    return coffer__fail(err, COFFER_E_BAD_VALUE, COFFER_OFFSET_NONE, "%s: unpacking at byte %" PRIu64 ": %s",
                        coffer_source_name(stream->src), stream->position, text ? text : "damaged");
}

static coffer_status start_unpacker(coffer__byte_stream *stream, coffer_error *err)
{
    struct archive_entry *entry;
    stream->unpacker = archive_read_new();
    if (!stream->unpacker)
        return coffer__fail_no_memory(err, 0);
    archive_read_support_filter_gzip(stream->unpacker);
    archive_read_support_filter_zstd(stream->unpacker);
    archive_read_support_filter_xz(stream->unpacker);
    archive_read_support_filter_bzip2(stream->unpacker);
    archive_read_support_format_raw(stream->unpacker);
    if (archive_read_open(stream->unpacker, stream, NULL, feed, NULL) != ARCHIVE_OK ||
        archive_read_next_header(stream->unpacker, &entry) != ARCHIVE_OK)
        return fail_unpack(stream, err);
    return COFFER_OK;
}

coffer_status coffer__byte_stream_open(coffer__byte_stream **out, coffer_source *src, coffer_error *err)
{
    uint8_t head[6];
    size_t len = coffer_source_size(src) < sizeof head ? (size_t)coffer_source_size(src) : sizeof head;
    coffer_status status = coffer_source_read_at(head, src, 0, len, err);
    if (status)
        return status;
    coffer__byte_stream *stream = coffer__malloc(sizeof *stream);
    if (!stream)
        return coffer__fail_no_memory(err, sizeof *stream);
    memset(stream, 0, offsetof(coffer__byte_stream, window));
    stream->window_at = stream->window_len = 0;
    stream->src = src;
    if (is_packed(head, len))
        status = start_unpacker(stream, err);
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
    if (stream->unpacker)
        archive_read_free(stream->unpacker);
    coffer__free(stream);
}

uint64_t coffer__byte_stream_position(const coffer__byte_stream *stream)
{
    return stream->position;
}

uint64_t coffer__byte_stream_left(const coffer__byte_stream *stream)
{
    return stream->unpacker ? UINT64_MAX : coffer_source_size(stream->src) - stream->position;
}

/* Makes some unpacked bytes ready; none at the end. */
static coffer_status unpack_some(coffer__byte_stream *stream, coffer_error *err)
{
    const void *bytes;
    la_int64_t offset;
    while (stream->ready_len == 0) {
        int result = archive_read_data_block(stream->unpacker, &bytes, &stream->ready_len, &offset);
        if (result == ARCHIVE_EOF) {
            stream->ready_len = 0;
            return COFFER_OK;
        }
        if (result < ARCHIVE_WARN)
            return fail_unpack(stream, err);
        stream->ready = bytes;
    }
    return COFFER_OK;
}

static coffer_status read_unpacked(uint8_t *out, size_t len, size_t *got, coffer__byte_stream *stream,
                                   coffer_error *err)
{
    for (*got = 0; *got < len;) {
        coffer_status status = unpack_some(stream, err);
        if (status)
            return status;
        if (stream->ready_len == 0)
            break;
        size_t part = len - *got < stream->ready_len ? len - *got : stream->ready_len;
        if (out)
            memcpy(out + *got, stream->ready, part);
        stream->ready += part;
        stream->ready_len -= part;
        stream->position += part;
        *got += part;
    }
    return COFFER_OK;
}

/* Small reads out of the window, large ones straight from the source. */
static coffer_status read_plain(uint8_t *out, size_t len, coffer__byte_stream *stream, coffer_error *err)
{
    size_t kept = stream->window_len - stream->window_at;
    if (len > kept && len < WINDOW / 4) {
        uint64_t left = coffer_source_size(stream->src) - stream->position;
        size_t fill = left < WINDOW ? (size_t)left : WINDOW;
        coffer_status status =
            coffer_source_read_at(stream->window, stream->src, stream->position, fill, err);
        if (status)
            return status;
        stream->window_at = 0;
        stream->window_len = kept = fill;
    }
    if (len > kept) {
        coffer_status status = coffer_source_read_at(out, stream->src, stream->position, len, err);
        if (status)
            return status;
        stream->window_at = stream->window_len = 0;
    } else {
        memcpy(out, stream->window + stream->window_at, len);
        stream->window_at += len;
    }
    stream->position += len;
    return COFFER_OK;
}

coffer_status coffer__byte_stream_read(void *out, size_t len, size_t *got, coffer__byte_stream *stream,
                                       coffer_error *err)
{
    if (stream->unpacker)
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
    if (stream->unpacker)
        return NULL;
    const uint8_t *view = coffer_source_view(stream->src, stream->position, len);
    if (view)
        step_over(stream, len);
    return view;
}

coffer_status coffer__byte_stream_skip(coffer__byte_stream *stream, uint64_t len, coffer_error *err)
{
    uint64_t begin = stream->position;
    if (!stream->unpacker && len <= coffer__byte_stream_left(stream)) {
        step_over(stream, len);
        return COFFER_OK;
    }
    while (stream->unpacker && stream->position - begin < len) {
        uint64_t left = len - (stream->position - begin);
        size_t got;
        coffer_status status =
            read_unpacked(NULL, left < SIZE_MAX ? (size_t)left : SIZE_MAX, &got, stream, err);
        if (status)
            return status;
        if (got == 0)
            break;
    }
    if (stream->unpacker && stream->position - begin == len)
        return COFFER_OK;
    return coffer__fail(err, COFFER_E_TRUNCATED, begin,
                        "%s: ends %" PRIu64 " bytes after byte %" PRIu64 ", %" PRIu64 " were expected",
                        coffer_source_name(stream->src),
                        stream->unpacker ? stream->position - begin : coffer__byte_stream_left(stream), begin,
                        len);
}
