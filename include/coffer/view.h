#ifndef COFFER_VIEW_H
#define COFFER_VIEW_H

#include "coffer/page.h"

COFFER_BEGIN_DECLS

/* Views: the page of a file of any size. What can be known at once is shown first; a thread reads the rest,
 * and questions about parts are answered from the file, which stays open. */

typedef struct coffer_view coffer_view;

/* Opens a view of a file, or of two files of a kind, a comparison. Makes the first picture, without a pass
 * over the file, and starts a thread that reads the rest and then checks the files.
 * file, other : borrowed, must outlive the view. other : NULL for one file.
 * opts : as of coffer_chunks_new; NULL = defaults. max_bytes is not used, nor is progress: see
 * coffer_view_wait.
 * out : owned by the caller, free with coffer_view_close(); untouched on failure.
 * Thread safety: all calls with a view may run concurrently, except for coffer_view_close. */
COFFER_API_STATUS coffer_view_open(coffer_view **out, const coffer_file *file, const coffer_file *other,
                                   const coffer_chunks_opts *opts, coffer_error *err);
/* Cancels what is being read, and waits until it has ended. */
COFFER_API void coffer_view_close(coffer_view *view);

typedef enum coffer_view_stage {
    COFFER_VIEW_READING = 0,  /* "full" is being made */
    COFFER_VIEW_CHECKING = 1, /* "full" is there, "findings" are being made */
    COFFER_VIEW_DONE = 2
} coffer_view_stage;

typedef struct coffer_view_state {
    uint32_t struct_size;
    coffer_view_stage stage;
    uint32_t permille; /* of the stage; 0 while that is unknown */
} coffer_view_state;

#define COFFER_VIEW_STATE_INIT                                      \
    {                                                               \
        sizeof(coffer_view_state), COFFER_VIEW_READING, UINT32_C(0) \
    }
COFFER_API void coffer_view_state_init(coffer_view_state *out, uint32_t struct_size);

/* The state of the thread. seen : waits until the state is another one, at most the given time; NULL = does
 * not wait. */
COFFER_API_STATUS coffer_view_wait(coffer_view_state *out, coffer_view *view, const coffer_view_state *seen,
                                   uint32_t milliseconds, coffer_error *err);

/* An argument of a question, both in UTF-8. */
typedef struct coffer_view_arg {
    const char *name, *value;
} coffer_view_arg;

/* Answers a question with a bundle of chunks, which docs/formats/report-chunks.md describes, as it does the
 * questions and their arguments: "first", "full" and "findings" for every page, and "timeline", "window",
 * "tensor", "tile", "samples", "sample" about parts.
 * out : memory that is reused. COFFER_E_NOT_FOUND for a question that the page does not have,
 * COFFER_E_INVALID_ARGUMENT for an argument out of range, COFFER_E_LOCKED for "full" and "findings" that are
 * being made, and the error of their making when that failed. */
COFFER_API_STATUS coffer_view_ask(coffer_bytes *out, coffer_view *view, const char *question,
                                  const coffer_view_arg *args, size_t arg_count, coffer_error *err);

/* ---- Serving a view ---- */

/* A server on 127.0.0.1 that shows a view in a browser of the same user: it answers GET requests that carry
 * its random token, for its own host and origin, and nothing else. Requests cannot name files. */
typedef struct coffer_server coffer_server;

typedef struct coffer_server_opts {
    uint32_t struct_size;
    uint32_t port; /* 0 = a free one */
} coffer_server_opts;

#define COFFER_SERVER_OPTS_INIT       \
    {                                 \
        sizeof(coffer_server_opts), 0 \
    }
COFFER_API void coffer_server_opts_init(coffer_server_opts *opts, uint32_t struct_size);

/* Starts the threads of a server. view : borrowed, must outlive the server. opts : NULL = defaults.
 * COFFER_E_UNSUPPORTED when libmicrohttpd, or the script of the pages, is missing; the text says what to
 * install. out : owned by the caller, coffer_server_stop(); untouched on failure. */
COFFER_API_STATUS coffer_server_start(coffer_server **out, coffer_view *view, const coffer_server_opts *opts,
                                      coffer_error *err);
COFFER_API void coffer_server_stop(coffer_server *server);
COFFER_API uint32_t coffer_server_port(const coffer_server *server);
/* The address of the page, with the token: "http://127.0.0.1:34567/#token=…". */
COFFER_API const char *coffer_server_url(const coffer_server *server);
/* The same for one use, so that it may appear in the arguments of a browser: the first page that opens it
 * gets the token, all others are refused. */
COFFER_API const char *coffer_server_url_once(const coffer_server *server);
/* Milliseconds since the last page was closed; 0 while one is open, and before the first one is. */
COFFER_API uint64_t coffer_server_idle(coffer_server *server);

COFFER_END_DECLS

#endif
