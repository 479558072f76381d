/* Finds metadata blocks in a file, whether a slot names them or not. */
#ifndef COFFER_FORMATS_PYCAUSET_SCAN_H
#define COFFER_FORMATS_PYCAUSET_SCAN_H

#include "formats/pycauset/pycauset_private.h"

typedef struct coffer__pycauset_found {
    uint64_t offset, length;
} coffer__pycauset_found;

/* Blocks in the order of their offsets; none overlap. All zero to begin. */
typedef struct coffer__pycauset_scan {
    coffer__pycauset_found *items;
    size_t count, capacity;
    uint64_t damaged; /* bytes between payload and the last block that a slot names that are in no block */
} coffer__pycauset_scan;

/* Adds the blocks with whole framing and matching checksum that begin in [from, to). Time is linear in the
 * bytes looked at: COFFER_E_LIMIT when the file is full of things that only look like blocks. */
coffer_status coffer__pycauset_scan_range(coffer__pycauset_scan *out, coffer_source *src, uint64_t from,
                                          uint64_t to, const coffer_limits *limits, coffer_error *err);
/* All blocks outside the payload, which may hold anything. A slot must be valid. */
coffer_status coffer__pycauset_scan_blocks(coffer__pycauset_scan *out, coffer_source *src,
                                           const coffer__pycauset_header *header, const coffer_limits *limits,
                                           coffer_error *err);
void coffer__pycauset_scan_free(coffer__pycauset_scan *scan);

#endif
