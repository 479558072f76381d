/* The Checksums section: a CRC-32 for each MiB of each part of the file. */
#include "formats/mcf/mcf_private.h"

#include "base/buffer.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/large_pages.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/sorted.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdlib.h>

void coffer__mcf_sums_free(coffer__mcf_sums *sums)
{
    coffer__free(sums->ranges);
    coffer__free(sums->sums);
    *sums = (coffer__mcf_sums){ 0 };
}

/* ---- Building a table ---- */

coffer_status coffer__mcf_sums_add(coffer__mcf_sums *sums, uint64_t offset, uint64_t size, coffer_error *err)
{
    if (size == 0)
        return COFFER_OK;
    coffer_status status = coffer__array_reserve_one(&sums->ranges, &sums->range_capacity, sums->range_count,
                                                     sizeof *sums->ranges, err);
    if (!status)
        sums->ranges[sums->range_count++] = (coffer__mcf_range){ .offset = offset, .size = size };
    return status;
}

static int by_offset(const void *a, const void *b)
{
    const coffer__mcf_range *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

coffer_status coffer__mcf_sums_plan(coffer__mcf_sums *sums, coffer_error *err)
{
    size_t count = 0, sorted = 1;
    if (sums->range_count > UINT32_MAX)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE, "%zu ranges are too many for Checksums",
                            sums->range_count);
    while (sorted < sums->range_count && sums->ranges[sorted - 1].offset <= sums->ranges[sorted].offset)
        sorted++;
    if (sorted < sums->range_count)
        qsort(sums->ranges, sums->range_count, sizeof *sums->ranges, by_offset);
    for (size_t i = 0; i < sums->range_count; i++) {
        sums->ranges[i].first_sum = count;
        count += (size_t)coffer__chunk_count(sums->ranges[i].size);
    }
    coffer__free(sums->sums);
    sums->sum_count = count;
    sums->sums = coffer__calloc(count ? count : 1, sizeof *sums->sums);
    sums->version = COFFER__MCF_SUMS_VERSION;
    return sums->sums ? COFFER_OK : coffer__fail_no_memory(err, count * sizeof *sums->sums);
}

const coffer__mcf_range *coffer__mcf_sums_find(const coffer__mcf_sums *sums, uint64_t offset)
{
    size_t count = COFFER__COUNT_UP_TO(sums->ranges, sums->range_count, coffer__mcf_range, offset, offset);
    const coffer__mcf_range *last = count ? &sums->ranges[count - 1] : NULL;
    return last && offset - last->offset < last->size ? last : NULL;
}

const coffer__mcf_range *coffer__mcf_sums_chunk(uint64_t *offset, size_t *size, const coffer__mcf_sums *sums,
                                                size_t sum)
{
    size_t low = 0, high = sums->range_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (sums->ranges[middle].first_sum <= sum)
            low = middle;
        else
            high = middle;
    }
    const coffer__mcf_range *range = &sums->ranges[low];
    uint64_t chunk = sum - range->first_sum;
    *offset = range->offset + chunk * COFFER__MCF_CHUNK;
    *size = coffer__chunk_len(range->size, chunk);
    return range;
}

/* ---- Computing ---- */

typedef struct sum_job {
    coffer_source *source;
    coffer__mcf_sums *sums;
    const bool *wanted;
    uint8_t *scratch; /* a chunk for each worker */
} sum_job;

static coffer_status sum_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const sum_job *job = context;
    uint64_t offset;
    size_t size;
    const uint8_t *bytes;
    if (job->wanted && !job->wanted[index])
        return COFFER_OK;
    coffer__mcf_sums_chunk(&offset, &size, job->sums, (size_t)index);
    coffer_status status = coffer__source_fetch(&bytes, job->source, offset, size,
                                                job->scratch + (size_t)worker * COFFER__MCF_CHUNK, err);
    if (!status)
        job->sums->sums[index] = coffer__crc32(0, bytes, size);
    return status;
}

coffer_status coffer__mcf_sums_compute(coffer__mcf_sums *sums, const bool *wanted, coffer_source *src,
                                       const coffer__work_opts *opts, coffer_error *err)
{
    sum_job job = { .source = src, .sums = sums, .wanted = wanted };
    coffer__work_opts settings = opts ? *opts : (coffer__work_opts){ 0 };
    coffer__work *work = NULL;
    settings.piece = COFFER__MCF_CHUNK;
    settings.total = (uint64_t)sums->sum_count * COFFER__MCF_CHUNK;
    settings.pieces = sums->sum_count;
    if (sums->sum_count == 0)
        return COFFER_OK;
    coffer_status status = coffer__work_new(&work, &settings, err);
    if (status)
        return status;
    job.scratch = coffer__alloc_array(coffer__work_threads(work), COFFER__MCF_CHUNK);
    status = job.scratch ? coffer__work_run(work, sums->sum_count, sum_piece, &job, err)
                         : coffer__fail_no_memory(err, coffer__work_threads(work) * COFFER__MCF_CHUNK);
    coffer__free(job.scratch);
    coffer__work_free(work);
    return status ? status : coffer_source_intact(src, err);
}

/* ---- The section ---- */

static void seal(uint8_t out[COFFER__SHA256_SIZE], const uint8_t *section, size_t len)
{
    coffer__sha256 state;
    coffer__sha256_begin(&state);
    coffer__sha256_add(&state, section, COFFER__MCF_SUMS_SHA_AT);
    coffer__sha256_add(&state, section + COFFER__MCF_SUMS_HEADER, len - COFFER__MCF_SUMS_HEADER);
    coffer__sha256_end(out, &state);
}

size_t coffer__mcf_sums_size(const coffer__mcf_sums *sums)
{
    return COFFER__MCF_SUMS_HEADER + sums->range_count * COFFER__MCF_SUMS_RANGE +
           sums->sum_count * sizeof(uint32_t);
}

coffer_status coffer__mcf_sums_encode(coffer__buffer *out, const coffer__mcf_sums *sums, coffer_error *err)
{
    size_t len = coffer__mcf_sums_size(sums);
    uint8_t *bytes = coffer__buffer_extend(out, len);
    if (!bytes)
        return coffer__fail_no_memory(err, len);
    memset(bytes, 0, COFFER__MCF_SUMS_HEADER);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_VERSION_AT, COFFER__MCF_SUMS_VERSION);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT, COFFER__MCF_SUMS_CRC32);
    coffer__store_u64(bytes + COFFER__MCF_SUMS_FILE_SIZE_AT, sums->file_size);
    coffer__store_u64(bytes + COFFER__MCF_SUMS_PLACE_AT, sums->place);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT, COFFER__MCF_CHUNK);
    coffer__store_u32(bytes + COFFER__MCF_SUMS_RANGES_AT, (uint32_t)sums->range_count);
    uint8_t *next = bytes + COFFER__MCF_SUMS_HEADER;
    for (size_t i = 0; i < sums->range_count; i++, next += COFFER__MCF_SUMS_RANGE) {
        coffer__store_u64(next, sums->ranges[i].offset);
        coffer__store_u64(next + sizeof(uint64_t), sums->ranges[i].size);
    }
    for (size_t i = 0; i < sums->sum_count; i++, next += sizeof(uint32_t))
        coffer__store_u32(next, sums->sums[i]);
    seal(bytes + COFFER__MCF_SUMS_SHA_AT, bytes, len);
    return COFFER_OK;
}

/* The bytes that header, ranges and sums take; 0 when these do not fit into len. */
static size_t used_size(const uint8_t *bytes, size_t len)
{
    uint32_t version = coffer__load_u32(bytes + COFFER__MCF_SUMS_VERSION_AT);
    uint64_t ranges = version == 1 ? 0 : coffer__load_u32(bytes + COFFER__MCF_SUMS_RANGES_AT);
    uint64_t used = COFFER__MCF_SUMS_HEADER + ranges * COFFER__MCF_SUMS_RANGE;
    if (version < 1 || version > COFFER__MCF_SUMS_VERSION)
        return len; /* another version: its layout is not known */
    if (used > len)
        return 0;
    uint64_t left = (len - used) / sizeof(uint32_t), sums = 0;
    if (version == 1)
        sums = coffer__chunk_count(coffer__load_u64(bytes + COFFER__MCF_SUMS_SIZE_AT));
    for (uint64_t i = 0; i < ranges && sums <= left; i++)
        sums += coffer__chunk_count(coffer__load_u64(bytes + COFFER__MCF_SUMS_HEADER +
                                                     i * COFFER__MCF_SUMS_RANGE + sizeof(uint64_t)));
    return sums <= left ? (size_t)(used + sums * sizeof(uint32_t)) : 0;
}

/* The rest of the room that the section has is 0. */
static bool has_zeros(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static coffer_status check_seal(const uint8_t *bytes, size_t len, uint64_t base, coffer_error *err)
{
    uint8_t found[COFFER__SHA256_SIZE] = { 0 };
    uint32_t version;
    size_t used;
    if (len < COFFER__MCF_SUMS_HEADER)
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, base, "Checksums has %zu bytes, its header takes %d",
                            len, COFFER__MCF_SUMS_HEADER);
    version = coffer__load_u32(bytes + COFFER__MCF_SUMS_VERSION_AT);
    used = used_size(bytes, len);
    if (used > 0)
        seal(found, bytes, used);
    if (used == 0 || memcmp(found, bytes + COFFER__MCF_SUMS_SHA_AT, sizeof found) != 0 ||
        !has_zeros(bytes + used, len - used))
        return coffer__fail(err, COFFER_E_BAD_CHECKSUM, base + COFFER__MCF_SUMS_SHA_AT,
                            "the SHA-256 of the checksum table does not match: the table is damaged");
    if (version < 1 || version > COFFER__MCF_SUMS_VERSION ||
        coffer__load_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT) != COFFER__MCF_SUMS_CRC32 ||
        coffer__load_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT) != COFFER__MCF_CHUNK)
        return coffer__fail(err, COFFER_E_UNSUPPORTED_VERSION, base,
                            "Checksums has version %" PRIu32 ", algorithm %" PRIu32 " and chunks of %" PRIu32
                            " bytes, this program reads %d, %d and %" PRIu32,
                            version, coffer__load_u32(bytes + COFFER__MCF_SUMS_ALGORITHM_AT),
                            coffer__load_u32(bytes + COFFER__MCF_SUMS_CHUNK_AT), COFFER__MCF_SUMS_VERSION,
                            COFFER__MCF_SUMS_CRC32, COFFER__MCF_CHUNK);
    return COFFER_OK;
}

static coffer_status fail_count(size_t len, uint64_t base, coffer_error *err)
{
    return coffer__fail(err, COFFER_E_SIZE_MISMATCH, base,
                        "Checksums has %zu bytes, which is not the size of its ranges and sums", len);
}

/* Reads the ranges. The number of sums is bounded by the bytes of the section, so plan cannot allocate more
 * than these. */
static coffer_status load_ranges(coffer__mcf_sums *sums, const uint8_t *bytes, size_t len, uint64_t base,
                                 coffer_error *err)
{
    size_t count = coffer__load_u32(bytes + COFFER__MCF_SUMS_RANGES_AT);
    uint64_t left = (len - COFFER__MCF_SUMS_HEADER) / sizeof(uint32_t), end = 0;
    if (count > (len - COFFER__MCF_SUMS_HEADER) / COFFER__MCF_SUMS_RANGE)
        return fail_count(len, base, err);
    sums->ranges = coffer__alloc_array(count, sizeof *sums->ranges);
    if (!sums->ranges)
        return coffer__fail_no_memory(err, count * sizeof *sums->ranges);
    coffer__expect_filled(sums->ranges, count * sizeof *sums->ranges);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *entry = bytes + COFFER__MCF_SUMS_HEADER + i * COFFER__MCF_SUMS_RANGE;
        coffer__mcf_range range = { .offset = coffer__load_u64(entry),
                                    .size = coffer__load_u64(entry + sizeof(uint64_t)) };
        if (range.offset < end || !coffer__range_fits(range.offset, range.size, sums->file_size))
            return coffer__fail(err, COFFER_E_BAD_VALUE, base + (uint64_t)(entry - bytes),
                                "Checksums: range %zu is outside of the file or overlaps another", i);
        if (coffer__chunk_count(range.size) > left)
            return fail_count(len, base, err);
        left -= coffer__chunk_count(range.size);
        end = range.offset + range.size;
        sums->ranges[sums->range_count++] = range;
    }
    return COFFER_OK;
}

static coffer_status decode(coffer__mcf_sums *sums, const uint8_t *bytes, size_t len, uint64_t base,
                            coffer_error *err)
{
    uint32_t version = coffer__load_u32(bytes + COFFER__MCF_SUMS_VERSION_AT);
    coffer_status status;
    if (version == 1) {
        uint64_t offset = coffer__load_u64(bytes + COFFER__MCF_SUMS_OFFSET_AT);
        uint64_t size = coffer__load_u64(bytes + COFFER__MCF_SUMS_SIZE_AT);
        if (coffer__chunk_count(size) > len / sizeof(uint32_t))
            return fail_count(len, base, err);
        status = coffer__mcf_sums_add(sums, offset, size, err);
    } else {
        sums->file_size = coffer__load_u64(bytes + COFFER__MCF_SUMS_FILE_SIZE_AT);
        sums->place = coffer__load_u64(bytes + COFFER__MCF_SUMS_PLACE_AT);
        status = load_ranges(sums, bytes, len, base, err);
    }
    if (!status)
        status = coffer__mcf_sums_plan(sums, err);
    if (status)
        return status;
    sums->version = version;
    size_t first = COFFER__MCF_SUMS_HEADER + (version == 1 ? 0 : sums->range_count * COFFER__MCF_SUMS_RANGE);
    if (version == 1 ? len - first != sums->sum_count * sizeof(uint32_t)
                     : len - first < sums->sum_count * sizeof(uint32_t))
        return fail_count(len, base, err);
    for (size_t i = 0; i < sums->sum_count; i++)
        sums->sums[i] = coffer__load_u32(bytes + first + i * sizeof(uint32_t));
    return COFFER_OK;
}

coffer_status coffer__mcf_sums_load(coffer__mcf_sums *out, coffer_source *src,
                                    const coffer_mcf_section *section, const coffer_limits *limits,
                                    coffer_error *err)
{
    coffer__mcf_sums sums = { 0 };
    uint8_t *bytes = NULL;
    size_t len = 0;
    coffer_status status = coffer__mcf_load_section(&bytes, &len, src, section, limits->memory_bytes, err);
    if (!status)
        status = check_seal(bytes, len, section->offset, err);
    if (!status)
        status = decode(&sums, bytes, len, section->offset, err);
    coffer__free(bytes);
    if (status)
        coffer__mcf_sums_free(&sums);
    else
        *out = sums;
    return status;
}

/* The size in the header may be what is damaged, so either size will do. */
bool coffer__mcf_sums_stale(const coffer__mcf_sums *sums, const coffer__mcf_header *header,
                            uint64_t source_size, uint64_t place, const coffer_mcf_section *data)
{
    if (sums->version != 1)
        return sums->place != place ||
               (sums->file_size != header->file_size && sums->file_size != source_size);
    if (!data)
        return true;
    if (sums->range_count == 0)
        return data->size != 0;
    return sums->ranges[0].offset != data->offset || sums->ranges[0].size != data->size;
}
