/* safetensors files, as the Hugging Face hub keeps models in.
 *
 *   u64 n | n bytes of JSON, padded with spaces | the tensors
 *
 *   {"__metadata__": {"key": "text", …}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 * …}
 *
 * Offsets count from the end of the header. The tensors cover all bytes behind it, without holes or overlaps.
 * A model in several files has model.safetensors.index.json beside them, whose "weight_map" says which tensor
 * is in which. */
#ifndef COFFER_CONVERT_SAFETENSORS_H
#define COFFER_CONVERT_SAFETENSORS_H

#include "base/buffer.h"
#include "convert/tensors/tensors.h"

/* The limit of the format's own reader. */
#define COFFER__SAFETENSORS_MAX_HEADER ((uint64_t)100 * 1000 * 1000)
#define COFFER__SAFETENSORS_METADATA "__metadata__"

typedef struct coffer__safetensors_type {
    const char *name;   /* "F8_E4M3" */
    coffer_dtype dtype; /* COFFER_DTYPE_NONE: only bytes to us */
    uint8_t bits;
} coffer__safetensors_type;

/* NULL when there is none. */
const coffer__safetensors_type *coffer__safetensors_type_by_name(const char *name, size_t len);
const coffer__safetensors_type *coffer__safetensors_type_of(coffer_dtype dtype);

bool coffer__safetensors_probe(const uint8_t *head, size_t len);

/* A key and a text of "__metadata__". */
typedef struct coffer__safetensors_item {
    char *key, *text; /* NUL-terminated; the text may hold NULs of its own */
    size_t text_len;
} coffer__safetensors_item;

/* What a file says beside its tensors; of several files, what the first that says something says. */
typedef struct coffer__safetensors_metadata {
    coffer__safetensors_item *items;
    size_t count, capacity;
} coffer__safetensors_metadata;

/* Reads a header and checks it. Adds src to the set as a part, its tensors, and to `metadata` what the file
 * says, unless there is something already. */
coffer_status coffer__safetensors_read(coffer_tensors *set, coffer__safetensors_metadata *metadata,
                                       coffer_source *src, bool owned, coffer_error *err);
coffer_status coffer__safetensors_metadata_add(coffer__safetensors_metadata *metadata, const char *key,
                                               const char *text, size_t text_len, coffer_error *err);
void coffer__safetensors_metadata_free(coffer__safetensors_metadata *metadata); /* its items, not itself */
/* Of a set that is open; NULL when it is of another kind. */
const coffer__safetensors_metadata *coffer__safetensors_metadata_of(const coffer_tensors *set);

#endif
