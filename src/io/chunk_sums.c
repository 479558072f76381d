#include "io/chunk_sums.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdatomic.h>

void coffer__chunk_sums_free(coffer__chunk_sums *sums)
{
    coffer__free(sums->sums);
    *sums = (coffer__chunk_sums){ 0 };
}

static coffer_status sum_chunk(uint32_t *out, coffer_source *src, const coffer__chunk_sums *area,
                               uint64_t chunk, uint8_t *scratch, coffer_error *err)
{
    size_t len = coffer__chunk_len(area->size, chunk);
    const uint8_t *bytes;
    coffer_status status =
        coffer__source_fetch(&bytes, src, area->offset + chunk * COFFER__CHUNK_BYTES, len, scratch, err);
    if (!status)
        *out = coffer__crc32(0, bytes, len);
    return status;
}

/* ---- A whole range ---- */

typedef struct sum_job {
    coffer_source *source;
    coffer__chunk_sums *sums;
    uint8_t *scratch; /* a chunk for each worker */
} sum_job;

static coffer_status sum_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const sum_job *job = context;
    return sum_chunk(&job->sums->sums[index], job->source, job->sums, index,
                     job->scratch + (size_t)worker * COFFER__CHUNK_BYTES, err);
}

static coffer_status compute(coffer__chunk_sums *sums, coffer_source *src, coffer__work *work,
                             coffer_error *err)
{
    sum_job job = { .source = src, .sums = sums };
    sums->sums = coffer__alloc_array(sums->count, sizeof *sums->sums);
    if (!sums->sums)
        return coffer__fail_no_memory(err, sums->count * sizeof *sums->sums);
    job.scratch = coffer__alloc_array(coffer__work_threads(work), COFFER__CHUNK_BYTES);
    if (!job.scratch)
        return coffer__fail_no_memory(err, coffer__work_threads(work) * COFFER__CHUNK_BYTES);
    coffer_status status = coffer__work_run(work, sums->count, sum_piece, &job, err);
    coffer__free(job.scratch);
    return status ? status : coffer_source_intact(src, err);
}

coffer_status coffer__chunk_sums_compute(coffer__chunk_sums *out, coffer_source *src, uint64_t offset,
                                         uint64_t size, const coffer__work_opts *opts, coffer_error *err)
{
    coffer__chunk_sums sums = { .offset = offset, .size = size };
    coffer__work_opts settings = opts ? *opts : (coffer__work_opts){ 0 };
    coffer__work *work = NULL;
    uint64_t count = coffer__chunk_count(size);
    if (!coffer__to_size(&sums.count, count))
        return coffer__fail_no_memory(err, UINT64_MAX);
    settings.piece = COFFER__CHUNK_BYTES;
    settings.total = count * COFFER__CHUNK_BYTES;
    settings.pieces = count;
    coffer_status status = coffer__work_new(&work, &settings, err);
    if (!status)
        status = compute(&sums, src, work, err);
    coffer__work_free(work);
    if (status)
        coffer__chunk_sums_free(&sums);
    else
        *out = sums;
    return status;
}

/* ---- While writing ---- */

static coffer_status complete_chunk(coffer__chunk_counter *counter, coffer_error *err)
{
    coffer_status status = coffer__array_reserve_one(&counter->sums, &counter->capacity, counter->count,
                                                     sizeof *counter->sums, err);
    if (status)
        return status;
    counter->sums[counter->count++] = counter->crc;
    counter->crc = 0;
    counter->in_chunk = 0;
    return COFFER_OK;
}

coffer_status coffer__chunk_counter_add(coffer__chunk_counter *counter, const void *bytes, size_t len,
                                        coffer_error *err)
{
    const uint8_t *next = bytes;
    while (len > 0) {
        size_t room = COFFER__CHUNK_BYTES - counter->in_chunk, part = len < room ? len : room;
        counter->crc = coffer__crc32(counter->crc, next, part);
        counter->in_chunk += part;
        next += part;
        len -= part;
        if (counter->in_chunk == COFFER__CHUNK_BYTES) {
            coffer_status status = complete_chunk(counter, err);
            if (status)
                return status;
        }
    }
    return COFFER_OK;
}

coffer_status coffer__chunk_counter_end(coffer__chunk_counter *counter, coffer_error *err)
{
    return counter->in_chunk > 0 ? complete_chunk(counter, err) : COFFER_OK;
}

void coffer__chunk_counter_free(coffer__chunk_counter *counter)
{
    coffer__free(counter->sums);
    *counter = (coffer__chunk_counter){ 0 };
}

/* ---- Verified reads ---- */

struct coffer__chunk_verifier {
    coffer_source *source;
    coffer__chunk_sums sums;
    atomic_uchar *verified; /* one for each chunk */
};

coffer_status coffer__chunk_verifier_new(coffer__chunk_verifier **out, coffer_source *src,
                                         coffer__chunk_sums *sums, coffer_error *err)
{
    coffer__chunk_verifier *verifier = coffer__calloc(1, sizeof *verifier);
    atomic_uchar *verified = coffer__calloc(sums->count ? sums->count : 1, sizeof *verified);
    if (!verifier || !verified) {
        coffer__free(verifier);
        coffer__free(verified);
        return coffer__fail_no_memory(err, sums->count);
    }
    *verifier = (coffer__chunk_verifier){ src, *sums, verified };
    *sums = (coffer__chunk_sums){ 0 };
    *out = verifier;
    return COFFER_OK;
}

void coffer__chunk_verifier_free(coffer__chunk_verifier *verifier)
{
    if (!verifier)
        return;
    coffer__chunk_sums_free(&verifier->sums);
    coffer__free(verifier->verified);
    coffer__free(verifier);
}

static coffer_status verify_chunk(coffer__chunk_verifier *verifier, size_t chunk, uint8_t *scratch,
                                  coffer_error *err)
{
    const coffer__chunk_sums *sums = &verifier->sums;
    uint32_t found = 0;
    coffer_status status = sum_chunk(&found, verifier->source, sums, chunk, scratch, err);
    if (!status)
        status = coffer_source_intact(verifier->source, err);
    if (status)
        return status;
    if (found != sums->sums[chunk])
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, sums->offset + (uint64_t)chunk * COFFER__CHUNK_BYTES,
                            "chunk %zu of the payloads: its CRC-32 is %08" PRIx32
                            ", the table says %08" PRIx32,
                            chunk, found, sums->sums[chunk]);
    atomic_store(&verifier->verified[chunk], 1);
    return COFFER_OK;
}

coffer_status coffer__chunk_verify(coffer__chunk_verifier *verifier, uint64_t offset, uint64_t len,
                                   coffer_error *err)
{
    const coffer__chunk_sums *sums = &verifier->sums;
    if (len == 0)
        return COFFER_OK;
    if (offset < sums->offset || !coffer__range_fits(offset - sums->offset, len, sums->size))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, offset,
                            "%" PRIu64 " bytes at %" PRIu64 " are outside of what the table of sums covers",
                            len, offset);
    size_t first = (size_t)((offset - sums->offset) / COFFER__CHUNK_BYTES);
    size_t last = (size_t)((offset - sums->offset + len - 1) / COFFER__CHUNK_BYTES);
    uint8_t *scratch = NULL;
    coffer_status status = COFFER_OK;
    for (size_t i = first; !status && i <= last; i++) {
        if (atomic_load(&verifier->verified[i]))
            continue;
        if (!scratch)
            scratch = coffer__malloc(COFFER__CHUNK_BYTES);
        status = scratch ? verify_chunk(verifier, i, scratch, err)
                         : coffer__fail_no_memory(err, COFFER__CHUNK_BYTES);
    }
    coffer__free(scratch);
    return status;
}
