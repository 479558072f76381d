/* The table of sums: one for each MiB of the payload area, and readers that check only what they touch. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/pool.h"

#include <sodium.h>

#define BATCH 64 /* chunks between two calls of a progress */

static size_t chunk_count(uint64_t size)
{
    return (size_t)(size / COFFER__MCF_CHUNK + (size % COFFER__MCF_CHUNK != 0));
}

/* ---- The section ---- */

static void seal(uint8_t out[crypto_hash_sha256_BYTES], const uint8_t *section, size_t len)
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, section, COFFER__MCF_SUMS_SHA_AT);
    crypto_hash_sha256_update(&state, section + COFFER__MCF_SUMS_HEADER, len - COFFER__MCF_SUMS_HEADER);
    crypto_hash_sha256_final(&state, out);
}

coffer_status coffer__mcf_sums_encode(coffer__buffer *out, const coffer__mcf_sums *sums, coffer_error *err)
{
    size_t len = COFFER__MCF_SUMS_HEADER + sums->count * sizeof(uint32_t);
    uint8_t *bytes = coffer__buffer_extend(out, len);
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    memset(bytes, 0, COFFER__MCF_SUMS_HEADER);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_VERSION_AT, COFFER__MCF_SECTION_VERSION);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT, COFFER__MCF_SUMS_CRC32);
    coffer__store_u64(bytes + COFFER__MCF_SUMS_OFFSET_AT, sums->offset);
    coffer__store_u64(bytes + COFFER__MCF_SUMS_SIZE_AT, sums->size);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT, COFFER__MCF_CHUNK);
    for (size_t i = 0; i < sums->count; i++)
        coffer__store_u32(bytes + COFFER__MCF_SUMS_HEADER + i * sizeof(uint32_t), sums->sums[i]);
    seal(bytes + COFFER__MCF_SUMS_SHA_AT, bytes, len);
    return COFFER_OK;
}

static coffer_status check_layout(const uint8_t *bytes, size_t len, uint64_t base, uint64_t file_size,
                                  coffer_error *err)
{
    uint64_t offset, size;
    uint8_t found[crypto_hash_sha256_BYTES];
    if (len < COFFER__MCF_SUMS_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base, "Checksums has %zu bytes, its header takes %d",
                            len, COFFER__MCF_SUMS_HEADER);
    if (coffer__load_u32(bytes + COFFER__MCF_SUMS_VERSION_AT) != COFFER__MCF_SECTION_VERSION ||
        coffer__load_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT) != COFFER__MCF_SUMS_CRC32 ||
        coffer__load_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT) != COFFER__MCF_CHUNK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "Checksums has version %lu, algorithm %lu and chunks of %lu bytes, this program "
                            "reads %d, %d and %lu",
                            (unsigned long)coffer__load_u32(bytes + COFFER__MCF_SUMS_VERSION_AT),
                            (unsigned long)coffer__load_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT),
                            (unsigned long)coffer__load_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT),
                            COFFER__MCF_SECTION_VERSION, COFFER__MCF_SUMS_CRC32,
                            (unsigned long)COFFER__MCF_CHUNK);
    offset = coffer__load_u64(bytes + COFFER__MCF_SUMS_OFFSET_AT);
    size = coffer__load_u64(bytes + COFFER__MCF_SUMS_SIZE_AT);
    if (!coffer__range_fits(offset, size, file_size))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base + COFFER__MCF_SUMS_OFFSET_AT,
                            "Checksums covers %llu bytes at %llu, file has %llu", (unsigned long long)size,
                            (unsigned long long)offset, (unsigned long long)file_size);
    if ((len - COFFER__MCF_SUMS_HEADER) / sizeof(uint32_t) != chunk_count(size) ||
        len % sizeof(uint32_t) != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, base,
                            "Checksums has %zu bytes of sums for %llu bytes of payloads",
                            len - COFFER__MCF_SUMS_HEADER, (unsigned long long)size);
    seal(found, bytes, len);
    if (memcmp(found, bytes + COFFER__MCF_SUMS_SHA_AT, sizeof found) != 0)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, base + COFFER__MCF_SUMS_SHA_AT,
                            "the SHA-256 of the table of sums does not match: the table is damaged");
    return COFFER_OK;
}

coffer_status coffer__mcf_sums_load(coffer__mcf_sums *out, coffer_source *src,
                                    const coffer_mcf_section *section, const coffer_limits *limits,
                                    coffer_error *err)
{
    coffer__mcf_sums sums = { 0 };
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status;
    if ((status = coffer__mcf_load_section(&bytes, &len, src, section, limits->memory_bytes, err)) ||
        (status = check_layout(bytes, len, section->offset, coffer_source_size(src), err)))
        goto out;
    sums.offset = coffer__load_u64(bytes + COFFER__MCF_SUMS_OFFSET_AT);
    sums.size = coffer__load_u64(bytes + COFFER__MCF_SUMS_SIZE_AT);
    sums.count = chunk_count(sums.size);
    sums.sums = coffer__alloc_array(sums.count, sizeof *sums.sums);
    if (!sums.sums) {
        status = coffer__fail_no_memory(err, sums.count * sizeof *sums.sums);
        goto out;
    }
    for (size_t i = 0; i < sums.count; i++)
        sums.sums[i] = coffer__load_u32(bytes + COFFER__MCF_SUMS_HEADER + i * sizeof(uint32_t));
    *out = sums;
out:
    coffer__free(bytes);
    return status;
}

void coffer__mcf_sums_free(coffer__mcf_sums *sums)
{
    coffer__free(sums->sums);
    *sums = (coffer__mcf_sums){ 0 };
}

/* ---- Counting ---- */

static coffer_status sum_chunk(uint32_t *out, coffer_source *src, const coffer__mcf_sums *area, size_t chunk,
                               uint8_t *scratch, coffer_error *err)
{
    uint64_t at = (uint64_t)chunk * COFFER__MCF_CHUNK;
    size_t len = area->size - at < COFFER__MCF_CHUNK ? (size_t)(area->size - at) : COFFER__MCF_CHUNK;
    const uint8_t *bytes = coffer_source_view(src, area->offset + at, len);
    coffer_status status = COFFER_OK;
    if (!bytes) {
        status = coffer_source_read_at(scratch, src, area->offset + at, len, err);
        bytes = scratch;
    }
    if (status == COFFER_OK)
        *out = coffer__crc32(0, bytes, len);
    return status;
}

typedef struct counting {
    coffer_source *source;
    coffer__mcf_sums *sums;
    uint8_t *scratch; /* a chunk for each worker */
    size_t first;
} counting;

static coffer_status count_chunk(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const counting *of = context;
    size_t chunk = of->first + (size_t)index;
    return sum_chunk(&of->sums->sums[chunk], of->source, of->sums, chunk,
                     of->scratch + (size_t)worker * COFFER__MCF_CHUNK, err);
}

static coffer_status count_all(counting *of, coffer__pool *pool, const coffer_progress *progress,
                               coffer_error *err)
{
    size_t batch = (size_t)BATCH * coffer__pool_threads(pool);
    coffer_status status = COFFER_OK;
    for (of->first = 0; status == COFFER_OK && of->first < of->sums->count; of->first += batch) {
        size_t left = of->sums->count - of->first, n = left < batch ? left : batch;
        status = coffer__pool_run(pool, n, count_chunk, of, err);
        if (status == COFFER_OK && progress &&
            progress->step(progress->context, (uint64_t)(of->first + n) * COFFER__MCF_CHUNK,
                           (uint64_t)of->sums->count * COFFER__MCF_CHUNK) != 0)
            status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
    }
    return status ? status : coffer_source_intact(of->source, err);
}

coffer_status coffer__mcf_sums_compute(coffer__mcf_sums *out, coffer_source *src, uint64_t offset,
                                       uint64_t size, uint32_t threads, const coffer_progress *progress,
                                       coffer_error *err)
{
    coffer__mcf_sums sums = { .offset = offset, .size = size, .count = chunk_count(size) };
    counting of = { .source = src, .sums = &sums };
    coffer__pool *pool = NULL;
    coffer_status status = coffer__pool_new(&pool, threads, err);
    if (status)
        return status;
    sums.sums = coffer__alloc_array(sums.count, sizeof *sums.sums);
    of.scratch = coffer__alloc_array(coffer__pool_threads(pool), COFFER__MCF_CHUNK);
    status = sums.sums && of.scratch ? count_all(&of, pool, progress, err)
                                     : coffer__fail_no_memory(err, sums.count * sizeof *sums.sums);
    coffer__free(of.scratch);
    coffer__pool_free(pool);
    if (status)
        coffer__mcf_sums_free(&sums);
    else
        *out = sums;
    return status;
}

/* ---- Verified reads ---- */

struct coffer__mcf_verifier {
    coffer_source *source;
    coffer__mcf_sums sums;
    atomic_uchar *good; /* a byte for each chunk: set once its sum was right */
};

coffer_status coffer__mcf_verifier_new(coffer__mcf_verifier **out, coffer_source *src, coffer__mcf_sums *sums,
                                       coffer_error *err)
{
    coffer__mcf_verifier *verifier = coffer__calloc(1, sizeof *verifier);
    atomic_uchar *good = coffer__calloc(sums->count ? sums->count : 1, sizeof *good);
    if (!verifier || !good) {
        coffer__free(verifier);
        coffer__free(good);
        return coffer__fail_no_memory(err, sums->count);
    }
    *verifier = (coffer__mcf_verifier){ src, *sums, good };
    *sums = (coffer__mcf_sums){ 0 };
    *out = verifier;
    return COFFER_OK;
}

void coffer__mcf_verifier_free(coffer__mcf_verifier *verifier)
{
    if (!verifier)
        return;
    coffer__mcf_sums_free(&verifier->sums);
    coffer__free(verifier->good);
    coffer__free(verifier);
}

static coffer_status verify_chunk(coffer__mcf_verifier *verifier, size_t chunk, uint8_t *scratch,
                                  coffer_error *err)
{
    const coffer__mcf_sums *sums = &verifier->sums;
    uint32_t found = 0;
    coffer_status status;
    if ((status = sum_chunk(&found, verifier->source, sums, chunk, scratch, err)) ||
        (status = coffer_source_intact(verifier->source, err)))
        return status;
    if (found != sums->sums[chunk])
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, sums->offset + (uint64_t)chunk * COFFER__MCF_CHUNK,
                            "chunk %zu of the payloads: its CRC-32 is %08lx, the table says %08lx", chunk,
                            (unsigned long)found, (unsigned long)sums->sums[chunk]);
    atomic_store(&verifier->good[chunk], 1);
    return COFFER_OK;
}

coffer_status coffer__mcf_verify(coffer__mcf_verifier *verifier, uint64_t offset, uint64_t len,
                                 coffer_error *err)
{
    const coffer__mcf_sums *sums = &verifier->sums;
    uint8_t *scratch = NULL;
    coffer_status status = COFFER_OK;
    if (len == 0)
        return COFFER_OK;
    if (offset < sums->offset || !coffer__range_fits(offset - sums->offset, len, sums->size))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, offset,
                            "%llu bytes at %llu are outside of what the table of sums covers",
                            (unsigned long long)len, (unsigned long long)offset);
    size_t first = (size_t)((offset - sums->offset) / COFFER__MCF_CHUNK);
    size_t last = (size_t)((offset - sums->offset + len - 1) / COFFER__MCF_CHUNK);
    for (size_t i = first; status == COFFER_OK && i <= last; i++) {
        if (atomic_load(&verifier->good[i]))
            continue;
        if (!scratch && !(scratch = coffer__malloc(COFFER__MCF_CHUNK)))
            status = coffer__fail_no_memory(err, COFFER__MCF_CHUNK);
        else
            status = verify_chunk(verifier, i, scratch, err);
    }
    coffer__free(scratch);
    return status;
}
