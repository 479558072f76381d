/* Block matrices: the manifest, and the children, opened when they are needed, a bounded number at a time. */
#ifndef COFFER_FORMATS_PYCAUSET_BLOCKS_H
#define COFFER_FORMATS_PYCAUSET_BLOCKS_H

#include "formats/pycauset/pycauset_payload.h"

#include <pthread.h>

typedef struct coffer__pycauset_manifest_child {
    const char *path, *uuid; /* borrowed from the metadata */
} coffer__pycauset_manifest_child;

typedef struct coffer__pycauset_manifest {
    uint64_t *row_edges, *col_edges; /* one more than there are blocks: from 0 to the number of rows */
    size_t block_rows, block_cols;
    size_t *child_of;                          /* of each block, row by row */
    coffer__pycauset_manifest_child *children; /* each file once */
    size_t child_count;
} coffer__pycauset_manifest;

/* Reads and checks it, as the file stores it: before the transposition. No file is looked at. offset : for
 * messages. */
coffer_status coffer__pycauset_manifest_read(coffer__pycauset_manifest *out,
                                             const coffer_pycauset_value *root,
                                             const coffer_pycauset_info *info, uint64_t offset,
                                             coffer_error *err);
void coffer__pycauset_manifest_free(coffer__pycauset_manifest *manifest);

/* How deep block matrices may nest. */
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
    char *folder;      /* NULL: unknown, the source is not a file */
    bool folder_given; /* by the caller: then it may be a symbolic link */
    pthread_mutex_t mutex;
    /* Guarded by the mutex: */
    coffer__pycauset_block_child **open;
    size_t open_count, open_capacity;
    uint64_t clock;
};

/* The children of a block matrix, created by the first call; borrowed. */
coffer_status coffer__pycauset_blocks_get(struct coffer__pycauset_blocks **out, const coffer_pycauset *matrix,
                                          coffer_error *err);
/* An open child, kept open until it is released. */
coffer_status coffer__pycauset_blocks_acquire(coffer__pycauset_block_child **out,
                                              struct coffer__pycauset_blocks *blocks,
                                              const coffer_pycauset *parent, size_t child, coffer_error *err);
void coffer__pycauset_blocks_release(struct coffer__pycauset_blocks *blocks,
                                     coffer__pycauset_block_child *child);
/* Copies the children of a block matrix to where a matrix at `path` looks for them, those of children that
 * are block matrices too. report : gets a warning for each child that cannot be copied; NULL: the first one
 * is an error, and so is a child whose payload is damaged. */
coffer_status coffer__pycauset_copy_children(const coffer_pycauset *matrix, const char *path,
                                             coffer_report *report, coffer_error *err);
/* NAME.blocks next to a file; coffer__free. NULL: no memory. */
char *coffer__pycauset_blocks_folder(const char *path);

#endif
