/* ZIP archives of stored members, written from front to back. Sizes are always said in 64 bits; the CRC-32
 * is after the contents, and in the directory. */
#ifndef COFFER_CONVERT_ZIP_WRITE_H
#define COFFER_CONVERT_ZIP_WRITE_H

#include "base/buffer.h"
#include "io/sink.h"

typedef struct coffer__zip_writer {
    coffer__sink *sink; /* borrowed */
    coffer__buffer directory;
    uint64_t count;
    uint64_t begin; /* of the current member's header */
    uint64_t size;  /* of its contents so far */
    uint32_t crc;
    const char *name;
} coffer__zip_writer;

void coffer__zip_writer_init(coffer__zip_writer *writer, coffer__sink *sink);
void coffer__zip_writer_free(coffer__zip_writer *writer);
/* name : borrowed until the member ends. */
coffer_status coffer__zip_begin(coffer__zip_writer *writer, const char *name, coffer_error *err);
coffer_status coffer__zip_put(coffer__zip_writer *writer, const void *bytes, size_t len, coffer_error *err);
coffer_status coffer__zip_end(coffer__zip_writer *writer, coffer_error *err);
/* The directory. */
coffer_status coffer__zip_finish(coffer__zip_writer *writer, coffer_error *err);

#endif
