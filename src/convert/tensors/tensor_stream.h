/* The elements of a tensor as another type, from its file into a new one: read and converted on all threads
 * while the piece before is written. Memory does not grow with the tensor. */
#ifndef COFFER_CONVERT_TENSOR_STREAM_H
#define COFFER_CONVERT_TENSOR_STREAM_H

#include "base/pool.h"
#include "convert/tensors/tensor_selection.h"

typedef struct coffer__tensor_stream coffer__tensor_stream;

/* Takes the bytes in their order. May be called on another thread than the one that runs the stream, never by
 * two at a time. */
typedef coffer_status (*coffer__tensor_put)(void *context, const void *bytes, size_t len, coffer_error *err);

/* threads : 0 = one per core.     progress : may be NULL.     total : bytes of all new payloads, for it. */
coffer_status coffer__tensor_stream_new(coffer__tensor_stream **out, uint32_t threads,
                                        const coffer_limits *limits, const coffer_progress *progress,
                                        uint64_t total, coffer_error *err);
void coffer__tensor_stream_free(coffer__tensor_stream *stream);
/* Runs a tensor through, its payload as it is where the choice says so. */
coffer_status coffer__tensor_stream_run(coffer__tensor_stream *stream, const coffer__chosen_tensor *chosen,
                                        coffer__tensor_put put, void *context, coffer_error *err);
/* Counts bytes that went another way. COFFER_E_CANCELLED when the caller wants no more. */
coffer_status coffer__tensor_stream_count(coffer__tensor_stream *stream, uint64_t bytes, coffer_error *err);

/* ---- For work of another kind on the same threads ---- */

uint32_t coffer__tensor_stream_pieces(
    const coffer__tensor_stream *stream); /* worth having under way together */
uint64_t coffer__tensor_stream_memory(const coffer__tensor_stream *stream); /* that they may take */
coffer_status coffer__tensor_stream_together(coffer__tensor_stream *stream, uint64_t count,
                                             coffer__pool_task task, void *context, coffer_error *err);

#endif
