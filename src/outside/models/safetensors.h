/* safetensors files, the format of models on the Hugging Face hub.
 *
 *   u64 n | n bytes of JSON, padded with spaces | the tensors
 *
 *   {"__metadata__": {"key": "text", …}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 * …}
 *
 * Offsets count from the end of the header. The tensors cover all bytes after it, without gaps or overlaps.
 * A model in several files has a model.safetensors.index.json next to them, whose "weight_map" maps tensors
 * to files. */
#ifndef COFFER_OUTSIDE_SAFETENSORS_H
#define COFFER_OUTSIDE_SAFETENSORS_H

#include "base/buffer.h"
#include "coffer/dtype.h"
#include "coffer/limits.h"
#include "coffer/source.h"

/* The limit of the reference reader. */
#define COFFER__SAFETENSORS_MAX_HEADER ((uint64_t)100 * 1000 * 1000)
#define COFFER__SAFETENSORS_METADATA "__metadata__"

typedef struct coffer__safetensors_type {
    const char *name;   /* "F8_E4M3" */
    coffer_dtype dtype; /* COFFER_DTYPE_NONE: can only be copied */
    uint8_t bits;
} coffer__safetensors_type;

/* NULL for an unknown type. */
const coffer__safetensors_type *coffer__safetensors_type_by_name(const char *name, size_t len);
const coffer__safetensors_type *coffer__safetensors_type_of(coffer_dtype dtype);

bool coffer__safetensors_probe(const uint8_t *head, size_t len);

/* A key and a text of "__metadata__". */
typedef struct coffer__safetensors_item {
    char *key, *text; /* NUL-terminated; the text may contain NULs */
    size_t text_len;
} coffer__safetensors_item;

/* "__metadata__"; of several files, that of the first one that has any. */
typedef struct coffer__safetensors_metadata {
    coffer__safetensors_item *items;
    size_t count, capacity;
    uint64_t ignored; /* keys of tensors, in all files, that are none of the three and are not read */
    char *ignored_in; /* the first such tensor */
} coffer__safetensors_metadata;

typedef struct coffer__safetensors_tensor {
    const char *name;
    size_t name_len;
    const coffer__safetensors_type *type;
    uint32_t rank;
    const uint64_t *dims;
    uint64_t offset, size; /* in the file */
} coffer__safetensors_tensor;

typedef coffer_status (*coffer__safetensors_take)(void *context, const coffer__safetensors_tensor *tensor,
                                                  coffer_error *err);

/* Reads a header and checks it. Calls `take` for each tensor, and adds the metadata of the file to
 * `metadata`, unless that has some already. */
coffer_status coffer__safetensors_read(coffer__safetensors_metadata *metadata, coffer_source *src,
                                       const coffer_limits *limits, coffer__safetensors_take take,
                                       void *context, coffer_error *err);
/* Called for what cannot be used. tensor : its name; NULL for another part of the file. */
typedef coffer_status (*coffer__safetensors_lose)(void *context, const char *tensor, const coffer_error *why,
                                                  coffer_error *err);
/* The same for a damaged file: a tensor that is not complete goes to `lose`, the others to `take`. A wrong
 * length of the header is found out. */
coffer_status coffer__safetensors_salvage(coffer__safetensors_metadata *metadata, coffer_source *src,
                                          const coffer_limits *limits, coffer__safetensors_take take,
                                          coffer__safetensors_lose lose, void *context, coffer_error *err);
coffer_status coffer__safetensors_metadata_add(coffer__safetensors_metadata *metadata, const char *key,
                                               const char *text, size_t text_len, coffer_error *err);
void coffer__safetensors_metadata_free(coffer__safetensors_metadata *metadata); /* its items, not itself */

/* ---- Writing (safetensors_write.c) ---- */

/* A tensor of a new file. */
typedef struct coffer__safetensors_entry {
    const char *name;
    const char *type; /* "BF16" */
    uint32_t rank;
    const uint64_t *dims;
    uint64_t size;
} coffer__safetensors_entry;

/* Appends the length of the header and the header, padded with spaces to a multiple of 8. The payloads follow
 * in the order of the entries. */
void coffer__safetensors_put_header(coffer__buffer *out, const coffer__safetensors_entry *entries,
                                    size_t count, const coffer__safetensors_metadata *metadata);
/* "model-00002-of-00003.safetensors" for "model.safetensors". */
void coffer__safetensors_put_shard_name(coffer__buffer *out, const char *path, size_t shard,
                                        size_t shard_count);

#endif
