/* Signature version 4 of Amazon's services. */
#ifndef COFFER_IO_REMOTE_SIGV4_H
#define COFFER_IO_REMOTE_SIGV4_H

#include "coffer/error.h"

#include <time.h>

#define COFFER__SIGV4_HASH_HEX 64
#define COFFER__SIGV4_DATE 16 /* "20130524T000000Z" */

/* A header that is signed; the name in lower case. */
typedef struct coffer__sigv4_header {
    const char *name, *value;
} coffer__sigv4_header;

typedef struct coffer__sigv4_request {
    const char *method;
    const char *path;                    /* escaped once, as it is sent */
    const char *query;                   /* escaped, as it is sent; NULL for none */
    const coffer__sigv4_header *headers; /* sorted by name; host among them */
    size_t header_count;
    const char *payload_hash; /* 64 hexadecimal digits */
    const char *date;         /* as in the header x-amz-date */
    const char *region, *service;
    const char *key_id, *secret;
} coffer__sigv4_request;

/* The value of the header Authorization; the caller frees it with coffer__free. */
coffer_status coffer__sigv4_sign(char **out, const coffer__sigv4_request *request, coffer_error *err);
/* SHA-256 in hexadecimal digits with a NUL. */
void coffer__sigv4_hash(char out[COFFER__SIGV4_HASH_HEX + 1], const void *bytes, size_t len);
void coffer__sigv4_format_date(char out[COFFER__SIGV4_DATE + 1], time_t when);

#endif
