/* Where a remote file is, and what a request for it looks like: http, https, s3 and hf. */
#ifndef COFFER_IO_REMOTE_ADDRESS_H
#define COFFER_IO_REMOTE_ADDRESS_H

#include "io/remote/aws_settings.h"
#include "io/remote/url.h"

#include <time.h>

#define COFFER__MAX_REQUEST_HEADERS 16

typedef struct coffer__remote_address {
    char *shown;         /* for messages: without credentials and query */
    coffer__url url;     /* what is asked first */
    char *authorization; /* a header for the origin of `url` alone; NULL for none */
    bool is_s3;
    size_t bucket_len; /* of s3: how much of the path of `url` names the bucket, without a '/' at its end */
    coffer__aws_settings aws;
} coffer__remote_address;

/* A URL and the lines of the header of one request. */
typedef struct coffer__remote_request {
    char *url;
    char *headers[COFFER__MAX_REQUEST_HEADERS];
    size_t header_count;
} coffer__remote_request;

coffer_status coffer__remote_address_parse(coffer__remote_address *out, const char *text, coffer_error *err);
void coffer__remote_address_free(coffer__remote_address *address);

#define COFFER__MAX_LINE_HEADERS 4

/* The parts of a request that differ from one to the next. */
typedef struct coffer__request_line {
    const char *method;
    const char *payload_hash; /* of the body, for signatures; NULL without a body */
    /* Headers that a signature covers; the names in lower case. At most COFFER__MAX_LINE_HEADERS. */
    const struct coffer__sigv4_header *headers;
    size_t header_count;
} coffer__request_line;

/* Begins a request to `url`, which is that of the address or where a redirect led; credentials are added only
 * for the origin of the address. */
coffer_status coffer__remote_request_make(coffer__remote_request *out, const coffer__remote_address *address,
                                          const coffer__url *url, const coffer__request_line *line,
                                          time_t now, coffer_error *err);
/* Adds a line of the header. */
coffer_status coffer__remote_request_add(coffer__remote_request *request, coffer_error *err,
                                         const char *format, ...) COFFER_PRINTF(3, 4);
void coffer__remote_request_free(coffer__remote_request *request);

#endif
