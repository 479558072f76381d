/* The module coffer-serve over libmicrohttpd. */
#include "base/memory.h"
#include "view/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_CONNECTIONS = 256, REQUEST_BYTES = 32 << 10, QUIET_SECONDS = 30 };

typedef struct serving {
    struct MHD_Daemon *daemon;
    coffer__serve_answer answer;
    void *context;
} serving;

static enum MHD_Result take_arg(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    coffer__request *request = context;
    (void)kind;
    if (request->arg_count < COFFER__MOST_ARGS)
        request->args[request->arg_count] = (coffer_view_arg){ key, value ? value : "" };
    request->arg_count++;
    return MHD_YES;
}

static bool is_gone(void *connection)
{
    char byte;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return false;
    ssize_t got = recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static void add_headers(struct MHD_Response *message, const coffer__response *response)
{
    MHD_add_response_header(message, "Content-Type", response->type);
    MHD_add_response_header(message, "Content-Security-Policy", response->policy);
    MHD_add_response_header(message, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(message, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(message, "Cache-Control", "no-store");
    MHD_add_response_header(message, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(message, "Cross-Origin-Opener-Policy", "same-origin");
    if (response->allow)
        MHD_add_response_header(message, "Allow", response->allow);
}

static enum MHD_Result send_response(struct MHD_Connection *connection, coffer__response *response)
{
    struct MHD_Response *message =
        response->body.size
            ? MHD_create_response_from_buffer_with_free_callback(response->body.size, response->body.data,
                                                                 coffer_free)
            : MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (!message) {
        coffer_free(response->body.data);
        return MHD_NO;
    }
    add_headers(message, response);
    enum MHD_Result result = MHD_queue_response(connection, response->status, message);
    MHD_destroy_response(message);
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    const serving *server = context;
    coffer__request request = {
        .method = method,
        .path = url,
        .host = header_of(connection, "Host"),
        .origin = header_of(connection, "Origin"),
        .site = header_of(connection, "Sec-Fetch-Site"),
        .token = header_of(connection, "X-Coffer-Token"),
        .once = header_of(connection, "X-Coffer-Once"),
        .is_gone = is_gone,
        .connection = connection,
    };
    coffer__response response = { .status = MHD_HTTP_INTERNAL_SERVER_ERROR };
    (void)version;
    (void)upload;
    (void)state;
    *upload_size = 0; /* nobody reads the body of a request */
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_arg, &request);
    server->answer(server->context, &request, &response);
    return send_response(connection, &response);
}

static void say_nothing(void *context, const char *format, va_list arguments)
{
    (void)context;
    (void)format;
    (void)arguments;
}

static void *start(uint16_t *port, coffer__serve_answer answer, void *context)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
    serving *server = coffer__calloc(1, sizeof *server);
    if (!server) {
        errno = ENOMEM;
        return NULL;
    }
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->answer = answer;
    server->context = context;
    errno = 0;
    server->daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, *port, NULL, NULL,
        on_request, server, MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)REQUEST_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)QUIET_SECONDS, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) {
        int problem = errno ? errno : EIO;
        if (server->daemon)
            MHD_stop_daemon(server->daemon);
        coffer__free(server);
        errno = problem;
        return NULL;
    }
    *port = info->port;
    return server;
}

static void stop(void *daemon)
{
    serving *server = daemon;
    MHD_stop_daemon(server->daemon);
    coffer__free(server);
}

static const coffer__serve_module table = {
    .common = COFFER__MODULE_INIT(coffer__serve_module, MHD_get_version),
    .start = start,
    .stop = stop,
};

COFFER__MODULE_EXPORT(serve, table);
