#include "convert/text_out.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

/* The texts of a batch. Their memory stays for the next one. */
typedef struct text_batch {
    coffer__buffer *texts;
    size_t capacity, count;
    uint64_t items;
} text_batch;

typedef struct text_run {
    const coffer__text_out *out;
    void *context;
    coffer__sink *sink;
    text_batch batches[2];
} text_run;

static coffer_status make_room(text_batch *batch, uint64_t pieces, coffer_error *err)
{
    while (batch->capacity < pieces) {
        size_t capacity = batch->capacity;
        coffer_status status =
            coffer__array_reserve_one(&batch->texts, &capacity, batch->capacity, sizeof *batch->texts, err);
        if (status)
            return status;
        for (; batch->capacity < capacity; batch->capacity++)
            coffer__buffer_init(&batch->texts[batch->capacity], SIZE_MAX);
    }
    batch->count = (size_t)pieces;
    return COFFER_OK;
}

static coffer_status prepare(void *context, size_t slot, uint64_t *pieces, coffer_error *err)
{
    text_run *run = context;
    text_batch *batch = &run->batches[slot];
    batch->items = 0;
    coffer_status status = run->out->next(run->context, &batch->items, err);
    *pieces = batch->items / run->out->piece + (batch->items % run->out->piece > 0);
    return status ? status : make_room(batch, *pieces, err);
}

static coffer_status produce(void *context, size_t slot, uint64_t piece, uint32_t worker, coffer_error *err)
{
    text_run *run = context;
    text_batch *batch = &run->batches[slot];
    coffer__buffer *text = &batch->texts[piece];
    uint64_t first = piece * run->out->piece, left = batch->items - first;
    text->len = 0;
    coffer_status status = run->out->put(run->context, text, first,
                                         left < run->out->piece ? left : run->out->piece, worker, err);
    return !status && text->failed ? coffer__fail_no_memory(err, text->len) : status;
}

static coffer_status consume(void *context, size_t slot, coffer_error *err)
{
    text_run *run = context;
    text_batch *batch = &run->batches[slot];
    coffer_status status = COFFER_OK;
    for (size_t i = 0; !status && i < batch->count; i++)
        status = coffer__sink_write(run->sink, batch->texts[i].data, batch->texts[i].len, err);
    return status;
}

uint32_t coffer__text_out_threads(const coffer__text_out *out)
{
    uint64_t pieces = out->total / out->piece + 1, cores = coffer__cpu_count();
    return (uint32_t)(pieces < cores ? pieces : cores);
}

coffer_status coffer__text_out_run(coffer__sink *sink, const coffer__text_out *out, void *context,
                                   coffer_error *err)
{
    static const coffer__work_pipeline pipeline = { prepare, produce, consume, NULL };
    const coffer__work_opts opts = { .threads = coffer__text_out_threads(out) };
    text_run run = { .out = out, .context = context, .sink = sink };
    coffer__work *work = NULL;
    coffer_status status = coffer__work_new(&work, &opts, err);
    if (!status)
        status = coffer__work_run_pipeline(work, &pipeline, &run, err);
    coffer__work_free(work);
    for (size_t slot = 0; slot < 2; slot++) {
        for (size_t i = 0; i < run.batches[slot].capacity; i++)
            coffer__buffer_free(&run.batches[slot].texts[i]);
        coffer__free(run.batches[slot].texts);
    }
    return status;
}
