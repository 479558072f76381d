/* Reads a gzip or zstd stream, or a plain file, from start to end. */
#ifndef COFFER_CONVERT_UNPACK_H
#define COFFER_CONVERT_UNPACK_H

#include "base/buffer.h"
#include "coffer/limits.h"
#include "coffer/source.h"
#include "io/sink.h"

typedef enum coffer__packing {
    COFFER__PACKING_NONE,
    COFFER__PACKING_GZIP,
    COFFER__PACKING_ZSTD
} coffer__packing;

/* By the magic of the first bytes. */
coffer__packing coffer__packing_of(const uint8_t *head, size_t len);
/* By the end of a name: .gz, .zst. */
coffer__packing coffer__packing_by_name(const char *path);

typedef struct coffer__unpack coffer__unpack;

/* The number of bytes that may come out of `packed` compressed ones: `least` or, where that is more, their
 * number times limits->unpack_ratio. */
uint64_t coffer__unpack_limit(uint64_t packed, uint64_t least, const coffer_limits *limits);

/* src : borrowed. limits : complete (coffer__limits). Past the limit, with limits->unpacked_bytes as the
 * least, COFFER_E_LIMIT. */
coffer_status coffer__unpack_open(coffer__unpack **out, coffer_source *src, const coffer_limits *limits,
                                  coffer_error *err);
void coffer__unpack_close(coffer__unpack *unpack);
/* The next bytes, at most len; *got is 0 at the end only. Several members or frames are one text.
 * COFFER_E_TRUNCATED when the stream breaks off, COFFER_E_BAD_VALUE or COFFER_E_BAD_CHECKSUM when it is
 * damaged. */
coffer_status coffer__unpack_read(void *out, size_t len, size_t *got, coffer__unpack *unpack,
                                  coffer_error *err);
coffer__packing coffer__unpack_packing(const coffer__unpack *unpack);
/* How far the file has been read: for progress. */
uint64_t coffer__unpack_position(const coffer__unpack *unpack);

/* The plain bytes as a source of their own, in an unnamed temporary file. It keeps the name of src. */
coffer_status coffer__unpack_to_source(coffer_source **out, coffer_source *src, const coffer_limits *limits,
                                       coffer_error *err);
/* All of it; more than max is COFFER_E_LIMIT. */
coffer_status coffer__unpack_all(coffer__buffer *out, coffer_source *src, uint64_t max,
                                 const coffer_limits *limits, coffer_error *err);
/* The first bytes, at most len; as many as there are before the stream ends or is damaged. Fails only when
 * the file cannot be read. */
coffer_status coffer__unpack_head(uint8_t *out, size_t len, size_t *got, coffer_source *src,
                                  coffer_error *err);

/* Bytes on their way into a sink, packed with gzip or zstd or left as they are. */
typedef struct coffer__pack coffer__pack;

/* sink : borrowed. */
coffer_status coffer__pack_open(coffer__pack **out, coffer__sink *sink, coffer__packing packing,
                                coffer_error *err);
coffer_status coffer__pack_write(coffer__pack *pack, const void *bytes, size_t len, coffer_error *err);
/* Writes the end of the stream; nothing can follow. */
coffer_status coffer__pack_finish(coffer__pack *pack, coffer_error *err);
void coffer__pack_close(coffer__pack *pack);

#endif
