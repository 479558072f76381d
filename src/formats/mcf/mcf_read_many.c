/* Reading many tensors: threads read pieces of all of them, so that a single large tensor keeps all threads
 * busy. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sorted.h"
#include "base/work.h"

#define PIECE ((uint64_t)4 << 20)

typedef struct loading {
    const coffer_mcf *model;
    void *const *outs;
    const size_t *tensors;
    size_t count;
    uint64_t *first_pieces; /* by tensor; the last element is the total */
} loading;

static coffer_status load_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const loading *job = context;
    uint64_t piece = index, begin, size;
    size_t low = coffer__last_of(
        coffer__count_up_to(job->first_pieces, job->count, sizeof *job->first_pieces, 0, piece));
    (void)worker;
    begin = (piece - job->first_pieces[low]) * PIECE;
    size = coffer_mcf_tensor_at(job->model, job->tensors[low])->size;
    return coffer_mcf_read((uint8_t *)job->outs[low] + begin, job->model, job->tensors[low], begin,
                           (size_t)(size - begin < PIECE ? size - begin : PIECE), err);
}

static coffer_status count_pieces(loading *job, coffer_error *err)
{
    uint64_t pieces = 0;
    for (size_t i = 0; i < job->count; i++) {
        uint64_t size;
        size_t in_memory;
        coffer_status status = coffer__mcf_check_range(job->model, job->tensors[i], err);
        if (status)
            return status;
        size = coffer_mcf_tensor_at(job->model, job->tensors[i])->size;
        if (!coffer__to_size(&in_memory, size))
            return coffer__fail_no_memory(err, size);
        job->first_pieces[i] = pieces;
        pieces += size / PIECE + (size % PIECE != 0);
    }
    job->first_pieces[job->count] = pieces;
    return COFFER_OK;
}

/* A remote file is asked for all tensors ahead of the reads. */
static void announce(const loading *job)
{
    coffer_range *ranges = coffer__alloc_array(job->count, sizeof *ranges);
    if (!ranges)
        return; /* reads work without it */
    for (size_t i = 0; i < job->count; i++) {
        const coffer_mcf_tensor *tensor = coffer_mcf_tensor_at(job->model, job->tensors[i]);
        ranges[i] = (coffer_range){ tensor->offset, tensor->size };
    }
    coffer_source_prefetch(job->model->source, ranges, job->count);
    coffer__free(ranges);
}

static coffer_status load_all(loading *job, const coffer_mcf_work_opts *opts, coffer_error *err)
{
    uint64_t pieces = job->first_pieces[job->count];
    coffer__work_opts options = {
        .threads = opts->threads,
        .progress = opts->progress,
        .total = pieces * PIECE,
        .piece = PIECE,
        .pieces = pieces,
    };
    coffer__work *work = NULL;
    coffer_status status = coffer__work_new(&work, &options, err);
    if (!status)
        status = coffer__work_run(work, pieces, load_piece, job, err);
    coffer__work_free(work);
    return status;
}

coffer_status coffer_mcf_read_many(void *const *outs, const coffer_mcf *model, const size_t *tensors,
                                   size_t count, const coffer_mcf_work_opts *opts, coffer_error *err)
{
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    loading job = { .model = model, .outs = outs, .tensors = tensors, .count = count };
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    job.first_pieces = coffer__alloc_array(count + 1, sizeof *job.first_pieces);
    if (!job.first_pieces)
        return coffer__fail_no_memory(err, (count + 1) * sizeof *job.first_pieces);
    status = count_pieces(&job, err);
    if (!status && count)
        announce(&job);
    if (!status)
        status = load_all(&job, &options, err);
    coffer__free(job.first_pieces);
    return status;
}
