/* Writing a new file. */
#ifndef COFFER_FORMATS_PYCAUSET_WRITER_H
#define COFFER_FORMATS_PYCAUSET_WRITER_H

#include "base/fail.h"
#include "base/table.h"
#include "formats/pycauset/pycauset_payload.h"
#include "io/chunk_sums.h"
#include "io/sink.h"

/* ---- The payload of a new file (pycauset_output.c) ---- */

/* Bytes that are put aside in a file without a name. */
typedef struct coffer__pycauset_spool {
    int fd; /* −1: not open */
    uint8_t *buffer;
    size_t buffered;
    uint64_t written;
} coffer__pycauset_spool;

typedef struct coffer__pycauset_output {
    coffer__sink *sink;
    bool sums_wanted, digest_wanted;
    coffer__chunk_counter sums;
    coffer__digest *digest;
    uint64_t written;
    coffer__pycauset_spool stream;    /* the payload, when the header before it cannot be patched */
    coffer__pycauset_spool imaginary; /* parts of COMPLEX_FLOAT16, stored after all real ones */
} coffer__pycauset_output;

/* Begins a file: room for the header is left where it can be patched. planes : 2 for COMPLEX_FLOAT16. After a
 * failure the caller frees. */
coffer_status coffer__pycauset_output_open(coffer__pycauset_output *output, const char *path,
                                           const coffer_pycauset_writer_opts *opts, unsigned planes,
                                           coffer_error *err);
/* Discards what was not committed. */
void coffer__pycauset_output_free(coffer__pycauset_output *output);
coffer_status coffer__pycauset_output_put(coffer__pycauset_output *output, const void *bytes, size_t len,
                                          coffer_error *err);
coffer_status coffer__pycauset_output_put_imaginary(coffer__pycauset_output *output, const void *bytes,
                                                    size_t len, coffer_error *err);
/* No more comes: appends the imaginary parts, completes sums and digest. */
coffer_status coffer__pycauset_output_finish(coffer__pycauset_output *output, coffer_error *err);
/* Writes the metadata block and the header that names it, and gives the file its name. */
coffer_status coffer__pycauset_output_commit(coffer__pycauset_output *output, const coffer__buffer *block,
                                             coffer_error *err);

/* ---- The writer (pycauset_write.c), shared with the writer of block matrices ---- */

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
    coffer__sticky failure; /* of disk or memory */
};

/* A writer of what the changes say, which it takes over, also on failure. */
coffer_status coffer__pycauset_writer_new(coffer_pycauset_writer **out, const char *path,
                                          coffer_pycauset_changes *says,
                                          const coffer_pycauset_writer_opts *opts, coffer_error *err);

#endif
