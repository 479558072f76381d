/* Bytes from front to back: those of a source, or what comes out when gzip or zstd around them is undone.
 * Nothing of it is held but a window. */
#ifndef COFFER_CONVERT_BYTE_STREAM_H
#define COFFER_CONVERT_BYTE_STREAM_H

#include "coffer/limits.h"
#include "coffer/source.h"

typedef struct coffer__byte_stream coffer__byte_stream;

/* src : borrowed, must outlive the stream. */
coffer_status coffer__byte_stream_open(coffer__byte_stream **out, coffer_source *src,
                                       const coffer_limits *limits, coffer_error *err);
void coffer__byte_stream_close(coffer__byte_stream *stream);
/* Number of bytes read or skipped; the offset in the source when nothing was decompressed. */
uint64_t coffer__byte_stream_position(const coffer__byte_stream *stream);
/* Bytes of the source after the position; UINT64_MAX when they are packed and so cannot be known. */
uint64_t coffer__byte_stream_left(const coffer__byte_stream *stream);
/* The next bytes, as many as asked for unless the stream ends: *got is then less. */
coffer_status coffer__byte_stream_read(void *out, size_t len, size_t *got, coffer__byte_stream *stream,
                                       coffer_error *err);
/* The same without a copy, borrowed from the source; NULL when that cannot be, and then nothing is taken. */
const uint8_t *coffer__byte_stream_view(coffer__byte_stream *stream, size_t len);
/* COFFER_E_TRUNCATED when the stream ends before. */
coffer_status coffer__byte_stream_skip(coffer__byte_stream *stream, uint64_t len, coffer_error *err);

#endif
