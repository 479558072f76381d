/* The bytes of payloads: what quantized ones may not contain. Without `full` only files whose payloads
 * take no noticeable time are looked at. */
#include "formats/mcf/mcf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sorted.h"
#include "base/work.h"
#include "io/source_private.h"

#include <inttypes.h>

/* Counts the values of float tensors that are not numbers: a note, since training can leave them. */

#define PIECE ((size_t)1 << 20) /* whole elements of every type */

typedef struct float_tensor {
    size_t tensor;
    uint64_t offset, size, first_piece;
    coffer_dtype dtype;
    atomic_uint_least64_t nans;
} float_tensor;

typedef struct counting {
    const coffer__mcf_checker *check;
    float_tensor *subjects;
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
    const uint8_t *bytes;
    float_tensor *item =
        &job->subjects[COFFER__LAST_UP_TO(job->subjects, job->count, float_tensor, first_piece, index)];
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
static uint64_t collect_floats(counting *job)
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
        float_tensor *item = &job->subjects[job->count++];
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

/* Counts NaN in float tensors. */
static coffer_status check_nans(coffer__mcf_checker *check, coffer_error *err)
{
    counting job = { .check = check };
    coffer_status status = COFFER_OK;
    job.subjects = coffer__calloc(check->index.count ? check->index.count : 1, sizeof *job.subjects);
    if (!job.subjects)
        return coffer__fail_no_memory(err, check->index.count * sizeof *job.subjects);
    uint64_t bytes = collect_floats(&job);
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

#define PIECES_AT_ONCE 64 /* for each thread, between two calls of a progress */

/* ---- Quantized payloads ---- */

typedef struct subject {
    size_t tensor;
    uint64_t offset;      /* of the payload */
    uint64_t first_piece; /* of all pieces */
    coffer__quant_layout layout;
    coffer__mcf_faults faults;
} subject;

typedef struct scanning {
    const coffer__mcf_checker *check;
    subject *subjects;
    size_t count;
    uint64_t pieces, first; /* first : of this round */
    uint8_t *scratch;       /* a piece for each worker */
} scanning;

static subject *subject_of(const scanning *scan, uint64_t piece)
{
    return &scan->subjects[COFFER__LAST_UP_TO(scan->subjects, scan->count, subject, first_piece, piece)];
}

static coffer_status scan_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const scanning *scan = context;
    subject *item = subject_of(scan, scan->first + index);
    uint64_t piece = scan->first + index - item->first_piece;
    return coffer__mcf_scan_piece(&item->faults, scan->check->source, item->offset, &item->layout, piece,
                                  scan->scratch + (size_t)worker * COFFER__MCF_SCAN_SCRATCH, err);
}

/* Collects the quantized tensors whose payload has a valid range and size. */
static uint64_t collect(scanning *scan, const coffer__mcf_checker *check)
{
    uint64_t bytes = 0, size = coffer_source_size(check->source);
    for (size_t i = 0; i < check->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, i);
        coffer_dtype dtype = coffer_mcf_dtype_from_code(entry.dtype);
        bool activations = coffer__mcf_checker_activations(check, i);
        subject *item = &scan->subjects[scan->count];
        if (!coffer_dtype_is_quantized(dtype) || !entry.dims ||
            coffer__quant_plan(&item->layout, dtype, entry.rank, entry.dims, activations, NULL) ||
            item->layout.size != entry.size || entry.size == 0 ||
            !coffer__range_fits(entry.offset, entry.size, size))
            continue;
        item->tensor = i;
        item->offset = entry.offset;
        item->first_piece = scan->pieces;
        coffer__mcf_faults_init(&item->faults);
        scan->pieces += coffer__mcf_scan_pieces(&item->layout);
        scan->count++;
        bytes += entry.size;
    }
    return bytes;
}

static coffer_status scan_all(scanning *scan, coffer__pool *pool, coffer_error *err)
{
    uint64_t at_once = (uint64_t)PIECES_AT_ONCE * coffer__pool_threads(pool);
    coffer_status status = COFFER_OK;
    for (scan->first = 0; !status && scan->first < scan->pieces; scan->first += at_once) {
        uint64_t left = scan->pieces - scan->first, n = left < at_once ? left : at_once;
        status = coffer__pool_run(pool, n, scan_piece, scan, err);
        if (!status)
            status =
                coffer__progress_step(scan->check->opts->progress, (scan->first + n) * COFFER__MCF_SCAN_PIECE,
                                      scan->pieces * COFFER__MCF_SCAN_PIECE, err);
    }
    return status ? status : coffer_source_intact(scan->check->source, err);
}

static void report_faults(const scanning *scan)
{
    static const struct {
        coffer_status code;
        coffer_severity severity;
        const char *text;
    } words[COFFER__MCF_FAULT_COUNT] = {
        [COFFER__MCF_FAULT_CODE] = { COFFER_E_BAD_VALUE, COFFER_WARNING,
                                     "codes that are the most negative, which no writer uses" },
        [COFFER__MCF_FAULT_TAIL] = { COFFER_E_BAD_VALUE, COFFER_ERROR,
                                     "rows with codes other than 0 past their last column" },
        [COFFER__MCF_FAULT_SUB] = { COFFER_E_BAD_VALUE, COFFER_ERROR, "sub-scales over 63" },
        [COFFER__MCF_FAULT_SCALE] = { COFFER_E_BAD_VALUE, COFFER_WARNING, "scales that are not finite" },
        [COFFER__MCF_FAULT_PADDING] = { COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                                        "bytes between its regions that are not 0" },
        [COFFER__MCF_FAULT_HALF] = { COFFER_E_RESERVED_NOT_ZERO, COFFER_ERROR,
                                     "half bytes after the last code that are not 0" },
    };
    for (size_t i = 0; i < scan->count; i++) {
        const subject *item = &scan->subjects[i];
        for (int kind = 0; kind < COFFER__MCF_FAULT_COUNT; kind++) {
            uint64_t count = atomic_load(&item->faults.count[kind]);
            if (count > 0)
                coffer__report_add(scan->check->report, words[kind].code, words[kind].severity,
                                   item->offset + atomic_load(&item->faults.first[kind]),
                                   "tensor %s: %s: %" PRIu64,
                                   coffer__mcf_entry_name(&scan->check->index, item->tensor).text,
                                   words[kind].text, count);
        }
    }
}

static coffer_status check_quantized(const coffer__mcf_checker *check, coffer_error *err)
{
    scanning scan = { .check = check };
    coffer__pool *pool = NULL;
    coffer_status status = COFFER_OK;
    uint64_t bytes;
    scan.subjects = coffer__calloc(check->index.count ? check->index.count : 1, sizeof *scan.subjects);
    if (!scan.subjects)
        return coffer__fail_no_memory(err, check->index.count * sizeof *scan.subjects);
    bytes = collect(&scan, check);
    if (scan.count == 0 || (!check->opts->full && bytes > COFFER__MCF_FREE_OF_COST))
        goto out;
    status = coffer__pool_new(&pool, check->opts->threads, err);
    if (status)
        goto out;
    scan.scratch = coffer__alloc_array(coffer__pool_threads(pool), COFFER__MCF_SCAN_SCRATCH);
    status =
        scan.scratch ? scan_all(&scan, pool, err) : coffer__fail_no_memory(err, COFFER__MCF_SCAN_SCRATCH);
    if (!status)
        report_faults(&scan);
out:
    coffer__pool_free(pool);
    coffer__free(scan.scratch);
    coffer__free(scan.subjects);
    return status;
}

coffer_status coffer__mcf_check_payloads(coffer__mcf_checker *check, coffer_error *err)
{
    coffer_status status = coffer__mcf_check_sums(check, err);
    if (!status)
        status = coffer__mcf_check_damage(check, err);
    if (!status)
        status = check_nans(check, err);
    return status ? status : check_quantized(check, err);
}
