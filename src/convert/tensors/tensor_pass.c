#include "convert/tensors/tensor_pass.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/work.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Elements of a step: they fit into the cache. A multiple of the block size of sums. */
#define STEP ((uint64_t)1 << 16)
#define STEPS_IN_PIECE 16
/* Pieces between two merges of results and reports of progress. */
#define BATCH 256
#define MAX_PLACES 2

typedef struct worker_memory {
    uint8_t *bytes;
    size_t size;
} worker_memory;

struct coffer__tensors_workers {
    coffer__work *work;
    worker_memory (*memory)[MAX_PLACES]; /* one for each thread */
    uint32_t threads;
};

coffer_status coffer__tensors_workers_new(coffer__tensors_workers **out, uint32_t threads,
                                          const coffer_progress *progress, uint64_t total, coffer_error *err)
{
    coffer__work_opts opts = { .threads = threads, .progress = progress, .total = total };
    coffer__tensors_workers *workers = coffer__calloc(1, sizeof *workers);
    if (!workers)
        return coffer__fail_no_memory(err, sizeof *workers);
    coffer_status status = coffer__work_new(&workers->work, &opts, err);
    if (!status) {
        workers->threads = coffer__work_threads(workers->work);
        workers->memory = coffer__calloc(workers->threads, sizeof *workers->memory);
        if (!workers->memory)
            status = coffer__fail_no_memory(err, workers->threads * sizeof *workers->memory);
    }
    if (status) {
        coffer__tensors_workers_free(workers);
        return status;
    }
    *out = workers;
    return COFFER_OK;
}

void coffer__tensors_workers_free(coffer__tensors_workers *workers)
{
    if (!workers)
        return;
    for (uint32_t i = 0; workers->memory && i < workers->threads; i++) {
        for (size_t k = 0; k < MAX_PLACES; k++)
            coffer__free(workers->memory[i][k].bytes);
    }
    coffer__free(workers->memory);
    coffer__work_free(workers->work);
    coffer__free(workers);
}

static coffer_status make_room(worker_memory *memory, uint64_t size, const coffer_limits *limits,
                               const char *name, coffer_error *err)
{
    size_t wanted;
    if (size <= memory->size)
        return COFFER_OK;
    if (size > limits->memory_bytes || !coffer__to_size(&wanted, size))
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" takes %" PRIu64 " bytes, the limit is %" PRIu64, name, size,
                            limits->memory_bytes);
    coffer__free(memory->bytes);
    memory->size = 0;
    memory->bytes = coffer__malloc(wanted);
    if (!memory->bytes)
        return coffer__fail_no_memory(err, size);
    memory->size = wanted;
    return COFFER_OK;
}

bool coffer__tensors_is_wanted(const coffer_tensor *tensor, const char *include, const char *exclude)
{
    size_t len = strlen(tensor->name);
    return (!include || coffer__glob_match(include, tensor->name, len)) &&
           (!exclude || !coffer__glob_match(exclude, tensor->name, len));
}

/* ---- Elements ---- */

static bool is_plain(const coffer_tensor *tensor)
{
    return coffer_dtype_size(tensor->dtype) != 0;
}

/* Elements come in multiples of this: quantized ones in rows. */
static uint64_t unit_of(const coffer_tensor *tensor)
{
    bool any = is_plain(tensor) || tensor->rank == 0 || tensor->elements == 0;
    return any ? 1 : tensor->dims[tensor->rank - 1];
}

static coffer_status take_elements(coffer__tensors_run *run, worker_memory *memory,
                                   const coffer__tensors_place *place, uint64_t first, uint64_t count,
                                   coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(place->set, place->tensor);
    run->dtype = is_plain(tensor) ? tensor->dtype : COFFER_DTYPE_F32;
    size_t size = coffer_dtype_size(run->dtype);
    coffer_source *src = is_plain(tensor) ? coffer__tensors_source_at(place->set, place->tensor) : NULL;
    if (src && count <= SIZE_MAX / size) {
        coffer_status status =
            coffer__tensors_verify(place->set, place->tensor, first * size, count * size, err);
        if (status)
            return status;
        run->elements = coffer_source_view(src, tensor->offset + first * size, (size_t)count * size);
        if (run->elements)
            return COFFER_OK;
    }
    if (count > UINT64_MAX / size)
        return coffer__fail_no_memory(err, UINT64_MAX);
    coffer_status status = make_room(memory, count * size, &place->set->limits, tensor->name, err);
    run->elements = memory->bytes;
    return status ? status
                  : coffer_tensors_read_as(memory->bytes, run->dtype, place->set, place->tensor, first, count,
                                           err);
}

/* A view of a file that was truncated meanwhile reads as zeros: such results are not valid. */
static coffer_status check_intact(const coffer__tensors_place *places, size_t place_count, coffer_error *err)
{
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < place_count; i++) {
        coffer_source *src = coffer__tensors_source_at(places[i].set, places[i].tensor);
        if (src)
            status = coffer_source_intact(src, err);
    }
    return status;
}

/* ---- Passes ---- */

typedef struct pass_job {
    coffer__tensors_workers *workers;
    const coffer__tensors_pass *pass;
    const void *context;
    const coffer__tensors_place *places;
    size_t place_count;
    uint64_t elements, step, piece;
    uint64_t first_piece; /* of the batch */
    uint8_t *results;
} pass_job;

static coffer_status run_piece(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const pass_job *job = context;
    void *result = job->results + index * job->pass->result_size;
    uint64_t begin = (job->first_piece + index) * job->piece;
    uint64_t end = job->elements - begin < job->piece ? job->elements : begin + job->piece;
    coffer_status status = COFFER_OK;
    job->pass->init(result);
    for (uint64_t at = begin; !status && at < end;) {
        uint64_t count = end - at < job->step ? end - at : job->step;
        coffer__tensors_run runs[MAX_PLACES] = { { NULL, COFFER_DTYPE_NONE } };
        for (size_t i = 0; !status && i < job->place_count; i++)
            status =
                take_elements(&runs[i], &job->workers->memory[worker][i], &job->places[i], at, count, err);
        if (!status)
            job->pass->step(result, job->context, at, runs, (size_t)count);
        at += count;
    }
    return status ? status : check_intact(job->places, job->place_count, err);
}

static void cut(pass_job *job)
{
    uint64_t unit = 1;
    for (size_t i = 0; i < job->place_count; i++) {
        uint64_t of_place = unit_of(coffer_tensors_at(job->places[i].set, job->places[i].tensor));
        unit = of_place > unit ? of_place : unit;
    }
    job->step = unit < STEP ? STEP / unit * unit : unit;
    /* Longer than any tensor there is when it does not fit. */
    if (!coffer__mul_u64(&job->piece, job->step, STEPS_IN_PIECE))
        job->piece = job->step;
}

static coffer_status run_batches(void *result, pass_job *job, uint64_t bytes, coffer_error *err)
{
    uint64_t pieces = job->elements / job->piece + (job->elements % job->piece != 0);
    coffer_status status = COFFER_OK;
    while (!status && job->first_piece < pieces) {
        uint64_t left = pieces - job->first_piece, now = left < BATCH ? left : BATCH;
        status = coffer__work_run(job->workers->work, now, run_piece, job, err);
        for (uint64_t i = 0; !status && i < now; i++)
            job->pass->merge(result, job->results + i * job->pass->result_size);
        job->first_piece += now;
        if (!status)
            status = coffer__work_advance(job->workers->work, bytes / pieces * now, err);
    }
    return status;
}

coffer_status coffer__tensors_pass_run(void *result, coffer__tensors_workers *workers,
                                       const coffer__tensors_pass *pass, const void *context,
                                       const coffer__tensors_place *places, size_t place_count,
                                       coffer_error *err)
{
    pass_job job = { .workers = workers, .pass = pass, .context = context, .places = places };
    uint64_t bytes = 0;
    job.place_count = place_count;
    job.elements = coffer_tensors_at(places[0].set, places[0].tensor)->elements;
    for (size_t i = 0; i < place_count; i++)
        bytes += coffer_tensors_at(places[i].set, places[i].tensor)->size;
    cut(&job);
    job.results = coffer__alloc_array(BATCH, pass->result_size);
    if (!job.results)
        return coffer__fail_no_memory(err, BATCH * pass->result_size);
    pass->init(result);
    coffer_status status = run_batches(result, &job, bytes, err);
    coffer__free(job.results);
    return status;
}

/* ---- Bytes ---- */

typedef struct bytes_job {
    coffer__tensors_workers *workers;
    const coffer__tensors_place *places;
    uint64_t size, first_piece;
    atomic_bool differs;
} bytes_job;

#define BYTES_PIECE ((uint64_t)1 << 20)

static coffer_status take_bytes(const uint8_t **out, worker_memory *memory,
                                const coffer__tensors_place *place, uint64_t begin, size_t len,
                                coffer_error *err)
{
    const coffer_tensor *tensor = coffer_tensors_at(place->set, place->tensor);
    coffer_source *src = coffer__tensors_source_at(place->set, place->tensor);
    const uint8_t *view = src ? coffer_source_view(src, tensor->offset + begin, len) : NULL;
    coffer_status status =
        view ? coffer__tensors_verify(place->set, place->tensor, begin, len, err) : COFFER_OK;
    if (!view) {
        status = make_room(memory, len, &place->set->limits, tensor->name, err);
        if (!status)
            status = coffer_tensors_read(memory->bytes, place->set, place->tensor, begin, len, err);
        view = memory->bytes;
    }
    *out = view;
    return status;
}

static coffer_status compare_bytes(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    bytes_job *job = context;
    uint64_t begin = (job->first_piece + index) * BYTES_PIECE, left = job->size - begin;
    size_t len = (size_t)(left < BYTES_PIECE ? left : BYTES_PIECE);
    const uint8_t *bytes[2];
    coffer_status status = COFFER_OK;
    if (atomic_load_explicit(&job->differs, memory_order_relaxed))
        return COFFER_OK;
    for (size_t i = 0; !status && i < 2; i++)
        status = take_bytes(&bytes[i], &job->workers->memory[worker][i], &job->places[i], begin, len, err);
    if (status)
        return status;
    if (memcmp(bytes[0], bytes[1], len) != 0)
        atomic_store_explicit(&job->differs, true, memory_order_relaxed);
    return check_intact(job->places, 2, err);
}

coffer_status coffer__tensors_same_bytes(bool *same, coffer__tensors_workers *workers,
                                         const coffer__tensors_place places[2], coffer_error *err)
{
    bytes_job job = { .workers = workers, .places = places };
    job.size = coffer_tensors_at(places[0].set, places[0].tensor)->size;
    atomic_init(&job.differs, false);
    uint64_t pieces = job.size / BYTES_PIECE + (job.size % BYTES_PIECE != 0);
    coffer_status status = COFFER_OK;
    while (!status && job.first_piece < pieces && !atomic_load(&job.differs)) {
        uint64_t left = pieces - job.first_piece, now = left < BATCH ? left : BATCH;
        status = coffer__work_run(workers->work, now, compare_bytes, &job, err);
        job.first_piece += now;
    }
    *same = !atomic_load(&job.differs);
    return status ? status : coffer__work_advance(workers->work, *same ? 2 * job.size : 0, err);
}
