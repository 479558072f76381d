/* CRC-32 checksums of the payload, one for each MiB, in the metadata. */
#include "formats/pycauset/pycauset_private.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/report.h"
#include "io/chunk_sums.h"

#include <inttypes.h>

void coffer__pycauset_put_sums(coffer__buffer *out, const uint32_t *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[4];
        coffer__store_u32(bytes, sums[i]);
        coffer__buffer_append(out, bytes, sizeof bytes);
    }
}

coffer_status coffer__pycauset_sum_payload(coffer__buffer *out, coffer_source *src,
                                           const coffer_pycauset_info *info, coffer_error *err)
{
    coffer__chunk_sums sums;
    coffer_status status =
        coffer__chunk_sums_compute(&sums, src, info->payload_offset, info->payload_needed, NULL, err);
    if (status)
        return status;
    coffer__pycauset_put_sums(out, sums.sums, sums.count);
    if (out->failed)
        status = coffer__fail_no_memory(err, sums.count * 4);
    coffer__chunk_sums_free(&sums);
    return status;
}

/* ---- Verification ---- */

typedef struct kept_sums {
    const uint8_t *bytes;
    uint64_t length; /* of the payload they cover */
    uint64_t groups;
} kept_sums;

/* The checksums in the metadata; COFFER_E_NOT_FOUND when it has no checksums. */
static coffer_status find_sums(kept_sums *out, const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_value *map =
        coffer__pycauset_get_key(matrix->metadata.root, COFFER__PYCAUSET_CHECKSUMS_KEY);
    const coffer_pycauset_value *crcs = coffer__pycauset_get_key(map, "crc32");
    uint64_t group;
    if (!map)
        return COFFER_E_NOT_FOUND;
    if (!coffer__pycauset_is_u64(&group, coffer__pycauset_get_key(map, "group_bytes")) ||
        group != COFFER__CHUNK_BYTES ||
        !coffer__pycauset_is_u64(&out->length, coffer__pycauset_get_key(map, "length")) ||
        coffer_pycauset_value_kind(crcs) != COFFER_PYCAUSET_BYTES)
        return coffer__fail(err, COFFER_E_BAD_VALUE, matrix->metadata_offset,
                            "\"%s\" is not a map of group_bytes %" PRIu64
                            ", length and the checksums as bytes",
                            COFFER__PYCAUSET_CHECKSUMS_KEY, (uint64_t)COFFER__CHUNK_BYTES);
    if (out->length != matrix->info.payload_needed)
        return coffer__fail(err, COFFER_E_INCONSISTENT, matrix->metadata_offset,
                            "the checksums cover %" PRIu64 " bytes of payload, it has %" PRIu64, out->length,
                            matrix->info.payload_needed);
    out->groups = coffer__chunk_count(out->length);
    out->bytes = (const uint8_t *)crcs->as.text;
    if (crcs->count / 4 != out->groups || crcs->count % 4 != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, matrix->metadata_offset,
                            "%lu bytes of checksums for %" PRIu64 " groups", (unsigned long)crcs->count,
                            out->groups);
    return COFFER_OK;
}

/* Runs of groups that do not match are one finding. */
static void report_damage(coffer_report *out, const coffer_pycauset *matrix, const kept_sums *kept,
                          const uint32_t *found)
{
    for (uint64_t i = 0; i < kept->groups; i++) {
        uint64_t end = i;
        while (end < kept->groups && found[end] != coffer__load_u32(kept->bytes + 4 * end))
            end++;
        if (end == i)
            continue;
        uint64_t from = i * COFFER__CHUNK_BYTES,
                 to = end * COFFER__CHUNK_BYTES < kept->length ? end * COFFER__CHUNK_BYTES : kept->length;
        coffer__report_add(out, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, matrix->info.payload_offset + from,
                           "bytes %" PRIu64 " to %" PRIu64
                           " of the payload do not match their checksum (CRC-32 "
                           "%08lx, computed %08lx)",
                           from, to, (unsigned long)coffer__load_u32(kept->bytes + 4 * i),
                           (unsigned long)found[i]);
        i = end;
    }
}

coffer_status coffer__pycauset_verify_checksums(coffer_report *out, const coffer_pycauset *matrix,
                                                const coffer_check_opts *opts, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__work_opts work = { .threads = opts->threads, .progress = opts->progress };
    kept_sums kept;
    coffer_status status = find_sums(&kept, matrix, &failure);
    if (status == COFFER_E_NOT_FOUND)
        return COFFER_OK;
    if (status) {
        coffer__report_add_error(out, COFFER_ERROR, &failure);
        return COFFER_OK;
    }
    coffer__chunk_sums found;
    status = coffer__chunk_sums_compute(&found, matrix->source, matrix->info.payload_offset, kept.length,
                                        &work, err);
    if (status)
        return status;
    report_damage(out, matrix, &kept, found.sums);
    coffer__chunk_sums_free(&found);
    return COFFER_OK;
}
