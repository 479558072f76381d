/* The payload of the tensor that is being written. */
#include "formats/mcf/mcf_writer.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/file.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <xxhash.h>

/* Equal payloads are stored once. A sample of each payload is hashed; one with the same size and sample is
 * nearly always equal and is compared directly. Only when it differs are the payloads with that sample
 * hashed completely, and those with equal hashes compared. The cost is bounded: each payload is hashed,
 * and compared with a different one, at most once. */

#define SAMPLE ((size_t)4096)
#define SAMPLES 4
#define PIECE ((size_t)1 << 20)

static coffer_status sample(uint64_t *hash, int fd, const coffer__mcf_new *tensor, coffer_error *err)
{
    uint8_t bytes[SAMPLES * SAMPLE];
    coffer_status status = COFFER_OK;
    size_t len = 0;
    if (tensor->size <= sizeof bytes) {
        len = (size_t)tensor->size;
        status = coffer__file_read_at(fd, bytes, len, tensor->offset, NULL, err);
    }
    for (uint64_t i = 0; tensor->size > sizeof bytes && i < SAMPLES && !status; i++) {
        uint64_t at = (tensor->size - SAMPLE) / (SAMPLES - 1) * i;
        status = coffer__file_read_at(fd, bytes + len, SAMPLE, tensor->offset + at, NULL, err);
        len += SAMPLE;
    }
    if (!status)
        *hash = XXH3_64bits_withSeed(bytes, len, tensor->size);
    return status;
}

/* Piece by piece, each hashed with the hash so far as its seed. */
static coffer_status hash_whole(coffer__mcf_new *tensor, int fd, uint8_t *piece, coffer_error *err)
{
    XXH128_hash_t hash = { 0 };
    if (tensor->hashed)
        return COFFER_OK;
    for (uint64_t done = 0; done < tensor->size;) {
        size_t n = tensor->size - done < PIECE ? (size_t)(tensor->size - done) : PIECE;
        coffer_status status = coffer__file_read_at(fd, piece, n, tensor->offset + done, NULL, err);
        if (status)
            return status;
        hash = XXH3_128bits_withSeed(piece, n, hash.low64 ^ hash.high64);
        done += n;
    }
    tensor->hash[0] = hash.low64;
    tensor->hash[1] = hash.high64;
    tensor->hashed = true;
    return COFFER_OK;
}

static coffer_status compare(bool *equal, const coffer__mcf_new *a, const coffer__mcf_new *b, int fd,
                             uint8_t *piece, coffer_error *err)
{
    const size_t half = PIECE / 2;
    *equal = true;
    for (uint64_t done = 0; *equal && done < a->size;) {
        size_t n = a->size - done < half ? (size_t)(a->size - done) : half;
        coffer_status status = coffer__file_read_at(fd, piece, n, a->offset + done, NULL, err);
        if (!status)
            status = coffer__file_read_at(fd, piece + half, n, b->offset + done, NULL, err);
        if (status)
            return status;
        *equal = memcmp(piece, piece + half, n) == 0;
        done += n;
    }
    return COFFER_OK;
}

static coffer_status is_same(bool *same, coffer__mcf_new *a, coffer__mcf_new *b, bool first, int fd,
                             uint8_t *piece, coffer_error *err)
{
    coffer_status status;
    *same = false;
    if (a->size != b->size)
        return COFFER_OK;
    if (first)
        return compare(same, a, b, fd, piece, err);
    status = hash_whole(a, fd, piece, err);
    if (!status)
        status = hash_whole(b, fd, piece, err);
    if (status)
        return status;
    if (a->hash[0] != b->hash[0] || a->hash[1] != b->hash[1])
        return COFFER_OK;
    return compare(same, a, b, fd, piece, err);
}

/* *original : COFFER__TABLE_NONE when no other tensor has the payload. */
static coffer_status find_original(uint32_t *original, coffer_mcf_writer *writer, uint64_t hash, int fd,
                                   coffer_error *err)
{
    coffer__mcf_new *tensor = &writer->tensors[writer->tensor_count - 1];
    uint8_t *piece = NULL;
    coffer_status status = COFFER_OK;
    bool same = false, first = true;
    coffer__table_probe probe = coffer__table_begin(&writer->by_sample, hash);
    uint32_t item;
    *original = COFFER__TABLE_NONE;
    while (!status && !same && (item = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
        if (!piece && !(piece = coffer__malloc(PIECE)))
            status = coffer__fail_no_memory(err, PIECE);
        else
            status = is_same(&same, &writer->tensors[item], tensor, first, fd, piece, err);
        first = false;
        if (same)
            *original = item;
    }
    coffer__free(piece);
    return status;
}

/* When the file already has the payload of the last tensor, removes the copy and refers to the first. */
static coffer_status mcf_deduplicate(coffer_mcf_writer *writer, coffer_error *err)
{
    uint32_t last = (uint32_t)writer->tensor_count - 1, original = COFFER__TABLE_NONE;
    coffer__mcf_new *tensor = &writer->tensors[last];
    uint64_t hash = 0;
    coffer_status status;
    int fd = -1;
    if (tensor->size == 0)
        return COFFER_OK;
    status = coffer__sink_read_back(&fd, writer->sink, err);
    if (!status)
        status = sample(&hash, fd, tensor, err);
    if (!status)
        status = find_original(&original, writer, hash, fd, err);
    if (status)
        return status;
    if (original == COFFER__TABLE_NONE)
        return coffer__table_add(&writer->by_sample, hash, last, err);
    tensor->offset = writer->tensors[original].offset;
    coffer__mcf_forget_sums(writer, writer->payload_end);
    return coffer__sink_cut(writer->sink, writer->payload_end, err);
}

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
    return writer->opts.no_dedup ? COFFER_OK : mcf_deduplicate(writer, err);
}
