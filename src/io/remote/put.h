/* An upload to S3: what the files put*.c share. */
#ifndef COFFER_IO_REMOTE_PUT_H
#define COFFER_IO_REMOTE_PUT_H

#include "coffer/remote.h"
#include "coffer/source.h"
#include "io/remote/md5.h"
#include "io/remote/s3_call.h"

#define COFFER__PUT_SHA_SIZE 32
#define COFFER__PUT_MAX_PARTS 10000
#define COFFER__PUT_MAX_ID 1024
#define COFFER__PUT_STEP_MS 100

typedef char coffer__put_etag[72];

/* Checksums of bytes that are sent, in the spellings of the protocol. */
typedef struct coffer__put_digest {
    uint8_t raw[COFFER__PUT_SHA_SIZE];
    char hex[COFFER__SIGV4_HASH_HEX + 1];
    char sha[48];          /* base64 */
    char md5[28];          /* base64; "" when it was not needed */
    coffer__put_etag etag; /* the MD5 in hexadecimal digits and quotes; "" as above */
} coffer__put_digest;

typedef struct coffer__put_part {
    uint8_t sha[COFFER__PUT_SHA_SIZE]; /* of the bytes in the file */
    coffer__put_etag etag;             /* "" until the server has the part */
    uint64_t found_size;               /* what ListParts says about an earlier upload */
    char found_sha[48];
} coffer__put_part;

/* The file that remembers an unfinished upload; locked while it is open. */
typedef struct coffer__put_state {
    char *path; /* NULL: nothing is remembered */
    int fd;
    bool is_used;       /* it names an upload */
    uint64_t part_size; /* of that upload */
} coffer__put_state;

typedef struct coffer__put {
    coffer__s3_client client;
    coffer_source *src;
    uint64_t size, part_size;
    uint32_t count; /* of parts */
    unsigned parallel;
    bool overwrite;
    bool uses_md5;                          /* the server does not keep SHA-256 of parts */
    char upload_id[COFFER__PUT_MAX_ID + 1]; /* "" before the upload begins */
    coffer__put_part *parts;
    coffer__put_state state;
    /* Results */
    uint64_t stored, sent; /* bytes */
    uint32_t found;        /* parts of an earlier upload */
    bool has_unverified;   /* the server confirmed no checksum of some bytes */
    bool has_md5_only;     /* it confirmed the MD5 of some */
    char etag[160], checksum[96];
} coffer__put;

void coffer__put_digest_of(coffer__put_digest *out, const void *bytes, size_t len, bool with_md5);
/* The answer to a request that stored bytes has their checksum. part : for messages; 0 for a whole object. */
coffer_status coffer__put_check_stored(coffer__put *put, coffer__put_digest *digest, const void *bytes,
                                       size_t len, const coffer__http_answer *answer, uint32_t part,
                                       coffer_error *err);
/* COFFER_E_CHANGED when the file is not the one that was opened. */
coffer_status coffer__put_check_file(const coffer__put *put, coffer_error *err);

/* Begins an upload of parts, or continues the one that the state remembers. */
coffer_status coffer__put_begin(coffer__put *put, coffer_error *err);
/* Sends the parts that the server does not have. */
coffer_status coffer__put_send_parts(coffer__put *put, coffer_error *err);
/* Makes the object appear. */
coffer_status coffer__put_complete(coffer__put *put, coffer_error *err);
coffer_status coffer__put_abort_upload(coffer__s3_client *client, const char *upload_id, coffer_error *err);

/* Asks about the object. exists : false when the server says that it does not, or does not let us ask. */
coffer_status coffer__put_look(coffer__put *put, coffer__http_answer *out, bool *exists, coffer_error *err);
coffer_status coffer__put_fail_exists(coffer_error *err);

/* Opens and locks the file for an upload from `name` to `url`. COFFER_E_LOCKED: another process has it. A
 * folder that cannot be used is not an error: then nothing is remembered. folder : NULL for the default. */
coffer_status coffer__put_state_open(coffer__put *put, const char *folder, const char *name, const char *url,
                                     coffer_error *err);
coffer_status coffer__put_state_save(coffer__put *put, coffer_error *err);
/* done : the upload is finished or given up. */
void coffer__put_state_close(coffer__put_state *state, bool done);

#endif
