/* Remote files through the whole stack, from a server in this process that answers ranges of one buffer. */
#include "base/memory.h"
#include "coffer/source.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE ((size_t)6 << 20)
#define THREADS 4

static uint8_t *data;
static int listener;
static char address[64];
static atomic_size_t sent;

static bool write_all(int fd, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Answers the requests of one connection. */
static void *serve(void *context)
{
    int fd = *(int *)context;
    char request[4096];
    size_t len = 0;
    free(context);
    for (;;) {
        ssize_t n = recv(fd, request + len, sizeof request - 1 - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
        request[len] = '\0';
        if (!strstr(request, "\r\n\r\n"))
            continue;
        const char *range = strstr(request, "Range: bytes=");
        size_t first = range ? strtoul(range + 13, NULL, 10) : 0;
        size_t last = range ? strtoul(strchr(range, '-') + 1, NULL, 10) : SIZE - 1;
        char header[200];
        if (last >= SIZE)
            last = SIZE - 1;
        int header_len =
            snprintf(header, sizeof header,
                     "HTTP/1.1 206 Partial\r\nContent-Range: bytes %zu-%zu/%zu\r\nETag: \"1\"\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     first, last, SIZE, last + 1 - first);
        atomic_fetch_add(&sent, last + 1 - first);
        if (!write_all(fd, header, (size_t)header_len) || !write_all(fd, data + first, last + 1 - first))
            break;
        len = 0;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = accept(listener, NULL, NULL), one = 1;
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        int *context = malloc(sizeof *context);
        pthread_t thread;
        if (!context)
            return NULL;
        *context = fd;
        if (pthread_create(&thread, NULL, serve, context) == 0)
            pthread_detach(thread);
    }
}

static int start_server(void **state)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof name;
    pthread_t thread;
    (void)state;
    data = malloc(SIZE);
    for (size_t i = 0; data && i < SIZE; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (!data || bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)&name, &len))
        return -1;
    snprintf(address, sizeof address, "http://127.0.0.1:%u/file", (unsigned)ntohs(name.sin_port));
    if (pthread_create(&thread, NULL, accept_all, NULL))
        return -1;
    return pthread_detach(thread);
}

static coffer_source *open_remote(void)
{
    coffer_source *src = NULL;
    coffer_error err = COFFER_ERROR_INIT;
    if (coffer_source_open(&src, address, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(coffer_source_size(src), SIZE);
    return src;
}

static void every_range_has_the_bytes_of_the_server(void **state)
{
    static const size_t ranges[][2] = { { 0, 1 },        { 65535, 2 },           { 16383, 2 },
                                        { SIZE - 1, 1 }, { 1000, 3 << 20 },      { 0, SIZE },
                                        { 4000000, 9 },  { SIZE - 40000, 40000 } };
    uint8_t *out = malloc(SIZE);
    coffer_source *src = open_remote();
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        memset(out, 0, ranges[i][1]);
        assert_int_equal(coffer_source_read_at(out, src, ranges[i][0], ranges[i][1], NULL), COFFER_OK);
        assert_memory_equal(out, data + ranges[i][0], ranges[i][1]);
    }
    assert_int_equal(coffer_source_read_at(out, src, SIZE, 1, NULL), COFFER_E_OUT_OF_BOUNDS);
    coffer_source_close(src);
    free(out);
}

static void a_small_read_costs_little_more_than_its_bytes(void **state)
{
    uint8_t out[100000];
    coffer_source *src = open_remote();
    (void)state;
    atomic_store(&sent, 0);
    assert_int_equal(coffer_source_read_at(out, src, 3000001, sizeof out, NULL), COFFER_OK);
    assert_true(atomic_load(&sent) <= sizeof out + 65536);
    coffer_source_close(src);
}

static void announced_ranges_are_fetched_once(void **state)
{
    coffer_range ranges[40];
    uint8_t out[5000];
    coffer_source *src = open_remote();
    (void)state;
    for (size_t i = 0; i < 40; i++)
        ranges[i] = (coffer_range){ 100000 + i * 140000, sizeof out };
    atomic_store(&sent, 0);
    coffer_source_prefetch(src, ranges, 40);
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(coffer_source_read_at(out, src, ranges[i].offset, sizeof out, NULL), COFFER_OK);
        assert_memory_equal(out, data + ranges[i].offset, sizeof out);
    }
    assert_true(atomic_load(&sent) <= 40 * 2 * 16384);
    coffer_source_close(src);
}

static void *read_randomly(void *context)
{
    coffer_source *src = context;
    uint8_t *out = malloc(300000);
    unsigned seed = (unsigned)(uintptr_t)&seed;
    bool right = true;
    for (int i = 0; i < 60 && right; i++) {
        size_t len = 1 + (size_t)rand_r(&seed) % 300000, offset = (size_t)rand_r(&seed) % (SIZE - len);
        right = !coffer_source_read_at(out, src, offset, len, NULL) && memcmp(out, data + offset, len) == 0;
    }
    free(out);
    return right ? src : NULL;
}

static void many_threads_read_at_once(void **state)
{
    pthread_t threads[THREADS];
    coffer_source *src = open_remote();
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_randomly, src), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, src);
    }
    coffer_source_close(src);
}

static void a_file_can_be_closed_while_more_is_on_its_way(void **state)
{
    const coffer_range all = { 0, SIZE };
    (void)state;
    for (int i = 0; i < 20; i++) {
        coffer_source *src = open_remote();
        coffer_source_prefetch(src, &all, 1);
        coffer_source_close(src);
    }
}

#ifndef __SANITIZE_THREAD__
static void a_child_process_reads_on_its_own(void **state)
{
    uint8_t out[4096];
    const coffer_range all = { 0, SIZE };
    coffer_source *src = open_remote();
    (void)state;
    coffer_source_prefetch(src, &all, 1); /* under way while the process forks */
    pid_t child = fork();
    if (child == 0) {
        bool right = true;
        for (size_t offset = 0; offset + sizeof out <= SIZE && right; offset += 500000)
            right = !coffer_source_read_at(out, src, offset, sizeof out, NULL) &&
                    memcmp(out, data + offset, sizeof out) == 0;
        _exit(right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(coffer_source_read_at(out, src, 5000000, sizeof out, NULL), COFFER_OK);
    assert_memory_equal(out, data + 5000000, sizeof out);
    coffer_source_close(src);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_has_the_bytes_of_the_server),
        cmocka_unit_test(a_small_read_costs_little_more_than_its_bytes),
        cmocka_unit_test(announced_ranges_are_fetched_once),
        cmocka_unit_test(many_threads_read_at_once),
        cmocka_unit_test(a_file_can_be_closed_while_more_is_on_its_way),
#ifndef __SANITIZE_THREAD__ /* which allows no threads after a fork */
        cmocka_unit_test(a_child_process_reads_on_its_own),
#endif
    };
    return cmocka_run_group_tests(tests, start_server, NULL);
}
