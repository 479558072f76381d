/* The payload of the tensor that is being written. */
#include "formats/mcf/mcf_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>

static coffer_status expect_room(const coffer_mcf_writer *writer, uint64_t len, coffer_error *err)
{
    const coffer__mcf_new *tensor;
    if (!writer->in_tensor)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE, "no tensor has been begun");
    tensor = &writer->tensors[writer->tensor_count - 1];
    if (len > tensor->size - writer->written)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "tensor \"%.*s\" takes %" PRIu64 " bytes, %" PRIu64 " more than %" PRIu64
                            " were written",
                            (int)(tensor->name_len < 64 ? tensor->name_len : 64),
                            coffer__mcf_new_name(writer, tensor), tensor->size, len, writer->written);
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_write(coffer_mcf_writer *writer, const void *bytes, size_t len,
                                      coffer_error *err)
{
    coffer_status status = expect_room(writer, len, err);
    if (!status)
        status = coffer__sink_write(writer->sink, bytes, len, err);
    if (status)
        return status;
    writer->written += len;
    return writer->overwritten ? COFFER_OK : coffer__mcf_count_sums(writer, false, err);
}

coffer_status coffer_mcf_writer_skip(coffer_mcf_writer *writer, uint64_t len, coffer_error *err)
{
    coffer_status status = expect_room(writer, len, err);
    if (!status)
        status = coffer__sink_fill(writer->sink, 0, len, err);
    if (status)
        return status;
    writer->written += len;
    writer->overwritten = true;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_write_at(coffer_mcf_writer *writer, uint64_t begin, const void *bytes,
                                         size_t len, coffer_error *err)
{
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    uint64_t offset = writer->tensors[writer->tensor_count - 1].offset;
    if (!coffer__range_fits(begin, len, writer->written))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "%zu bytes at %" PRIu64 " of a tensor of which %" PRIu64 " were written", len,
                            begin, writer->written);
    writer->overwritten = true;
    coffer__mcf_forget_sums(writer, offset + begin);
    return coffer__sink_patch(writer->sink, offset + begin, bytes, len, err);
}

coffer_status coffer_mcf_writer_set_clip(coffer_mcf_writer *writer, float min_clip, float max_clip,
                                         coffer_error *err)
{
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    coffer__mcf_new *tensor = &writer->tensors[writer->tensor_count - 1];
    if (!tensor->quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor that is not quantized has no clip bounds");
    tensor->quant.min_clip = min_clip;
    tensor->quant.max_clip = max_clip;
    return COFFER_OK;
}

coffer_status coffer_mcf_writer_set_quality(coffer_mcf_writer *writer, const coffer_mcf_quality *quality,
                                            coffer_error *err)
{
    coffer_mcf_quality known = COFFER_MCF_QUALITY_INIT;
    coffer_status status = coffer__take_options(&known, sizeof known, quality, err);
    if (!status)
        status = expect_room(writer, 0, err);
    if (status)
        return status;
    coffer__mcf_new *tensor = &writer->tensors[writer->tensor_count - 1];
    if (!tensor->quantized)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "a tensor that is not quantized has no quantization error");
    tensor->quality = known;
    tensor->quality.importance = NULL;
    tensor->importance_at = writer->importances.len;
    tensor->importance_len = known.importance ? strlen(known.importance) : 0;
    tensor->measured = true;
    coffer__buffer_append(&writer->importances, known.importance, tensor->importance_len);
    return writer->importances.failed ? coffer__fail_no_memory(err, tensor->importance_len) : COFFER_OK;
}

#define COPY_SIZE ((size_t)1 << 20)

static coffer_status write_piecewise(coffer_mcf_writer *writer, coffer_source *src, uint64_t offset,
                                     uint64_t len, coffer_error *err)
{
    uint8_t *piece = coffer__malloc(COPY_SIZE);
    coffer_status status = COFFER_OK;
    if (!piece)
        return coffer__fail_no_memory(err, COPY_SIZE);
    for (uint64_t done = 0; !status && done < len;) {
        size_t n = len - done < COPY_SIZE ? (size_t)(len - done) : COPY_SIZE;
        status = coffer_source_read_at(piece, src, offset + done, n, err);
        if (!status)
            status = coffer_mcf_writer_write(writer, piece, n, err);
        done += n;
    }
    coffer__free(piece);
    return status;
}

coffer_status coffer_mcf_writer_write_from(coffer_mcf_writer *writer, coffer_source *src, uint64_t offset,
                                           uint64_t len, coffer_error *err)
{
    coffer_status status = expect_room(writer, len, err);
    if (status)
        return status;
    if (!coffer__range_fits(offset, len, coffer_source_size(src)))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, offset,
                            "%" PRIu64 " bytes at %" PRIu64 " requested, the file has %" PRIu64, len, offset,
                            coffer_source_size(src));
    /* Under a journal the file's own bytes are not those that the source shows. */
    int fd = coffer__source_descriptor(src);
    if (fd < 0)
        return write_piecewise(writer, src, offset, len, err);
    status = coffer__mcf_copy_in(writer, fd, offset, len, coffer__source_other_name(src), err);
    if (!status)
        writer->written += len;
    return status;
}

coffer_status coffer_mcf_writer_end_tensor(coffer_mcf_writer *writer, coffer_error *err)
{
    const coffer__mcf_new *tensor;
    coffer_status status = expect_room(writer, 0, err);
    if (status)
        return status;
    tensor = &writer->tensors[writer->tensor_count - 1];
    if (writer->written != tensor->size)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, COFFER_OFFSET_NONE,
                            "tensor \"%.*s\" takes %" PRIu64 " bytes, %" PRIu64 " were written",
                            (int)(tensor->name_len < 64 ? tensor->name_len : 64),
                            coffer__mcf_new_name(writer, tensor), tensor->size, writer->written);
    status = coffer__mcf_count_sums(writer, true, err);
    if (status)
        return status;
    writer->in_tensor = false;
    writer->overwritten = false;
    return writer->opts.no_dedup ? COFFER_OK : coffer__mcf_deduplicate(writer, err);
}
