/* The module coffer-http over libcurl's multi interface. */
#include "base/memory.h"
#include "io/remote/http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVE_BUFFER (512L * 1024)
#define SEND_BUFFER (512L * 1024)
#define MAX_IDLE 32

struct coffer__http_client {
    CURLM *multi;
    CURL *idle[MAX_IDLE]; /* handles of ended exchanges */
    size_t idle_count;
};

static void global_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static coffer__http_client *client_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, global_init);
    coffer__http_client *client = coffer__calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->multi = curl_multi_init();
    if (!client->multi) {
        coffer__free(client);
        return NULL;
    }
    curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, 64L);
    return client;
}

static void client_free(coffer__http_client *client)
{
    for (size_t i = 0; i < client->idle_count; i++)
        curl_easy_cleanup(client->idle[i]);
    curl_multi_cleanup(client->multi);
    coffer__free(client);
}

static size_t header_line(char *bytes, size_t size, size_t count, void *context)
{
    const coffer__http_exchange *exchange = context;
    return exchange->on_header(exchange->context, bytes, size * count) ? size * count : 0;
}

static size_t body_bytes(char *bytes, size_t size, size_t count, void *context)
{
    const coffer__http_exchange *exchange = context;
    size_t len = size * count;
    if (len == 0)
        return 0;
    return exchange->on_body(exchange->context, bytes, len) ? len : 0;
}

static int count_sent(void *context, curl_off_t expected, curl_off_t got, curl_off_t sending, curl_off_t sent)
{
    coffer__http_exchange *exchange = context;
    (void)expected, (void)got, (void)sending;
    exchange->sent = (uint64_t)sent;
    return 0;
}

static bool set_headers(CURL *easy, const coffer__http_exchange *exchange, struct curl_slist **out)
{
    struct curl_slist *list = NULL;
    for (size_t i = 0; i < exchange->header_count; i++) {
        struct curl_slist *longer = curl_slist_append(list, exchange->headers[i]);
        if (!longer) {
            curl_slist_free_all(list);
            return false;
        }
        list = longer;
    }
    *out = list;
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

/* As the command curl does; the library alone ignores this variable. */
static void set_certificates(CURL *easy)
{
    const char *bundle = getenv("CURL_CA_BUNDLE");
    if (bundle && *bundle)
        curl_easy_setopt(easy, CURLOPT_CAINFO, bundle);
}

static void set_method(CURL *easy, const coffer__http_exchange *exchange)
{
    if (strcmp(exchange->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (exchange->upload) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->upload);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->upload_len);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange->method);
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, SEND_BUFFER);
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, count_sent);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, exchange);
    } else if (strcmp(exchange->method, "GET") != 0) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, exchange->method);
    }
}

static void set_options(CURL *easy, coffer__http_exchange *exchange)
{
    curl_easy_setopt(easy, CURLOPT_URL, exchange->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "coffer/" COFFER_VERSION_STRING);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)exchange->connect_ms);
    if (exchange->stall_ms) {
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)(exchange->stall_ms + 999) / 1000);
    }
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    set_certificates(easy);
    set_method(easy, exchange);
}

/* State of an exchange while it runs. */
typedef struct running {
    CURL *easy;
    struct curl_slist *headers;
    char words[CURL_ERROR_SIZE];
} running;

static void give_handle_back(coffer__http_client *client, CURL *easy)
{
    curl_easy_reset(easy);
    if (client->idle_count < MAX_IDLE)
        client->idle[client->idle_count++] = easy;
    else
        curl_easy_cleanup(easy);
}

static bool begin(coffer__http_client *client, coffer__http_exchange *exchange)
{
    running *run = coffer__calloc(1, sizeof *run);
    if (!run)
        return false;
    run->easy = client->idle_count ? client->idle[--client->idle_count] : curl_easy_init();
    exchange->handle = run;
    exchange->problem[0] = '\0';
    exchange->sent = 0;
    if (run->easy) {
        set_options(run->easy, exchange);
        curl_easy_setopt(run->easy, CURLOPT_ERRORBUFFER, run->words);
        if (set_headers(run->easy, exchange, &run->headers) &&
            curl_multi_add_handle(client->multi, run->easy) == CURLM_OK)
            return true;
        curl_slist_free_all(run->headers);
        give_handle_back(client, run->easy);
    }
    exchange->handle = NULL;
    coffer__free(run);
    return false;
}

static void abandon(coffer__http_client *client, coffer__http_exchange *exchange)
{
    running *run = exchange->handle;
    curl_multi_remove_handle(client->multi, run->easy);
    give_handle_back(client, run->easy);
    curl_slist_free_all(run->headers);
    coffer__free(run);
    exchange->handle = NULL;
}

static coffer__http_end end_for(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return COFFER__HTTP_ANSWERED;
    case CURLE_WRITE_ERROR: /* a callback refused */
        return COFFER__HTTP_STOPPED;
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_WEIRD_SERVER_REPLY:
        return COFFER__HTTP_BROKEN;
    default:
        return COFFER__HTTP_IMPOSSIBLE;
    }
}

static coffer__http_exchange *take_ended(coffer__http_client *client)
{
    int left;
    CURLMsg *message;
    do {
        message = curl_multi_info_read(client->multi, &left);
    } while (message && message->msg != CURLMSG_DONE);
    if (!message)
        return NULL;
    coffer__http_exchange *exchange = NULL;
    CURLcode code = message->data.result; /* gone with the handle */
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
    const running *run = exchange->handle;
    exchange->end = end_for(code);
    snprintf(exchange->problem, sizeof exchange->problem, "%.150s",
             run->words[0] ? run->words : curl_easy_strerror(code));
    abandon(client, exchange);
    return exchange;
}

static coffer__http_exchange *wait_for_end(coffer__http_client *client, int timeout_ms)
{
    int still;
    curl_multi_perform(client->multi, &still);
    coffer__http_exchange *ended = take_ended(client);
    if (ended)
        return ended;
    curl_multi_poll(client->multi, NULL, 0, timeout_ms, NULL);
    curl_multi_perform(client->multi, &still);
    return take_ended(client);
}

static void wake(coffer__http_client *client)
{
    curl_multi_wakeup(client->multi);
}

static const char *library_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}

static const coffer__http_module module = {
    COFFER__MODULE_INIT(coffer__http_module, library_version),
    client_new,
    client_free,
    begin,
    abandon,
    wait_for_end,
    wake,
};
COFFER__MODULE_EXPORT(http, module);
