/* Pieces of work, and the rows they are made of. */
#include "formats/mldf/analyze/mldf_survey.h"

#include "base/checked.h"
#include "base/fail.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define BATCH 64 /* pieces for each thread between two calls of a progress */

typedef struct part_of_run {
    coffer__pool_task task;
    void *context;
    uint64_t first;
} part_of_run;

static coffer_status run_one(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const part_of_run *part = context;
    return part->task(part->context, part->first + index, worker, err);
}

coffer_status coffer__mldf_run(coffer__pool *pool, uint64_t count, coffer__pool_task task, void *context,
                               const coffer_progress *progress, coffer_error *err)
{
    uint64_t batch = progress ? (uint64_t)BATCH * coffer__pool_threads(pool) : count;
    part_of_run part = { task, context, 0 };
    coffer_status status = COFFER_OK;
    while (status == COFFER_OK && part.first < count) {
        uint64_t left = count - part.first, n = left < batch ? left : batch;
        status = coffer__pool_run(pool, n, run_one, &part, err);
        part.first += n;
        if (status == COFFER_OK && progress && progress->step(progress->context, part.first, count) != 0)
            status = coffer__fail(err, COFFER_E_CANCELLED, COFFER_OFFSET_NONE, "cancelled");
    }
    return status;
}

size_t coffer__mldf_rows_per_piece(const coffer_mldf *set)
{
    size_t row_size = set->schema.row_size ? set->schema.row_size : 1;
    return row_size < PIECE_BYTES ? PIECE_BYTES / row_size : 1;
}

uint64_t coffer__mldf_row_pieces(const coffer_mldf *set)
{
    return coffer__divide_up(set->header.samples, coffer__mldf_rows_per_piece(set));
}

coffer_status coffer__mldf_fetch_rows(coffer__mldf_rows *out, const coffer_mldf *set, uint64_t piece,
                                      coffer_bytes *scratch, coffer_error *err)
{
    size_t per_piece = coffer__mldf_rows_per_piece(set), row_size = set->schema.row_size;
    uint64_t first = piece * per_piece, left = set->header.samples - first;
    coffer__mldf_rows rows = { NULL, first, left < per_piece ? (size_t)left : per_piece };
    uint64_t place = set->header.metadata + first * row_size;
    size_t len = rows.count * row_size;
    coffer_status status = COFFER_OK;
    rows.bytes = coffer_source_view(set->source, place, len);
    if (!rows.bytes && !(status = coffer__mldf_bytes_reserve(scratch, len, err)) &&
        !(status = coffer_source_read_at(scratch->data, set->source, place, len, err)))
        rows.bytes = scratch->data;
    if (status == COFFER_OK)
        *out = rows;
    return status;
}
