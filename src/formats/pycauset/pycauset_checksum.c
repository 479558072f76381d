/* CRC-32 sums of the payload, one for each MiB. */
#include "formats/pycauset/pycauset_checksum.h"

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/work.h"

#define GROUP ((size_t)COFFER__PYCAUSET_CHECKSUM_GROUP)

/* ---- Of a stream ---- */

static bool finish_group(coffer__pycauset_sums *sums)
{
    uint8_t bytes[4];
    coffer__store_u32(bytes, sums->crc);
    sums->crc = 0;
    sums->in_group = 0;
    return coffer__buffer_append(&sums->sums, bytes, sizeof bytes);
}

void coffer__pycauset_sums_add(coffer__pycauset_sums *sums, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (len > 0) {
        size_t part = len < GROUP - sums->in_group ? len : GROUP - sums->in_group;
        sums->crc = coffer__crc32(sums->crc, at, part);
        sums->in_group += part;
        at += part;
        len -= part;
        if (sums->in_group == GROUP)
            finish_group(sums);
    }
}

coffer_status coffer__pycauset_sums_finish(coffer__pycauset_sums *sums, coffer_error *err)
{
    if (sums->in_group > 0)
        finish_group(sums);
    return sums->sums.failed ? coffer__fail_no_memory(err, sums->sums.len + 4) : COFFER_OK;
}

/* ---- Of a file, on all cores ---- */

typedef struct sum_job {
    coffer_source *source;
    uint64_t payload_offset, length;
    uint8_t *pieces; /* a group for each thread, when the file is not mapped */
    uint8_t *sums;   /* where they go */
} sum_job;

static coffer_status sum_group(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const sum_job *job = context;
    uint64_t offset = index * GROUP;
    size_t len = job->length - offset < GROUP ? (size_t)(job->length - offset) : GROUP;
    const uint8_t *bytes = coffer_source_view(job->source, job->payload_offset + offset, len);
    if (!bytes) {
        uint8_t *piece = job->pieces + worker * GROUP;
        coffer_status status =
            coffer_source_read_at(piece, job->source, job->payload_offset + offset, len, err);
        if (status)
            return status;
        bytes = piece;
    }
    coffer__store_u32(job->sums + 4 * index, coffer__crc32(0, bytes, len));
    return COFFER_OK;
}

/* Appends the sums of [payload_offset, payload_offset + length). */
static coffer_status sum_range(coffer__buffer *out, coffer_source *src, uint64_t payload_offset,
                               uint64_t length, const coffer__work_opts *opts, coffer_error *err)
{
    uint64_t groups = length / GROUP + (length % GROUP != 0);
    coffer__work *work = NULL;
    sum_job job = { src, payload_offset, length, NULL, NULL };
    coffer_status status = coffer__work_new_pieces(&work, groups, opts, err);
    if (status)
        return status;
    /* The file has the groups: four bytes for each are no more than it may ask for. */
    job.sums = coffer__buffer_extend(out, (size_t)groups * 4);
    if (!job.sums) {
        status = coffer__fail_no_memory(err, groups * 4);
        goto out;
    }
    if (length > 0 && !coffer_source_view(src, payload_offset, 1) &&
        !(job.pieces = coffer__alloc_array(coffer__work_threads(work), GROUP))) {
        status = coffer__fail_no_memory(err, coffer__work_threads(work) * GROUP);
        goto out;
    }
    status = coffer__work_run(work, groups, sum_group, &job, err);
    if (status == COFFER_OK)
        status = coffer_source_intact(src, err);
out:
    coffer__free(job.pieces);
    coffer__work_free(work);
    return status;
}

coffer_status coffer__pycauset_sum_payload(coffer__buffer *out, coffer_source *src,
                                           const coffer_pycauset_info *info, coffer_error *err)
{
    return sum_range(out, src, info->payload_offset, info->payload_needed, NULL, err);
}

/* ---- Verification ---- */

typedef struct kept_sums {
    const uint8_t *bytes;
    uint64_t length; /* of the payload they cover */
    uint64_t groups;
} kept_sums;

/* What the metadata says. Gives COFFER_E_NOT_FOUND when there is nothing. */
static coffer_status find_sums(kept_sums *out, const coffer_pycauset *matrix, coffer_error *err)
{
    const coffer_pycauset_value *map =
        coffer__pycauset_get_key(matrix->metadata.root, COFFER__PYCAUSET_CHECKSUMS_KEY);
    const coffer_pycauset_value *crcs = coffer__pycauset_get_key(map, "crc32");
    uint64_t group;
    if (!map)
        return COFFER_E_NOT_FOUND;
    if (!coffer__pycauset_is_u64(&group, coffer__pycauset_get_key(map, "group_bytes")) || group != GROUP ||
        !coffer__pycauset_is_u64(&out->length, coffer__pycauset_get_key(map, "length")) ||
        coffer_pycauset_value_kind(crcs) != COFFER_PYCAUSET_BYTES)
        return coffer__fail(err, COFFER_E_BAD_VALUE, matrix->metadata_offset,
                            "\"%s\" is not a map of group_bytes %llu, length and the sums as bytes",
                            COFFER__PYCAUSET_CHECKSUMS_KEY, (unsigned long long)GROUP);
    if (out->length != matrix->info.payload_needed)
        return coffer__fail(err, COFFER_E_INCONSISTENT, matrix->metadata_offset,
                            "the checksums are of %llu bytes of payload, it has %llu",
                            (unsigned long long)out->length, (unsigned long long)matrix->info.payload_needed);
    out->groups = out->length / GROUP + (out->length % GROUP != 0);
    out->bytes = (const uint8_t *)crcs->as.text;
    if (crcs->count / 4 != out->groups || crcs->count % 4 != 0)
        return coffer__fail(err, COFFER_E_SIZE_MISMATCH, matrix->metadata_offset,
                            "%lu bytes of checksums for %llu groups", (unsigned long)crcs->count,
                            (unsigned long long)out->groups);
    return COFFER_OK;
}

/* Runs of groups that do not match are one finding. */
static void report_damage(coffer_report *out, const coffer_pycauset *matrix, const kept_sums *kept,
                          const uint8_t *found)
{
    for (uint64_t i = 0; i < kept->groups; i++) {
        uint64_t end = i;
        while (end < kept->groups &&
               coffer__load_u32(found + 4 * end) != coffer__load_u32(kept->bytes + 4 * end))
            end++;
        if (end == i)
            continue;
        uint64_t from = i * GROUP, to = end * GROUP < kept->length ? end * GROUP : kept->length;
        coffer__report_add(out, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, matrix->info.payload_offset + from,
                           "bytes %llu to %llu of the payload are not what their checksum says (CRC-32 "
                           "%08lx, computed %08lx)",
                           (unsigned long long)from, (unsigned long long)to,
                           (unsigned long)coffer__load_u32(kept->bytes + 4 * i),
                           (unsigned long)coffer__load_u32(found + 4 * i));
        i = end;
    }
}

coffer_status coffer__pycauset_verify_checksums(coffer_report *out, const coffer_pycauset *matrix,
                                                const coffer_check_opts *opts, coffer_error *err)
{
    coffer_error failure = COFFER_ERROR_INIT;
    coffer__work_opts work = { .threads = opts->threads, .progress = opts->progress };
    coffer__buffer found = COFFER__BUFFER_INIT;
    kept_sums kept;
    coffer_status status = find_sums(&kept, matrix, &failure);
    if (status == COFFER_E_NOT_FOUND)
        return COFFER_OK;
    if (status) {
        coffer__report_add_error(out, COFFER_ERROR, &failure);
        return COFFER_OK;
    }
    status = sum_range(&found, matrix->source, matrix->info.payload_offset, kept.length, &work, err);
    if (status == COFFER_OK)
        report_damage(out, matrix, &kept, found.data);
    coffer__buffer_free(&found);
    return status;
}
