/* The bytes of payloads: sums, and what quantized ones may not hold. Without `full` only files whose payloads
 * take no noticeable time are looked at. */
#include "formats/mcf/mcf_check.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

#define FREE_OF_COST ((uint64_t)64 << 20)
#define PIECES_AT_ONCE 64 /* for each thread, between two calls of a progress */
#define CHUNKS_NAMED 16

/* ---- Sums ---- */

/* A tensor that has bytes in the chunk, for the message. */
static coffer__mcf_name name_in_chunk(const coffer__mcf_checker *check, uint64_t start, uint64_t end)
{
    coffer__mcf_name none = { "" };
    for (size_t i = 0; i < check->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, i);
        if (entry.size > 0 && entry.offset < end &&
            (entry.offset >= start || entry.size > start - entry.offset))
            return coffer__mcf_entry_name(&check->index, i);
    }
    return none;
}

static void report_sums(const coffer__mcf_checker *check, const coffer__chunk_sums *said,
                        const coffer__chunk_sums *found)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < said->count && !coffer__report_full(check->report); i++) {
        uint64_t start = said->offset + (uint64_t)i * COFFER__MCF_CHUNK;
        coffer__mcf_name name = { "" };
        if (said->sums[i] == found->sums[i])
            continue;
        if (wrong++ < CHUNKS_NAMED)
            name = name_in_chunk(check, start, start + COFFER__MCF_CHUNK);
        coffer__report_add(check->report, COFFER_E_BAD_CHECKSUM, COFFER_ERROR, start,
                           "chunk %zu of the payloads%s%s: its CRC-32 is %08lx, the table says %08lx", i,
                           name.text[0] ? ", tensor " : "", name.text, (unsigned long)found->sums[i],
                           (unsigned long)said->sums[i]);
    }
}

static coffer_status check_sums(const coffer__mcf_checker *check, coffer_error *err)
{
    coffer__chunk_sums said = { 0 }, found = { 0 };
    coffer_error wrong = COFFER_ERROR_INIT;
    const coffer_mcf_section *section = coffer__mcf_checker_section(check, COFFER_MCF_CHECKSUMS);
    coffer_status status = COFFER_OK;
    if (!section)
        return COFFER_OK;
    if (coffer__mcf_sums_load(&said, check->source, section, &check->limits, &wrong) != COFFER_OK)
        return coffer__report_take(check->report, COFFER_ERROR, &wrong, err);
    if (!check->has_data || said.offset != check->data.offset || said.size != check->data.size)
        coffer__report_add(check->report, COFFER_E_INCONSISTENT, COFFER_ERROR,
                           section->offset + COFFER__MCF_SUMS_OFFSET_AT,
                           "Checksums covers %llu bytes at %llu, which is not TensorData",
                           (unsigned long long)said.size, (unsigned long long)said.offset);
    if (check->opts->full || said.size <= FREE_OF_COST) {
        coffer__work_opts options = { .threads = check->opts->threads, .progress = check->opts->progress };
        status = coffer__chunk_sums_compute(&found, check->source, said.offset, said.size, &options, err);
        if (status == COFFER_OK)
            report_sums(check, &said, &found);
    }
    coffer__chunk_sums_free(&said);
    coffer__chunk_sums_free(&found);
    return status;
}

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
    size_t low = 0, high = scan->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (scan->subjects[middle].first_piece <= piece)
            low = middle;
        else
            high = middle;
    }
    return &scan->subjects[low];
}

static coffer_status scan_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const scanning *scan = context;
    subject *of = subject_of(scan, scan->first + index);
    uint64_t piece = scan->first + index - of->first_piece;
    return coffer__mcf_scan_piece(&of->faults, scan->check->source, of->offset, &of->layout, piece,
                                  scan->scratch + (size_t)worker * COFFER__MCF_SCAN_SCRATCH, err);
}

/* Tensors that are quantized and whose payload is where and what it should be. */
static uint64_t collect(scanning *scan, const coffer__mcf_checker *check)
{
    uint64_t bytes = 0, size = coffer_source_size(check->source);
    for (size_t i = 0; i < check->index.count; i++) {
        coffer__mcf_entry entry = coffer__mcf_index_entry(&check->index, i);
        coffer_dtype dtype = coffer_mcf_dtype_from_code(entry.dtype);
        bool activations = coffer__mcf_checker_activations(check, i);
        subject *of = &scan->subjects[scan->count];
        if (!coffer_dtype_is_quantized(dtype) || !entry.dims ||
            coffer__quant_plan(&of->layout, dtype, entry.rank, entry.dims, activations, NULL) != COFFER_OK ||
            of->layout.size != entry.size || entry.size == 0 ||
            !coffer__range_fits(entry.offset, entry.size, size))
            continue;
        of->tensor = i;
        of->offset = entry.offset;
        of->first_piece = scan->pieces;
        coffer__mcf_faults_init(&of->faults);
        scan->pieces += coffer__mcf_scan_pieces(&of->layout);
        scan->count++;
        bytes += entry.size;
    }
    return bytes;
}

static coffer_status scan_all(scanning *scan, coffer__pool *pool, coffer_error *err)
{
    uint64_t at_once = (uint64_t)PIECES_AT_ONCE * coffer__pool_threads(pool);
    coffer_status status = COFFER_OK;
    for (scan->first = 0; status == COFFER_OK && scan->first < scan->pieces; scan->first += at_once) {
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
        const subject *of = &scan->subjects[i];
        for (int kind = 0; kind < COFFER__MCF_FAULT_COUNT; kind++) {
            uint64_t count = atomic_load(&of->faults.count[kind]);
            if (count > 0)
                coffer__report_add(scan->check->report, words[kind].code, words[kind].severity,
                                   of->offset + atomic_load(&of->faults.first[kind]), "tensor %s: %s: %llu",
                                   coffer__mcf_entry_name(&scan->check->index, of->tensor).text,
                                   words[kind].text, (unsigned long long)count);
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
    if (scan.count == 0 || (!check->opts->full && bytes > FREE_OF_COST) ||
        (status = coffer__pool_new(&pool, check->opts->threads, err)))
        goto out;
    scan.scratch = coffer__alloc_array(coffer__pool_threads(pool), COFFER__MCF_SCAN_SCRATCH);
    status =
        scan.scratch ? scan_all(&scan, pool, err) : coffer__fail_no_memory(err, COFFER__MCF_SCAN_SCRATCH);
    if (status == COFFER_OK)
        report_faults(&scan);
out:
    coffer__pool_free(pool);
    coffer__free(scan.scratch);
    coffer__free(scan.subjects);
    return status;
}

coffer_status coffer__mcf_check_payloads(coffer__mcf_checker *check, coffer_error *err)
{
    coffer_status status = check_sums(check, err);
    return status ? status : check_quantized(check, err);
}
