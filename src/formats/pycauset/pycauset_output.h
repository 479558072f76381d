/* The payload of a new file as it streams by: into the file, into the sums, into the name it gets. */
#ifndef COFFER_FORMATS_PYCAUSET_OUTPUT_H
#define COFFER_FORMATS_PYCAUSET_OUTPUT_H

#include "base/hash.h"
#include "formats/pycauset/pycauset_checksum.h"
#include "io/sink.h"

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
    coffer__pycauset_sums sums;
    coffer__digest *digest;
    uint64_t written;
    coffer__pycauset_spool stream;    /* the payload, when the header before it cannot be patched */
    coffer__pycauset_spool imaginary; /* parts of COMPLEX_FLOAT16, which come behind all real ones */
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

#endif
