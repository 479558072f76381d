/* The module coffer-http: requests to HTTP servers, several at once, without any decision about them.
 * Retries, redirects, ranges and signatures are the business of its caller. */
#ifndef COFFER_IO_REMOTE_HTTP_H
#define COFFER_IO_REMOTE_HTTP_H

#include "base/module.h"

/* Why an exchange ended. */
typedef enum coffer__http_end {
    COFFER__HTTP_ANSWERED, /* the server sent a whole answer */
    COFFER__HTTP_STOPPED,  /* a callback returned false */
    COFFER__HTTP_BROKEN,   /* no connection, or it was cut, or nothing came for too long: worth another try */
    COFFER__HTTP_IMPOSSIBLE /* unknown host, certificate that cannot be trusted … */
} coffer__http_end;

/* One request and its answer. The caller sets the first part and keeps it until the exchange has ended. */
typedef struct coffer__http_exchange {
    const char *method;
    const char *url;
    const char *const *headers; /* "Name: value" */
    size_t header_count;
    const void *upload; /* body of the request, or NULL */
    size_t upload_len;
    unsigned connect_ms, stall_ms; /* 0 : no limit */
    void *context;
    /* A line of the header, and some bytes of the body. False ends the exchange. */
    bool (*on_header)(void *context, const char *line, size_t len);
    bool (*on_body)(void *context, const void *bytes, size_t len);

    /* Set by the module. */
    coffer__http_end end;
    char problem[160]; /* in words, unless end is COFFER__HTTP_ANSWERED */
    uint64_t sent;     /* bytes of `upload` so far */
    void *handle;
} coffer__http_exchange;

typedef struct coffer__http_client coffer__http_client;

/* All functions but `wake` belong to one thread. */
typedef struct coffer__http_module {
    coffer__module common;
    coffer__http_client *(*client_new)(void); /* NULL: no memory */
    void (*client_free)(coffer__http_client *client);
    bool (*begin)(coffer__http_client *client, coffer__http_exchange *exchange); /* false: no memory */
    /* Ends an exchange early; its callbacks are not called any more. */
    void (*abandon)(coffer__http_client *client, coffer__http_exchange *exchange);
    /* An exchange that has ended; NULL after timeout_ms or `wake`. */
    coffer__http_exchange *(*wait)(coffer__http_client *client, int timeout_ms);
    void (*wake)(coffer__http_client *client); /* from any thread */
} coffer__http_module;

#endif
