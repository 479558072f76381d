#include "io/remote/s3_call.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CONNECT_MS 15000
#define STALL_MS 60000
#define SLOW_STALL_MS 300000
#define MAX_FIRST_TRIES 3
#define MAX_REPLY ((size_t)4 << 20)
#define STEP_MS 100

coffer_status coffer__s3_client_open(coffer__s3_client *out, const char *address, coffer_error *err)
{
    coffer__s3_client client = { 0 };
    coffer_status status = coffer__remote_address_parse(&client.address, address, err);
    if (status)
        return status;
    client.module = coffer__module_load(COFFER__MODULE_HTTP, sizeof *client.module, err);
    client.http = client.module ? client.module->client_new() : NULL;
    if (!client.http) {
        coffer__remote_address_free(&client.address);
        return client.module ? coffer__fail_no_memory(err, sizeof(void *)) : COFFER_E_UNSUPPORTED;
    }
    *out = client;
    return COFFER_OK;
}

void coffer__s3_client_close(coffer__s3_client *client)
{
    while (client->calls)
        coffer__s3_call_free(client, client->calls);
    if (client->http)
        client->module->client_free(client->http);
    coffer__remote_address_free(&client->address);
    *client = (coffer__s3_client){ 0 };
}

static bool on_header(void *context, const char *line, size_t len)
{
    coffer__s3_call *call = context;
    return coffer__http_answer_line(&call->answer, line, len);
}

static bool on_body(void *context, const void *bytes, size_t len)
{
    coffer__s3_call *call = context;
    return coffer__buffer_append(&call->reply, bytes, len);
}

/* The URL of the object or its bucket with the query of the call. The texts are borrowed. */
static coffer_status url_of(coffer__url *out, const coffer__s3_client *client, const coffer__s3_call *call,
                            coffer_error *err)
{
    const coffer__url *object = &client->address.url;
    size_t bucket_len = client->address.bucket_len;
    *out = *object;
    out->user = NULL;
    out->query = NULL;
    out->path = call->to_bucket
                    ? coffer__strndup(bucket_len ? object->path : "/", bucket_len ? bucket_len : 1)
                    : coffer__strdup(object->path);
    if (call->query)
        out->query = coffer__strdup(call->query);
    if (out->path && (out->query || !call->query))
        return COFFER_OK;
    coffer__free(out->path);
    return coffer__fail_no_memory(err, strlen(object->path));
}

static coffer_status make_request(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err)
{
    coffer__url url;
    coffer__remote_request *request = &call->request;
    coffer_status status = url_of(&url, client, call, err);
    if (status)
        return status;
    const coffer__request_line line = { call->method, call->payload_hash, call->headers, call->header_count };
    status = coffer__remote_request_make(request, &client->address, &url, &line, time(NULL), err);
    /* Neither the type of a form nor a second without an answer before the body is sent. */
    if (!status)
        status = coffer__remote_request_add(request, err, "Content-Type: application/octet-stream");
    if (!status)
        status = coffer__remote_request_add(request, err, "Expect:");
    if (!status && call->only_new)
        status = coffer__remote_request_add(request, err, "If-None-Match: *");
    coffer__free(url.path);
    coffer__free(url.query);
    return status;
}

static coffer_status run(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err)
{
    coffer_status status = make_request(client, call, err);
    if (status) {
        coffer__remote_request_free(&call->request);
        return status;
    }
    call->answer = (coffer__http_answer){ 0 };
    call->reply.len = 0;
    call->exchange = (coffer__http_exchange){
        .method = call->method,
        .url = call->request.url,
        .headers = (const char *const *)call->request.headers,
        .header_count = call->request.header_count,
        .upload = call->body,
        .upload_len = call->body_len,
        .connect_ms = CONNECT_MS,
        .stall_ms = call->is_slow ? SLOW_STALL_MS : STALL_MS,
        .context = call,
        .on_header = on_header,
        .on_body = on_body,
    };
    if (!client->module->begin(client->http, &call->exchange)) {
        coffer__remote_request_free(&call->request);
        return coffer__fail_no_memory(err, sizeof call->exchange);
    }
    call->is_running = true;
    return COFFER_OK;
}

coffer_status coffer__s3_begin(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err)
{
    coffer__buffer_init(&call->reply, MAX_REPLY);
    call->error = (coffer_error)COFFER_ERROR_INIT;
    call->patience = (coffer__remote_patience){ .progress_ms = coffer__remote_clock() };
    call->has_new_region = false;
    coffer_status status = run(client, call, err);
    if (!status) {
        call->next = client->calls;
        client->calls = call;
    }
    return status;
}

static bool leave(coffer__s3_client *client, coffer__s3_call *call)
{
    coffer__s3_call **at = &client->calls;
    while (*at && *at != call)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = call->next;
    return true;
}

void coffer__s3_call_free(coffer__s3_client *client, coffer__s3_call *call)
{
    leave(client, call);
    if (call->is_running) {
        client->module->abandon(client->http, &call->exchange);
        coffer__remote_request_free(&call->request);
    }
    call->is_running = false;
    coffer__buffer_free(&call->reply);
}

/* Pauses, or gives up. `words` : why another try is needed. */
static bool try_again(const coffer__s3_client *client, coffer__s3_call *call, const char *words)
{
    unsigned tries = client->was_answered ? COFFER__REMOTE_MAX_TRIES : MAX_FIRST_TRIES;
    uint64_t since = call->patience.progress_ms;
    if (call->exchange.sent)
        call->patience.progress_ms = coffer__remote_clock();
    if (coffer__remote_pause(&call->patience, tries, call->answer.retry_after))
        return false;
    coffer__fail(&call->error, COFFER_E_IO, COFFER_OFFSET_NONE, "%s; gave up after %u tries in %" PRIu64 " s",
                 words, call->patience.tries, (coffer__remote_clock() - since) / 1000);
    call->error.system_error = ETIMEDOUT;
    return true;
}

static bool has_ended(coffer__s3_client *client, coffer__s3_call *call)
{
    const char *reply = coffer__buffer_text(&call->reply);
    int status = call->answer.status;
    char words[80];
    switch (call->exchange.end) {
    case COFFER__HTTP_ANSWERED:
        client->was_answered = true;
        if ((status == 301 || status == 307 || status == 400) && !call->has_new_region) {
            call->has_new_region = coffer__remote_learn_region(&client->address, &call->answer);
            if (call->has_new_region)
                return false;
        }
        /* An upload may fail after its answer has begun with 200. */
        if (status == 200 && strstr(reply, "<Error>"))
            status = call->answer.status = 500;
        snprintf(words, sizeof words, "the server is not ready (HTTP %d)", status);
        if ((coffer__remote_is_busy(status) && status != 501) || strstr(reply, "RequestTimeout"))
            return try_again(client, call, words);
        return true;
    case COFFER__HTTP_BROKEN:
        return try_again(client, call, call->exchange.problem);
    case COFFER__HTTP_STOPPED:
        coffer__fail(&call->error, COFFER_E_IO, COFFER_OFFSET_NONE,
                     "the answer of the server is longer than %zu bytes",
                     call->reply.failed ? MAX_REPLY : COFFER__HTTP_MAX_HEADER);
        return true;
    default:
        coffer__fail(&call->error, COFFER_E_IO, COFFER_OFFSET_NONE, "%s", call->exchange.problem);
        return true;
    }
}

/* Begins calls whose pause is over, and shortens the wait for those whose is not. A call that cannot be made
 * again has ended. */
static coffer__s3_call *resume_due(coffer__s3_client *client, int *timeout_ms)
{
    uint64_t now = coffer__remote_clock();
    for (coffer__s3_call *call = client->calls; call; call = call->next) {
        if (call->is_running)
            continue;
        uint64_t left = call->patience.resume_ms > now ? call->patience.resume_ms - now : 0;
        if (left < (uint64_t)*timeout_ms)
            *timeout_ms = (int)left;
        if (left == 0 && run(client, call, &call->error))
            return call;
    }
    return NULL;
}

coffer__s3_call *coffer__s3_wait(coffer__s3_client *client, int timeout_ms)
{
    coffer__s3_call *ended = resume_due(client, &timeout_ms);
    if (!ended) {
        coffer__http_exchange *exchange = client->module->wait(client->http, timeout_ms);
        if (!exchange)
            return NULL;
        ended = exchange->context;
        ended->is_running = false;
        coffer__remote_request_free(&ended->request);
        if (!has_ended(client, ended))
            return NULL;
    }
    leave(client, ended);
    return ended;
}

coffer_status coffer__s3_report(coffer__s3_client *client, coffer_error *err)
{
    return coffer__progress_step(client->progress, client->done, client->total, err);
}

coffer_status coffer__s3_ask(coffer__s3_client *client, coffer__s3_call *call, coffer_error *err)
{
    coffer_status status = coffer__s3_begin(client, call, err);
    while (!status && coffer__s3_wait(client, STEP_MS) != call)
        status = coffer__s3_report(client, err);
    if (!status && call->error.status)
        status = coffer__fail_copy(err, &call->error);
    return coffer__fail_output(err, status);
}

coffer_status coffer__s3_fail(coffer__s3_call *call, const char *what, coffer_error *err)
{
    const char *reply = coffer__buffer_text(&call->reply);
    coffer_status status =
        coffer__remote_fail_status(err, &call->answer, reply, "the server does not let us write it", what);
    return coffer__fail_output(err, status);
}
