/* Equal payloads are stored once. A sample of each payload is hashed; one with the same size and sample is
 * nearly always equal and is compared directly. Only when it differs are the payloads with that sample
 * hashed completely, and those with equal hashes compared. The cost is bounded: each payload is hashed,
 * and compared with a different one, at most once. */
#include "formats/mcf/mcf_writer.h"

#include "base/fail.h"
#include "base/memory.h"
#include "io/file.h"

#include <xxhash.h>

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
    for (uint64_t i = 0; tensor->size > sizeof bytes && i < SAMPLES && status == COFFER_OK; i++) {
        uint64_t at = (tensor->size - SAMPLE) / (SAMPLES - 1) * i;
        status = coffer__file_read_at(fd, bytes + len, SAMPLE, tensor->offset + at, NULL, err);
        len += SAMPLE;
    }
    if (status == COFFER_OK)
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
        coffer_status status;
        if ((status = coffer__file_read_at(fd, piece, n, a->offset + done, NULL, err)) ||
            (status = coffer__file_read_at(fd, piece + half, n, b->offset + done, NULL, err)))
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
    if ((status = hash_whole(a, fd, piece, err)) || (status = hash_whole(b, fd, piece, err)))
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
    while (status == COFFER_OK && !same && (item = coffer__table_next(&probe)) != COFFER__TABLE_NONE) {
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

coffer_status coffer__mcf_deduplicate(coffer_mcf_writer *writer, coffer_error *err)
{
    uint32_t last = (uint32_t)writer->tensor_count - 1, original = COFFER__TABLE_NONE;
    coffer__mcf_new *tensor = &writer->tensors[last];
    uint64_t hash = 0;
    coffer_status status;
    int fd = -1;
    if (tensor->size == 0)
        return COFFER_OK;
    if ((status = coffer__sink_read_back(&fd, writer->sink, err)) ||
        (status = sample(&hash, fd, tensor, err)) ||
        (status = find_original(&original, writer, hash, fd, err)))
        return status;
    if (original == COFFER__TABLE_NONE)
        return coffer__table_add(&writer->by_sample, hash, last, err);
    tensor->offset = writer->tensors[original].offset;
    coffer__mcf_forget_sums(writer, writer->payload_end);
    return coffer__sink_cut(writer->sink, writer->payload_end, err);
}
