/* Which files a block matrix is made of. */
#ifndef COFFER_FORMATS_PYCAUSET_MANIFEST_H
#define COFFER_FORMATS_PYCAUSET_MANIFEST_H

#include "formats/pycauset/pycauset_private.h"

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

#endif
