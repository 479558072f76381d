/* The header of an HTTP answer, from lines that nobody has checked. */
#ifndef COFFER_IO_REMOTE_HTTP_ANSWER_H
#define COFFER_IO_REMOTE_HTTP_ANSWER_H

#include "coffer/error.h"

#define COFFER__HTTP_MAX_HEADER ((size_t)64 * 1024)

typedef struct coffer__http_answer {
    int status; /* 0 before the first line */
    size_t header_bytes;
    bool has_length, has_range, has_total;
    bool encoded;         /* compressed or otherwise not the bytes of the file */
    bool malformed;       /* a line that matters cannot be read */
    uint64_t length;      /* Content-Length */
    uint64_t first, last; /* Content-Range, when has_range */
    uint64_t total;       /* size of the file, when has_total */
    unsigned retry_after; /* seconds; 0 for none */
    char etag[160];       /* with its quotes; "" for none */
    char modified[48];    /* Last-Modified */
    char location[4096];
    char request_id[64]; /* x-amz-request-id */
    char region[32];     /* x-amz-bucket-region */
    char checksum[96];   /* x-amz-checksum-sha256 */
    bool has_checksums;  /* x-amz-checksum-algorithm: the server verifies and keeps checksums */
    bool has_own_key;    /* encrypted, so that the ETag is not a digest of the bytes */
} coffer__http_answer;

/* Takes a line with or without its end. A status line begins a new answer, since proxies and "100 Continue"
 * send one before the answer itself. False when the header has grown too large. */
bool coffer__http_answer_line(coffer__http_answer *answer, const char *line, size_t len);
/* A validator that promises equal bytes. */
bool coffer__http_answer_has_strong_etag(const coffer__http_answer *answer);

#endif
