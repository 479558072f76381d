/* Copies tensors into a new file as another type: elements are read and converted on all threads while the
 * batch before is written. Memory does not grow with the tensor. */
#ifndef COFFER_CONVERT_TENSOR_STREAM_H
#define COFFER_CONVERT_TENSOR_STREAM_H

#include "base/work.h"
#include "convert/tensors/tensor_selection.h"

typedef struct coffer__tensors_stream coffer__tensors_stream;

/* Takes the bytes in their order. May be called on another thread than the one that runs the stream, never by
 * two at a time. */
typedef coffer_status (*coffer__tensors_put)(void *context, const void *bytes, size_t len, coffer_error *err);

/* threads : 0 = one per core.     progress : may be NULL.     total : bytes of all new payloads, for it. */
coffer_status coffer__tensors_stream_new(coffer__tensors_stream **out, uint32_t threads,
                                         const coffer_limits *limits, const coffer_progress *progress,
                                         uint64_t total, coffer_error *err);
void coffer__tensors_stream_free(coffer__tensors_stream *stream);
/* Copies a tensor; its payload unchanged where the choice says so. */
coffer_status coffer__tensors_stream_run(coffer__tensors_stream *stream, const coffer__chosen_tensor *chosen,
                                         coffer__tensors_put put, void *context, coffer_error *err);
/* Adds bytes that were written without the stream to the progress; may return COFFER_E_CANCELLED. */
coffer_status coffer__tensors_stream_count(coffer__tensors_stream *stream, uint64_t bytes, coffer_error *err);

/* ---- For other work on the same threads ---- */

uint32_t coffer__tensors_stream_pieces(const coffer__tensors_stream *stream); /* useful size of a batch */
uint64_t coffer__tensors_stream_memory(const coffer__tensors_stream *stream); /* bytes that it may take */
coffer__work *coffer__tensors_stream_work(const coffer__tensors_stream *stream);

#endif
