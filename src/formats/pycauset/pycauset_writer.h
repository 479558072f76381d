/* What the writer is made of, shared with the writer of block matrices. */
#ifndef COFFER_FORMATS_PYCAUSET_WRITER_H
#define COFFER_FORMATS_PYCAUSET_WRITER_H

#include "formats/pycauset/pycauset_output.h"
#include "formats/pycauset/pycauset_payload.h"

struct coffer_pycauset_writer {
    coffer__pycauset_output output;
    char uuid[COFFER__PYCAUSET_UUID_SIZE + 1]; /* empty: from the content */
    bool checksums;
    coffer_pycauset_changes *says;  /* the keys that say what the payload is; owned */
    coffer_pycauset_changes *extra; /* the caller's; NULL or owned */
    coffer_pycauset_info info;
    coffer__pycauset_grid grid;
    uint64_t rows;    /* written so far */
    uint8_t bits[64]; /* of a vector of bits: what does not fill a word yet */
    size_t bit_count;
    coffer__cpu_level level;
    coffer_error failure; /* the first of disk or memory; sticks */
};

/* A writer of what the changes say, which it takes over, also on failure. */
coffer_status coffer__pycauset_writer_new(coffer_pycauset_writer **out, const char *path,
                                          coffer_pycauset_changes *says,
                                          const coffer_pycauset_writer_opts *opts, coffer_error *err);

#endif
