#ifndef COFFER_REMOTE_H
#define COFFER_REMOTE_H

#include "coffer/error.h"
#include "coffer/node.h"
#include "coffer/progress.h"

COFFER_BEGIN_DECLS

/* Uploading to S3 and servers that speak its protocol. Files on servers are read with coffer_source_open. */

typedef struct coffer_put_opts {
    uint32_t struct_size;
    bool overwrite;     /* replace an object that exists; else COFFER_E_EXISTS */
    uint32_t parallel;  /* parts that are sent at once; 0 = 8 */
    uint64_t part_size; /* bytes of a part, from 5 MiB to 5 GiB; 0 = 8 MiB, more for a file over 80 GiB */
    const char *state_folder; /* where unfinished uploads are remembered; NULL = coffer/uploads in
                               * XDG_CACHE_HOME or ~/.cache */
    const coffer_progress *progress;
} coffer_put_opts;

#define COFFER_PUT_OPTS_INIT                             \
    {                                                    \
        sizeof(coffer_put_opts), false, 0, 0, NULL, NULL \
    }

COFFER_API void coffer_put_opts_init(coffer_put_opts *opts, uint32_t struct_size);

/* Uploads a file to "s3://bucket/key"; a key that ends in '/' gets the name of the file. A file of one part
 * is sent in one request, a longer one in parts, several at once, each with its checksum. The object appears
 * when it is complete, and has the old content or none before.
 * path : a file, "-" for standard input, or the address of another remote file.
 * After a failure, or when `progress` cancels, the parts stay on the server. The next call for the same file
 * and address compares their checksums with the file and sends only what is missing; coffer_put_abort removes
 * them.
 * out : a map that gets "address", "size", "parts", "parts_found" (of an earlier call), "bytes_sent", "etag",
 * "checksum", and "verified": the checksum that the server has confirmed, "sha256" or "md5", or null.
 * COFFER_E_CHANGED when the file changes meanwhile, COFFER_E_LOCKED while another process uploads it there.
 */
COFFER_API_STATUS coffer_put(coffer_node *out, const char *path, const char *address,
                             const coffer_put_opts *opts, coffer_error *err);

/* Removes the parts of every unfinished upload to an address, also of those that other programs began.
 * path : the file, for an address that ends in '/'; else NULL. out : a map that gets "address" and
 * "uploads_removed". */
COFFER_API_STATUS coffer_put_abort(coffer_node *out, const char *path, const char *address,
                                   const coffer_put_opts *opts, coffer_error *err);

COFFER_END_DECLS

#endif
