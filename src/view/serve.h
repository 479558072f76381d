/* The server of a view: what it answers is decided in serve.c; the module coffer-serve speaks HTTP. */
#ifndef COFFER_VIEW_SERVE_H
#define COFFER_VIEW_SERVE_H

#include "base/module.h"
#include "coffer/view.h"

enum { COFFER__MOST_ARGS = 16 };

typedef struct coffer__request {
    const char *method, *path;
    /* Headers; NULL without. */
    const char *host, *origin, *site, *token, *once;
    coffer_view_arg args[COFFER__MOST_ARGS];
    size_t arg_count; /* may be larger than the room */
    /* Whether the other side has closed the connection. */
    bool (*is_gone)(void *connection);
    void *connection;
} coffer__request;

typedef struct coffer__response {
    unsigned status;
    const char *type;   /* Content-Type */
    const char *policy; /* Content-Security-Policy */
    const char *allow;  /* Allow; NULL without */
    coffer_bytes body;  /* owned */
} coffer__response;

typedef void (*coffer__serve_answer)(void *context, const coffer__request *request,
                                     coffer__response *response);

typedef struct coffer__serve_module {
    coffer__module common;
    /* Listens at 127.0.0.1:*port, or at a free port, which *port gets. The answers run concurrently. NULL
     * with errno. */
    void *(*start)(uint16_t *port, coffer__serve_answer answer, void *context);
    /* Returns after the last answer. */
    void (*stop)(void *daemon);
} coffer__serve_module;

#endif
