/* Counts the values of float tensors that are not numbers: a note, since training can leave them. */
#include "formats/mcf/mcf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"
#include "io/source_private.h"

#include <inttypes.h>

#define PIECE ((size_t)1 << 20) /* whole elements of every type */

typedef struct subject {
    size_t tensor;
    uint64_t offset, size, first_piece;
    coffer_dtype dtype;
    atomic_uint_least64_t nans;
} subject;

typedef struct counting {
    const coffer__mcf_checker *check;
    subject *subjects;
    size_t count;
    uint64_t pieces;
    uint8_t *scratch; /* a piece for each worker */
} counting;

static uint64_t count_16(const uint8_t *bytes, size_t len, unsigned infinity)
{
    uint64_t nans = 0;
    for (size_t i = 0; i + sizeof(uint16_t) <= len; i += sizeof(uint16_t))
        nans += (coffer__load_u16(bytes + i) & 0x7fffu) > infinity;
    return nans;
}

static uint64_t count_nans(const uint8_t *bytes, size_t len, coffer_dtype dtype)
{
    uint64_t nans = 0;
    if (dtype == COFFER_DTYPE_F16)
        return count_16(bytes, len, 0x7c00);
    if (dtype == COFFER_DTYPE_BF16)
        return count_16(bytes, len, 0x7f80);
    if (dtype == COFFER_DTYPE_F32) {
        for (size_t i = 0; i + sizeof(uint32_t) <= len; i += sizeof(uint32_t))
            nans += (coffer__load_u32(bytes + i) & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000);
    } else {
        for (size_t i = 0; i + sizeof(uint64_t) <= len; i += sizeof(uint64_t))
            nans += (coffer__load_u64(bytes + i) & (UINT64_MAX >> 1)) > UINT64_C(0x7ff0000000000000);
    }
    return nans;
}

static coffer_status count_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const counting *job = context;
    size_t low = 0, high = job->count;
    const uint8_t *bytes;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->subjects[middle].first_piece <= index)
            low = middle;
        else
            high = middle;
    }
    subject *item = &job->subjects[low];
    uint64_t begin = (index - item->first_piece) * PIECE;
    size_t len = item->size - begin < PIECE ? (size_t)(item->size - begin) : PIECE;
    coffer_status status = coffer__source_fetch(&bytes, job->check->source, item->offset + begin, len,
                                                job->scratch + (size_t)worker * PIECE, err);
    uint64_t nans = status ? 0 : count_nans(bytes, len, item->dtype);
    if (nans > 0)
        atomic_fetch_add(&item->nans, nans);
    return status;
}

/* The float tensors whose payload is inside the file. */
static uint64_t collect(counting *job)
{
    const coffer__mcf_checker *check = job->check;
    uint64_t bytes = 0, size = coffer_source_size(check->source);
    for (size_t i = 0; i < check->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, i);
        coffer_dtype dtype = coffer_mcf_dtype_from_code(entry.dtype);
        if ((dtype != COFFER_DTYPE_F32 && dtype != COFFER_DTYPE_F16 && dtype != COFFER_DTYPE_BF16 &&
             dtype != COFFER_DTYPE_F64) ||
            entry.size == 0 || !coffer__range_fits(entry.offset, entry.size, size))
            continue;
        subject *item = &job->subjects[job->count++];
        item->tensor = i;
        item->offset = entry.offset;
        item->size = entry.size;
        item->dtype = dtype;
        item->first_piece = job->pieces;
        job->pieces += entry.size / PIECE + (entry.size % PIECE != 0);
        bytes += entry.size;
    }
    return bytes;
}

static coffer_status count_all(counting *job, coffer_error *err)
{
    coffer__work_opts options = { .threads = job->check->opts->threads,
                                  .progress = job->check->opts->progress,
                                  .total = job->pieces * PIECE,
                                  .piece = PIECE,
                                  .pieces = job->pieces };
    coffer__work *work = NULL;
    coffer_status status = coffer__work_new(&work, &options, err);
    if (status)
        return status;
    job->scratch = coffer__alloc_array(coffer__work_threads(work), PIECE);
    status = job->scratch ? coffer__work_run(work, job->pieces, count_piece, job, err)
                          : coffer__fail_no_memory(err, PIECE);
    coffer__free(job->scratch);
    coffer__work_free(work);
    return status ? status : coffer_source_intact(job->check->source, err);
}

coffer_status coffer__mcf_check_nans(coffer__mcf_checker *check, coffer_error *err)
{
    counting job = { .check = check };
    coffer_status status = COFFER_OK;
    job.subjects = coffer__calloc(check->index.count ? check->index.count : 1, sizeof *job.subjects);
    if (!job.subjects)
        return coffer__fail_no_memory(err, check->index.count * sizeof *job.subjects);
    uint64_t bytes = collect(&job);
    if (job.count > 0 && (check->opts->full || bytes <= COFFER__MCF_FREE_OF_COST))
        status = count_all(&job, err);
    for (size_t i = 0; !status && i < job.count; i++) {
        uint64_t nans = atomic_load(&job.subjects[i].nans);
        if (nans > 0)
            coffer__report_add(check->report, COFFER_E_BAD_VALUE, COFFER_NOTE, job.subjects[i].offset,
                               "tensor %s: values that are not numbers (NaN): %" PRIu64,
                               coffer__mcf_entry_name(&check->index, job.subjects[i].tensor).text, nans);
    }
    coffer__free(job.subjects);
    return status;
}
