/* The metadata of two matrices compared. */
#ifndef COFFER_FORMATS_PYCAUSET_DIFF_H
#define COFFER_FORMATS_PYCAUSET_DIFF_H

#include "formats/pycauset/pycauset_private.h"

/* What is left to compare when shape, types and values are compared by themselves: keys that only say how the
 * payload is stored and seen are left out, of cached values only those that hold are taken. */
typedef struct coffer__pycauset_diffed_metadata {
    coffer__arena memory;
    coffer_pycauset_value a, b;
    uint64_t changes;
} coffer__pycauset_diffed_metadata;

/* The caller frees, also after a failure. What it holds borrows from the matrices. */
coffer_status coffer__pycauset_diffed_metadata_compare(coffer__pycauset_diffed_metadata *out,
                                                       const coffer_pycauset *a, const coffer_pycauset *b,
                                                       coffer_error *err);
void coffer__pycauset_diffed_metadata_free(coffer__pycauset_diffed_metadata *metadata);
/* Puts a map with the list "changes" of maps {path, change, old, new}. */
coffer_status coffer__pycauset_diffed_metadata_put(coffer_node *out, const char *name,
                                                   const coffer__pycauset_diffed_metadata *metadata,
                                                   coffer_error *err);

#endif
