/* The children of a block matrix: opened when they are needed, a bounded number at a time. */
#ifndef COFFER_FORMATS_PYCAUSET_BLOCKS_H
#define COFFER_FORMATS_PYCAUSET_BLOCKS_H

#include "formats/pycauset/pycauset_manifest.h"
#include "formats/pycauset/pycauset_payload.h"

#include <pthread.h>

/* A block matrix may be a child of one, so often. */
#define COFFER__PYCAUSET_BLOCK_DEPTH 16

typedef struct coffer__pycauset_block_child {
    size_t index;
    coffer_source *source;
    coffer_pycauset *matrix;
    uint32_t users;
    uint64_t last_used;
} coffer__pycauset_block_child;

struct coffer__pycauset_blocks {
    coffer__pycauset_manifest manifest;
    char *folder;      /* NULL: not known, the source is no file */
    bool folder_given; /* by the caller: then it may be a symbolic link */
    pthread_mutex_t mutex;
    /* Guarded by the mutex: */
    coffer__pycauset_block_child **open;
    size_t open_count, open_capacity;
    uint64_t clock;
};

/* The children of a block matrix, made when first asked for; borrowed. */
coffer_status coffer__pycauset_blocks_get(struct coffer__pycauset_blocks **out, const coffer_pycauset *matrix,
                                          coffer_error *err);
/* An open child, kept open until it is released. */
coffer_status coffer__pycauset_blocks_acquire(coffer__pycauset_block_child **out,
                                              struct coffer__pycauset_blocks *blocks,
                                              const coffer_pycauset *parent, size_t child, coffer_error *err);
void coffer__pycauset_blocks_release(struct coffer__pycauset_blocks *blocks,
                                     coffer__pycauset_block_child *child);
/* NAME.blocks beside a file; coffer__free. NULL: no memory. */
char *coffer__pycauset_blocks_folder(const char *path);

#endif
