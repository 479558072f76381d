/* CRC-32 checksums of a range of bytes, one for each MiB: computed from a source on all cores or while the
 * bytes are written, and verified for the parts that a reader touches. */
#ifndef COFFER_IO_CHUNK_SUMS_H
#define COFFER_IO_CHUNK_SUMS_H

#include "base/work.h"
#include "coffer/source.h"

#define COFFER__CHUNK_BYTES ((size_t)1 << 20)

static inline uint64_t coffer__chunk_count(uint64_t size)
{
    return size / COFFER__CHUNK_BYTES + (size % COFFER__CHUNK_BYTES != 0);
}

/* The bytes of a chunk: all but the last are full. */
static inline size_t coffer__chunk_len(uint64_t size, uint64_t chunk)
{
    uint64_t left = size - chunk * COFFER__CHUNK_BYTES;
    return left < COFFER__CHUNK_BYTES ? (size_t)left : COFFER__CHUNK_BYTES;
}

typedef struct coffer__chunk_sums {
    uint64_t offset, size; /* the range in the file */
    size_t count;
    uint32_t *sums;
} coffer__chunk_sums;

/* opts : threads and progress (in bytes); NULL = defaults. The range must be inside the source. */
coffer_status coffer__chunk_sums_compute(coffer__chunk_sums *out, coffer_source *src, uint64_t offset,
                                         uint64_t size, const coffer__work_opts *opts, coffer_error *err);
void coffer__chunk_sums_free(coffer__chunk_sums *sums);

/* ---- While writing ---- */

/* All zero to begin. */
typedef struct coffer__chunk_counter {
    uint32_t *sums; /* of the complete chunks */
    size_t count, capacity;
    uint32_t crc; /* of the chunk under way */
    size_t in_chunk;
} coffer__chunk_counter;

coffer_status coffer__chunk_counter_add(coffer__chunk_counter *counter, const void *bytes, size_t len,
                                        coffer_error *err);
/* Completes the last chunk, which may be shorter. */
coffer_status coffer__chunk_counter_end(coffer__chunk_counter *counter, coffer_error *err);
void coffer__chunk_counter_free(coffer__chunk_counter *counter);

/* ---- Verified reads ---- */

typedef struct coffer__chunk_verifier coffer__chunk_verifier;

/* Takes the sums over on success. src : borrowed. */
coffer_status coffer__chunk_verifier_new(coffer__chunk_verifier **out, coffer_source *src,
                                         coffer__chunk_sums *sums, coffer_error *err);
void coffer__chunk_verifier_free(coffer__chunk_verifier *verifier);
/* Reads every chunk of the range that was not verified before; COFFER_E_BAD_CHECKSUM for the first that
 * differs, and for a range that the sums do not cover. Any number of threads may call it. */
coffer_status coffer__chunk_verify(coffer__chunk_verifier *verifier, uint64_t offset, uint64_t len,
                                   coffer_error *err);

#endif
