/* The sums of all payloads and of the data region, in one pass over the data. */
#include "formats/mldf/analyze/mldf_survey.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"

#define PIECE ((uint64_t)1 << 20) /* of the data region: small enough to stay in the cache for both sums */
#define ENTRIES_AT_ONCE ((size_t)512)

/* The part of one piece in the checksum of the region. */
typedef struct piece_sum {
    uint32_t crc;
    uint64_t len;
} piece_sum;

typedef struct summing {
    const coffer_mldf *set;
    uint64_t data_end;
    coffer__mldf_sums *sums;
    _Atomic(uint64_t) bad_count;
    piece_sum *pieces;
    uint8_t *scratch; /* a block for each worker */
} summing;

/* Sums of the payloads that begin in [low, high) of the table. */
static coffer_status sum_payloads(summing *job, uint64_t low, uint64_t high, uint8_t *scratch,
                                  coffer_error *err)
{
    uint8_t entries[ENTRIES_AT_ONCE * COFFER__MLDF_TABLE_ENTRY];
    coffer_status status = COFFER_OK;
    while (!status && low < high) {
        size_t count = high - low < ENTRIES_AT_ONCE ? (size_t)(high - low) : ENTRIES_AT_ONCE;
        const uint8_t *at = NULL;
        status = coffer__mldf_fetch_table(&at, job->set, low, count, entries, err);
        for (size_t i = 0; !status && i < count; i++, low++) {
            coffer__mldf_allocation entry = coffer__mldf_load_allocation(at + i * COFFER__MLDF_TABLE_ENTRY);
            uint32_t crc = 0;
            status = coffer__mldf_sum_range(&crc, job->set, entry.offset, entry.size, scratch, err);
            if (!status && crc != entry.crc && !job->set->region_only) {
                atomic_fetch_or(&job->sums->bad[low / 64], UINT64_C(1) << low % 64);
                atomic_fetch_add(&job->bad_count, 1);
            }
        }
    }
    return status;
}

static coffer_status place_of(uint64_t *out, const summing *job, uint64_t index, coffer_error *err)
{
    uint8_t scratch[COFFER__MLDF_TABLE_ENTRY];
    const uint8_t *at = NULL;
    coffer_status status;
    *out = job->data_end;
    if (index >= job->set->table_count)
        return COFFER_OK;
    status = coffer__mldf_fetch_table(&at, job->set, index, 1, scratch, err);
    if (status)
        return status;
    *out = coffer__load_u64(at);
    return COFFER_OK;
}

/* A piece has the payloads that begin in it, and of the region what reaches from the first of them to the
 * first of the next piece: all pieces together are the region. */
static coffer_status sum_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    summing *job = context;
    uint64_t start = job->set->header.data + index * PIECE, low = 0, high = 0, from, to;
    uint8_t *scratch = job->scratch + worker * COFFER__MLDF_SUM_BLOCK;
    coffer_status status = coffer__mldf_lower_bound(&low, job->set, start, err);
    if (!status)
        status = coffer__mldf_lower_bound(&high, job->set, start + PIECE, err);
    if (!status)
        status = place_of(&from, job, low, err);
    if (!status)
        status = place_of(&to, job, high, err);
    if (!status)
        status = sum_payloads(job, low, high, scratch, err);
    if (status)
        return status;
    if (index == 0)
        from = job->set->header.data;
    job->pieces[index].len = to - from;
    return coffer__mldf_sum_range(&job->pieces[index].crc, job->set, from, to - from, scratch, err);
}

static coffer_status finish(summing *job, uint64_t count, coffer_error *err)
{
    const coffer_mldf *set = job->set;
    uint64_t next = coffer__mldf_next_part(&set->header, job->data_end, set->file_size);
    uint32_t crc = 0, padding = 0;
    coffer_status status;
    for (uint64_t i = 0; i < count; i++)
        crc = coffer__crc32_combine(crc, job->pieces[i].crc, job->pieces[i].len);
    status = coffer__mldf_sum_range(&padding, set, job->data_end, next - job->data_end, job->scratch, err);
    if (status)
        return status;
    job->sums->data_crc = crc;
    job->sums->data_crc_to_next_part = coffer__crc32_combine(crc, padding, next - job->data_end);
    job->sums->bad_count = atomic_load(&job->bad_count);
    return coffer_source_intact(set->source, err);
}

coffer_status coffer__mldf_survey_sums(coffer__mldf_sums *out, const coffer_mldf *set, coffer__pool *pool,
                                       const coffer_progress *progress, coffer_error *err)
{
    coffer__mldf_sums sums = { 0 };
    summing job = { .set = set, .sums = &sums };
    uint64_t count;
    coffer_status status = coffer__mldf_data_end(&job.data_end, set, err);
    if (status)
        return status;
    count = coffer__divide_up(job.data_end - set->header.data, PIECE);
    sums.bad = coffer__calloc((size_t)coffer__divide_up(set->table_count, 64), sizeof *sums.bad);
    job.pieces = coffer__calloc((size_t)count, sizeof *job.pieces);
    job.scratch = coffer__alloc_array(coffer__pool_threads(pool), COFFER__MLDF_SUM_BLOCK);
    if (!sums.bad || !job.pieces || !job.scratch)
        status = coffer__fail_no_memory(err, count * sizeof *job.pieces);
    else
        status = coffer__mldf_run_pieces(pool, count, sum_piece, &job, progress, err);
    if (!status)
        status = finish(&job, count, err);
    coffer__free(job.pieces);
    coffer__free(job.scratch);
    if (status)
        coffer__mldf_sums_free(&sums);
    else
        *out = sums;
    return status;
}

void coffer__mldf_sums_free(coffer__mldf_sums *sums)
{
    coffer__free(sums->bad);
    *sums = (coffer__mldf_sums){ 0 };
}
