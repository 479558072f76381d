/* Where the records of a file really are, when header and file disagree. */
#ifndef COFFER_FORMATS_MSCAN_DAMAGE_H
#define COFFER_FORMATS_MSCAN_DAMAGE_H

#include "formats/mscan/mscan_private.h"

typedef struct coffer__mscan_area {
    uint64_t start;        /* file offset of the first complete record */
    uint64_t count;        /* complete records from there on */
    uint64_t lost;         /* records that the header counts and that are missing or incomplete */
    uint64_t trailing;     /* bytes after the last record */
    bool overwritten_head; /* the lost ones were in front: the metadata grew over them */
    /* Bytes are missing in the middle: these records follow the gap and end with the file. */
    uint64_t tail_start, tail_count;
    bool uncertain; /* records could start in several places, and nothing says which is right */
} coffer__mscan_area;

/* metadata : NULL when it could not be read. Reads all records if some are missing. */
coffer_status coffer__mscan_locate_records(coffer__mscan_area *out, coffer_source *src,
                                           const coffer__mscan_header *header,
                                           const coffer__mscan_metadata *metadata, coffer_error *err);

#endif
