/* Writing safetensors: one file, or shards and the index that names them. */
#ifndef COFFER_CONVERT_SAFETENSORS_WRITE_H
#define COFFER_CONVERT_SAFETENSORS_WRITE_H

#include "outside/models/safetensors.h"

/* A tensor of a new file. */
typedef struct coffer__safetensors_entry {
    const char *name;
    const char *type; /* "BF16" */
    uint32_t rank;
    const uint64_t *dims;
    uint64_t size;
} coffer__safetensors_entry;

/* Appends the length of the header and the header, padded with spaces so that the data begins at a multiple
 * of
 * 8. The payloads follow in the order of the entries. */
void coffer__safetensors_put_header(coffer__buffer *out, const coffer__safetensors_entry *entries,
                                    size_t count, const coffer__safetensors_metadata *metadata);

/* "model-00002-of-00003.safetensors" for "model.safetensors". */
void coffer__safetensors_put_shard_name(coffer__buffer *out, const char *path, size_t shard,
                                        size_t shard_count);

#endif
