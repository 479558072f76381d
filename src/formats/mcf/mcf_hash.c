/* A hash of the tensors that does not depend on the layout: SHA-256 over the name, type, shape and payload
 * block digests of each tensor, in the order of the names. */
#include "formats/mcf/mcf_private.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"

#include <sodium.h>

#define BLOCK ((uint64_t)4 << 20) /* of a payload: what one thread hashes at a time */
#define PIECE ((size_t)256 << 10)
#define DIGEST crypto_hash_sha256_BYTES

typedef struct hashing {
    const coffer_mcf *model;
    size_t tensor;
    uint64_t first;   /* block of the first task */
    uint8_t *digests; /* by task */
    uint8_t *scratch; /* a piece for each worker */
} hashing;

static coffer_status hash_block(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const hashing *job = context;
    uint8_t *scratch = job->scratch + (size_t)worker * PIECE;
    uint64_t size = coffer_mcf_tensor_at(job->model, job->tensor)->size;
    uint64_t at = (job->first + index) * BLOCK, end = size - at < BLOCK ? size : at + BLOCK;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    while (at < end) {
        size_t n = end - at < PIECE ? (size_t)(end - at) : PIECE;
        coffer_status status = coffer_mcf_read(scratch, job->model, job->tensor, at, n, err);
        if (status)
            return status;
        crypto_hash_sha256_update(&state, scratch, n);
        at += n;
    }
    crypto_hash_sha256_final(&state, job->digests + index * DIGEST);
    return COFFER_OK;
}

static void add_number(crypto_hash_sha256_state *state, uint64_t number)
{
    uint8_t bytes[sizeof number];
    coffer__store_u64(bytes, number);
    crypto_hash_sha256_update(state, bytes, sizeof bytes);
}

static void add_facts(crypto_hash_sha256_state *state, const coffer_mcf_tensor *tensor)
{
    add_number(state, tensor->name_len);
    crypto_hash_sha256_update(state, (const unsigned char *)tensor->name, tensor->name_len);
    add_number(state, tensor->dtype_code);
    add_number(state, tensor->rank);
    for (uint32_t i = 0; i < tensor->rank; i++)
        add_number(state, tensor->dims[i]);
    add_number(state, tensor->size);
}

typedef struct sum_of_work {
    const coffer_progress *progress;
    uint64_t done, total;
} sum_of_work;

static coffer_status report_progress(sum_of_work *work, uint64_t bytes, coffer_error *err)
{
    work->done += bytes;
    return coffer__progress_step(work->progress, work->done, work->total, err);
}

static coffer_status add_payload(crypto_hash_sha256_state *state, hashing *job, coffer__pool *pool,
                                 uint64_t at_once, sum_of_work *work, coffer_error *err)
{
    uint64_t size = coffer_mcf_tensor_at(job->model, job->tensor)->size;
    uint64_t blocks = size / BLOCK + (size % BLOCK != 0);
    coffer_status status = COFFER_OK;
    for (job->first = 0; status == COFFER_OK && job->first < blocks; job->first += at_once) {
        uint64_t n = blocks - job->first < at_once ? blocks - job->first : at_once;
        status = coffer__pool_run(pool, n, hash_block, job, err);
        if (status == COFFER_OK) {
            crypto_hash_sha256_update(state, job->digests, n * DIGEST);
            status = report_progress(work, n * BLOCK, err);
        }
    }
    return status;
}

static coffer_status hash_all(uint8_t out[32], hashing *job, coffer__pool *pool, const uint32_t *order,
                              uint64_t at_once, sum_of_work *work, coffer_error *err)
{
    crypto_hash_sha256_state state;
    coffer_status status = COFFER_OK;
    crypto_hash_sha256_init(&state);
    for (size_t i = 0; status == COFFER_OK && i < job->model->index.count; i++) {
        job->tensor = order[i];
        status = coffer__mcf_check_tensor(job->model, job->tensor, err);
        if (status)
            break;
        add_facts(&state, coffer_mcf_tensor_at(job->model, job->tensor));
        status = add_payload(&state, job, pool, at_once, work, err);
    }
    if (status == COFFER_OK)
        crypto_hash_sha256_final(&state, out);
    return status;
}

coffer_status coffer_mcf_content_hash(uint8_t out[32], const coffer_mcf *model,
                                      const coffer_mcf_work_opts *opts, coffer_error *err)
{
    coffer_mcf_work_opts options = COFFER_MCF_WORK_OPTS_INIT;
    hashing job = { .model = model };
    sum_of_work work = { 0 };
    coffer__pool *pool = NULL;
    uint32_t *order = NULL;
    uint64_t at_once;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    work.progress = options.progress;
    if ((status = coffer__pool_new(&pool, options.threads, err)) ||
        (status = coffer__mcf_index_order(&order, &model->index, err)))
        goto out;
    at_once = (uint64_t)4 * coffer__pool_threads(pool);
    job.digests = coffer__alloc_array((size_t)at_once, DIGEST);
    job.scratch = coffer__alloc_array(coffer__pool_threads(pool), PIECE);
    if (!job.digests || !job.scratch) {
        status = coffer__fail_no_memory(err, at_once * PIECE);
        goto out;
    }
    for (size_t i = 0; i < model->index.count; i++)
        work.total += coffer_mcf_tensor_at(model, i)->size;
    status = hash_all(out, &job, pool, order, at_once, &work, err);
out:
    coffer__free(job.digests);
    coffer__free(job.scratch);
    coffer__free(order);
    coffer__pool_free(pool);
    return status;
}
