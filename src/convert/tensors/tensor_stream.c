#include "convert/tensors/tensor_selection.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/work.h"

#include <inttypes.h>

/* Elements of a piece, and most pieces of a batch. */
#define PIECE_ELEMENTS ((uint64_t)1 << 17)
#define MAX_PIECES 32

struct coffer__tensors_stream {
    coffer__work *work;
    uint32_t pieces; /* of a batch */
    uint64_t max_batch;
    uint8_t *buffers[2]; /* one is filled while the other is written */
    size_t capacity;
};

/* A tensor that is being copied. */
typedef struct passage {
    coffer__tensors_stream *stream;
    const coffer__chosen_tensor *chosen;
    coffer__tensors_put put;
    void *context;
    uint64_t count;    /* elements, or bytes of a payload that is copied unchanged */
    uint64_t piece;    /* elements of one piece */
    uint32_t pieces;   /* of a batch */
    size_t item;       /* bytes of an element in the new type */
    uint64_t next;     /* first element of the next batch */
    uint64_t first[2]; /* of the batch in each buffer */
    uint64_t elements[2];
} passage;

coffer_status coffer__tensors_stream_new(coffer__tensors_stream **out, uint32_t threads,
                                         const coffer_limits *limits, const coffer_progress *progress,
                                         uint64_t total, coffer_error *err)
{
    coffer__work_opts opts = { .threads = threads, .progress = progress, .total = total };
    coffer__tensors_stream *stream = coffer__calloc(1, sizeof *stream);
    if (!stream)
        return coffer__fail_no_memory(err, sizeof *stream);
    coffer_status status = coffer__work_new(&stream->work, &opts, err);
    if (status) {
        coffer__free(stream);
        return status;
    }
    threads = coffer__work_threads(stream->work);
    stream->pieces = threads < MAX_PIECES / 4 ? 4 * threads : MAX_PIECES;
    stream->max_batch = coffer__limits(limits).memory_bytes;
    *out = stream;
    return COFFER_OK;
}

void coffer__tensors_stream_free(coffer__tensors_stream *stream)
{
    if (!stream)
        return;
    coffer__work_free(stream->work);
    coffer__free(stream->buffers[0]);
    coffer__free(stream->buffers[1]);
    coffer__free(stream);
}

coffer_status coffer__tensors_stream_count(coffer__tensors_stream *stream, uint64_t bytes, coffer_error *err)
{
    return coffer__work_advance(stream->work, bytes, err);
}

uint32_t coffer__tensors_stream_pieces(const coffer__tensors_stream *stream)
{
    return stream->pieces;
}

uint64_t coffer__tensors_stream_memory(const coffer__tensors_stream *stream)
{
    return stream->max_batch;
}

coffer__work *coffer__tensors_stream_work(const coffer__tensors_stream *stream)
{
    return stream->work;
}

/* A row of a type that is not plain is decoded whole. */
static void cut(passage *pass)
{
    const coffer__chosen_tensor *chosen = pass->chosen;
    const coffer_tensor *tensor = chosen->tensor;
    uint64_t row = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    pass->item = chosen->as_is ? 1 : coffer_dtype_size(chosen->dtype);
    pass->count = chosen->as_is ? tensor->size : tensor->elements;
    pass->piece = PIECE_ELEMENTS;
    if (chosen->as_is)
        pass->piece = PIECE_ELEMENTS * sizeof(float);
    else if (coffer_dtype_size(tensor->dtype) == 0 && row > 0)
        pass->piece = row < PIECE_ELEMENTS ? PIECE_ELEMENTS / row * row : row;
}

static coffer_status reserve(passage *pass, coffer_error *err)
{
    coffer__tensors_stream *stream = pass->stream;
    uint64_t bytes = 0;
    bool fits = coffer__mul_u64(&bytes, pass->piece, pass->item);
    pass->pieces = stream->pieces;
    while (fits && pass->pieces > 1 && bytes > stream->max_batch / 2 / pass->pieces)
        pass->pieces /= 2;
    if (!fits || bytes > stream->max_batch / 2)
        return coffer__fail(err, COFFER_E_LIMIT, COFFER_OFFSET_NONE,
                            "a row of \"%s\" has %" PRIu64 " elements, more than fit into memory",
                            pass->chosen->tensor->name, pass->piece);
    size_t wanted = (size_t)(bytes * pass->pieces);
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

static coffer_status prepare_batch(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    passage *pass = context;
    uint64_t left = pass->count - pass->next;
    (void)err;
    *pieces = left / pass->piece + (left % pass->piece != 0);
    if (*pieces > pass->pieces)
        *pieces = pass->pieces;
    pass->first[slot] = pass->next;
    pass->elements[slot] = left < *pieces * pass->piece ? left : *pieces * pass->piece;
    pass->next += pass->elements[slot];
    return COFFER_OK;
}

static coffer_status read_piece(void *context, size_t slot, uint64_t piece, uint32_t worker,
                                coffer_error *err)
{
    const passage *pass = context;
    const coffer__chosen_tensor *chosen = pass->chosen;
    uint64_t first = pass->first[slot] + piece * pass->piece;
    uint64_t count = pass->count - first < pass->piece ? pass->count - first : pass->piece;
    uint8_t *out = pass->stream->buffers[slot] + (size_t)(piece * pass->piece) * pass->item;
    (void)worker;
    if (chosen->as_is)
        return coffer_tensors_read(out, chosen->set, chosen->index, first, (size_t)count, err);
    return coffer_tensors_read_as(out, chosen->dtype, chosen->set, chosen->index, first, count, err);
}

static coffer_status put_batch(void *context, size_t slot, coffer_error *err)
{
    const passage *pass = context;
    return pass->put(pass->context, pass->stream->buffers[slot], (size_t)pass->elements[slot] * pass->item,
                     err);
}

static coffer_status count_batch(void *context, size_t slot, coffer_error *err)
{
    const passage *pass = context;
    return coffer__work_advance(pass->stream->work, pass->elements[slot] * pass->item, err);
}

coffer_status coffer__tensors_stream_run(coffer__tensors_stream *stream, const coffer__chosen_tensor *chosen,
                                         coffer__tensors_put put, void *context, coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { prepare_batch, read_piece, put_batch, count_batch };
    passage pass = { .stream = stream, .chosen = chosen, .put = put, .context = context };
    cut(&pass);
    coffer_status status = reserve(&pass, err);
    return status ? status : coffer__work_run_pipeline(stream->work, &pipeline, &pass, err);
}
