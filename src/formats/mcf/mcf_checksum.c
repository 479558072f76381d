/* The Checksums section: a CRC-32 for each MiB of the payload area. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include <sodium.h>

/* ---- The section ---- */

static void seal(uint8_t out[crypto_hash_sha256_BYTES], const uint8_t *section, size_t len)
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, section, COFFER__MCF_SUMS_SHA_AT);
    crypto_hash_sha256_update(&state, section + COFFER__MCF_SUMS_HEADER, len - COFFER__MCF_SUMS_HEADER);
    crypto_hash_sha256_final(&state, out);
}

coffer_status coffer__mcf_sums_encode(coffer__buffer *out, const coffer__chunk_sums *sums, coffer_error *err)
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
    if ((len - COFFER__MCF_SUMS_HEADER) / sizeof(uint32_t) != coffer__chunk_count(size) ||
        len % sizeof(uint32_t) != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, base,
                            "Checksums has %zu bytes of sums for %llu bytes of payloads",
                            len - COFFER__MCF_SUMS_HEADER, (unsigned long long)size);
    seal(found, bytes, len);
    if (memcmp(found, bytes + COFFER__MCF_SUMS_SHA_AT, sizeof found) != 0)
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, base + COFFER__MCF_SUMS_SHA_AT,
                            "the SHA-256 of the checksum table does not match: the table is damaged");
    return COFFER_OK;
}

coffer_status coffer__mcf_sums_load(coffer__chunk_sums *out, coffer_source *src,
                                    const coffer_mcf_section *section, const coffer_limits *limits,
                                    coffer_error *err)
{
    coffer__chunk_sums sums = { 0 };
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status;
    if ((status = coffer__mcf_load_section(&bytes, &len, src, section, limits->memory_bytes, err)) ||
        (status = check_layout(bytes, len, section->offset, coffer_source_size(src), err)))
        goto out;
    sums.offset = coffer__load_u64(bytes + COFFER__MCF_SUMS_OFFSET_AT);
    sums.size = coffer__load_u64(bytes + COFFER__MCF_SUMS_SIZE_AT);
    sums.count = (size_t)coffer__chunk_count(sums.size);
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
