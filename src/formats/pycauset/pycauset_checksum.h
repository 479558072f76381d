/* CRC-32 sums of a payload that passes by. */
#ifndef COFFER_FORMATS_PYCAUSET_CHECKSUM_H
#define COFFER_FORMATS_PYCAUSET_CHECKSUM_H

#include "formats/pycauset/pycauset_private.h"

typedef struct coffer__pycauset_sums {
    coffer__buffer sums; /* a little-endian u32 for each group that is complete */
    uint32_t crc;
    size_t in_group;
} coffer__pycauset_sums;

#define COFFER__PYCAUSET_SUMS_INIT \
    {                              \
        COFFER__BUFFER_INIT, 0, 0  \
    }

void coffer__pycauset_sums_add(coffer__pycauset_sums *sums, const void *bytes, size_t len);
/* Takes the last group in, which may be shorter. */
coffer_status coffer__pycauset_sums_finish(coffer__pycauset_sums *sums, coffer_error *err);

#endif
