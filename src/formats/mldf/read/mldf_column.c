/* The scalars of a field, row by row, without a payload being touched. */
#include "base/bytes.h"
#include "base/work.h"
#include "formats/mldf/mldf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "io/source_private.h"

#include <inttypes.h>

#define PIECE_BYTES ((size_t)1 << 20) /* of rows, for each piece of work */
#define AHEAD 16                      /* rows between the one that is copied and the one that is fetched */

COFFER__INIT_FUNCTION(coffer_mldf_column_opts, COFFER_MLDF_COLUMN_OPTS_INIT)

typedef struct column_job {
    const coffer_mldf *set;
    uint8_t *out;
    uint64_t place; /* of the first value */
    uint64_t count;
    size_t stride, per_piece;
    uint8_t *scratch; /* a piece for each worker, where nothing is mapped */
} column_job;

static void gather(uint8_t *out, const uint8_t *at, size_t stride, size_t count)
{
    size_t i = 0;
    if (stride == sizeof(uint64_t)) {
        memcpy(out, at, count * sizeof(uint64_t));
        return;
    }
    for (; i + AHEAD + 8 <= count; i += 8) {
        __builtin_prefetch(at + (i + AHEAD) * stride);
        __builtin_prefetch(at + (i + AHEAD + 4) * stride);
        for (size_t k = 0; k < 8; k++)
            memcpy(out + (i + k) * sizeof(uint64_t), at + (i + k) * stride, sizeof(uint64_t));
    }
    for (; i < count; i++)
        memcpy(out + i * sizeof(uint64_t), at + i * stride, sizeof(uint64_t));
}

static coffer_status gather_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const column_job *job = context;
    uint64_t first = index * job->per_piece, left = job->count - first;
    size_t count = left < job->per_piece ? (size_t)left : job->per_piece;
    size_t len = (count - 1) * job->stride + sizeof(uint64_t);
    uint64_t place = job->place + first * job->stride;
    uint8_t *scratch = job->scratch ? job->scratch + worker * (PIECE_BYTES + job->stride) : NULL;
    const uint8_t *rows = NULL;
    coffer_status status = coffer__source_fetch(&rows, job->set->source, place, len, scratch, err);
    if (status)
        return status;
    gather(job->out + first * sizeof(uint64_t), rows, job->stride, count);
    coffer__swap_numbers(job->out + first * sizeof(uint64_t), sizeof(uint64_t), count);
    return COFFER_OK;
}

static coffer_status check_column(const coffer_mldf *set, size_t field, uint64_t first, uint64_t count,
                                  coffer_error *err)
{
    if (field >= set->schema.count)
        return coffer__mldf_check_index(set, 0, field, err);
    const coffer_mldf_field *descriptor = &set->schema.fields[field];
    if (descriptor->kind != COFFER_MLDF_ENTRY_INT && descriptor->kind != COFFER_MLDF_ENTRY_FLOAT)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "field %s does not contain scalars", descriptor->name);
    if (!coffer__range_fits(first, count, set->header.samples))
        return coffer__fail(err, COFFER_E_OUT_OF_BOUNDS, COFFER_OFFSET_NONE,
                            "%" PRIu64 " samples from %" PRIu64 " on are not there: the set has %" PRIu64,
                            count, first, set->header.samples);
    return COFFER_OK;
}

coffer_status coffer_mldf_read_column(void *out, const coffer_mldf *set, size_t field, uint64_t first,
                                      uint64_t count, const coffer_mldf_column_opts *opts, coffer_error *err)
{
    coffer_mldf_column_opts options = COFFER_MLDF_COLUMN_OPTS_INIT;
    column_job job = { .set = set, .out = out, .count = count, .stride = set->schema.row_size };
    coffer__pool *pool = NULL;
    uint64_t pieces;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = check_column(set, field, first, count, err);
    if (status || count == 0)
        return status;
    job.place = coffer__mldf_entry_place(set, first, field);
    job.per_piece = job.stride < PIECE_BYTES ? PIECE_BYTES / job.stride : 1;
    pieces = coffer__divide_up(count, job.per_piece);
    status = coffer__pool_new(&pool, pieces == 1 ? 1 : options.threads, err);
    if (status)
        return status;
    if (!coffer_source_view(set->source, job.place, sizeof(uint64_t)) &&
        !(job.scratch = coffer__alloc_array(coffer__pool_threads(pool), PIECE_BYTES + job.stride)))
        status = coffer__fail_no_memory(err, PIECE_BYTES);
    else
        status = coffer__pool_run(pool, pieces, gather_piece, &job, err);
    if (!status)
        status = coffer_source_intact(set->source, err);
    coffer__free(job.scratch);
    coffer__pool_free(pool);
    return status;
}
