/* A hash of the tensors that does not depend on the layout: SHA-256 over the name, type, shape and payload
 * block digests of each tensor, in the order of the names. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/sha256.h"
#include "base/work.h"

#define BLOCK ((uint64_t)4 << 20) /* of a payload: what one thread hashes at a time */
#define BLOCKS_AT_ONCE 32         /* for each thread */
#define PIECE ((size_t)256 << 10)
#define DIGEST COFFER__SHA256_SIZE

typedef struct hashing {
    const coffer_mcf *model;
    uint32_t *order;  /* tensors by name */
    uint64_t *starts; /* of each tensor in that order, and the end: how many blocks come before it */
    uint64_t first;   /* block of the first task */
    uint8_t *digests; /* by task */
    uint8_t *scratch; /* a piece for each worker */
} hashing;

/* The tensor, by its place in the order, that a block belongs to. */
static size_t find_tensor(const hashing *job, uint64_t block)
{
    size_t low = 0, high = job->model->index.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->starts[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static coffer_status hash_block(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const hashing *job = context;
    uint8_t *scratch = job->scratch + (size_t)worker * PIECE;
    size_t place = find_tensor(job, job->first + index), tensor = job->order[place];
    uint64_t size = coffer_mcf_tensor_at(job->model, tensor)->size;
    uint64_t at = (job->first + index - job->starts[place]) * BLOCK;
    uint64_t end = size - at < BLOCK ? size : at + BLOCK;
    coffer__sha256 state;
    coffer__sha256_begin(&state);
    while (at < end) {
        size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        const uint8_t *bytes;
        coffer_status status = coffer__mcf_fetch(&bytes, job->model, tensor, at, n, scratch, err);
        if (status)
            return status;
        coffer__sha256_add(&state, bytes, n);
        at += n;
    }
    coffer__sha256_end(job->digests + index * DIGEST, &state);
    return COFFER_OK;
}

static void add_number(coffer__sha256 *state, uint64_t number)
{
    uint8_t bytes[sizeof number];
    coffer__store_u64(bytes, number);
    coffer__sha256_add(state, bytes, sizeof bytes);
}

static void add_facts(coffer__sha256 *state, const coffer_mcf_tensor *tensor)
{
    add_number(state, tensor->name_len);
    coffer__sha256_add(state, tensor->name, tensor->name_len);
    add_number(state, tensor->dtype_code);
    add_number(state, tensor->rank);
    for (uint32_t i = 0; i < tensor->rank; i++)
        add_number(state, tensor->dims[i]);
    add_number(state, tensor->size);
}

static coffer_status plan(hashing *job, coffer_error *err)
{
    size_t count = job->model->index.count;
    coffer_status status = coffer__mcf_index_order(&job->order, &job->model->index, err);
    if (status)
        return status;
    job->starts = coffer__alloc_array(count + 1, sizeof *job->starts);
    if (!job->starts)
        return coffer__fail_no_memory(err, (count + 1) * sizeof *job->starts);
    job->starts[0] = 0;
    for (size_t i = 0; !status && i < count; i++) {
        status = coffer__mcf_check_tensor(job->model, job->order[i], err);
        if (status)
            return status;
        uint64_t size = coffer_mcf_tensor_at(job->model, job->order[i])->size;
        job->starts[i + 1] = job->starts[i] + size / BLOCK + (size % BLOCK != 0);
    }
    return status;
}

/* Blocks of several tensors are hashed at a time, so that small ones occupy all cores as well. */
static coffer_status hash_all(uint8_t out[DIGEST], hashing *job, coffer__work *work, uint64_t at_once,
                              coffer_error *err)
{
    size_t count = job->model->index.count, next = 0;
    uint64_t blocks = job->starts[count];
    coffer__sha256 state;
    coffer__sha256_begin(&state);
    for (job->first = 0; job->first < blocks; job->first += at_once) {
        uint64_t n = blocks - job->first < at_once ? blocks - job->first : at_once;
        coffer_status status = coffer__work_run(work, n, hash_block, job, err);
        if (status)
            return status;
        for (uint64_t i = 0; i < n; i++) {
            while (next < count && job->starts[next] <= job->first + i)
                add_facts(&state, coffer_mcf_tensor_at(job->model, job->order[next++]));
            coffer__sha256_add(&state, job->digests + i * DIGEST, DIGEST);
        }
    }
    while (next < count)
        add_facts(&state, coffer_mcf_tensor_at(job->model, job->order[next++]));
    coffer__sha256_end(out, &state);
    return coffer_source_intact(job->model->source, err);
}

coffer_status coffer_mcf_content_hash(uint8_t out[32], const coffer_mcf *model,
                                      const coffer_mcf_work_opts *opts, coffer_error *err)
{
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    hashing job = { .model = model };
    coffer__work *work = NULL;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (!status)
        status = plan(&job, err);
    if (status)
        goto out;
    uint64_t blocks = job.starts[model->index.count];
    const coffer__work_opts work_opts = { .threads = options.threads,
                                          .progress = options.progress,
                                          .total = blocks * BLOCK,
                                          .piece = BLOCK,
                                          .pieces = blocks };
    status = coffer__work_new(&work, &work_opts, err);
    if (status)
        goto out;
    uint64_t at_once = (uint64_t)BLOCKS_AT_ONCE * coffer__work_threads(work);
    job.digests = coffer__alloc_array((size_t)at_once, DIGEST);
    job.scratch = coffer__alloc_array(coffer__work_threads(work), PIECE);
    status = job.digests && job.scratch ? hash_all(out, &job, work, at_once, err)
                                        : coffer__fail_no_memory(err, at_once * PIECE);
out:
    coffer__free(job.digests);
    coffer__free(job.scratch);
    coffer__free(job.starts);
    coffer__free(job.order);
    coffer__work_free(work);
    return status;
}
