#include "formats/pycauset/pycauset_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"
#include "io/temporary.h"

#include <inttypes.h>
#include <string.h>

#define SPOOL_BUFFER ((size_t)256 << 10)

/* ---- Bytes put aside ---- */

static coffer_status spool_open(coffer__pycauset_spool *spool, coffer_error *err)
{
    spool->buffer = coffer__malloc(SPOOL_BUFFER);
    if (!spool->buffer)
        return coffer__fail_no_memory(err, SPOOL_BUFFER);
    return coffer__temporary_unnamed(&spool->fd, err);
}

static void spool_close(coffer__pycauset_spool *spool)
{
    coffer__file_close(spool->fd);
    coffer__free(spool->buffer);
}

static coffer_status spool_flush(coffer__pycauset_spool *spool, coffer_error *err)
{
    coffer_status status = coffer__file_write_at(spool->fd, spool->buffer, spool->buffered, spool->written,
                                                 "temporary file", err);
    spool->written += spool->buffered;
    spool->buffered = 0;
    return status;
}

static coffer_status spool_write(coffer__pycauset_spool *spool, const void *bytes, size_t len,
                                 coffer_error *err)
{
    const uint8_t *from = bytes;
    while (len > 0) {
        size_t part = len < SPOOL_BUFFER - spool->buffered ? len : SPOOL_BUFFER - spool->buffered;
        memcpy(spool->buffer + spool->buffered, from, part);
        spool->buffered += part;
        from += part;
        len -= part;
        coffer_status status = spool->buffered == SPOOL_BUFFER ? spool_flush(spool, err) : COFFER_OK;
        if (status)
            return status;
    }
    return COFFER_OK;
}

/* ---- The payload ---- */

coffer_status coffer__pycauset_output_open(coffer__pycauset_output *output, const char *path,
                                           const coffer_pycauset_writer_opts *opts, unsigned planes,
                                           coffer_error *err)
{
    coffer__sink_opts sink_options = {
        .exclusive = !opts->overwrite,
        .no_sync = opts->durability == COFFER_DURABILITY_NONE,
    };
    *output = (coffer__pycauset_output){
        .digest_wanted = !opts->payload_uuid,
        .stream.fd = -1,
        .imaginary.fd = -1,
    };
    output->sums_wanted = opts->checksums;
    output->digest = coffer__digest_new();
    if (!output->digest)
        return coffer__fail_no_memory(err, 0);
    coffer_status status = COFFER_OK;
    if (planes == 2)
        status = spool_open(&output->imaginary, err);
    if (!status)
        status = coffer__sink_create(&output->sink, path, &sink_options, err);
    if (status)
        return status;
    if (coffer__sink_can_patch(output->sink))
        return coffer__sink_fill(output->sink, 0, COFFER__PYCAUSET_HEADER_SIZE, err);
    return spool_open(&output->stream, err);
}

void coffer__pycauset_output_free(coffer__pycauset_output *output)
{
    coffer__sink_discard(output->sink);
    coffer__digest_free(output->digest);
    coffer__chunk_counter_free(&output->sums);
    spool_close(&output->stream);
    spool_close(&output->imaginary);
}

coffer_status coffer__pycauset_output_put(coffer__pycauset_output *output, const void *bytes, size_t len,
                                          coffer_error *err)
{
    if (output->digest_wanted)
        coffer__digest_add(output->digest, bytes, len);
    if (output->sums_wanted) {
        coffer_status status = coffer__chunk_counter_add(&output->sums, bytes, len, err);
        if (status)
            return status;
    }
    output->written += len;
    if (output->stream.fd >= 0)
        return spool_write(&output->stream, bytes, len, err);
    return coffer__sink_write(output->sink, bytes, len, err);
}

coffer_status coffer__pycauset_output_put_imaginary(coffer__pycauset_output *output, const void *bytes,
                                                    size_t len, coffer_error *err)
{
    return spool_write(&output->imaginary, bytes, len, err);
}

static coffer_status append_imaginary(coffer__pycauset_output *output, coffer_error *err)
{
    coffer__pycauset_spool *spool = &output->imaginary;
    coffer_status status = spool_flush(spool, err);
    for (uint64_t offset = 0; !status && offset < spool->written; offset += SPOOL_BUFFER) {
        uint64_t left = spool->written - offset;
        size_t part = left < SPOOL_BUFFER ? (size_t)left : SPOOL_BUFFER;
        status = coffer__file_read_at(spool->fd, spool->buffer, part, offset, "temporary file", err);
        if (!status)
            status = coffer__pycauset_output_put(output, spool->buffer, part, err);
    }
    return status;
}

coffer_status coffer__pycauset_output_finish(coffer__pycauset_output *output, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    if (output->imaginary.fd >= 0)
        status = append_imaginary(output, err);
    if (!status)
        status = coffer__chunk_counter_end(&output->sums, err);
    return status;
}

/* ---- The file around it ---- */

coffer_status coffer__pycauset_output_commit(coffer__pycauset_output *output, const coffer__buffer *block,
                                             coffer_error *err)
{
    uint8_t header[COFFER__PYCAUSET_HEADER_SIZE];
    uint64_t payload_end = COFFER__PYCAUSET_HEADER_SIZE + output->written;
    coffer__pycauset_slot slot = {
        .generation = 1,
        .payload_offset = COFFER__PYCAUSET_HEADER_SIZE,
        .payload_length = output->written,
        .metadata_length = block->len,
    };
    bool stream = output->stream.fd >= 0;
    coffer_status status = COFFER_OK;
    if (!coffer__align_up(&slot.metadata_offset, payload_end, COFFER__PYCAUSET_BLOCK_ALIGNMENT))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a payload of %" PRIu64 " bytes is too large for a file", output->written);
    coffer__pycauset_store_fresh_header(header, &slot);
    if (stream)
        status = coffer__sink_write(output->sink, header, sizeof header, err);
    if (!status && stream)
        status = spool_flush(&output->stream, err);
    if (!status && stream)
        status = coffer__sink_copy_file(output->sink, output->stream.fd, 0, output->stream.written,
                                        "temporary file", err);
    if (!status)
        status = coffer__sink_fill(output->sink, 0, slot.metadata_offset - payload_end, err);
    if (!status)
        status = coffer__sink_write(output->sink, block->data, block->len, err);
    if (status)
        return status;
    if (!stream)
        status = coffer__sink_patch(output->sink, 0, header, sizeof header, err);
    if (status)
        return status;
    coffer__sink *sink = output->sink;
    output->sink = NULL; /* gone, whatever comes of it */
    return coffer__sink_commit(sink, err);
}
