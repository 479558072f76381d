/* Text that is made in pieces on all cores and written in order: lines of numbers, rows of a table. */
#ifndef COFFER_CONVERT_TEXT_OUT_H
#define COFFER_CONVERT_TEXT_OUT_H

#include "base/buffer.h"
#include "io/sink.h"

typedef struct coffer__text_out {
    uint64_t total; /* items of all batches, as far as known: little work gets few threads */
    uint64_t piece; /* items of a piece */
    /* Gets the next batch ready, on the calling thread, while nothing else runs. *items : 0 = no more. */
    coffer_status (*next)(void *context, uint64_t *items, coffer_error *err);
    /* Appends the text of `count` items of the batch; on any thread. */
    coffer_status (*put)(void *context, coffer__buffer *text, uint64_t first, uint64_t count, uint32_t worker,
                         coffer_error *err);
} coffer__text_out;

/* Threads that will call `put` at most, for state of their own. */
uint32_t coffer__text_out_threads(const coffer__text_out *out);
coffer_status coffer__text_out_run(coffer__sink *sink, const coffer__text_out *out, void *context,
                                   coffer_error *err);

#endif
