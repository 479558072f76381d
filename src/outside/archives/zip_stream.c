/* The contents of a member of a ZIP archive, from front to back. */
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "outside/archives/unpack.h"
#include "outside/archives/zip_private.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>

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

coffer_status coffer__zip_stream_open(coffer__zip_stream **out, const coffer__zip *zip, size_t index,
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
        coffer__zip_stream_close(stream);
        return status;
    }
    *out = stream;
    return COFFER_OK;
}

void coffer__zip_stream_close(coffer__zip_stream *stream)
{
    if (!stream)
        return;
    coffer__free(stream->inflate);
    coffer__free(stream->input);
    coffer__free(stream);
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

coffer_status coffer__zip_stream_read(void *out, size_t len, size_t *got, coffer__zip_stream *stream,
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
