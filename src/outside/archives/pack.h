/* Bytes on their way into a sink, packed with gzip or zstd or left as they are. */
#ifndef COFFER_CONVERT_PACK_H
#define COFFER_CONVERT_PACK_H

#include "io/sink.h"
#include "outside/archives/unpack.h"

typedef struct coffer__pack coffer__pack;

/* sink : borrowed. */
coffer_status coffer__pack_open(coffer__pack **out, coffer__sink *sink, coffer__packing packing,
                                coffer_error *err);
coffer_status coffer__pack_write(coffer__pack *pack, const void *bytes, size_t len, coffer_error *err);
/* Writes the end of the stream; nothing can follow. */
coffer_status coffer__pack_finish(coffer__pack *pack, coffer_error *err);
void coffer__pack_close(coffer__pack *pack);

#endif
