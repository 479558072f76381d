/* Where the records of a file really are, when header and file disagree. */
#ifndef COFFER_FORMATS_MSCAN_DAMAGE_H
#define COFFER_FORMATS_MSCAN_DAMAGE_H

#include "formats/mscan/mscan_private.h"

typedef struct coffer__mscan_area {
    uint64_t start;        /* file offset of the first whole record */
    uint64_t count;        /* whole records */
    uint64_t lost;         /* records that the header counts and that are not there, or not whole */
    uint64_t trailing;     /* bytes after the last record */
    bool overwritten_head; /* the lost ones stood in front: the metadata grew over them */
} coffer__mscan_area;

/* metadata : NULL when it could not be read. */
coffer_status coffer__mscan_locate_records(coffer__mscan_area *out, coffer_source *src,
                                           const coffer__mscan_header *header,
                                           const coffer__mscan_metadata *metadata, coffer_error *err);

#endif
