/* Which requests a server answers, and how. */
#include "view/serve.h"

#include "base/buffer.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "view/view_private.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

COFFER__INIT_FUNCTION(coffer_server_opts, COFFER_SERVER_OPTS_INIT)

enum { SECRET_BYTES = 32, URL_ROOM = 128 };
#define SECRET_TEXT sodium_base64_ENCODED_LEN(SECRET_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING)

/* A page keeps one request open, so that the server knows that it is there. A browser has few connections to
 * a server for all its pages: when some wait already, the others ask again after a while. */
enum { MOST_WAITING = 3, WAIT_SECONDS = 20, WAIT_STEP = 250 };

struct coffer_server {
    coffer_view *view;
    const coffer__serve_module *module;
    void *daemon;
    coffer_bytes shell;
    _Atomic uint16_t port; /* 0 until the server listens: then no host is its own */
    char token[SECRET_TEXT], once[SECRET_TEXT];
    char url[URL_ROOM], url_once[URL_ROOM];
    atomic_bool stops;
    pthread_mutex_t mutex; /* for the members below */
    bool once_used, seen;
    unsigned waiting;
    uint64_t last_seen; /* milliseconds of the monotonic clock */
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* ---- Responses ---- */

static void put_text(coffer__response *out, unsigned status, const char *type, const char *text)
{
    size_t size = strlen(text);
    uint8_t *copy = coffer__malloc(size + 1);
    out->status = copy ? status : 500;
    out->type = type;
    if (!copy)
        return;
    memcpy(copy, text, size);
    out->body = (coffer_bytes){ copy, size, size + 1 };
}

static void refuse(coffer__response *out, unsigned status, const char *why)
{
    put_text(out, status, "text/plain; charset=utf-8", why);
}

static void put_error(coffer__response *out, const coffer_error *err)
{
    unsigned status = err->status == COFFER_E_NOT_FOUND          ? 404
                      : err->status == COFFER_E_INVALID_ARGUMENT ? 400
                      : err->status == COFFER_E_LOCKED           ? 409
                                                                 : 500;
    refuse(out, status, err->text);
}

/* ---- Who asks ---- */

static bool is_own_host(const coffer_server *server, const char *host)
{
    char name[40];
    static const char *const names[] = { "127.0.0.1", "localhost" };
    for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s:%u", names[i], (unsigned)atomic_load(&server->port));
        if (strcmp(host, name) == 0)
            return true;
    }
    return false;
}

static bool is_own_origin(const coffer_server *server, const coffer__request *request)
{
    static const char scheme[] = "http://";
    if (request->origin && (strncmp(request->origin, scheme, strlen(scheme)) != 0 ||
                            !is_own_host(server, request->origin + strlen(scheme))))
        return false;
    return !request->site || strcmp(request->site, "same-origin") == 0 || strcmp(request->site, "none") == 0;
}

/* In a time that does not depend on where the texts differ. */
static bool is_secret(const char *secret, const char *given)
{
    return given && strlen(given) == SECRET_TEXT - 1 && sodium_memcmp(secret, given, SECRET_TEXT - 1) == 0;
}

static void give_token(coffer_server *server, const coffer__request *request, coffer__response *out)
{
    bool given = is_secret(server->once, request->once);
    pthread_mutex_lock(&server->mutex);
    bool used = server->once_used;
    server->once_used |= given;
    pthread_mutex_unlock(&server->mutex);
    if (given && !used)
        put_text(out, 200, "text/plain; charset=utf-8", server->token);
    else
        refuse(out, 403,
               given ? "this address was opened before: use the one that coffer printed"
                     : "the code is wrong");
}

/* ---- Waiting ---- */

static void note_page(coffer_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->seen = true;
    server->last_seen = now();
    pthread_mutex_unlock(&server->mutex);
}

static bool begin_waiting(coffer_server *server)
{
    pthread_mutex_lock(&server->mutex);
    bool may = server->waiting < MOST_WAITING;
    server->waiting += may;
    pthread_mutex_unlock(&server->mutex);
    return may;
}

static void end_waiting(coffer_server *server)
{
    pthread_mutex_lock(&server->mutex);
    server->waiting--;
    server->last_seen = now();
    pthread_mutex_unlock(&server->mutex);
}

uint64_t coffer_server_idle(coffer_server *server)
{
    pthread_mutex_lock(&server->mutex);
    uint64_t idle = server->seen && server->waiting == 0 ? now() - server->last_seen : 0;
    pthread_mutex_unlock(&server->mutex);
    return idle;
}

static const char *const stages[] = { "reading", "checking", "done" };

/* "stage" and "permille" : what the page knows; without them the state is given at once. */
static coffer_status wait_for_change(coffer_view_state *state, coffer_server *server,
                                     const coffer__request *request, coffer_error *err)
{
    const coffer__question question = { "state", request->args, request->arg_count };
    coffer_view_state known = COFFER_VIEW_STATE_INIT;
    const char *stage = coffer__question_text(&question, "stage");
    uint64_t permille = 0;
    coffer_status status = coffer__question_number(&permille, &question, "permille", 0, 0, 1000, err);
    if (status || !stage || !begin_waiting(server))
        return status ? status : coffer_view_wait(state, server->view, NULL, 0, err);
    for (unsigned i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(stage, stages[i]) == 0)
            known.stage = (coffer_view_stage)i;
    known.permille = (uint32_t)permille;
    uint64_t begin = now();
    do
        status = coffer_view_wait(state, server->view, &known, WAIT_STEP, err);
    while (!status && state->stage == known.stage && state->permille == known.permille &&
           !atomic_load(&server->stops) && now() - begin < WAIT_SECONDS * 1000 &&
           !request->is_gone(request->connection));
    end_waiting(server);
    return status;
}

static void give_state(coffer_server *server, const coffer__request *request, coffer__response *out)
{
    char text[100];
    coffer_error err = COFFER_ERROR_INIT;
    coffer_view_state state = COFFER_VIEW_STATE_INIT;
    if (wait_for_change(&state, server, request, &err)) {
        put_error(out, &err);
        return;
    }
    snprintf(text, sizeof text, "{\"stage\":\"%s\",\"permille\":%u}", stages[state.stage], state.permille);
    put_text(out, 200, "application/json", text);
}

/* ---- Questions ---- */

typedef struct asking {
    coffer_server *server;
    const coffer__request *request;
} asking;

/* Nobody waits for the answer to a request that is gone. */
static int cancel_when_gone(void *context, uint64_t done, uint64_t total)
{
    const asking *from = context;
    (void)done;
    (void)total;
    return atomic_load(&from->server->stops) || from->request->is_gone(from->request->connection);
}

static void give_answer(coffer_server *server, const coffer__request *request, const char *question,
                        coffer__response *out)
{
    coffer_error err = COFFER_ERROR_INIT;
    coffer_progress progress = COFFER_PROGRESS_INIT;
    asking from = { server, request };
    coffer__question asked = { question, request->args, request->arg_count };
    progress.step = cancel_when_gone;
    progress.context = &from;
    if (coffer__view_ask(&out->body, server->view, &asked, &progress, &err)) {
        put_error(out, &err);
        return;
    }
    out->status = 200;
    out->type = "application/octet-stream";
}

static void give_shell(coffer_server *server, coffer__response *out)
{
    coffer_error err = COFFER_ERROR_INIT;
    out->policy = "frame-ancestors 'none'"; /* the page has the rest */
    out->status = 200;
    out->type = "text/html; charset=utf-8";
    if (coffer__view_copy(&out->body, &server->shell, &err))
        put_error(out, &err);
}

static void answer(void *context, const coffer__request *request, coffer__response *out)
{
    static const char ask[] = "/ask/";
    coffer_server *server = context;
    out->policy = "default-src 'none'; frame-ancestors 'none'";
    if (strcmp(request->method, "GET") != 0) {
        out->allow = "GET";
        refuse(out, 405, "only GET is answered");
    } else if (!is_own_host(server, request->host)) {
        refuse(out, 421, "this server answers for 127.0.0.1 only");
    } else if (strcmp(request->path, "/") == 0) {
        give_shell(server, out);
    } else if (!is_own_origin(server, request)) {
        refuse(out, 403, "another page asks");
    } else if (strcmp(request->path, "/token") == 0) {
        give_token(server, request, out);
    } else if (!is_secret(server->token, request->token)) {
        refuse(out, 403, "the token is wrong: open the address that coffer printed");
    } else if (request->arg_count > COFFER__MOST_ARGS) {
        refuse(out, 400, "too many arguments");
    } else {
        note_page(server);
        if (strcmp(request->path, "/state") == 0)
            give_state(server, request, out);
        else if (strncmp(request->path, ask, strlen(ask)) == 0)
            give_answer(server, request, request->path + strlen(ask), out);
        else
            refuse(out, 404, "not found");
    }
}

/* ---- Create and free ---- */

static void make_secret(char *out)
{
    uint8_t bytes[SECRET_BYTES];
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2base64(out, SECRET_TEXT, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

static coffer_status start(coffer_server *server, uint32_t port, coffer_error *err)
{
    sigset_t before;
    if (port > UINT16_MAX)
        return coffer__fail(err, COFFER_E_INVALID_ARGUMENT, COFFER_OFFSET_NONE,
                            "port %u: ports go from 1 to 65535", port);
    server->module = coffer__module_load(COFFER__MODULE_SERVE, sizeof *server->module, err);
    if (!server->module)
        return COFFER_E_UNSUPPORTED;
    coffer_status status = coffer__page_write_shell(&server->shell, err);
    if (status)
        return status;
    make_secret(server->token);
    make_secret(server->once);
    uint16_t chosen = (uint16_t)port;
    coffer__thread_block_signals(&before);
    server->daemon = server->module->start(&chosen, answer, server);
    int problem = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&server->port, chosen);
    if (!server->daemon) {
        char what[60];
        snprintf(what, sizeof what, "listening at 127.0.0.1, port %u", port);
        return coffer__fail_errno(err, what, problem);
    }
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/#token=%s", (unsigned)chosen,
             server->token);
    snprintf(server->url_once, sizeof server->url_once, "http://127.0.0.1:%u/#once=%s", (unsigned)chosen,
             server->once);
    return COFFER_OK;
}

coffer_status coffer_server_start(coffer_server **out, coffer_view *view, const coffer_server_opts *opts,
                                  coffer_error *err)
{
    coffer_server_opts options = COFFER_SERVER_OPTS_INIT;
    coffer_status status = coffer__take_options(&options, sizeof options, opts, err);
    if (status)
        return status;
    coffer_server *server = coffer__calloc(1, sizeof *server);
    if (!server)
        return coffer__fail_no_memory(err, sizeof *server);
    server->view = view;
    pthread_mutex_init(&server->mutex, NULL);
    status = start(server, options.port, err);
    if (status) {
        coffer_server_stop(server);
        return status;
    }
    *out = server;
    return COFFER_OK;
}

void coffer_server_stop(coffer_server *server)
{
    if (!server)
        return;
    atomic_store(&server->stops, true);
    if (server->daemon)
        server->module->stop(server->daemon);
    coffer_free(server->shell.data);
    pthread_mutex_destroy(&server->mutex);
    sodium_memzero(server->token, sizeof server->token);
    coffer__free(server);
}

uint32_t coffer_server_port(const coffer_server *server)
{
    return atomic_load(&server->port);
}

const char *coffer_server_url(const coffer_server *server)
{
    return server->url;
}

const char *coffer_server_url_once(const coffer_server *server)
{
    return server->url_once;
}
