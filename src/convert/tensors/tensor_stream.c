#include "convert/tensors/tensor_stream.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/work.h"

#include <inttypes.h>

/* Elements that a thread takes at a time, and pieces that are under way together. */
#define PIECE_ELEMENTS ((uint64_t)1 << 17)
#define MAX_PIECES 32

struct coffer__tensor_stream {
    coffer__pool *pool;
    uint32_t pieces; /* of a batch */
    uint64_t max_batch;
    const coffer_progress *progress;
    uint64_t done, total;
    uint8_t *buffers[2]; /* one is filled while the other is written */
    size_t capacity;
};

/* One tensor on its way. */
typedef struct passage {
    const coffer__chosen_tensor *chosen;
    coffer__tensor_put put;
    void *context;
    uint64_t count;       /* elements; bytes when they go over as they are */
    uint64_t at_once;     /* of a piece */
    size_t item;          /* bytes of one, in the new type */
    uint64_t first;       /* of the batch that is filled */
    uint8_t *filled;      /* where to */
    const uint8_t *ready; /* the batch that is written, or NULL */
    size_t ready_len;
} passage;

coffer_status coffer__tensor_stream_new(coffer__tensor_stream **out, uint32_t threads,
                                        const coffer_limits *limits, const coffer_progress *progress,
                                        uint64_t total, coffer_error *err)
{
    coffer__tensor_stream *stream = coffer__calloc(1, sizeof *stream);
    if (!stream)
        return coffer__fail_no_memory(err, sizeof *stream);
    coffer_status status = coffer__pool_new(&stream->pool, threads, err);
    if (status) {
        coffer__free(stream);
        return status;
    }
    threads = coffer__pool_threads(stream->pool);
    stream->pieces = threads < MAX_PIECES / 4 ? 4 * threads : MAX_PIECES;
    stream->max_batch = coffer__limits(limits).memory_bytes;
    stream->progress = progress;
    stream->total = total;
    *out = stream;
    return COFFER_OK;
}

void coffer__tensor_stream_free(coffer__tensor_stream *stream)
{
    if (!stream)
        return;
    coffer__pool_free(stream->pool);
    coffer__free(stream->buffers[0]);
    coffer__free(stream->buffers[1]);
    coffer__free(stream);
}

coffer_status coffer__tensor_stream_count(coffer__tensor_stream *stream, uint64_t bytes, coffer_error *err)
{
    stream->done += bytes;
    return coffer__progress_step(stream->progress, stream->done, stream->total, err);
}

uint32_t coffer__tensor_stream_pieces(const coffer__tensor_stream *stream)
{
    return stream->pieces;
}

uint64_t coffer__tensor_stream_memory(const coffer__tensor_stream *stream)
{
    return stream->max_batch;
}

coffer_status coffer__tensor_stream_together(coffer__tensor_stream *stream, uint64_t count,
                                             coffer__pool_task task, void *context, coffer_error *err)
{
    return coffer__pool_run(stream->pool, count, task, context, err);
}

/* A row of a type that is not plain is decoded whole. */
static void cut(passage *of, const coffer_tensor *tensor)
{
    uint64_t row = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    of->item = of->chosen->as_is ? 1 : coffer_dtype_size(of->chosen->dtype);
    of->count = of->chosen->as_is ? tensor->size : tensor->elements;
    of->at_once = PIECE_ELEMENTS;
    if (of->chosen->as_is)
        of->at_once = PIECE_ELEMENTS * sizeof(float);
    else if (coffer_dtype_size(tensor->dtype) == 0 && row > 0)
        of->at_once = row < PIECE_ELEMENTS ? PIECE_ELEMENTS / row * row : row;
}

static coffer_status reserve(coffer__tensor_stream *stream, const passage *of, uint32_t *pieces,
                             coffer_error *err)
{
    uint64_t piece = 0;
    bool fits = coffer__mul_u64(&piece, of->at_once, of->item);
    *pieces = stream->pieces;
    while (fits && *pieces > 1 && piece > stream->max_batch / 2 / *pieces)
        *pieces /= 2;
    if (!fits || piece > stream->max_batch / 2)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" has %" PRIu64 " elements, more than fit into memory",
                            of->chosen->tensor->name, of->at_once);
    size_t wanted = (size_t)(piece * *pieces);
    if (wanted <= stream->capacity)
        return COFFER_OK;
    stream->capacity = 0;
    for (size_t i = 0; i < 2; i++) {
        coffer__free(stream->buffers[i]);
        stream->buffers[i] = coffer__malloc(wanted);
        if (!stream->buffers[i])
            return coffer__fail_no_memory(err, wanted);
    }
    stream->capacity = wanted;
    return COFFER_OK;
}

/* The first task writes what the batch before has made, the others make the next. */
static coffer_status step(void *context, uint64_t index, uint32_t worker, coffer_error *err)
{
    const passage *of = context;
    const coffer__chosen_tensor *chosen = of->chosen;
    (void)worker;
    if (index == 0)
        return of->ready ? of->put(of->context, of->ready, of->ready_len, err) : COFFER_OK;
    uint64_t first = of->first + (index - 1) * of->at_once;
    uint64_t count = of->count - first < of->at_once ? of->count - first : of->at_once;
    uint8_t *to = of->filled + (size_t)((index - 1) * of->at_once) * of->item;
    if (chosen->as_is)
        return coffer_tensors_read(to, chosen->set, chosen->index, first, (size_t)count, err);
    return coffer_tensors_read_as(to, chosen->dtype, chosen->set, chosen->index, first, count, err);
}

coffer_status coffer__tensor_stream_run(coffer__tensor_stream *stream, const coffer__chosen_tensor *chosen,
                                        coffer__tensor_put put, void *context, coffer_error *err)
{
    passage of = { .chosen = chosen, .put = put, .context = context };
    uint32_t pieces = 0;
    cut(&of, chosen->tensor);
    coffer_status status = reserve(stream, &of, &pieces, err);
    for (size_t turn = 0; !status && (of.first < of.count || of.ready); turn++) {
        uint64_t left = of.count - of.first;
        uint64_t batch = left / of.at_once + (left % of.at_once != 0);
        if (batch > pieces)
            batch = pieces;
        uint64_t made = left < batch * of.at_once ? left : batch * of.at_once;
        of.filled = stream->buffers[turn % 2];
        status = coffer__pool_run(stream->pool, 1 + batch, step, &of, err);
        of.ready = made ? of.filled : NULL;
        of.ready_len = (size_t)made * of.item;
        of.first += made;
        if (!status)
            status = coffer__tensor_stream_count(stream, made * of.item, err);
    }
    return status;
}
