/* GGUF files for tests, put together in memory. */
#ifndef SUPPORT_GGUF_H
#define SUPPORT_GGUF_H

#include "coffer/tensors.h"
#include "outside/models/gguf.h"
#include "support/temp.h"

typedef struct made_tensor {
    const char *name;
    uint32_t type; /* as GGUF numbers it: 0 F32, 1 F16, 8 Q8_0 … */
    uint32_t rank;
    uint64_t dims[4]; /* outermost first */
    const void *bytes;
    size_t len;
} made_tensor;

/* A file with these tensors (coffer__buffer_free). keys : from coffer__gguf_put_key and its like; NULL for
 * none. */
coffer__buffer gguf_make(const made_tensor *tensors, size_t count, const coffer__buffer *keys,
                         uint64_t key_count);

typedef struct gguf_set {
    coffer__buffer bytes;
    coffer_source *src;
    coffer_tensors *set;
} gguf_set;

/* The same, open as a set of tensors. */
gguf_set gguf_open_set(const made_tensor *tensors, size_t count, const coffer__buffer *keys,
                       uint64_t key_count);
void gguf_close_set(gguf_set *open);

#endif
