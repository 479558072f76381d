/* Requests to S3 that write: made and repeated on the thread of the caller, several at once. */
#ifndef COFFER_IO_REMOTE_S3_CALL_H
#define COFFER_IO_REMOTE_S3_CALL_H

#include "base/buffer.h"
#include "coffer/progress.h"
#include "io/remote/remote.h"
#include "io/remote/sigv4.h"

typedef struct coffer__s3_call coffer__s3_call;
struct coffer__s3_call {
    /* Set by the caller, and kept until the call has ended. */
    const char *method;
    const char *query; /* escaped; NULL for none */
    bool to_bucket;    /* about the bucket, not the key */
    const void *body;  /* NULL for none */
    size_t body_len;
    const char *payload_hash; /* of the body, in hexadecimal digits */
    coffer__sigv4_header headers[COFFER__MAX_LINE_HEADERS];
    size_t header_count;
    bool only_new; /* If-None-Match: the object must not exist */
    bool is_slow;  /* joining the parts of a large object takes minutes at some servers */
    void *owner;

    /* The result. error.status is COFFER_OK when the server has decided; answer.status is what it said. */
    coffer_error error;
    coffer__http_answer answer;
    coffer__buffer reply;

    /* Used by s3_call.c alone. */
    coffer__http_exchange exchange;
    coffer__remote_request request;
    coffer__remote_patience patience;
    bool is_running, has_new_region;
    coffer__s3_call *next;
};

typedef struct coffer__s3_client {
    const coffer__http_module *module;
    coffer__http_client *http;
    coffer__remote_address address;
    const coffer_progress *progress; /* or NULL */
    uint64_t done, total;            /* for `progress` */
    bool was_answered;               /* the server exists */
    coffer__s3_call *calls;          /* running or paused */
} coffer__s3_client;

coffer_status coffer__s3_client_open(coffer__s3_client *out, const char *address, coffer_error *err);
void coffer__s3_client_close(coffer__s3_client *client);
coffer_status coffer__s3_begin(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err);
/* A call that has ended; NULL after timeout_ms. */
coffer__s3_call *coffer__s3_wait(coffer__s3_client *client, int timeout_ms);
/* Ends a call that has not ended, and frees what it holds. Safe for a call that never began. */
void coffer__s3_call_free(coffer__s3_client *client, coffer__s3_call *call);
/* Begins a call and waits for it; fails when the server could not be asked, or the caller cancels. */
coffer_status coffer__s3_ask(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err);
/* Reports progress; COFFER_E_CANCELLED when the caller wants to stop. */
coffer_status coffer__s3_report(coffer__s3_client *client, coffer_error *err);
/* The error for an answer that is not the one hoped for. what : "the server cannot store the object". */
coffer_status coffer__s3_fail(coffer__s3_call *call, const char *what, coffer_error *err);

#endif
